"""Count what a code base is made of: ``python -m tests.census [REVISION] [--all] [--json]``.

Counts the sources below ``src/truename`` without the gateway (``--all``: with it), of the working tree or of a revision
of git. Names are counted, not resolved: a private function is "called once" where its name stands once, beside its
definition, in its module and those that import it.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import tokenize
from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Census", "count", "main"]

ROOT = Path(__file__).parents[1]
PACKAGE = "truename"
SHORT = 110
SUPPRESSIONS = ("noqa", "type: ignore", "pragma:")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True)
class Census:
    """The figures, each with a title in its metadata, and the places behind those that name some."""

    files: int = field(metadata={"title": "files"})
    lines: int = field(metadata={"title": "lines"})
    import_lines: int = field(metadata={"title": "lines of imports and __all__"})
    one_importer: int = field(metadata={"title": "modules with exactly one importer"})
    one_importer_short: int = field(metadata={"title": f"of these under {SHORT} lines"})
    called_once: int = field(metadata={"title": "private functions called once"})
    classes_twice: int = field(metadata={"title": "class names used twice"})
    deferred_imports: int = field(metadata={"title": "deferred imports"})
    uses_of_any: int = field(metadata={"title": "uses of Any"})
    suppressions: int = field(metadata={"title": "suppressions"})
    modules_with_one_importer: dict[str, str] = field(repr=False)
    """Each such module, with its importer."""
    functions_called_once: tuple[str, ...] = field(repr=False)
    """Where each stands, ``MODULE:LINE NAME LENGTH``."""


class Module:
    """One source file, as it stands and as the parser sees it."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        self.text = path.read_text("utf-8")
        self.tree = ast.parse(self.text)
        self.is_package = path.name == "__init__.py"

    @cached_property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(self.tree))

    @cached_property
    def comments(self) -> tuple[str, ...]:
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return tuple(token.string for token in tokens if token.type == tokenize.COMMENT)

    @property
    def import_lines(self) -> int:
        found = set[int]()
        for node in self.nodes:
            if isinstance(node, ast.Import | ast.ImportFrom) or (is_all(node) and isinstance(node, ast.stmt)):
                found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        return len(found)

    @property
    def deferred_imports(self) -> int:
        functions = [node for node in self.nodes if isinstance(node, Function)]
        imports = [node for node in self.nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        return sum(any(one.lineno < node.lineno <= (one.end_lineno or 0) for one in functions) for node in imports)

    @property
    def uses_of_any(self) -> int:
        return sum(isinstance(node, ast.Name) and node.id == "Any" for node in self.nodes)

    @property
    def suppressions(self) -> int:
        return sum(any(word in comment for word in SUPPRESSIONS) for comment in self.comments)

    @property
    def classes(self) -> Iterator[str]:
        return (node.name for node in self.nodes if isinstance(node, ast.ClassDef))

    @property
    def private_functions(self) -> Iterator[Function]:
        """The private functions of the module and methods of its classes; not those inside of functions."""
        bodies = [self.tree.body, *(node.body for node in self.nodes if isinstance(node, ast.ClassDef))]
        for body in bodies:
            for node in body:
                if isinstance(node, Function) and node.name.startswith("_") and not node.name.endswith("__"):
                    yield node

    @cached_property
    def names(self) -> Counter[str]:
        """How often the module mentions each name, its definition left out."""
        kinds = {ast.Name: "id", ast.Attribute: "attr", ast.alias: "name"}
        return Counter(getattr(node, kinds[type(node)]) for node in self.nodes if type(node) in kinds)

    def imports(self, known: dict[str, Module]) -> set[str]:
        """Return the modules of the package that this one imports, annotations included; of a package, its module."""
        found = set[str]()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = self._base(node)
                for alias in node.names:
                    inner = f"{base}.{alias.name}"
                    found.add(inner if inner in known else base)
        return {name for name in found if name in known and name != self.name}

    def _base(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        here = self.name.split(".") if self.is_package else self.name.split(".")[:-1]
        parts = here[: len(here) - node.level + 1]
        return ".".join([*parts, *([node.module] if node.module else [])])


def is_all(node: ast.AST) -> bool:
    targets: Sequence[ast.expr] = (
        node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    )
    return any(isinstance(one, ast.Name) and one.id == "__all__" for one in targets)


def modules_of(root: Path) -> dict[str, Module]:
    """Read the sources of the package below ``root``, by name."""
    found = {}
    for path in sorted((root / "src" / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root / "src").with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = Module(path, name)
    return found


def count(root: Path, *, gateway: bool = False) -> Census:
    """Count the package below ``root``. Importers and callers are looked for in all of it, the gateway included."""
    everything = modules_of(root)
    hidden = f"{PACKAGE}.gateway"
    counted = {
        name: one
        for name, one in everything.items()
        if gateway or not (name == hidden or name.startswith(f"{hidden}."))
    }
    importers: dict[str, list[str]] = {name: [] for name in everything}
    for one in everything.values():
        for name in one.imports(everything):
            importers[name].append(one.name)
    alone = {
        name: importers[name][0] for name, one in counted.items() if len(importers[name]) == 1 and not one.is_package
    }
    once = tuple(
        f"{one.name}:{node.lineno} {node.name} {(node.end_lineno or node.lineno) - node.lineno + 1}"
        for one in counted.values()
        for node in one.private_functions
        if sum(user.names[node.name] for user in (one, *(everything[user] for user in importers[one.name]))) == 1
    )
    classes = Counter(name for one in counted.values() for name in one.classes)
    return Census(
        files=len(counted),
        lines=sum(one.lines for one in counted.values()),
        import_lines=sum(one.import_lines for one in counted.values()),
        one_importer=len(alone),
        one_importer_short=sum(counted[name].lines < SHORT for name in alone),
        called_once=len(once),
        classes_twice=sum(number > 1 for number in classes.values()),
        deferred_imports=sum(one.deferred_imports for one in counted.values()),
        uses_of_any=sum(one.uses_of_any for one in counted.values()),
        suppressions=sum(one.suppressions for one in counted.values()),
        modules_with_one_importer=dict(sorted(alone.items())),
        functions_called_once=once,
    )


def counted_at(revision: str, *, gateway: bool) -> Census:
    """Count the tree of a revision. Raises `subprocess.CalledProcessError` for one that git does not know."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), "archive", revision, f"src/{PACKAGE}"], check=True, stdout=subprocess.PIPE
    )
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extractall(folder, filter="data")
        return count(Path(folder), gateway=gateway)


def figures(census: Census) -> Iterator[tuple[str, int]]:
    """Yield each figure under its title."""
    for name, one in Census.__dataclass_fields__.items():
        if title := one.metadata.get("title"):
            yield title, getattr(census, name)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print the census."""
    parser = argparse.ArgumentParser(prog="python -m tests.census", description="Count what the code base is made of.")
    parser.add_argument("revision", nargs="?", help="a revision of git; without it the working tree")
    parser.add_argument("--all", action="store_true", help="count the gateway, too")
    parser.add_argument("--json", action="store_true", help="print JSON, with the places behind the figures")
    options = parser.parse_args(arguments)
    census = (
        count(root, gateway=options.all)
        if options.revision is None
        else counted_at(options.revision, gateway=options.all)
    )
    if options.json:
        document: dict[str, Any] = asdict(census)
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        sys.stdout.writelines(f"{number:7,}  {title}\n" for title, number in figures(census))
    return 0


if __name__ == "__main__":
    sys.exit(main())
