"""Which entries of a book of pins somebody means; who names what is not there is told before anything is done."""

from __future__ import annotations

from collections import Counter
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from truename.cli.failure import UsageFault
from truename.errors import InvalidToolId, excerpt
from truename.identity import ToolId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from truename.trust import PinnedTool, PinStore, SeenDefinition

__all__ = ["keys_of", "meant", "require_one_each"]

_SERVER: Final = "server:"
_LEAST: Final = "Name some, or use --server KEY or --all."
_ALL: Final = "`truename pins list` has all that is known."
_MOST: Final = 5
_MOST_SERVERS: Final = 50
_ALIKE: Final = 0.7


def keys_of(book: PinStore, tools: Sequence[str]) -> Sequence[str]:
    """Return the keys of what somebody names: tools in any spelling of their ids, or ``server:KEY``.

    Raises `UsageFault` for one that is not in the book. Names of tools are only suggested: two servers may have one.
    """
    known = _known(book)
    return list(dict.fromkeys(_key_of(text, known) for text in tools))


def meant(
    book: PinStore, tools: Sequence[str], *, server: str | None, everything: bool, digest: str = ""
) -> list[SeenDefinition]:
    """Return what is meant: all that waits, of a tool that is named else what was rejected last.

    Raises `UsageFault` for a tool, a server or a digest that the book does not know.
    """
    seen = [*book.seen().values()]
    if not tools and server is None and not everything:
        raise UsageFault(fact="no tool is named", advice=_LEAST)
    known = {one.server for one in _known(book).values()}
    if server is not None and server not in known:
        listed = ", ".join(sorted(known)[:_MOST_SERVERS])
        raise UsageFault(fact=f"nothing is known of a server {excerpt(server)}", advice=f"Known are: {listed}.")
    if digest and digest not in {one.digest for one in seen}:
        raise UsageFault(
            fact=f"no definition that waits or was rejected has the digest {excerpt(digest)}",
            advice="`truename pins diff` shows the digests, whole.",
        )
    seen = [one for one in seen if digest in {"", one.digest}]
    if tools:
        return [one for key in keys_of(book, tools) for one in _of_key(seen, key)]
    return [one for one in seen if one.word == "waiting" and server in {None, one.server}]


def require_one_each(found: Sequence[SeenDefinition]) -> None:
    """Raise where two definitions of one tool are meant: one may have come after somebody looked."""
    several = next((key for key, times in Counter(one.key for one in found).items() if times > 1), None)
    if several is not None:
        raise UsageFault(
            fact=f"several definitions of {several} wait",
            advice=f"Look at them with `truename pins diff {several}`, and say which one by --digest.",
        )


def _known(book: PinStore) -> Mapping[str, PinnedTool]:
    return {one.key: one for one in (*book.seen().values(), *book.pins().values())}


def _of_key(seen: Sequence[SeenDefinition], key: str) -> Sequence[SeenDefinition]:
    of_key = [one for one in seen if one.key == key]
    return [one for one in of_key if one.word == "waiting"] or of_key[-1:]


def _key_of(text: str, known: Mapping[str, PinnedTool]) -> str:
    key = text
    if not text.startswith(_SERVER):
        try:
            key = str(ToolId.parse(text))
        except InvalidToolId:
            key = ""
    if key not in known:
        raise UsageFault(fact=f"{excerpt(text)} is no tool that is known here", advice=_instead(_near(text, known)))
    return key


def _near(text: str, known: Mapping[str, PinnedTool]) -> Sequence[str]:
    """Return the keys of what goes by this name at its server or to a client, or else by one like it."""
    names = [(name, key) for key, one in known.items() for name in _names(one)]
    called = [key for name, key in names if name == text]
    alike = get_close_matches(text, [name for name, _ in names], _MOST, _ALIKE) if not called else ()
    return list(dict.fromkeys(called or [key for near in alike for name, key in names if name == near]))[:_MOST]


def _names(one: PinnedTool) -> Iterable[str]:
    if one.id is None:
        return (one.server, one.key)
    return (one.name, f"{one.server}_{one.name}", f"{one.server}/{one.name}", one.key)


def _instead(near: Sequence[str]) -> str:
    return f"Did you mean {', '.join(near)}? {_ALL}" if near else f"Write it as fs@1/read@1, or server:fs. {_ALL}"
