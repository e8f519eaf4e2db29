"""What can go wrong with the processes of a topology.

NoisefloorError
├── NotRunning          nothing was started in this folder
│   └── StaleState      something was, and every process of it is gone
├── FolderBusy          something runs there already, or somebody else is starting or stopping it
├── StartFailed         a process did not come up; what was started was stopped again
├── ServicesMissing     the services' libraries are not installed
└── BadState            the file that says what runs cannot be read
"""

from noisefloor.errors import MissingExtra, NoisefloorError


class NotRunning(NoisefloorError):
    """Nothing runs in this folder."""


class StaleState(NotRunning):
    """Something was started in this folder, and none of it runs any more."""


class FolderBusy(NoisefloorError):
    """Something runs in this folder already, or is being started or stopped there."""


class StartFailed(NoisefloorError):
    """A process did not come up; whatever was started with it was stopped again.

    Args:
        name: Of the process.
        why: What it lacks, or the last line of its log.
        log: Where its log is.
    """

    def __init__(self, name: str, why: str, log: str) -> None:
        super().__init__(f"{name} did not come up: {why} Its log: {log}")
        self.name = name
        self.why = why
        self.log = log

    def __reduce__(self) -> tuple[type, tuple[str, str, str]]:
        return type(self), (self.name, self.why, self.log)


class ServicesMissing(MissingExtra):
    """The services need libraries that are not installed."""


class BadState(NoisefloorError):
    """The file that says what runs cannot be read."""
