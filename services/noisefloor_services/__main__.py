"""Run one program: ``python -m noisefloor_services NAME``; settings are in the environment."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence

from noisefloor.checks import check_extra
from noisefloor.errors import MissingExtra, NoisefloorError
from noisefloor_services.programs import PROGRAMS, ProgramContext
from noisefloor_services.security import check_environment, secure_source
from noisefloor_services.settings import Settings

CHAOS, STRESS = "chaos", "stress"
LIBRARIES = ("redis", "fastapi", "uvicorn", "orjson", "safetensors")


def main(
    arguments: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ
) -> int:
    """Run what is named; 2 for a start that is refused, with the reason in one line."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == [CHAOS]:
        from noisefloor_services.chaos import run_chaos_program

        return run_chaos_program(words[1:])
    if words[:1] == [STRESS]:
        from noisefloor_services.stress import run_stress_program

        return run_stress_program(words[1:])
    given = read_arguments(words)
    try:
        check_extra("noisefloor_services", "services", *LIBRARIES)
    except MissingExtra as error:
        print(f"noisefloor: {error}", file=sys.stderr)
        return 2
    return _run(given, words, environment)


def _run(given: argparse.Namespace, words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a program whose libraries are there."""
    from redis.exceptions import RedisError  # lazy: libraries of the extra

    from noisefloor_services.http import configure_logging

    try:
        check_environment(environment)
        settings = Settings.read(environment)
        settings.credentials.check_absent(words)
        secure_source(environment, settings)
        configure_logging(settings.log_level)
        PROGRAMS[given.name].run(ProgramContext(given, settings, environment))
    except NoisefloorError as error:
        print(f"noisefloor: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"noisefloor: cannot start: {_cause(error)}.", file=sys.stderr)
        return 2
    except RedisError as error:
        print(f"noisefloor: cannot start: {type(error).__name__}", file=sys.stderr)
        return 2
    return 0


def _cause(error: OSError) -> str:
    """Return what the system says, and of which file; other texts may hold anything."""
    said = error.strerror or type(error).__name__
    return f"{error.filename}: {said}" if error.filename else said


def read_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line, or end with what is wrong with it."""
    parser = argparse.ArgumentParser(
        prog="python -m noisefloor_services",
        description="Run one program. Settings are variables that begin with NOISEFLOOR_.",
        epilog="chaos [OPTION]... kills, stops and pauses services under load: chaos --help.",
    )
    named = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    for name, program in PROGRAMS.items():
        own = named.add_parser(name, help=program.text, description=program.text)
        for add in program.options:
            add(own)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
