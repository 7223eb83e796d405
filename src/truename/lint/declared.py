"""Collect the tools declared in Python sources and dumps, with the findings about unreadable parts."""

from __future__ import annotations

import ast
import stat
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from truename.conventions import Declaration, Finding, Location, Metadata, metadata_of
from truename.conventions.metadata import FIELDS, META_PREFIX, read_fields, written_metadata
from truename.lint.dumps import read_dump
from truename.lint.python_signatures import literal
from truename.lint.python_source import MAX_SOURCE, InlineSuppression, UnreadableSource
from truename.lint.python_tools import UnnamedTool, read_python
from truename.lint.rules import UPKEEP
from truename.lint.source_files import PYTHON, python_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from truename.lint.python_source import Comment
    from truename.lint.python_tools import NamedTool

__all__ = ["DeclaredTools", "joined", "read_declared"]

_CHECK: Final = "Check the path."
_META: Final = "_meta"
# The limit of comments for one declaration; no real one spans thousands of lines.
_MOST_COMMENTS: Final = 50


@dataclass(frozen=True, kw_only=True)
class DeclaredTools:
    """The declarations that were read, the findings about unreadable parts, and the suppressing comments.

    ``literal`` has the locations of names that are written out in a source; ``files`` are the files read; ``servers``
    are the servers created in sources that have tools. ``names`` counts the names of tools in skills and other files.
    """

    declarations: tuple[Declaration, ...] = ()
    findings: tuple[Finding, ...] = ()
    suppressions: tuple[InlineSuppression, ...] = ()
    literal: frozenset[Location] = frozenset()
    files: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    names: int = 0


def read_declared(paths: Iterable[str | Path], *, exclude: Sequence[str] = ()) -> DeclaredTools:
    """Read the declared tools of Python files, of the Python files below directories, and of dumps.

    A Python source is parsed, never imported. A dump is a saved tools/list result: JSON or JSONL, optionally gzipped.
    Directories of third-party files (.git, virtual environments, caches, node_modules) and matches of the ``exclude``
    globs are skipped. Nothing is raised: an unreadable file becomes a finding (``unreadable_source``) with file and
    line, and the rest is read.

    >>> read_declared(["no/such/file.py"]).findings[0].fact
    'The file is not readable: No such file or directory.'
    """
    files: dict[Path, Path] = {}
    for path in paths:
        try:
            named = list(python_files(Path(path), exclude))
        except (OSError, ValueError):
            # Reading the path will report the error.
            named = [Path(path)]
        for file in named:
            files.setdefault(file.absolute(), file)
    return joined(_told_apart([_read(file) for file in files.values()]))


def joined(several: Iterable[DeclaredTools]) -> DeclaredTools:
    """Combine several readings in their order; a file that was read twice counts once."""
    parts: dict[tuple[str, ...], DeclaredTools] = {}
    for number, one in enumerate(several):
        parts.setdefault(one.files or (str(number),), one)
    return DeclaredTools(
        declarations=tuple(one for part in parts.values() for one in part.declarations),
        findings=tuple(one for part in parts.values() for one in part.findings),
        suppressions=tuple(one for part in parts.values() for one in part.suppressions),
        literal=frozenset().union(*(part.literal for part in parts.values())),
        files=tuple(file for part in parts.values() for file in part.files),
        servers=tuple(server for part in parts.values() for server in part.servers),
        names=sum(part.names for part in parts.values()),
    )


def _told_apart(parts: Sequence[DeclaredTools]) -> Iterator[DeclaredTools]:
    """Yield the parts with a label for each server created in them, unless there is only one server."""
    is_needed = sum(len(part.servers) for part in parts) > 1
    seen: Counter[str] = Counter()
    for part in parts:
        seen.update(part.servers)
        labels = {one: (f"{one}_{seen[one]}" if seen[one] > 1 else one) if is_needed else "" for one in part.servers}
        yield (
            replace(
                part,
                declarations=tuple(
                    replace(one, server=labels.get(one.server, one.server)) for one in part.declarations
                ),
                servers=tuple(labels.values()),
            )
            if labels
            else part
        )


def _read(path: Path) -> DeclaredTools:
    file = str(path)
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise UnreadableSource("it is not a regular file", "Give a file or a directory.")
        if path.suffix not in PYTHON:
            declarations, findings = read_dump(path, file)
            return DeclaredTools(declarations=tuple(declarations), findings=tuple(findings), files=(file,))
        with path.open("rb") as stream:
            found, comments = read_python(stream.read(MAX_SOURCE + 1), file)
    except UnreadableSource as error:
        return DeclaredTools(findings=(_unreadable(error, file),), files=(file,))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return DeclaredTools(findings=(_unreadable(UnreadableSource(reason, _CHECK), file),), files=(file,))
    return _of_source(file, found, comments)


def _of_source(file: str, found: Sequence[NamedTool | UnnamedTool], comments: Sequence[Comment]) -> DeclaredTools:
    about = _about(found, comments)
    named = [(one, about[number]) for number, one in enumerate(found) if not isinstance(one, UnnamedTool)]
    return DeclaredTools(
        declarations=tuple(_declaration(one, several) for one, several in named),
        findings=tuple(_computed(one) for one in found if isinstance(one, UnnamedTool)),
        suppressions=tuple(_suppressions(file, found, comments, about)),
        literal=frozenset(one.location for one, _ in named if one.is_literal),
        files=(file,),
        servers=tuple(dict.fromkeys(one.server for one, _ in named if one.server)),
    )


def _about(found: Sequence[NamedTool | UnnamedTool], comments: Sequence[Comment]) -> list[Sequence[Comment]]:
    """Return, for each tool, the comments inside its declaration and on the line of its name."""
    lines = [one.line for one in comments]
    about: list[Sequence[Comment]] = []
    for one in found:
        spans = {(one.first, one.last), (one.location.line, one.location.line)}
        places = {
            place
            for first, last in spans
            for place in range(bisect_left(lines, first), bisect_right(lines, last))[:_MOST_COMMENTS]
        }
        about.append([comments[place] for place in sorted(places)])
    return about


def _declaration(one: NamedTool, about: Sequence[Comment]) -> Declaration:
    stated = one.definition.get(_META)
    meta = {**(stated if isinstance(stated, Mapping) else {}), **_said(one.said)}
    definition = {**one.definition, _META: meta} if meta else one.definition
    return Declaration(
        name=one.name,
        server=one.server,
        definition=definition,
        metadata=metadata_of(definition),
        location=one.location,
        ignored={rule: comment.reason for comment in about for rule in comment.rules},
    )


def _suppressions(
    file: str, found: Sequence[NamedTool | UnnamedTool], comments: Sequence[Comment], about: Sequence[Sequence[Comment]]
) -> Iterable[InlineSuppression]:
    names: defaultdict[int, list[Location]] = defaultdict(list)
    for one, several in zip(found, about, strict=True):
        for comment in several:
            names[comment.line].append(one.location)
    for comment in comments:
        location = Location(file=file, line=comment.line, column=comment.column)
        for rule in comment.rules:
            yield InlineSuppression(
                rule=rule, reason=comment.reason, location=location, names=tuple(names[comment.line])
            )


def _said(arguments: Mapping[str, ast.expr]) -> Mapping[str, object]:
    """Return the metadata that our own decorator sets; values computed at run time are unknown."""
    values = {name: _value(node) for name, node in arguments.items() if name in FIELDS}
    told = {name: value for name, (is_known, value) in values.items() if is_known}
    said = read_fields(told)
    faulty = {f"{META_PREFIX}{name}": told[name] for name in said.errors}
    return {**written_metadata(Metadata(**said.values)), **faulty}


def _value(node: ast.expr) -> tuple[bool, object]:
    match node:
        case ast.Attribute():
            # A member of an enumeration: Platform.IOS.
            return True, node.attr
        case ast.List() | ast.Tuple() | ast.Set():
            items = [_value(one) for one in node.elts]
            return all(known for known, _ in items), [value for _, value in items]
    return literal(node)


def _unreadable(error: UnreadableSource, file: str) -> Finding:
    return Finding(
        rule=UPKEEP["unreadable_source"],
        fact=f"The file is not readable: {error.problem}.",
        remedy=error.remedy,
        location=Location(file=file, line=error.line, column=error.column),
    )


def _computed(one: UnnamedTool) -> Finding:
    return Finding(
        rule=UPKEEP["computed_name"],
        fact=f"The name of a tool is computed at run time ({one.what}), so no rule can check it.",
        remedy="Also lint the list of the running server, or write the name as a string literal.",
        location=one.location,
    )
