"""What holds for every mechanism: draws stay in place, bad input is refused, tallies add up.

Sampled reports are tested against the stated distribution here too, where reports can be listed.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import noisefloor.checks
from mechanism_cases import (
    BINNING,
    CASES,
    EVERY_CASE,
    GAUSSIAN,
    LAPLACE,
    PRINTED_MAX,
    Case,
    Values,
    named,
    over_every_mechanism,
)
from noisefloor.errors import BadParameter, NoisefloorError, OutOfDomain, StreamReopened
from noisefloor.mechanisms import (
    BinaryResponse,
    FiniteMechanism,
    KaryResponse,
    Mechanism,
    exact_epsilon,
)
from noisefloor.privacy import Neighbours, TrustModel
from noisefloor.randomness import SecureSource, SeededSource, Source, new_run
from statistics_of_tests import FALSE_ALARM, chi_square_p

Randomise = Callable[[Values, Source], NDArray[Any]]

BAD_EPSILONS = (0, -1, -0.5, math.nan, math.inf, -math.inf, 1e-320, 1e300, True, "1", None, 1j)


def test_the_cases_have_every_mechanism_that_there_is() -> None:
    import noisefloor.mechanisms as package

    made = {type(case.make(1.0)).__name__ for case in EVERY_CASE}
    public = {
        name
        for name in package.__all__
        if hasattr(getattr(package, name), "randomise") and name != "Mechanism"
    }
    assert public <= made


@over_every_mechanism
def test_it_is_a_mechanism(case: Case) -> None:
    mechanism = case.make(1.0)
    assert isinstance(mechanism, Mechanism)
    assert isinstance(mechanism, FiniteMechanism) is (case not in (LAPLACE, GAUSSIAN))


@pytest.mark.parametrize("case", [LAPLACE, GAUSSIAN], ids=lambda case: case.name)
def test_an_unlisted_mechanism_is_not_enumerated(case: Case) -> None:
    with pytest.raises(TypeError, match="no list of outputs"):
        exact_epsilon(case.make(1.0))


@over_every_mechanism
def test_equal_parameters_make_equal_and_hashable_mechanisms(case: Case) -> None:
    assert case.make(1.0) == case.make(1.0)
    assert case.make(1.0) != case.make(0.9)
    assert hash(case.make(1.0)) == hash(case.make(1.0))


@over_every_mechanism
def test_a_mechanism_cannot_be_changed(case: Case) -> None:
    mechanism = case.make(1.0)
    name = next(iter(type(mechanism).__annotations__))
    with pytest.raises(AttributeError):
        setattr(mechanism, name, 5)


# Draws stay in place.


def draws_stay(randomise: Randomise, values: Values, sizes: list[tuple[int, int]]) -> bool:
    """Whether the reports of the first users stay the same when more users come."""

    def reports(n: int) -> NDArray[Any]:
        with new_run():
            return randomise(values[:n], SeededSource(3, "place"))

    whole = {n: reports(n) for n in {n for pair in sizes for n in pair}}
    return all(np.array_equal(whole[few], whole[many][:few]) for few, many in sizes)


ACROSS_BLOCKS = [
    (n, n + more) for n in (0, 1, 2, 63, 64, 65, 127, 200) for more in (1, 2, 7, 64, 500)
]


@over_every_mechanism
@pytest.mark.parametrize("block", [64, 96])
def test_adding_users_moves_no_draws_of_others(
    case: Case, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noisefloor.checks, "BLOCK", block)
    assert draws_stay(case.make(1.0).randomise, case.values(700), ACROSS_BLOCKS)


@over_every_mechanism
def test_adding_users_moves_no_draws_of_others_at_the_real_block_size(case: Case) -> None:
    width = max(math.prod(case.shape), math.prod(case.domain.shape[1:]))
    block = noisefloor.checks.BLOCK // width
    values = np.concatenate([case.values(1 << 17)] * 3)
    assert draws_stay(
        case.make(1.0).randomise,
        values,
        [(block - 1, block + 5), (block + 1, block + 5), (100, block + 5)],
    )


@pytest.mark.parametrize("block", [64, 96])
def test_draws_that_move_are_caught(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisefloor.checks, "BLOCK", block)
    response = KaryResponse(4, 1.0)

    def naive(values: Values, source: Source) -> NDArray[Any]:
        """Draw the lies from the stream of the draws: where they start depends on n."""
        stream = source.stage("all")
        kept = stream.bernoulli(response.keep, len(values))
        lies = stream.below(4, len(values))
        return np.where(kept, values, lies)

    assert not draws_stay(naive, named("kary").values(700), ACROSS_BLOCKS)


@over_every_mechanism
def test_the_same_path_gives_the_same_reports_in_another_run(case: Case) -> None:
    reports = []
    for _ in range(2):
        with new_run():
            source = SeededSource(5, "twice")
            reports.append(case.make(1.0).randomise(case.values(500), source))
    assert np.array_equal(reports[0], reports[1])


@over_every_mechanism
def test_another_path_gives_other_reports(case: Case) -> None:
    mechanism, values = case.make(1.0), case.values(500)
    one = mechanism.randomise(values, SeededSource(5, "one"))
    assert not np.array_equal(one, mechanism.randomise(values, SeededSource(5, "other")))


@over_every_mechanism
@pytest.mark.parametrize("n", [0, 50])
def test_a_source_serves_one_release(case: Case, n: int) -> None:
    mechanism, source = case.make(1.0), SeededSource(5, "release")
    mechanism.randomise(case.values(n), source)
    with pytest.raises(StreamReopened):
        mechanism.randomise(case.values(n), source)


@over_every_mechanism
def test_a_path_serves_one_release(case: Case) -> None:
    mechanism = case.make(1.0)
    mechanism.randomise(case.values(5), SeededSource(5, "release"))
    with pytest.raises(StreamReopened):
        mechanism.randomise(case.values(5), SeededSource(5, "release"))


@over_every_mechanism
def test_the_operating_system_is_a_source_too(case: Case) -> None:
    mechanism, source = case.make(1.0), SecureSource()
    for _ in range(2):
        reports = mechanism.randomise(case.values(300), source)
        assert reports.shape == (300, *case.shape)
        assert reports.dtype == np.dtype(case.dtype)


# Reports.


@over_every_mechanism
def test_no_users_give_no_reports_of_the_right_kind(case: Case) -> None:
    mechanism = case.make(1.0)
    reports = mechanism.randomise(case.values(0), SeededSource(5, "empty"))
    assert reports.shape == (0, *case.shape)
    assert reports.dtype == np.dtype(case.dtype)
    assert not mechanism.tally(reports).any()


@over_every_mechanism
def test_randomise_leaves_its_values_alone(case: Case) -> None:
    values = case.values(200)
    before = values.copy()
    case.make(1.0).randomise(values, SeededSource(5, "untouched"))
    assert np.array_equal(values, before)


@over_every_mechanism
def test_values_that_are_not_contiguous_are_read_as_they_are(case: Case) -> None:
    values, mechanism = case.values(300)[::-2], case.make(1.0)
    reports = []
    for some in (values, values.copy()):
        with new_run():
            reports.append(mechanism.randomise(some, SeededSource(5, "strided")))
    assert np.array_equal(reports[0], reports[1])


@over_every_mechanism
@pytest.mark.parametrize("cut", [0, 1, 1000, 2999, 3000])
def test_tallies_add_up(case: Case, cut: int) -> None:
    mechanism = case.make(1.0)
    reports = mechanism.randomise(case.values(3000), SeededSource(5, "tally"))
    whole = mechanism.tally(reports)
    parts = mechanism.tally(reports[:cut]) + mechanism.tally(reports[cut:])
    assert whole.dtype == parts.dtype == np.int64
    assert np.array_equal(whole, parts)


@over_every_mechanism
def test_a_tally_holds_more_reports_than_two_bytes_count(case: Case) -> None:
    """One report over and over: no count of a block may wrap around."""
    mechanism, many = case.make(1.0), (1 << 17) + 1
    one = mechanism.randomise(case.values(1), SeededSource(5, "wide tally"))
    whole = mechanism.tally(np.repeat(one, many, axis=0))
    assert np.array_equal(whole, many * mechanism.tally(one))


@over_every_mechanism
def test_a_tally_in_blocks_is_the_tally(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = case.make(1.0)
    reports = mechanism.randomise(case.values(1000), SeededSource(5, "tally"))
    whole = mechanism.tally(reports)
    monkeypatch.setattr(noisefloor.checks, "BLOCK", 64)
    assert np.array_equal(mechanism.tally(reports), whole)


@over_every_mechanism
def test_an_estimate_has_a_standard_error_for_each_figure(case: Case) -> None:
    mechanism = case.make(1.0)
    reports = mechanism.randomise(case.values(3000), SeededSource(5, "estimate"))
    estimate = mechanism.estimate(mechanism.tally(reports), 3000)
    assert np.broadcast_shapes(estimate.standard_error.shape, estimate.value.shape) == (
        estimate.value.shape
    )
    assert np.isfinite(estimate.value).all()
    assert (estimate.standard_error >= 0).all()


@over_every_mechanism
@pytest.mark.parametrize("n", [0, -1, 1.5, True])
def test_an_estimate_from_no_reports_is_refused(case: Case, n: Any) -> None:
    mechanism = case.make(1.0)
    reports = mechanism.randomise(case.values(10), SeededSource(5, "estimate"))
    with pytest.raises(BadParameter, match=r"Expected n="):
        mechanism.estimate(mechanism.tally(reports), n)


# Guarantees.


@over_every_mechanism
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_a_relation_without_a_proof_has_no_guarantee(case: Case, neighbours: Neighbours) -> None:
    guarantee = case.make(1.0).guarantee(neighbours)
    assert guarantee.neighbours is neighbours
    assert guarantee.model is TrustModel.LOCAL
    if neighbours in (Neighbours.DOCUMENT, Neighbours.RECORD_ADD_REMOVE):
        assert not guarantee.is_finite
    assert guarantee.is_finite or guarantee.reason


@over_every_mechanism
@pytest.mark.parametrize("neighbours", [Neighbours.ITEM, Neighbours.BIT, Neighbours.MOVE_ONE])
def test_a_user_is_never_cheaper_than_one_of_his_items(case: Case, neighbours: Neighbours) -> None:
    mechanism = case.make(1.0)
    smaller = mechanism.guarantee(neighbours)
    assert not smaller.is_finite or smaller.epsilon <= mechanism.guarantee().epsilon


# Bad input.


@over_every_mechanism
@pytest.mark.parametrize("epsilon", BAD_EPSILONS, ids=repr)
def test_a_bad_epsilon_is_refused_by_name_and_rule(case: Case, epsilon: Any) -> None:
    if case.name.startswith("memoised") and isinstance(epsilon, str | None):
        epsilon = [epsilon]  # its epsilons are added before the mechanism sees them
        with pytest.raises(TypeError):
            case.make(epsilon)
        return
    with pytest.raises(BadParameter, match=r"Expected epsilon\w*=.* (> 0|in \[|to be )"):
        case.make(epsilon)


def assert_refused(case: Case, values: Any, forbidden: str) -> None:
    """Fail unless the values are refused with a text that does not have them."""
    with new_run(), pytest.raises(OutOfDomain, match=r"^Expected ") as caught:
        case.make(1.0).randomise(values, SeededSource(5, "refused"))
    assert forbidden not in str(caught.value)
    assert not caught.value.__dict__
    assert isinstance(caught.value, ValueError | NoisefloorError)


@over_every_mechanism
@pytest.mark.parametrize("place", [0, 57, 99])
def test_a_value_outside_the_domain_is_refused_and_not_shown(case: Case, place: int) -> None:
    values = case.values(100).tolist()
    values[place] = case.outside
    if isinstance(case.domain.flat[0], np.bool_):  # or numpy would make true and false of it
        values = np.array(values, dtype=np.int64)
    assert_refused(
        case, np.array(values), "7123456" if "7123456" in str(case.outside) else "7.123456"
    )


@over_every_mechanism
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -7.123456])
def test_what_is_not_a_number_of_the_domain_is_refused(case: Case, bad: float) -> None:
    values = case.values(100).astype(np.float64)
    values[3] = bad
    assert_refused(case, values, "7.123456")


@over_every_mechanism
@pytest.mark.parametrize("dtype", [np.str_, np.object_, np.complex128, np.bytes_])
def test_a_wrong_dtype_is_refused_and_not_shown(case: Case, dtype: Any) -> None:
    values = case.values(5).astype(dtype)
    if dtype is np.str_:
        values.reshape(-1)[0] = "secret"[: max(1, values.dtype.itemsize // 4)]
    assert_refused(case, values, "secret")


@over_every_mechanism
def test_dates_are_refused(case: Case) -> None:
    assert_refused(case, np.zeros(case.values(5).shape, dtype="datetime64[s]"), "1970")


@over_every_mechanism
def test_a_wrong_shape_is_refused(case: Case) -> None:
    values = case.values(6)
    assert_refused(case, values[..., None], "secret")
    assert_refused(case, values[0] if values.ndim == 1 else values.reshape(-1), "secret")
    if values.ndim == 2:
        assert_refused(case, values[:, 1:], "secret")


@over_every_mechanism
def test_refused_values_open_no_stream(case: Case) -> None:
    values, mechanism, source = case.values(5), case.make(1.0), SeededSource(5, "corrected")
    with pytest.raises(OutOfDomain):
        mechanism.randomise(values[..., None], source)
    assert len(mechanism.randomise(values, source)) == 5


@over_every_mechanism
def test_lists_are_read_like_arrays(case: Case) -> None:
    values = case.values(20)
    reports = []
    for some in (values, values.tolist()):
        with new_run():
            reports.append(case.make(1.0).randomise(some, SeededSource(5, "list")))
    assert np.array_equal(reports[0], reports[1])


INTEGERS = (np.int8, np.uint8, np.int64, np.uint64)
FLOATS = (np.float16, np.float32, np.longdouble)
WIDTHS = [
    pytest.param(case, dtype, id=f"{case.name} {dtype.__name__}")
    for case in EVERY_CASE
    for dtype in INTEGERS + (FLOATS if case.domain.dtype.kind == "f" else ())
]


@pytest.mark.parametrize(("case", "dtype"), WIDTHS)
def test_the_width_of_a_number_does_not_change_the_reports(case: Case, dtype: Any) -> None:
    """The values are zeros and ones: every width can hold them."""
    flat = case.domain.reshape(len(case.domain), -1)
    values = np.repeat(case.domain[((flat == 0) | (flat == 1)).all(axis=1)], 50, axis=0)
    reports = []
    for some in (values, values.astype(dtype)):
        with new_run():
            reports.append(case.make(1.0).randomise(some, SeededSource(5, "width")))
    assert np.array_equal(reports[0], reports[1])


# Samples.


def codes(reports: NDArray[Any]) -> NDArray[np.int64]:
    """Return reports as integers: rows are read as numbers, of bits or of four bits a place."""
    if reports.ndim == 1:
        return reports.astype(np.int64)
    width = 1 if reports.dtype == np.bool_ else 4
    return np.asarray(reports @ (1 << width * np.arange(reports.shape[1])))


def grouped_p(mechanism: Any, reports: NDArray[Any], value: Any) -> float:
    """Return the chi-square p-value of reports under the stated distribution; many cells in 256
    groups."""
    outputs = mechanism.outputs()
    order = np.argsort(codes(outputs))
    distribution = np.exp(mechanism.log_likelihood(outputs[order], value))
    known = codes(outputs)[order]
    place = np.minimum(np.searchsorted(known, codes(reports)), len(known) - 1)
    if not np.array_equal(known[place], codes(reports)):
        return 0.0
    counts = np.bincount(place, minlength=len(known))
    groups = np.arange(len(known)) * min(256, len(known)) // len(known)
    return chi_square_p(
        np.bincount(groups, counts), np.bincount(groups, distribution / distribution.sum())
    )


SAMPLED = [case for case in (*CASES, BINNING, PRINTED_MAX) if case.name != "local hashing"]
over_sampled = pytest.mark.parametrize("case", SAMPLED, ids=lambda case: case.name)
DRAWS = 150_000


@pytest.mark.statistical
@over_sampled
@pytest.mark.parametrize("place", [0, -1])
def test_sampled_reports_follow_the_stated_distribution(case: Case, place: int, seed: int) -> None:
    """n = 150 000; false alarm FALSE_ALARM."""
    mechanism, value = case.make(case.sampled_at), case.domain[place]
    values = np.repeat(value[None], DRAWS, axis=0)
    reports = mechanism.randomise(values, SeededSource(seed, "law", case.name))
    assert grouped_p(mechanism, reports, value) > FALSE_ALARM


@pytest.mark.statistical
@over_sampled
def test_reports_of_an_epsilon_ten_percent_off_are_rejected(case: Case, seed: int) -> None:
    """n = 150 000; drawn with 1.1 times the epsilon that they are tested against."""
    flat = case.domain.reshape(len(case.domain), -1).astype(np.float64)
    value = case.domain[(flat.max(axis=1) - flat.mean(axis=1)).argmax()]  # one far above others
    values = np.repeat(value[None], DRAWS, axis=0)
    source = SeededSource(seed, "twin", case.name)
    reports = case.make(1.1 * case.sampled_at).randomise(values, source)
    assert grouped_p(case.make(case.sampled_at), reports, value) < FALSE_ALARM


# The checks above have power.


def test_a_mechanism_that_clips_in_silence_is_caught() -> None:
    class Clipping:
        def randomise(self, values: Any, source: Source) -> NDArray[Any]:
            return BinaryResponse(1.0).randomise(np.clip(values, 0, 1), source)

    case = Case("clipping", lambda epsilon: Clipping(), np.array([0, 1]), 5)  # type: ignore[arg-type,return-value]  # a twin, not a mechanism
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        assert_refused(case, np.array([0, 5]), "5")
