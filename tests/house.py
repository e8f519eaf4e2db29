"""Rules of the source tree that a machine can check, each as a function of a tree.

A ``Tree`` is module names and sources, read from disk or made up by a test. Every rule returns
its breaches as lines of text; an empty list means that the tree keeps the rule.
"""

import ast
import builtins
import functools
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE_ROOTS = ("platform", "simulator", "services")
INIT = ".__init__"


@dataclass(frozen=True, slots=True)
class Import:
    """One name that a module imports; ``name`` is None where it imports ``target`` itself."""

    importer: str
    line: int
    target: str
    name: str | None
    bound: str


class Tree:
    """Modules by dotted name; a package stands under its own name, its door.

    Args:
        sources: Source text by dotted name; the name of a package ends in ``.__init__``.
    """

    def __init__(self, sources: Mapping[str, str]) -> None:
        self.packages = {name.removesuffix(INIT) for name in sources if name.endswith(INIT)}
        self.sources = {name.removesuffix(INIT): text for name, text in sources.items()}
        self.syntax = {name: ast.parse(text) for name, text in self.sources.items()}
        self.imports = [one for name in sorted(self.sources) for one in self._imports_of(name)]
        self._through = {
            (one.importer, one.bound): one for one in self.imports if one.importer in self.packages
        }

    @classmethod
    def read(cls, root: Path = ROOT, folders: Iterable[str] = SOURCE_ROOTS) -> "Tree":
        """Return the modules of some source roots."""
        sources = {}
        for folder in (root / name for name in folders):
            for path in sorted(folder.rglob("*.py")):
                name = ".".join(path.relative_to(folder).with_suffix("").parts)
                sources[name] = path.read_text(encoding="utf-8")
        return cls(sources)

    def package_of(self, module: str) -> str:
        """Return the package a module stands in; a door stands in its own package."""
        return module if module in self.packages else module.rpartition(".")[0]

    def public_names(self, package: str) -> set[str]:
        """Return what a door lists in ``__all__``."""
        for node in self.syntax[package].body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                return set(ast.literal_eval(node.value))
        return set()

    def origin(self, one: Import) -> str:
        """Return the module that an imported name comes from, through any number of doors."""
        step = None if one.name is None else self._through.get((one.target, one.name))
        return one.target if step is None else self.origin(step)

    def _imports_of(self, module: str) -> Iterator[Import]:
        """Yield what a module imports; ``package.name`` is an import of that name, too."""
        direct = list(self._direct_imports_of(module))
        yield from direct
        packages = {one.bound: one.target for one in direct if self.is_whole_package(one)}
        for node in ast.walk(self.syntax[module]):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                package = packages.get(node.value.id)
                if package is not None:
                    inner = f"{package}.{node.attr}"
                    target, name = (inner, None) if inner in self.sources else (package, node.attr)
                    bound = f"{node.value.id}.{node.attr}"
                    yield Import(module, node.lineno, target, name, bound)

    def is_whole_package(self, one: Import) -> bool:
        """Whether an import binds a package, whose names are then read as attributes."""
        return one.name is None and one.target in self.packages and "." not in one.bound

    def _direct_imports_of(self, module: str) -> Iterator[Import]:
        for node in ast.walk(self.syntax[module]):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name in self.sources:
                        bound = alias.asname or alias.name
                        yield Import(module, node.lineno, alias.name, None, bound)
            elif isinstance(node, ast.ImportFrom) and node.module in self.sources:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    target, name = (
                        (inner, None) if inner in self.sources else (node.module, alias.name)
                    )
                    yield Import(module, node.lineno, target, name, alias.asname or alias.name)


def bypassed_doors(tree: Tree, exempt: Container[tuple[str, str]] = ()) -> list[str]:
    """Return imports across packages that do not go through the package's ``__init__``.

    A module directly under a root package is its own door. A package imports the modules of the
    packages around it directly, because their doors import it.

    Args:
        tree: The modules.
        exempt: Pairs (importer, module) that may meet without a door.
    """
    found = []
    for one in tree.imports:
        home, owner = tree.package_of(one.importer), tree.package_of(one.target)
        is_around = f"{home}.".startswith(f"{owner}.")
        where = f"{one.importer}:{one.line}"
        if home == owner or (one.importer, one.target) in exempt:
            continue
        if one.name is not None and one.name.startswith("_"):
            found.append(f"{where} imports the private {one.target}.{one.name}")
        elif is_around:
            continue
        elif one.target not in tree.packages and "." in owner:
            if one.name is None and one.target.rpartition(".")[2] in tree.public_names(owner):
                continue  # the door lists the module itself
            found.append(f"{where} imports {one.target}, not its door {owner}")
        elif one.target in tree.packages and one.name not in {
            None,
            *tree.public_names(one.target),
        }:
            found.append(f"{where} imports {one.name}, which {one.target}.__all__ does not list")
    return found


def unused_modules(tree: Tree, entry_points: Iterable[str]) -> list[str]:
    """Return the modules that no entry point reaches.

    What a door passes on is used only if another module imports the name through that door.
    """
    uses: dict[str, set[str]] = defaultdict(set)
    for one in tree.imports:
        if not tree.is_whole_package(one):  # only the names that are read from it are used
            uses[one.importer].add(tree.origin(one))
    reached: set[str] = set()
    waiting = list(entry_points)
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += uses[module]
    return sorted(set(tree.sources) - reached - tree.packages)


def repeated_classes(tree: Tree) -> list[str]:
    """Return the public class names that stand in more than one module."""
    places = defaultdict(set)
    for module, syntax in tree.syntax.items():
        for node in ast.walk(syntax):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(module)
    return [
        f"{name}: {', '.join(sorted(modules))}"
        for name, modules in sorted(places.items())
        if len(modules) > 1
    ]


def words_in_names(source: str, words: Iterable[str], allowed: str = "") -> list[str]:
    """Return the identifiers, with their lines, that contain one of some words.

    An identifier is split at underscores and capitals; a word of several parts, such as
    ``line_up``, has to stand in it as a run of parts, and so has what is allowed.
    """
    looked_for = tuple(words)
    # Every identifier is such a run of signs: most texts have none that may be one of the words.
    if not any(_words_of(one, looked_for, allowed) for one in set(re.findall(r"\w+", source))):
        return []
    return [
        f"{token.start[0]}: {token.string} ({word})"
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.NAME
        for word in _words_of(token.string, looked_for, allowed)
    ]


@functools.cache
def _words_of(name: str, words: tuple[str, ...], allowed: str) -> tuple[str, ...]:
    """Return those of some words that an identifier contains."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    spelled = f"_{'_'.join(parts)}_".lower().replace(f"_{allowed}_", "_")
    return tuple(word for word in words if f"_{word}_" in spelled)


def long_lines(text: str, limit: int) -> list[int]:
    """Return the numbers of the lines of a document that are longer than a limit.

    A row of a table and a line without a space, such as an address, cannot be broken.
    """
    return [
        number
        for number, line in enumerate(text.splitlines(), start=1)
        if len(line) > limit and " " in line.strip() and not line.lstrip().startswith("|")
    ]


def stale_names(text: str, tree: Tree, files: Iterable[str]) -> list[str]:
    """Return the names of code in a document that do not exist.

    Looked for are Python files, by the end of their path; dotted names such as
    ``noisefloor.wire.Kind``; and in backticks ``Class.attribute`` and ``function()``.
    """
    paths = [f"/{path}" for path in files]
    named = set(re.findall(r"[\w/.-]*\w\.py\b", text))
    gone = [name for name in named if not any(path.endswith(f"/{name}") for path in paths)]
    dotted = set(re.findall(r"\bnoisefloor(?:_sim|_services)?(?:\.\w+)+", text))
    short = set(re.findall(r"`([A-Z]\w*[a-z]\w*\.[a-z]\w*|[a-z]\w*\(\))`", text)) - _short_names(
        tree
    )
    return sorted([*gone, *short, *(name for name in dotted if not _exists(name, tree))])


@functools.cache
def _short_names(tree: Tree) -> set[str]:
    functions, members = {f"{name}()" for name in dir(builtins)}, set[str]()
    for node in (node for syntax in tree.syntax.values() for node in ast.walk(syntax)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.add(f"{node.name}()")
        elif isinstance(node, ast.ClassDef):
            members |= {f"{node.name}.{name}" for inner in node.body for name in _names_of(inner)}
    return functions | members


def _exists(dotted: str, tree: Tree) -> bool:
    module, names = dotted, list[str]()
    while module not in tree.sources:
        module, _, name = module.rpartition(".")
        names.insert(0, name)
        if not module:
            return False
    return not names or _defines(tree, module, names)


def _defines(tree: Tree, module: str, names: list[str]) -> bool:
    bodies = [tree.syntax[module].body]
    for one in tree.imports:
        if one.importer == module and one.bound == names[0]:
            return one.name is None or _defines(tree, one.target, [one.name, *names[1:]])
    for name in names:
        inner = [node for body in bodies for node in body if name in _names_of(node)]
        bodies = [node.body for node in inner if isinstance(node, ast.ClassDef)]
        if not inner:
            return False
    return True


def _names_of(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return {node.name}
    if isinstance(node, ast.Assign):
        return {ast.unparse(target) for target in node.targets}
    return {ast.unparse(node.target)} if isinstance(node, ast.AnnAssign) else set()
