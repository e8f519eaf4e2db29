"""What a pipeline describes wrongly is refused where it is described."""

import math

import pytest

from noisefloor.errors import BadParameter
from noisefloor_sim.report import ClaimRow, Curve, Plot, Table


def claim(**changes: object) -> ClaimRow:
    values: dict[str, object] = {
        "mechanism": "m", "pipeline": "p", "variant": "paper", "point": "", "neighbours": "user",
        "claimed": 1.0, "proved": 1.0, "audited": None, "verdict": "holds",
    }  # fmt: skip
    return ClaimRow(**(values | changes))  # type: ignore[arg-type]  # wrong ones are the point


@pytest.mark.parametrize(
    "changes",
    [
        {"claimed": -1.0},
        {"proved": math.nan},
        {"proved": math.inf},  # and no reason
    ],
)
def test_a_claim_that_says_too_little_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(BadParameter):
        claim(**changes)


def test_a_curve_of_unequal_lengths_is_refused() -> None:
    with pytest.raises(BadParameter, match=r"len\(y\)=1 == 2"):
        Curve("c", [1, 2], [1])
    with pytest.raises(BadParameter, match="high"):
        Curve("c", [1], [1], low=[0])
    with pytest.raises(BadParameter, match="labels"):
        Curve("c", [1], [1], labels=["a", "b"])


def test_unknown_roles_and_kinds_and_empty_plots_are_refused() -> None:
    with pytest.raises(BadParameter, match="role"):
        Curve("c", [1], [1], role="guess")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(BadParameter, match="kind"):
        Plot("t", "r", "x", "y", [Curve("c", [1], [1])], kind="pie")  # type: ignore[arg-type]
    with pytest.raises(BadParameter, match="curves"):
        Plot("t", "r", "x", "y", [])
    with pytest.raises(BadParameter, match="x_tick"):
        Plot("t", "r", "x", "y", [Curve("c", [1], [1])], x_tick=0.0)


def test_a_row_of_the_wrong_width_is_refused() -> None:
    with pytest.raises(BadParameter, match=r"len\(row\)=1"):
        Table("t", "", ("a", "b"), [("only one",)])


@pytest.mark.parametrize("shades", [[(0.5,)], [(0.5, None), (0.1, 0.2)], [(None, 1.5)]])
def test_shades_that_do_not_fit_the_rows_are_refused(
    shades: list[tuple[float | None, ...]],
) -> None:
    with pytest.raises(BadParameter, match="shades"):
        Table("t", "", ("a", "b"), [("p", 1)], (), shades)


def test_lists_are_kept_as_tuples_so_that_nothing_changes_later() -> None:
    x = [1.0, 2.0]
    curve = Curve("c", x, x)
    x.append(3.0)
    assert curve.x == (1.0, 2.0)
    assert hash(Table("t", "", ["a"], [[1]])) == hash(Table("t", "", ("a",), ((1,),)))
