"""Whatever a file holds, it is read or refused with one kind of error that can be printed."""

from hypothesis import given
from hypothesis import strategies as st

from noisefloor.errors import BadScenario
from noisefloor_sim.scenario import expand, loads, parse_gate, scenario_text
from noisefloor_sim.scenario.document import Document
from noisefloor_sim.scenario.loading import override
from noisefloor_sim.scenario.validation import validated
from noisefloor_sim.scenario.yaml_reader import read_bytes
from properties import examples
from sim.scenario.toy import BLOCKS

SHORT = """\
name: fuzz
question: "Why?"
seed: 7
population: {users: 40, engagement: {tail_exponent: 2.2}}
network: {outages: [{start_h: 5, end_h: 6.5}]}
pipelines:
  toy: {epsilon: 2, bounds: [0, 1]}
attacks: [toy.guess, toy.vote]
sweep: {seeds: 2, pipelines.toy.epsilon: [0.5, 1]}
gates: [toy.rmse < 1 where variant == paper]
"""
# What a mutation puts in: syntax, odd words, keys, things in the wrong place.
PIECES = (
    "\n|\n  |: |- |? |[|]|{|}|,|&a |*a|!!str |!x |<<: |---\n|...\n|%YAML 1.1\n|#|'|\"|\\|\t|"
    "\r|>|@|`|~|"
    "no|true|null|.nan|-.inf|1e-3|1e999|012|1:30|0x1|-1|0|1000000000000|99999999999999999999|"
    "name|users|sweep|seeds|gates|attacks|pipelines|toy|epsilon|population.users|variant|days|"
    "\x00|\x85|\u2028|\ufeff|\U0001f600|\\ud800|\\U00110000|claims.*|where|and|<|==|toy.vote|holds"
).split("|")
PIECE = st.sampled_from([*PIECES, "|"]) | st.text(max_size=3)
LINES = SHORT.splitlines(keepends=True)
EDITS = st.lists(
    st.tuples(st.integers(0, len(SHORT)), st.integers(0, 12), PIECE), min_size=1, max_size=4
)
MANY = examples(1_200)


def check_read_or_refused(text: str) -> None:
    """Read a text; what is read can be written and read again, what is refused is told."""
    try:
        found = loads(text, BLOCKS, "s.yaml")
    except BadScenario as error:
        assert error.file == "s.yaml"
        assert error.faults
        assert all(line.isprintable() and len(line) < 1_000 for line in str(error).split("\n"))
        return
    assert loads(scenario_text(found), BLOCKS) == found


@MANY
@given(EDITS)
def test_a_scenario_with_pieces_cut_out_and_put_in_is_read_or_refused(
    edits: list[tuple[int, int, str]],
) -> None:
    text = SHORT
    for place, length, piece in edits:
        text = text[:place] + piece + text[place + length :]
    check_read_or_refused(text)


@MANY
@given(st.lists(st.sampled_from(LINES), max_size=6), st.lists(PIECE, max_size=10))
def test_lines_and_pieces_in_any_order_are_read_or_refused(
    lines: list[str], pieces: list[str]
) -> None:
    check_read_or_refused("".join(lines) + "".join(pieces))


WORDS = st.sampled_from("1 0 -1 1e-3 1e12 no true null 'x' [] {} [1] {a: 1} paper .5".split(" "))
KEYS = st.sampled_from(
    "name seed days variant population population.users devices.shares.phone behaviour.ads "
    "network network.outages network.latency.median_s pipelines pipelines.toy pipelines.toy.spare "
    "pipelines.toy.epsilon attacks threat.linked sweep sweep.seeds sweep.days sweep.variant "
    "gates grace_h nonsense population.nonsense".split(" ")
)


@examples(500)
@given(st.lists(st.tuples(KEYS, WORDS | st.text(max_size=5)), min_size=1, max_size=4))
def test_any_value_at_any_key_is_read_or_refused(pairs: list[tuple[str, str]]) -> None:
    base = Document("s.yaml", read_bytes(SHORT.encode(), "s.yaml").data, {})
    try:
        document = override(base, [f"{key}={word}" for key, word in pairs])
    except BadScenario:
        return
    try:
        points = expand(validated(document, BLOCKS), BLOCKS)
    except BadScenario:
        return
    assert len({point.id for point in points}) == len(points)


@examples(500)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    try:
        read_bytes(raw, "s.yaml")
    except BadScenario as error:
        assert str(error).isprintable()


@examples(500)
@given(st.lists(PIECE | st.sampled_from(["a.b", "3", "claims.toy.proved", "!="]), max_size=8))
def test_any_gate_is_parsed_or_refused(words: list[str]) -> None:
    try:
        parse_gate(" ".join(words))
    except ValueError as error:
        assert str(error).isprintable()
