"""What is measured, each with the plain dictionaries that do the least that could be called the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from bench.measure import Case
from truename import Catalog, Ledger, ToolId, naming
from truename.conventions import Declaration, lint
from truename.errors import AmbiguousName, ResolutionError
from truename.naming import words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.names import Pairs
    from truename import NameTable

__all__ = ["cases"]

_US: Final = 1e-6
_MS: Final = 1e-3
_HELP: Final = str(Path(sys.executable).with_name("truename"))


def cases(pairs: Pairs) -> Iterator[Case]:
    """Yield all cases over these servers."""
    yield from _building(pairs)
    yield from _resolving(naming.project(Catalog.from_mcp(pairs), "universal"))
    yield from _linting(pairs)
    yield from _starting()


def _building(pairs: Pairs) -> Iterator[Case]:
    catalog = Catalog.from_mcp(pairs)
    label = f"{len(catalog):,} tools"

    def plain_project() -> object:
        names: dict[str, str] = {}
        for id, tool in catalog.items():
            names[f"{tool.origin.server}_{tool.origin.name}".lower().replace("-", "_")] = str(id)
        return names

    def cold() -> None:
        words.split.cache_clear()

    yield Case(
        name=f"catalogue of {label}",
        run=lambda _: Catalog.from_mcp(pairs),
        plain=lambda: {(server, tool["name"]): tool for server, tools in pairs for tool in tools},
    )
    yield Case(
        name=f"project {label}",
        aim=100 * _MS,
        prepare=cold,
        run=lambda _: naming.project(catalog, "universal"),
        plain=plain_project,
    )
    yield Case(name="  again", run=lambda _: naming.project(catalog, "universal"), plain=plain_project)
    yield Case(
        name="  style on-conflict",
        prepare=cold,
        run=lambda _: naming.project(catalog, "universal", style="on-conflict"),
        plain=plain_project,
    )
    yield Case(
        name="  into a ledger in memory",
        prepare=Ledger.memory,
        run=lambda ledger: naming.project(catalog, "universal", ledger=ledger),
        plain=plain_project,
    )
    with tempfile.TemporaryDirectory() as directory:
        paths = (Path(directory) / f"{number}.ledger" for number in range(1_000_000))
        yield Case(
            name="  into a ledger file",
            prepare=lambda: Ledger.open(next(paths)),
            run=lambda ledger: naming.project(catalog, "universal", ledger=ledger),
            plain=plain_project,
        )
        kept = Path(directory) / "kept.ledger"
        naming.project(catalog, "universal", ledger=Ledger.open(kept))
        yield Case(name="  opening that file", run=lambda _: Ledger.open(kept))
        yield Case(
            name="  from what it remembers",
            prepare=lambda: Ledger.open(kept),
            run=lambda ledger: naming.project(catalog, "universal", ledger=ledger),
            plain=plain_project,
        )


def _resolving(table: NameTable) -> Iterator[Case]:
    ids = list(table)
    names = list(table.values())
    by_name = dict(zip(names, ids, strict=True))
    by_text = {str(id): id for id in ids}
    by_short = {id.short: id for id in ids}
    by_fold = {name.replace("_", "-"): id for name, id in by_name.items()}
    naming.resolve(ids[0].short, table)
    # A fold that two tools share is no look-up, but an error.
    derived = [text for text in by_fold if "-" in text and _is_one_tools(text, table)]
    spellings: dict[str, tuple[list[str], Callable[[str], object]]] = {
        "canonical": ([str(id) for id in ids], by_text.__getitem__),
        "percent-encoded": (
            [str(id).replace("@", "%40").replace("/", "%2F") for id in ids],
            lambda text: by_text[unquote(text)],
        ),
        "tilde for slash": (
            [str(id).replace("/", "~") for id in ids],
            lambda text: by_text[text.replace("~", "/")],
        ),
        "without versions": ([_bare(id) for id in ids if _bare(id) in by_short], by_short.__getitem__),
        "derived (hyphens)": (derived, by_fold.__getitem__),
    }
    yield _lookups("resolve an exact name", names, table, by_name.__getitem__, 0.5 * _US)
    for what, (texts, plain) in spellings.items():
        yield _lookups(f"  {what}", texts, table, plain, 3 * _US)
    yield Case(
        name="first derived look-up",
        prepare=lambda: naming.project(table.catalog, "universal"),
        run=lambda fresh: naming.resolve(derived[0], fresh),
    )
    wrong = [f"{name}x" for name in names[:100]]
    yield Case(name="a wrong name, with suggestions", count=len(wrong), run=lambda _: _fail(wrong, table))


def _is_one_tools(text: str, table: NameTable) -> bool:
    try:
        naming.resolve(text, table)
    except AmbiguousName:
        return False
    return True


def _bare(id: ToolId) -> str:
    return f"{id.integration}/{id.suite + '.' if id.suite else ''}{id.tool}"


def _lookups(name: str, texts: list[str], table: NameTable, plain: Callable[[str], object], aim: float) -> Case:
    def run(_: Any) -> None:
        resolve = naming.resolve
        for text in texts:
            resolve(text, table)

    def loop() -> None:
        for text in texts:
            plain(text)

    return Case(name=name, count=len(texts), aim=aim, run=run, plain=loop)


def _fail(texts: list[str], table: NameTable) -> None:
    for text in texts:
        try:
            naming.resolve(text, table)
        except ResolutionError:
            continue


def _linting(pairs: Pairs) -> Iterator[Case]:
    declarations = [
        Declaration(name=tool["name"], server=key, definition=tool) for key, tools in pairs for tool in tools
    ]

    def looked_at() -> object:
        return [len(json.dumps(one.definition)) for one in declarations]

    yield Case(name=f"lint {len(declarations):,} tools", aim=3.0, run=lambda _: lint(declarations), plain=looked_at)


def _starting() -> Iterator[Case]:
    def bare() -> float:
        return _process([sys.executable, "-c", "pass"])

    yield Case(
        name="import truename, less a bare start",
        aim=60 * _MS,
        seconds=lambda: max(0.0, _process([sys.executable, "-c", "import truename"]) - bare()),
        plain_seconds=bare,
        explain=lambda: _imports("import truename"),
    )
    yield Case(
        name="truename --help",
        aim=200 * _MS,
        seconds=lambda: _process([_HELP, "--help"]),
        plain_seconds=bare,
        explain=lambda: _imports("from truename.cli import main; main(['--help'])"),
    )


def _imports(code: str, top: int = 12) -> tuple[str, ...]:
    """Return the modules whose own import takes longest, in microseconds."""
    command = [sys.executable, "-X", "importtime", "-c", code]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    rows = [line.removeprefix("import time:").split("|") for line in told.splitlines()[1:] if line.count("|") == 2]
    rows.sort(key=lambda row: -int(row[0]))
    return tuple(f"{int(own):9} us  {name.strip()}" for own, _, name in rows[:top])


def _process(command: list[str]) -> float:
    """Return the seconds of the faster of two runs: what is measured is not the machine's other work."""
    return min(_once(command) for _ in range(2))


def _once(command: list[str]) -> float:
    start = time.perf_counter()
    # Installers compile; a machine that is told to write no bytecode would measure the compiler.
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
    return time.perf_counter() - start
