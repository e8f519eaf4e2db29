"""YAML into plain data: what is read, and what is refused where and why."""

from pathlib import Path

import pytest

from between_processes import sent
from noisefloor.errors import BadScenario, Fault
from noisefloor_sim.scenario.yaml_reader import MAX_BYTES, read_bytes, read_file, read_text


def value_of(word: str) -> object:
    """Return what a word means as a value."""
    data = read_text(f"key: {word}\n", "s.yaml").data
    assert isinstance(data, dict)
    return data["key"]


def refusal(text: str | bytes) -> Fault:
    """Return the one fault that a text is refused for."""
    with pytest.raises(BadScenario) as caught:
        if isinstance(text, bytes):
            read_bytes(text, "s.yaml")
        else:
            read_text(text, "s.yaml")
    assert caught.value.file == "s.yaml"
    (fault,) = caught.value.faults
    return fault


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("1e-3", 0.001),
        ("1E3", 1000.0),
        ("+1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("-0.0", 0.0),
        ("-12", -12),
        ("0", 0),
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("[1, a, []]", (1, "a", ())),
        ("{a: {b: 1}}", {"a": {"b": 1}}),
    ],
)
def test_words_mean_what_they_look_like(word: str, value: object) -> None:
    found = value_of(word)
    assert found == value
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    "word",
    (
        "no No yes on off y True FALSE NULL 1:30 190:20:30 0x10 0o17 0b1 1_000 2026-11-16 nan inf "
        "Infinity 1e = 1.2.3 + e3 1e3.5 \u0663 0.1.2"
    ).split(" "),
)
def test_words_that_other_readers_turn_into_something_else_stay_texts(word: str) -> None:
    assert value_of(word) == word


@pytest.mark.parametrize("word", ["'1'", '"true"', "'no'", "'012'", "'.nan'", "|\n  1\n"])
def test_what_is_quoted_is_a_text(word: str) -> None:
    assert isinstance(value_of(word), str)


@pytest.mark.parametrize(
    ("word", "rule"),
    [
        (".nan", "Expected a finite number, got .nan."),
        (".NaN", "Expected a finite number, got .NaN."),
        (".inf", "Expected a finite number, got .inf."),
        ("-.Inf", "Expected a finite number, got -.Inf."),
        ("1e999", "Expected a number that 64-bit floats can hold, got 1e999."),
        ("012", "Expected a number without leading zeros, or a text in quotes, got 012."),
        ("-00.5", "Expected a number without leading zeros, or a text in quotes, got -00.5."),
        ("1" * 65, f"Expected a number of at most 64 characters, got {'1' * 37}...."),
        ("*a", "Anchors and aliases (& and *) are not read; write the value out."),
        ("&a 1", "Anchors and aliases (& and *) are not read; write the value out."),
        ("!!str 1", "Tags (!) are not read, found 'tag:yaml.org,2002:str'; leave it out."),
        ("! 1", "Tags (!) are not read, found '!'; leave it out."),
        ("!!python/name:os.system x", "Tags (!) are not read, found "),
        ("!!python/object/apply:os.system [ls]", "Tags (!) are not read, found "),
        ("!!set {a}", "Tags (!) are not read, found 'tag:yaml.org,2002:set'; leave it out."),
        ("{<<: 1}", "Merge keys (<<) are not read; write the keys out."),
        ("{[a]: 1}", "Expected a name as key, found a list or a mapping."),
        ("{!!str a: 1}", "Tags (!) are not read, found 'tag:yaml.org,2002:str'; leave it out."),
        ("{&a a: 1}", "Anchors and aliases (& and *) are not read; write the value out."),
        (r'"\ud800"', r"Expected text, found half a character in '\ud800'."),
        (r'{"\ud800": 1}', r"Expected text, found half a character in '\ud800'."),
        (r'"\U00110000"', "Expected YAML; a number in an escape or a directive is out of range."),
        ("[1", "Expected YAML; expected ',' or ']', but got '<stream end>'."),
    ],
)
def test_what_could_surprise_is_refused_with_key_line_and_rule(word: str, rule: str) -> None:
    fault = refusal(f"first: 1\nkey: {word}\n")
    assert fault.key.split(".")[0] == "key"
    assert fault.rule.startswith(rule)
    assert fault.line in (2, 3)


def test_a_key_is_a_text_whatever_it_looks_like() -> None:
    data = read_text("{1: a, no: b, null: c, 1e3: d, '': e, ~: f, 012: g}", "s.yaml").data
    assert data == {"1": "a", "no": "b", "null": "c", "1e3": "d", "": "e", "~": "f", "012": "g"}


def test_a_key_given_twice_is_refused_with_both_lines() -> None:
    fault = refusal("a:\n  b: 1\n  c: 2\n  b: 3\n")
    assert fault == ("a.b", "This key was given before, on line 2.", 4)


def test_every_key_and_item_has_its_line() -> None:
    document = read_text("a:\n  b:\n    - 1\n    - {c: 2}\nd: 3\n", "s.yaml")
    assert document.lines == {
        ("a",): 1,
        ("a", "b"): 2,
        ("a", "b", 0): 3,
        ("a", "b", 1): 4,
        ("a", "b", 1, "c"): 4,
        ("d",): 5,
    }
    assert document.line_of(("a", "b", 1, "c", "none", 3)) == 4
    assert document.line_of(("none",)) is None


def test_billion_laughs_stop_at_the_first_anchor() -> None:
    lines = ["a0: &a0 [ha, ha]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 10)]
    fault = refusal("\n".join(lines))
    assert fault == ("a0", "Anchors and aliases (& and *) are not read; write the value out.", 1)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("{a: ", "}"), ("- ", "")])
def test_nesting_is_read_to_the_limit_and_refused_beyond(opening: str, closing: str) -> None:
    read_text(opening * 32 + "1" + closing * 32, "s.yaml")
    for levels in (33, 5_000):
        fault = refusal(opening * levels + "1" + closing * levels)
        assert fault.rule == "Expected at most 32 levels of nesting, found more."
        assert fault.line == 1


def test_a_text_of_256_kib_is_read_and_a_longer_one_is_not() -> None:
    text = b"a: 1\n" + b"#" * (MAX_BYTES - 5)
    assert read_bytes(text, "s.yaml").data == {"a": 1}
    fault = refusal(text + b"#" * 40_000)
    assert fault == ("", "Expected at most 262144 bytes (256 KiB), found more.", None)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"a: 1\nb: \xff\n", ("", "Expected UTF-8, found another encoding at byte 8.", 2)),
        ("a: 1\n".encode("utf-16"), ("", "Expected UTF-8, found another encoding at byte 0.", 1)),
        (b"a: 1\nb: \x00\n", ("", "Expected text, found the character U+0000.", 2)),
        (b"a: 1\n--- \nb: 2\n", ("", "Expected one document, found a second one.", 2)),
        (b"%YAML 1.1\n---\na: 1\n", ("", "Directives (%) are not read; leave the line out.", 1)),
        (b"a: b: c\n", ("", "Expected YAML; mapping values are not allowed here.", 1)),
    ],
)
def test_what_is_no_text_and_no_single_document_is_refused(
    text: bytes, fault: tuple[str, str, int]
) -> None:
    assert refusal(text) == fault


def test_a_mark_of_byte_order_is_no_part_of_the_text() -> None:
    assert read_bytes(b"\xef\xbb\xbfa: 1\n", "s.yaml").data == {"a": 1}


def test_a_file_that_is_missing_or_a_directory_or_impossible_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "no.yaml"
    for path, rule in [
        (str(missing), "Expected a file, found none."),
        (str(tmp_path), "Expected a file, found a directory."),
        ("a\0b", "Expected a file that can be read. No file can have this name."),
        ("x" * 5_000, "Expected a file that can be read. File name too long."),
    ]:
        with pytest.raises(BadScenario) as caught:
            read_file(path)
        assert caught.value.rule == rule
        assert str(caught.value) == f"{caught.value.file}: {rule}"
        assert str(caught.value).isprintable()


def test_errors_survive_the_way_between_processes() -> None:
    error = BadScenario("s.yaml", [Fault("a.b", "Expected c.", 3), Fault("", "Expected d.")])
    again = sent(error)
    assert str(again) == str(error)
    assert again.faults == error.faults
    assert (again.file, again.key, again.rule, again.line) == ("s.yaml", "a.b", "Expected c.", 3)
