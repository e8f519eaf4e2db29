"""Commands of the services run in this process, and publishers that are waited for."""

import io
import logging
import time
from contextlib import redirect_stdout

import httpx

from live_apps import Process
from noisefloor_services.__main__ import main


def command(name: str, settings: dict[str, str]) -> str:
    """Run one command, and return what it says; logs are left as they were."""
    environment = {f"NOISEFLOOR_{key}": value for key, value in settings.items()}
    before, level, said = logging.root.handlers[:], logging.root.level, io.StringIO()
    try:
        with redirect_stdout(said):
            assert main([name], environment) == 0
    finally:
        logging.captureWarnings(capture=False)
        logging.root.handlers[:] = before
        logging.root.setLevel(level)
    return said.getvalue()


def ready(made: Process) -> str:
    """Wait until a publisher is ready, and return its address."""
    url = made.url
    for _ in range(500):
        if httpx.get(f"{url}/readyz").status_code == 200:
            return url
        time.sleep(0.02)
    raise AssertionError(httpx.get(f"{url}/readyz").text)
