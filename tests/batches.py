"""Many small cases as one test: it runs them all, and reports every one that fails.

A refusal takes a tenth of a millisecond, and pytest takes milliseconds for each test around it.
So cases that are cheap and alike are run in a batch. A batch is as strict as single tests are:
each case has a run and a monkeypatch of its own, and none hides the failure of another.
"""

import functools
import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from noisefloor.randomness import new_run

Check = Callable[..., None]
PATCH = "monkeypatch"
# What one case leaves in these, the next one would find.
REFUSED = {"tmp_path", "capsys", "caplog", "recwarn"}
# As pytest's -k selects tests: NOISEFLOOR_CASES=unary runs the cases with that in their names.
ONLY = os.environ.get("NOISEFLOOR_CASES", "")


def batched(
    argument: str, cases: Sequence[Any], label: Callable[[Any], str]
) -> Callable[[Check], Check]:
    """Return a decorator that runs a test over all cases, where ``parametrize`` makes one of each.

    A case that is skipped counts as failed: a batch has no way to say that part of it was not run.

    Args:
        argument: The name of the argument that takes the case.
        cases: At least one; of any type.
        label: What to call a case in the report.
    """
    if not cases:
        raise ValueError("Expected at least one case: a test over none checks nothing.")

    def decorate(check: Check) -> Check:
        signature = inspect.signature(check)
        if leaky := REFUSED & set(signature.parameters):
            raise TypeError(f"Expected no fixture that cases would share, found {sorted(leaky)}.")

        @functools.wraps(check)
        def run_all(**given: Any) -> None:  # Any: whatever the other arguments are
            failures = []
            chosen = [case for case in cases if ONLY in label(case)]
            if not chosen:
                pytest.skip(f"no case of this batch has {ONLY} in its name")
            for case in chosen:
                try:
                    _run_one(check, {**given, argument: case})
                except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
                    error.add_note(f"{argument}: {label(case)}")
                    failures.append(error)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(chosen)} cases fail", failures)

        kept = [one for name, one in signature.parameters.items() if name != argument]
        vars(run_all)["__signature__"] = signature.replace(parameters=kept)
        marked: Check = pytest.mark.batch(run_all)
        return marked

    return decorate


def _run_one(check: Check, arguments: dict[str, Any]) -> None:
    with new_run(), pytest.MonkeyPatch.context() as patch:
        if PATCH in arguments:
            arguments[PATCH] = patch
        check(**arguments)
