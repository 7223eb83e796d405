"""Rename tools in clients' files: lists of permissions, hooks and policies, agents, commands, and the text of skills.

A name is replaced where it certainly means the tool: it names the server, or stands in that server's entry. Everything
else that names the tool, or seems to, is reported and left: globs, regular expressions, names without a server in
files that several servers share, files of administrators, links.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from truename import dialects
from truename.clients.gateway_address import shown_by
from truename.clients.kept_names import SPELLINGS, kept_names, matches, respell
from truename.clients.plan import FileChange, PlanDraft
from truename.config.entries import is_gateway
from truename.editing import Document
from truename.errors import ConfigError, UnknownDialect
from truename.files import absolute, read_plain
from truename.identity import fold
from truename.migration import FileRewrite, LeftMention
from truename.migration.rewrite import Leftover, TextEdit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from truename.clients.find import FoundFile
    from truename.clients.kept_names import KeptName

__all__ = ["RenamedInClients", "rename_in_clients"]

_MARKDOWN: Final = "markdown"
_MANAGED: Final = "managed"
_WILD: Final = re.compile(r"[*?\[]")
_WORD: Final = r"[A-Za-z0-9_-]"
_LONGEST: Final = 16 * 1024 * 1024


@dataclass(frozen=True)
class RenamedInClients:
    """The changes of clients' files, and the names that are left for a person; ``files`` is how many were read."""

    changes: tuple[FileRewrite, ...] = ()
    left: tuple[LeftMention, ...] = ()
    files: int = 0


def rename_in_clients(
    files: Sequence[FoundFile],
    renames: Mapping[str, str],
    servers: Collection[str],
    before: Mapping[Path, bytes] | None = None,
) -> RenamedInClients:
    """Compute the changes of clients' files when tools of these servers are renamed, old to new. Writes nothing.

    ``servers`` are the keys of the servers that have the tools, in clients or at the gateway. ``before`` has files that
    the same rename changes already, with their new bytes: these are changed further.
    """
    by_client: defaultdict[str, list[FoundFile]] = defaultdict(list)
    for found in files:
        if found.file.client:
            by_client[found.file.client].append(found)
    draft = _RenameDraft(renames, {absolute(path): raw for path, raw in (before or {}).items()})
    for several in by_client.values():
        client = _RenamedServers.of(several, renames, servers)
        draft.add_unreadable(several)
        if client.keys:
            draft.add(client, several)
    changes = tuple(draft.changes())
    return RenamedInClients(changes, tuple(draft.left.values()), len({absolute(one.path) for one in files}))


class _RenameDraft:
    """Collects the changes by file: several clients, and several rows of one, may read the same file."""

    def __init__(self, renames: Mapping[str, str], changed: Mapping[Path, bytes]) -> None:
        self.left: dict[tuple[Path, str, str], LeftMention] = {}
        self._renames, self._changed = renames, changed
        self._draft = PlanDraft()
        self._texts: dict[Path, dict[str, str]] = {}
        self._seen: set[tuple[Path, object, str]] = set()

    def add(self, client: _RenamedServers, files: Sequence[FoundFile]) -> None:
        """Add the files of one client."""
        for found in files:
            path = absolute(found.path)
            if found.file.format == _MARKDOWN:
                self._texts.setdefault(path, {}).update(client.spelled(found))
            else:
                self._add_names(client, _reloaded(found, files, self._changed.get(path)), path)

    def add_unreadable(self, files: Sequence[FoundFile]) -> None:
        """List the old names in files with syntax errors: nobody knows which servers and lists these have."""
        for found in files:
            path = absolute(found.path)
            text = None if found.problem is None else _read_text(path, self._changed.get(path))
            if text is not None:
                lines = _Lines(text)
                names = re.finditer(rf"{_any(self._renames)}(?!{_WORD})", text)
                self._mention(path, [lines.edit(one.start(), one[0]) for one in names], "unreadable")

    def _add_names(self, client: _RenamedServers, found: FoundFile, path: Path) -> None:
        wanted: list[tuple[KeptName, str]] = []
        for kept in found.kept:
            mark = (path, kept.where, kept.text)
            if mark in self._seen:
                continue
            self._seen.add(mark)
            new, reason = client.renamed(kept)
            reason = reason or ("" if new is None else _untouchable(found))
            if reason:
                self._leave(kept, reason, found)
            elif new is not None:
                wanted.append((kept, new))
        # From the end: a list shrinks where the new name is in it already.
        for kept, new in sorted(wanted, key=lambda one: _place_in_list(one[0]), reverse=True):
            self._rename(kept, new, found)

    def _rename(self, kept: KeptName, new: str, found: FoundFile) -> None:
        if found.document is None:
            # A script of a client is for people.
            self._leave(kept, "code", found)
            return
        try:
            change = FileChange(where=kept.where, what="name", old=kept.text, new=new)
            self._draft.respell(found.document, kept, [new], change)
        except ValueError:
            self._leave(kept, "several", found)

    def _leave(self, kept: KeptName, reason: str, found: FoundFile) -> None:
        line, column = (0, 0) if found.document is None else found.document.position(kept.where)
        mention = LeftMention(found.path, Leftover(line, column, kept.text, reason, kept.text))
        self.left.setdefault((absolute(found.path), kept.text, reason), mention)

    def changes(self) -> Iterator[FileRewrite]:
        """Yield the changes of all files."""
        for step in self._draft.steps():
            path = absolute(step.path)
            text = (step.raw or b"").decode("utf-8", "replace")
            lines = _Lines(text)
            edits = tuple(lines.edit(max(0, text.find(one.old)), one.old, one.new) for one in step.changes)
            yield FileRewrite(path=path, before=step.raw, after=step.after, target=path, edits=edits)
        for path, spelled in self._texts.items():
            yield from self._in_text(path, spelled)

    def _in_text(self, path: Path, spelled: Mapping[str, str]) -> Iterator[FileRewrite]:
        """Yield the change of a Markdown file: every name with its server, in lists and in prose."""
        text = _read_text(path, self._changed.get(path))
        if text is None or not spelled:
            return
        pattern = re.compile(rf"(?<![A-Za-z0-9_./@:-]){_any(spelled)}(?!{_WORD})(?!\.{_WORD})")
        lines = _Lines(text)
        edits = tuple(lines.edit(found.start(), found[0], spelled[found[0]]) for found in pattern.finditer(text))
        after = pattern.sub(lambda found: spelled[found[0]], text)
        if edits and path.is_symlink():
            self._mention(path, edits, "link")
        elif edits:
            yield FileRewrite(path=path, before=text.encode(), after=after.encode(), target=path, edits=edits)
        quoted = re.compile(f"`{_any(self._renames)}`").finditer(after)
        lines = _Lines(after)
        self._mention(path, [lines.edit(one.start() + 1, one[0].strip("`")) for one in quoted], "unowned")

    def _mention(self, path: Path, edits: Iterable[TextEdit], reason: str) -> None:
        for one in edits:
            left = Leftover(one.line, one.column, one.old, reason, one.old)
            self.left.setdefault((path, one.old, reason), LeftMention(path, left))


def _any(names: Iterable[str]) -> str:
    return f"(?:{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})"


@dataclass(frozen=True)
class _RenamedServers:
    """One client's keys of the servers that have the renamed tools, and all its keys."""

    renames: Mapping[str, str]
    keys: tuple[str, ...]
    all_keys: tuple[str, ...]
    dialect: str

    @classmethod
    def of(cls, files: Sequence[FoundFile], renames: Mapping[str, str], servers: Collection[str]) -> _RenamedServers:
        known = [one.server for found in files for one in found.servers]
        mine = [one.key for one in known if one.key in servers and not is_gateway(one)]
        # An entry of the gateway for one server has that server's own names; one for several has its own.
        mine += [one.key for one in known if is_gateway(one) and shown_by(one).only in servers]
        return cls(
            renames,
            tuple(dict.fromkeys(mine)),
            tuple(dict.fromkeys(one.key for one in known)),
            files[0].file.dialect,
        )

    def renamed(self, kept: KeptName) -> tuple[str | None, str]:
        """Return the new text of a name (None: it is none of the tools), and why it is left ("" if it is not)."""
        for key in self.keys:
            for old, new in self.renames.items():
                if kept.opaque:
                    if old in kept.text:
                        return None, "pattern"
                elif matches(kept, key, old, self._shown(key, old)):
                    return self._new_text(kept, key, old, new)
        return None, ""

    def _new_text(self, kept: KeptName, key: str, old: str, new: str) -> tuple[str | None, str]:
        if kept.tool is None and (kept.server is not None or kept.template):
            # The name of a whole server goes on meaning it.
            return None, ""
        bare = kept.text.removesuffix(kept.suffix)
        if _WILD.search(kept.tool or bare):
            return (None, "") if matches(kept, key, new, self._shown(key, new)) else (None, "glob")
        if kept.server is None and SPELLINGS[kept.spelling].is_without_server and len(self.all_keys) > 1:
            return None, "unowned"
        shown_old, shown_new = self._shown(key, old), self._shown(key, new)
        if bare == shown_old:
            return (None, "glob") if shown_new is None else (shown_new + kept.suffix, "")
        if kept.server is None and not SPELLINGS[kept.spelling].is_without_server:
            return None, "part"
        return respell(kept, kept.server or key, new), ""

    def _shown(self, key: str, tool: str) -> str | None:
        try:
            return dialects.get(self.dialect).shown(key, tool)
        except UnknownDialect:
            return None

    def spelled(self, found: FoundFile) -> dict[str, str]:
        """Return the texts that name the tools with their server in this client's files, old to new."""
        spellings = {place.spelling for place in (*found.file.kept, *found.file.entry)} & SPELLINGS.keys()
        templates = {SPELLINGS[name].tool for name in spellings}
        pairs: dict[str, str] = {}
        for key in self.keys:
            for old, new in self.renames.items():
                for rules in dialects.versions(self.dialect):
                    shown = rules.shown(key, old), rules.shown(key, new)
                    # Without a prefix, the text could be another server's tool.
                    if shown[0] is not None and shown[1] is not None and fold(shown[0]) != fold(old):
                        pairs[shown[0]] = shown[1]
                for template in templates:
                    if "{server}" in template and "{tool}" in template:
                        pairs[template.format(server=key, tool=old)] = template.format(server=key, tool=new)
        # A text that is another tool's plain name as well means either.
        return {old: new for old, new in pairs.items() if old not in self.renames}


def _place_in_list(kept: KeptName) -> int:
    last = kept.where[-1] if kept.where else -1
    return last if isinstance(last, int) else -1


def _untouchable(found: FoundFile) -> str:
    """Return why a client's file is not changed; "" if it is."""
    if found.file.scope == _MANAGED:
        return "managed"
    return "link" if found.path.is_symlink() else ""


def _reloaded(found: FoundFile, several: Iterable[FoundFile], raw: bytes | None) -> FoundFile:
    """Return a file as the same rename has changed it already."""
    if raw is None or found.document is None:
        return found
    try:
        document = Document.parse(raw, found.path, found.file.format)
    except ConfigError:
        return replace(found, document=None, kept=())
    keys = [one.server.key for other in several for one in other.servers]
    entries = [(one.server.key, one.where) for one in found.servers]
    return replace(
        found, document=document, kept=kept_names(found.file, found.path, document.value, entries, dict.fromkeys(keys))
    )


class _Lines:
    """Finds lines and columns in a text; a file may have very many names."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def edit(self, start: int, old: str, new: str = "") -> TextEdit:
        line = bisect_right(self._starts, start)
        return TextEdit(line=line, column=start - self._starts[line - 1] + 1, start=start, old=old, new=new)


def _read_text(path: Path, raw: bytes | None) -> str | None:
    try:
        if raw is None:
            raw = path.read_bytes() if path.is_symlink() else read_plain(path)
        return raw.decode("utf-8") if len(raw) <= _LONGEST else None
    except (OSError, UnicodeDecodeError):
        return None
