"""The versions of what is kept on disk: scenario files and run folders.

A number is raised only when files written before would be misread. From then on the older ones
are converted where they are read, or refused with what to do.
"""

SCENARIO_FORMAT = 1
RUN_FORMAT = 1
FORMATS = {"scenario": SCENARIO_FORMAT, "run": RUN_FORMAT}


def format_fault(found: int | None, current: int, redo: str) -> str:
    """Say why a file of some format cannot be read; nothing if it can.

    Args:
        found: The format it says it has; None if it says nothing.
        current: The format that is written here.
        redo: What to do with a file that an older version has written, as a sentence.
    """
    if found == current:
        return ""
    if found is not None and found > current:
        return (
            f"Expected format {current}, got {found}: written by a newer noisefloor. "
            "Upgrade: pip install --upgrade noisefloor."
        )
    shown = "none" if found is None else found
    return f"Expected format {current}, got {shown}: written by an older noisefloor. {redo}"
