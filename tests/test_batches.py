"""A batch fails where single tests would, names the case, and lets no case see another."""

import pytest

from batches import batched
from noisefloor.randomness import SeededSource

OVER_THREE = batched("case", [1, 2, 3], str)
LIMITS = {"most": 0}


@OVER_THREE
def test_a_batch_takes_its_argument_and_leaves_the_others(
    case: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LIMITS["most"] == 0  # also in the second case
    monkeypatch.setitem(LIMITS, "most", case)
    assert LIMITS["most"] == case


@OVER_THREE
@pytest.mark.parametrize("other", ["a", "b"])
def test_a_batch_can_be_parametrised(case: int, other: str) -> None:
    assert case in (1, 2, 3)
    assert other in ("a", "b")


@OVER_THREE
def test_each_case_has_a_run_of_its_own(case: int) -> None:
    assert SeededSource(case * 0, "the same path").words(1).size == 1


def test_every_failing_case_is_reported_with_its_name() -> None:
    seen = []

    @OVER_THREE
    def check(case: int) -> None:
        seen.append(case)
        if case == 1:
            pytest.fail("one")
        assert case == 2, "not two"

    with pytest.raises(BaseExceptionGroup, match="2 of 3 cases fail") as caught:
        check()
    assert seen == [1, 2, 3]
    first, second = caught.value.exceptions
    assert str(first) == "one"
    assert "not two" in str(second)
    assert [error.__notes__ for error in (first, second)] == [["case: 1"], ["case: 3"]]


def test_a_case_that_is_skipped_counts_as_failed() -> None:
    @OVER_THREE
    def check(case: int) -> None:
        if case == 2:
            pytest.skip("not here")

    with pytest.raises(BaseExceptionGroup, match="1 of 3 cases fail"):
        check()


def test_a_batch_of_nothing_and_one_with_a_shared_fixture_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one case"):
        batched("case", [], str)

    def check(case: int, tmp_path: object) -> None: ...

    with pytest.raises(TypeError, match="tmp_path"):
        OVER_THREE(check)
