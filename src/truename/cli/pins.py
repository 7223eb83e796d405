"""`truename pins`: list, accept and reject definitions of tools."""

import difflib
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Annotated, Any, Final

from cyclopts import App, Parameter

from truename.cli import _completion
from truename.cli._audit import audited, keep_done
from truename.cli._command_list import epilogue_of
from truename.cli._errors import EXIT_FINDINGS, UsageError
from truename.cli._options import GatewayConfig, JsonOutput
from truename.cli._rendering import print_json, print_table, say, show, shown_time, styled
from truename.cli._sources import configuration
from truename.config import Config as ServeConfig
from truename.conventions import Finding
from truename.conventions.characters import INVISIBLE
from truename.errors import InvalidToolId, excerpt
from truename.files.user import whoami
from truename.identity import ToolId
from truename.migration import LOCK_FILE
from truename.migration.definitions import compare_definitions
from truename.trust import PinnedTool, PinStore, SeenDefinition
from truename.trust.approval_queue import about_definition
from truename.trust.pins import BY_LOCK, ReviewedDefinitions, pin_before
from truename.trust.screening import screened_pins

__all__ = ["pins"]

_SERVER: Final = "server:"
_LEAST: Final = "Name some, or use --server KEY or --all."
_ALL: Final = "`truename pins list` shows all."
_LOOK: Final = "`truename pins diff` shows what is pending."
_MOST: Final = 5
_MOST_SERVERS: Final = 50
_ALIKE: Final = 0.7
_SHOWN: Final = 12
_BY_NOBODY: Final = {"trusted": "first sight", "waiting": "", "rejected": "[trust]"}
_LONGEST_NAME: Final = 64
_STRUCTURED: Final = ("inputSchema", "outputSchema", "annotations")
_WORDS: Final = re.compile(r"\S+|\s+")
_LONGEST: Final = 20_000
_AROUND: Final = 40
_WIDTH: Final = 100
Tools = Annotated[
    str,
    Parameter(completer=_completion.tools, help="A tool, as fs@1/read@1, or a server's instructions, as server:fs."),
]
Server = Annotated[
    str | None,
    Parameter(
        name="--server", metavar="SERVER", completer=_completion.servers, help="Everything pending of this server."
    ),
]
Everything = Annotated[bool, Parameter(name="--all", show_default=False, help="Everything pending.")]
Digest = Annotated[
    str | None,
    Parameter(name="--digest", metavar="DIGEST", help="The digest of the definition, as shown by `diff`: sha256:..."),
]
Waiting = Annotated[bool, Parameter(name="--waiting", show_default=False, help="Only pending definitions.")]
pins = App(
    name="pins",
    help="Show, accept and reject definitions of tools that are new or have changed.",
    help_format="plaintext",
    help_epilogue=epilogue_of("pins"),
    default_parameter=Parameter(negative=()),
)


def keys_of(book: PinStore, tools: Sequence[str]) -> Sequence[str]:
    """Return the keys of the given tools (in any spelling of their ids) or servers (``server:KEY``).

    Raises `UsageError` for an unknown one. A bare tool name is not accepted, since two servers may have it.
    """
    known = _known(book)
    return list(dict.fromkeys(_key_of(text, known) for text in tools))


def pins_of(
    book: PinStore, tools: Sequence[str], *, server: str | None, everything: bool, digest: str = ""
) -> list[SeenDefinition]:
    """Select definitions: the pending ones or, for a named tool without any, the one that was rejected last.

    Raises `UsageError` for an unknown tool, server or digest.
    """
    seen = [*book.seen().values()]
    if not tools and server is None and not everything:
        raise UsageError(fact="no tool is named", advice=_LEAST)
    known = {one.server for one in _known(book).values()}
    if server is not None and server not in known:
        listed = ", ".join(sorted(known)[:_MOST_SERVERS])
        raise UsageError(fact=f"unknown server {excerpt(server)}", advice=f"Known are: {listed}.")
    if digest and digest not in {one.digest for one in seen}:
        raise UsageError(
            fact=f"no pending or rejected definition has the digest {excerpt(digest)}",
            advice="`truename pins diff` shows the digests.",
        )
    seen = [one for one in seen if digest in {"", one.digest}]
    if tools:
        return [one for key in keys_of(book, tools) for one in _of_key(seen, key)]
    return [one for one in seen if one.word == "waiting" and server in {None, one.server}]


def require_one_each(found: Sequence[SeenDefinition]) -> None:
    """Raise `UsageError` if two definitions of one tool are selected: one may have arrived after the review."""
    several = next((key for key, times in Counter(one.key for one in found).items() if times > 1), None)
    if several is not None:
        raise UsageError(
            fact=f"several definitions of {several} are pending",
            advice=f"Review them with `truename pins diff {several}`, and select one with --digest.",
        )


def _known(book: PinStore) -> Mapping[str, PinnedTool]:
    return {one.key: one for one in (*book.seen().values(), *book.pins().values())}


def _of_key(seen: Sequence[SeenDefinition], key: str) -> Sequence[SeenDefinition]:
    of_key = [one for one in seen if one.key == key]
    return [one for one in of_key if one.word == "waiting"] or of_key[-1:]


def _key_of(text: str, known: Mapping[str, PinnedTool]) -> str:
    key, advice = text, ""
    if not text.startswith(_SERVER):
        try:
            key = str(ToolId.parse(text))
        except InvalidToolId:
            key, advice = "", "Write it as fs@1/read@1, or server:fs."
    if key not in known:
        if near := ", ".join(_near(text, known)):
            advice = f"Did you mean {near}?"
        raise UsageError(fact=f"{excerpt(text)} is not a known tool", advice=f"{advice} {_ALL}".strip())
    return key


def _near(text: str, known: Mapping[str, PinnedTool]) -> Sequence[str]:
    """Return the keys of tools with this name at their server or in a client, else with a similar name."""
    names = [(name, key) for key, one in known.items() for name in _names(one)]
    called = [key for name, key in names if name == text]
    alike = get_close_matches(text, [name for name, _ in names], _MOST, _ALIKE) if not called else ()
    return list(dict.fromkeys(called or [key for near in alike for name, key in names if name == near]))[:_MOST]


def _names(one: PinnedTool) -> Iterable[str]:
    if one.id is None:
        return (one.server, one.key)
    return (one.name, f"{one.server}_{one.name}", f"{one.server}/{one.name}", one.key)


def titled(one: PinnedTool) -> str:
    """Return the key, with the server's own tool name if it differs from the id's."""
    if one.id is None:
        return f"{_printable(one.key)} ({'instructions' if one.content else 'no instructions'})"
    return str(one.id) if one.name == one.id.tool else f"{one.id} ({_printable(one.name[:_LONGEST_NAME])})"


def pin_row(one: PinnedTool) -> list[str]:
    """Return the row of a table for a definition."""
    return [
        _word(one),
        titled(one),
        shown_time(one.at),
        _printable(one.by) or _BY_NOBODY[_word(one)],
        one.digest[7 : 7 + _SHOWN],
    ]


def plain_pin(one: PinnedTool) -> dict[str, object]:
    """Return a definition as JSON."""
    return {
        "tool": one.key,
        "server": one.server,
        "name": one.name,
        "state": _word(one),
        "digest": one.digest,
        "at": one.at,
        "by": one.by,
    }


def _word(one: PinnedTool) -> str:
    return one.word if isinstance(one, SeenDefinition) else "trusted"


def change_of(one: SeenDefinition, before: PinnedTool | None, findings: Sequence[Finding]) -> dict[str, object]:
    """Return a change as JSON: both definitions, the differences, and the findings about it."""
    return {
        **plain_pin(one),
        "before": None if before is None else before.content,
        "after": one.content,
        "differences": [
            {"path": detail.path, "effect": detail.effect.value, "fact": detail.fact, "breaking": detail.breaking}
            for detail in _details(one, before)
        ],
        "findings": [{"rule": found.rule.name, "code": found.rule.code, "fact": found.fact} for found in findings],
    }


def _details(one: SeenDefinition, before: PinnedTool | None) -> tuple[Any, ...]:
    if before is None or not isinstance(before.content, dict) or not isinstance(one.content, dict):
        return ()
    return compare_definitions(before.content, one.content)


def lines_of(one: SeenDefinition, before: PinnedTool | None, findings: Sequence[Finding] = ()) -> Iterator[str]:
    """Yield the lines that describe a change: findings, texts with changed words marked, other differences."""
    yield from (f"{found.rule.name}: {_printable(found.fact)}" for found in findings)
    if one.content is None or (before is not None and before.content is None):
        if one.content is None or before is None or before.by != BY_LOCK:
            yield "The definition was too large to store; only its digest is known."
            return
        yield f"{LOCK_FILE} has the digest of another definition. The new definition:"
        yield from _whole(one.content)
        return
    if before is None:
        yield "It was never trusted. The definition:"
        yield from _whole(one.content)
        return
    if isinstance(one.content, str):
        yield from _worded("instructions", str(before.content), one.content)
        return
    texts = [key for key in ("title", "description") if before.content.get(key) != one.content.get(key)]
    for key in texts:
        yield from _worded(key, _text(before.content, key), _text(one.content, key))
    for detail in _details(one, before):
        if detail.path not in texts:
            yield f"{detail}{' (breaking)' if detail.breaking else ''}"
    yield from _reworded(before.content, one.content)


def _reworded(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    """Yield new and changed texts inside schemas and annotations in full, since models read them."""
    was = dict(_inner(old))
    for path, text in _inner(new):
        if was.get(path) != text:
            yield from _worded(path, was.get(path, ""), text)


def _inner(content: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the texts of several words inside schemas and annotations, with their paths, up to a limit."""
    left: list[tuple[str, object]] = [(key, content[key]) for key in reversed(_STRUCTURED) if key in content]
    room = _LONGEST
    while left and room > 0:
        path, value = left.pop()
        room -= 1
        if isinstance(value, str) and len(value.split()) > 1:
            yield path, value
        elif isinstance(value, dict):
            left += [(f"{path}.{_printable(str(key))}", one) for key, one in reversed(value.items())]
        elif isinstance(value, list):
            left += [(f"{path}[{number}]", one) for number, one in reversed([*enumerate(value)])]


def _text(content: Mapping[str, object], key: str) -> str:
    value = content.get(key)
    return value if isinstance(value, str) else ""


def _whole(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield _printable(content)
    elif isinstance(content, dict):
        for key in ("title", "description"):
            if text := _text(content, key):
                yield f"{key}: {_printable(text)}"
        schema = content.get("inputSchema")
        properties = schema.get("properties") if isinstance(schema, dict) else None
        if isinstance(properties, dict) and properties:
            yield f"parameters: {', '.join(_printable(str(name)) for name in list(properties)[:50])}"
        yield from (f"{path}: {_printable(text[:_LONGEST])}" for path, text in _inner(content))


def _worded(key: str, old: str, new: str) -> Iterator[str]:
    """Yield a text with removed words as [-words-] and added words as {+words+}, and some context."""
    parts = [
        _cut(gone) if kind == "equal" else (f"[-{gone}-]" if gone else "") + (f"{{+{come}+}}" if come else "")
        for kind, gone, come in _merged(*(_WORDS.findall(_printable(text[:_LONGEST])) for text in (old, new)))
    ]
    yield f"{key}:"
    yield from textwrap.wrap("".join(parts), _WIDTH, initial_indent="    ", subsequent_indent="    ")
    if max(len(old), len(new)) > _LONGEST:
        yield f"    ... and more beyond {_LONGEST:,} characters"


def _merged(before: list[str], after: list[str]) -> list[tuple[str, str, str]]:
    """Return the equal and changed parts in order; changes separated only by blanks are merged."""
    merged: list[tuple[str, str, str]] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        gone, come = "".join(before[a:b]), "".join(after[c:d])
        is_gap = kind == "equal" and not gone.strip() and bool(merged)
        if merged and merged[-1][0] == "changed" and (kind != "equal" or is_gap):
            merged[-1] = ("changed", merged[-1][1] + gone, merged[-1][2] + come)
        else:
            merged.append(("equal" if kind == "equal" else "changed", gone, come))
    return merged


def _cut(text: str) -> str:
    return text if len(text) <= 2 * _AROUND + 5 else f"{text[:_AROUND]} ... {text[-_AROUND:]}"


def _printable(text: str) -> str:
    """Escape every character that a terminal or a reader would not see."""
    return "".join(c if c.isprintable() and c.isascii() else ascii(c)[1:-1] if not _is_plain(c) else c for c in text)


def _is_plain(character: str) -> bool:
    is_seen = character.isprintable() and INVISIBLE.fullmatch(character) is None
    return is_seen and (character.isalnum() or character in "–—‘’“”…·•→€£°")


@pins.command(name="list")
def list_(config: GatewayConfig = None, *, waiting: Waiting = False, as_json: JsonOutput = False) -> int:
    """List trusted, pending and rejected definitions. Exit status 1: a definition is pending."""
    with _book(configuration(config)) as book:
        seen, trusted = list(book.seen().values()), sorted(book.pins().values(), key=lambda one: one.key)
    open_ones = [one for one in seen if one.word == "waiting"]
    shown: list[PinnedTool] = (
        [*open_ones] if waiting else [*sorted(seen, key=lambda one: one.word, reverse=True), *trusted]
    )
    if as_json:
        print_json({"pins": [plain_pin(one) for one in shown]})
    elif shown:
        print_table(["", "tool", "since", "by", "digest"], [pin_row(one) for one in shown])
    else:
        show("No definition is pending." if waiting else "Nothing is pinned yet.")
    if open_ones and not as_json:
        say("")
        them = "1 definition is pending" if len(open_ones) == 1 else f"{len(open_ones):,} definitions are pending"
        say(f"{them}: `truename pins diff` shows the changes; then `accept` or `reject`.")
    return EXIT_FINDINGS if open_ones else 0


@pins.command
def diff(*tools: Tools, config: GatewayConfig = None, as_json: JsonOutput = False) -> int:
    """Show how pending definitions differ from trusted ones; for a named tool, also the last rejected one.

    Exit status 1: there is a difference.
    """
    with _book(configuration(config)) as book:
        reviewed = ReviewedDefinitions(configuration(config).settings.trust.lock).digests
        chosen = pins_of(book, tools, server=None, everything=not tools)
        found = [(one, pin_before(one, book.pins().get(one.key), reviewed)) for one in chosen]
        said = screened_pins(chosen, book.pins().values())
        named = keys_of(book, tools)

    def why(one: PinnedTool) -> Sequence[Finding]:
        return said.get((one.key, one.digest), ())

    if as_json:
        print_json({"changes": [change_of(one, before, why(one)) for one, before in found]})
    elif not found:
        which = ", ".join(named)
        show(f"No definition of {which} is pending." if which else "No definition is pending.")
    else:
        for one, before in found:
            show(styled(titled(one), "bold cyan"), f", seen {shown_time(one.at)} ({one.word})")
            show(f"  {one.digest}")
            for line in lines_of(one, before, why(one)):
                show(f"  {line}")
    return EXIT_FINDINGS if found else 0


@pins.command
def accept(
    *tools: Tools,
    config: GatewayConfig = None,
    server: Server = None,
    everything: Everything = False,
    digest: Digest = None,
    as_json: JsonOutput = False,
) -> int:
    """Trust pending definitions. If several of one tool are pending, select one with --digest."""
    said = configuration(config)
    with _book(said) as book:
        found = pins_of(book, tools, server=server, everything=everything, digest=digest or "")
        require_one_each(found)
        named = keys_of(book, tools)
        done = _reviewed(said, book, found, is_accepted=True)
    return _told(found, done, "accepted", named, as_json=as_json)


@pins.command
def reject(
    *tools: Tools,
    config: GatewayConfig = None,
    server: Server = None,
    everything: Everything = False,
    as_json: JsonOutput = False,
) -> int:
    """Reject definitions: the tools are neither listed nor called until their definitions change."""
    said = configuration(config)
    with _book(said) as book:
        found: list[PinnedTool] = [*pins_of(book, tools, server=server, everything=everything)]
        # A trusted definition without a pending successor can be rejected too.
        waiting = {one.key for one in found}
        found += (book.pins()[key] for key in keys_of(book, tools) if key not in waiting)
        done = _reviewed(said, book, found, is_accepted=False)
    return _told(found, done, "rejected", as_json=as_json)


@pins.command
def forget(*tools: Tools, config: GatewayConfig = None, as_json: JsonOutput = False) -> int:
    """Delete all pins of tools: the next definition is treated as if it were listed for the first time."""
    said = configuration(config)
    with _book(said) as book:
        if not tools:
            raise UsageError(fact="no tool is named", advice="Name the tools whose pins are to be deleted.")
        known = {one.key: one for one in (*book.seen().values(), *book.pins().values())}
        gone = [known[key] for key in keys_of(book, tools)]
        with audited(said, "definition", "forgotten", [about_definition(one) for one in gone]):
            book.forget([one.key for one in gone])
    return _told(gone, [True] * len(gone), "forgotten", as_json=as_json)


def _reviewed(said: ServeConfig, book: PinStore, found: Sequence[PinnedTool], *, is_accepted: bool) -> list[bool]:
    """Accept or reject definitions as they were read, and return which were so still."""
    what = "accepted" if is_accepted else "rejected"
    with audited(said, "definition", what, [about_definition(one) for one in found]) as records:
        done = book.review_all(found, accepted=is_accepted, by=whoami())
        keep_done(records, done)
    return done


@contextmanager
def _book(config: ServeConfig) -> Iterator[PinStore]:
    location = config.pins_location()
    if location.is_memory:
        raise UsageError(
            fact=f"{config.path} keeps its pins in memory only", advice="Set state, or trust.pins, to a file or a URL."
        )
    if not location.has("pin"):
        fact = f"no pins found at {location.name} yet"
        raise UsageError(fact=fact, advice="`truename serve` creates them when it starts.")
    with PinStore(location) as book:
        yield book


def _told(
    found: Sequence[PinnedTool], done: Sequence[bool], what: str, named: Sequence[str] = (), *, as_json: bool
) -> int:
    made = [one.key for one, is_done in zip(found, done, strict=True) if is_done]
    unmade = [one for one, is_done in zip(found, done, strict=True) if not is_done]
    if as_json:
        print_json({what: made, **({"unchanged": [one.key for one in unmade]} if unmade else {})})
    elif not (found or named):
        show(f"No definition is pending, so nothing was {what}. `truename pins list` shows all.")
    else:
        for key in made:
            show(styled(what.capitalize(), "bold"), f" {key}")
        for one in unmade:
            show(f"{titled(one)} was left unchanged: somebody decided on this definition, or it changed. {_LOOK}")
        for key in named:
            if key not in {one.key for one in found}:
                show(f"No definition of {key} is pending; it was left unchanged.")
    return EXIT_FINDINGS if unmade or not made else 0
