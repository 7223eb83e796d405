"""`truename lock`: the names of a repository's tools in a file for review, and the proof that they still are these."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from truename.cli.classified import plain, show_changes
from truename.cli.failure import EXIT_FINDINGS, UsageFault
from truename.cli.lock_file import Before, write_lock
from truename.cli.options import JsonOutput
from truename.cli.protocol_here import protocol_here
from truename.cli.rendering import print_json, say, show, styled
from truename.cli.states import tools_of
from truename.files.user import at_home
from truename.migration import LOCK_FILE, Lock, ToolChanges, version_parts
from truename.migration import diff as compare

__all__ = ["lock"]

SCHEMA = "truename.lock/1"
_ADDRESSES = ("http://", "https://")

Source = Annotated[
    str,
    Parameter(
        help="A Python file, a directory of such, a dump of tools/list, a configuration, or an http(s) address; "
        "without one, those that the lock names."
    ),
]
Check = Annotated[
    bool, Parameter(name="--check", show_default=False, help="Write nothing; exit status 1 if the lock is not true.")
]
File = Annotated[Path, Parameter(name="--file", help="The lock.")]
Protocol = Annotated[
    str | None,
    Parameter(name="--protocol", help="The version of this set of tools, as in 0.3; else as stated, or as it was."),
]
Everything = Annotated[bool, Parameter(name="--all", show_default=False, help="Show every change.")]


def lock(
    *sources: Source,
    check: Check = False,
    file: File = Path(LOCK_FILE),
    protocol: Protocol = None,
    as_json: JsonOutput = False,
    everything: Everything = False,
) -> int:
    """Write down the names and digests of this repository's tools for review; --check proves that they are these."""
    before = Before(at_home(file))
    known = _known(before, sources, check=check)
    if protocol is not None:
        version_parts(protocol)
    told = sources or tuple(_from_here(one, before.path) for one in known.sources)
    wanted = Lock.of(
        tools_of(told, named_by=None if sources else before.path),
        [_from_lock(one, before.path) for one in told],
        protocol_here() or known.protocol if protocol is None else protocol,
    )
    changes = compare(known.tools, wanted.tools)
    # Of one server alone the comparison says nothing of its key, and of a line whose digest is right nothing else.
    is_true = wanted.text() == replace(known, sources=wanted.sources).text()
    if not check:
        write_lock(before, wanted)
    if as_json:
        print_json(_document(before, wanted, changes, known, is_true=is_true, check=check))
    else:
        _print(before, wanted, changes, known, is_true=is_true, check=check, everything=everything)
    return EXIT_FINDINGS if check and not is_true else 0


def _known(before: Before, sources: tuple[str, ...], *, check: bool) -> Lock:
    """Return the lock as it is, an empty one where none is needed. Raises `UsageFault`, `ConfigError`."""
    if before.fault is not None:
        if check or not sources or not before.is_ours:
            raise before.fault
        say(styled("note: ", "yellow"), styled(f"{before.fault} It is written anew; nothing is compared."))
        return Lock()
    if before.lock is None and check:
        raise UsageFault(fact=f"there is no {before.path}", advice="`truename lock SOURCE...` writes it.")
    if not sources and (before.lock is None or not before.lock.sources):
        raise UsageFault(fact=f"no SOURCE was given, and no {before.path} names any", advice="Say `truename lock src`.")
    return before.lock or Lock()


def _from_lock(source: str, path: Path) -> str:
    """Return a source as seen from the lock's directory, the same on every machine."""
    if source.lower().startswith(_ADDRESSES):
        return source
    return Path(os.path.relpath(at_home(source), path.absolute().parent)).as_posix()


def _from_here(source: str, path: Path) -> str:
    return source if source.lower().startswith(_ADDRESSES) else os.path.relpath(path.absolute().parent / source)


def _print(
    before: Before, wanted: Lock, changes: ToolChanges, known: Lock, *, is_true: bool, check: bool, everything: bool
) -> None:
    if before.lock is not None:
        show_changes(changes, everything=everything)
        for told in _beside(known, wanted, is_told=bool(changes) or is_true):
            show(told)
    tools = f"{len(wanted.tools):,} tool{'' if len(wanted.tools) == 1 else 's'}"
    if not check:
        show(styled(f"{before.path} holds {tools}. Have it reviewed and committed with the change.", "bold"))
    elif not is_true:
        show(f"{before.path} is not true any more. If all of this is meant, `truename lock` writes it for review.")
    else:
        show(f"{before.path} is true: {tools}.")


def _beside(known: Lock, wanted: Lock, *, is_told: bool) -> Iterator[str]:
    """Say what differs beside the tools themselves."""
    servers = [", ".join(sorted({repr(pin.server) for pin in one.tools if pin.server})) for one in (known, wanted)]
    if known.tools and wanted.tools and servers[0] != servers[1]:
        yield f"The server is {servers[1] or 'none'}; the lock has {servers[0] or 'none'}: names go by its key."
    elif wanted.protocol == known.protocol and not is_told:
        yield "A line of the lock is not as it was written: somebody has edited it."
    if wanted.protocol != known.protocol:
        yield f"The protocol version is {wanted.protocol or 'none'}; the lock has {known.protocol or 'none'}."


def _document(
    before: Before, wanted: Lock, changes: ToolChanges, known: Lock, *, is_true: bool, check: bool
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "file": str(before.path),
        "sources": list(wanted.sources),
        "tools": len(wanted.tools),
        "protocol": {"old": known.protocol, "new": wanted.protocol},
        "is_true": is_true,
        "written": not check,
        **plain(changes),
    }
