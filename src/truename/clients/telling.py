"""What there is to say about a plan beside what it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truename.clients.address import TOKEN, WAY, entry_for, reference
from truename.clients.choosing import READ_ONLY, Taken, document_of
from truename.clients.plan import Note
from truename.editing import reached
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from truename.clients.address import Address
    from truename.clients.find import Found
    from truename.clients.table import ConfigFile

__all__ = ["lost_settings", "other_files", "stdio_notes", "token_notes", "way_of"]

_READ_ONLY_ADVICE = "It is not changed: it belongs to somebody else."
_LEGACY_ADVICE = "It is not changed: the client keeps its servers elsewhere now."
_PROJECT_ADVICE = "It is not changed; --scope project does that, for everybody who has the file."


def way_of(one: Taken) -> str:
    """Return how a server was reached so far, in short: arguments and queries may be secret."""
    server = one.sighting.server
    if server.url is not None:
        return server.url.partition("?")[0]
    return " ".join([server.command or "", *(["..."] if server.args else [])])


def lost_settings(group: Iterable[Taken], entry: Mapping[str, Any]) -> Iterator[Note]:
    """Yield the settings of single servers that the one entry in their place does not have."""
    for one in group:
        former = reached(document_of(one.found).value, one.sighting.where)
        told = entry_for(one.sighting.server, one.found.file.shape)
        kept = entry.keys() | told.keys() | WAY
        lost = [key for key in former if key not in kept] if isinstance(former, dict) else []
        if lost:
            fact = f"{excerpt(one.key)} had settings of its own: {', '.join(map(excerpt, lost))}"
            advice = "The one entry does not have them; set them there if they are for all."
            yield Note(kind="info", subject=one.key, fact=fact, advice=advice)


def token_notes(kinds: Sequence[ConfigFile], address: Address) -> Iterator[Note]:
    """Yield what has to be done so that the client can show the gateway's token."""
    if not address.config.asks_for_token:
        return
    client = kinds[0].client
    if reference(client) is None:
        fact = "The gateway asks for a token, and this client is not known to read one from the environment"
        advice = "Write the header Authorization: Bearer TOKEN into its entries, or connect with --stdio."
    else:
        fact = f"The gateway asks for a token, which the entries take from {TOKEN}"
        advice = f"Set {TOKEN} where the client is started."
    yield Note(kind="token", subject=client, fact=fact, advice=advice)


def stdio_notes(kinds: Sequence[ConfigFile]) -> Iterator[Note]:
    """Yield what to see to where the client starts the gateway, which it does in an environment of its own."""
    fact = "The client starts the gateway itself"
    advice = "What the configuration takes from the environment has to be set there too, or stand in its env_file."
    yield Note(kind="info", subject=kinds[0].client, fact=fact, advice=advice)


def other_files(mine: Iterable[Found], files: Sequence[Found]) -> Iterator[Note]:
    """Yield the files with servers that were not asked for, and those whose names can't be looked at."""
    for one in mine:
        if one.problem is not None and one not in files:
            fact = f"{one.path} can't be read ({one.problem.problem}), so no name in it was carried over"
            yield Note(kind="file", subject=str(one.path), fact=fact, advice=one.problem.remedy)
        if one.servers and one not in files:
            keys = ", ".join(excerpt(sighting.server.key) for sighting in one.servers)
            fact = f"{one.path} ({one.file.scope}) has servers too: {keys}"
            advice = _READ_ONLY_ADVICE if one.file.scope in READ_ONLY else ""
            if one.file.scope == "project":
                advice = _PROJECT_ADVICE
            if one.file.legacy:
                advice = _LEGACY_ADVICE
            yield Note(kind="left", subject=str(one.path), fact=fact, advice=advice)
