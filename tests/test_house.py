"""The rules of the tree hold, and each check finds a breach that is planted for it."""

import pytest

import house
from house import ROOT, Tree

ENTRY_POINTS = (
    "noisefloor_sim",  # the interface for notebooks
    "noisefloor_sim.inspection.symbol_flow",  # for pipelines to come: docs/adding-a-pipeline.md
    "noisefloor.publication.fine_tuning.methods",  # diagnostics and selection, for notebooks
    "noisefloor.publication.text.entities",  # for users' own programs: docs/text.md
    "noisefloor.publication.text.generalisation",
    "noisefloor.publication.text.generators",
    "noisefloor.publication.text.evaluation",
    "noisefloor.adversary.text",
    "noisefloor_sim.cli.commands",
    "noisefloor_sim.cli.__main__",
    "noisefloor_services.__main__",
)
# secure_start compares the files that the two classes come from with those of the modules.
BEHIND_THE_DOOR = {
    ("noisefloor_services.security.secure_start", "noisefloor.randomness.secure"),
    ("noisefloor_services.security.secure_start", "noisefloor.randomness.source"),
}
OLD_WORDS = (
    *("course", "courses", "lesson", "lessons", "learnt", "told", "wanted", "held", "holding"),
    *("holdings", "line_up", "areas", "rooms", "board", "tallying", "intake", "lived", "asking"),
    *("coin", "coins", "law", "laws", "whoever"),
)
FIELD_TERM = "held_out"
# The folders whose names are free of old words.
RENAMED = ("platform", "services", "simulator", "tests", "bench")
DOC_WIDTH = 119
# What the pages on adding a mechanism and a pipeline add.
EXAMPLES = ("blank_response", "pipelines.wearers")
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
DOCUMENTED = Tree(
    {
        "noisefloor.__init__": "from noisefloor.here import Kind as passed",
        "noisefloor.here": "class Kind:\n    def method(self): ...\nLIMIT: int = 1\nBOTH = 2",
    }
)


@pytest.fixture(scope="module")
def tree() -> Tree:
    return Tree.read()


def made_up(**sources: str) -> Tree:
    """Return a tree of the packages ``top``, ``top.a``, ``top.a.inner`` and ``top.b``.

    Args:
        sources: Texts by name; a double underscore stands for a dot, ``door`` for ``__init__``.
    """
    packages = ("top", "top.a", "top.a.inner", "top.b")
    given = {
        name.replace("__", ".").replace("door", "__init__"): text for name, text in sources.items()
    }
    return Tree({f"{name}.__init__": "" for name in packages} | given)


def test_imports_across_packages_go_through_doors(tree: Tree) -> None:
    assert house.bypassed_doors(tree, BEHIND_THE_DOOR) == []


def test_no_import_is_exempt_without_need(tree: Tree) -> None:
    met = {(one.importer, one.target) for one in tree.imports}
    assert met >= BEHIND_THE_DOOR


@pytest.mark.parametrize(
    "line",
    [
        "from top.b.module import name",
        "from top.b import module",
        "import top.b.module",
        "import top.b.module as short",
        "from top.b import _private",
        "from top.b import unlisted",
        "def late():\n    from top.b.module import name",
        "from top.alone import _private",
        "from top import b\nb._private",
        "from top import b\nb.unlisted()",
        "from top import b\nb.module",
    ],
)
def test_an_import_past_a_door_is_found(line: str) -> None:
    door = "from top.b.module import name, _private, unlisted\n__all__ = ['name']"
    planted = made_up(top__a__user=line, top__b__module="", top__b__door=door, top__alone="")
    assert len(house.bypassed_doors(planted)) == 1


@pytest.mark.parametrize(
    ("user", "line"),
    [
        ("top__a__user", "from top.b import name"),
        ("top__a__user", "import top.b"),
        ("top__a__user", "from top import b\nb.name"),
        ("top__a__user", "from top.b import listed"),
        ("top__a__user", "from top import b\nb.listed.name"),
        ("top__a__user", "from top.a.other import _private"),
        ("top__a__user", "from top.alone import name"),
        ("top__a__user", "from top.a.inner import listed"),
        ("top__a__inner__user", "from top.a.other import name"),
        ("top__a__door", "from top.a.other import name"),
        ("top__a__user", "from elsewhere.b.module import name"),
    ],
)
def test_imports_through_doors_and_within_a_package_are_fine(user: str, line: str) -> None:
    modules = {
        "top__b__module": "",
        "top__b__listed": "",
        "top__b__door": "from top.b.module import name\n__all__ = ['listed', 'name']",
        "top__a__other": "",
        "top__a__inner__door": "__all__ = ['listed']",
        "top__alone": "",
    }
    assert house.bypassed_doors(made_up(**modules, **{user: line})) == []


def test_every_module_is_reached_from_an_entry_point(tree: Tree) -> None:
    assert house.unused_modules(tree, ENTRY_POINTS) == []


@pytest.mark.parametrize(
    "start",
    [
        "",
        "from top.b import used",
        "from top import b\nb.used",
        "import elsewhere",
    ],
)
def test_a_module_that_only_its_door_or_an_unused_module_imports_is_found(start: str) -> None:
    planted = made_up(
        top__start=start,
        top__b__used="",
        top__b__door="from top.b.lost import name\nfrom top.b.used import used",
        top__b__lost="from top.b.deeper import more",
        top__b__deeper="",
    )
    assert {"top.b.lost", "top.b.deeper"} <= set(house.unused_modules(planted, ["top.start"]))


@pytest.mark.parametrize(
    "start",
    [
        "from top.b.module import name",
        "from top.b import name",
        "from top.b import module",
        "from top.a import name",
        "from top.a import other",
        "def late():\n    from top.b import name",
    ],
)
def test_a_module_that_is_used_directly_or_through_doors_is_not_found(start: str) -> None:
    planted = made_up(
        top__start=start,
        top__b__module="",
        top__b__door="from top.b.module import name",
        top__a__door="from top.b import name, name as other",
    )
    assert house.unused_modules(planted, ["top.start"]) == []


def test_what_a_door_defines_itself_uses_what_the_door_imports() -> None:
    door = "from top.b.module import Block\nPIPELINE = Block()"
    planted = made_up(
        top__start="from top.b import PIPELINE", top__b__module="", top__b__door=door
    )
    assert house.unused_modules(planted, ["top.start"]) == []


def test_a_public_class_name_stands_once(tree: Tree) -> None:
    assert house.repeated_classes(tree) == []


def test_a_repeated_class_name_is_found_unless_it_is_private() -> None:
    twice = "class Outcome: ...\nclass _Private: ...\ndef f():\n    class Inner: ..."
    planted = made_up(top__a__one=twice, top__b__two=twice)
    assert house.repeated_classes(planted) == [
        "Inner: top.a.one, top.b.two",
        "Outcome: top.a.one, top.b.two",
    ]
    assert house.repeated_classes(made_up(top__a__one=twice)) == []


def test_old_words_do_not_return_as_names() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{place}"
        for folder in RENAMED
        for path in sorted((ROOT / folder).rglob("*.py"))
        for place in house.words_in_names(
            path.read_text(encoding="utf-8"), OLD_WORDS, allowed=FIELD_TERM
        )
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "told = 1",
        "def _told(): ...",
        "class WasTold: ...",
        "x.told_by = 1",
        "f(told=1)",
        "def test_what_is_told(): ...",
        "line_up = 1",
        "class LineUp: ...",
        "def a_line_up_of(): ...",
        "held_outer = 1",
        "held_out = held",
        "LAW = 1",
        "law2 = 1",
    ],
)
def test_an_old_word_is_found_in_a_name(source: str) -> None:
    assert len(house.words_in_names(source, OLD_WORDS, allowed=FIELD_TERM)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "'told'",
        "# told",
        "toldest = untold = 1",
        "line = up = 1",
        "held_out = 1",
        "class HeldOutEvaluation: ...",
        "lawful = flaw = 1",
    ],
)
def test_texts_and_other_words_are_not_old_words(source: str) -> None:
    assert house.words_in_names(source, OLD_WORDS, allowed=FIELD_TERM) == []


def test_lines_of_documents_are_below_120_characters() -> None:
    found = [
        f"{path.name}:{line}"
        for path in DOCUMENTS
        for line in house.long_lines(path.read_text(encoding="utf-8"), DOC_WIDTH)
    ]
    assert found == []


def test_a_long_line_is_found_unless_it_cannot_be_broken() -> None:
    words = "a " * 60
    address = "https://example.org/" + "a" * 120
    text = f"{words.strip()}\n{words}\n  {address}\n| {words} |\n- {words}"
    assert house.long_lines(text, 119) == [2, 5]


def test_documents_name_modules_and_files_that_exist(tree: Tree) -> None:
    files = [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("[!.]*/**/*.py"))]
    found = [
        f"{path.name}: {name}"
        for path in DOCUMENTS
        for name in house.stale_names(path.read_text(encoding="utf-8"), tree, files)
        if not any(example in name for example in EXAMPLES)
    ]
    assert found == []


@pytest.mark.parametrize(
    "name",
    [
        "noisefloor.gone",
        "noisefloor.here.missing",
        "noisefloor.here.Kind.missing",
        "noisefloor.passed.Kind.missing",
        "noisefloor_sim.here",
        "gone.py",
        "other/here.py",
        "ere.py",
        "Kind.missing",
        "Missing.method",
        "missing()",
    ],
)
def test_a_name_that_does_not_exist_is_found_in_a_document(name: str) -> None:
    text = f"See `{name}`, and go on."
    assert house.stale_names(text, DOCUMENTED, ["a/noisefloor/here.py"]) == [name]


def test_names_that_exist_are_not_found_in_a_document() -> None:
    text = (
        "noisefloor.here, `noisefloor.here.Kind.method()`, noisefloor.passed.method. "
        "`Kind.method`, `Kind`, `method()`, `eval()`, `README.md`, noisefloor.here.LIMIT; "
        "noisefloor.here.BOTH: noisefloor/here.py, here.py. noisefloor."
    )
    assert house.stale_names(text, DOCUMENTED, ["a/noisefloor/here.py"]) == []
