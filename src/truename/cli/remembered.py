"""What a ledger remembers of how names are made, and what to type when something else is asked for."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from truename.catalog import Catalog
from truename.cli.failure import UsageFault
from truename.config import Settings
from truename.errors import excerpt
from truename.ledger import Settings as Recorded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.catalog import IdentityChange

__all__ = ["adopted", "differences", "mismatch", "moved", "wanted"]


def adopted(settings: Settings, recorded: Recorded | None) -> Settings:
    """Return the settings with the server name and aliases on record where none are given.

    The style stays open: whoever needs it asks the ledger last.
    """
    if recorded is None:
        return settings
    if settings.server_name == Settings().server_name:
        settings = replace(settings, server_name=recorded.server_name)
    if settings.aliases is None:
        settings = replace(settings, aliases=dict(recorded.aliases))
    return settings


def wanted(settings: Settings, style: str) -> Recorded:
    """Return how names would be made by these settings, as a ledger records it."""
    aliases = dict(Catalog((), settings.aliases).aliases)
    return Recorded(style=settings.style or style, server_name=settings.server_name, aliases=aliases)


def mismatch(recorded: Recorded, other: Recorded, sources: Sequence[str], ledger: str | None) -> UsageFault:
    """Return what to say when names are made otherwise on record: the whole command that changes it."""
    words = ["truename", "rename", *(sources if len(sources) < 2 else ["SOURCE"]), "--all", *_options(recorded, other)]
    if ledger is not None:
        words += ["--ledger", ledger]
    return UsageFault(
        code="style_mismatch",
        fact=f"This ledger was begun with {recorded.difference(other)}, not with {other.difference(recorded)}",
        advice=f"`{shlex.join(words)}` changes it, and the old names go on working. Or use another ledger "
        "(--ledger PATH).",
    )


def moved(changes: Sequence[IdentityChange], source: str | None, ledger: str | None) -> UsageFault:
    """Return the refusal of ids on record that are not those declared: with the whole command that changes it."""
    words = ["truename", "rename", *([] if source is None else [source]), "--ids"]
    if ledger is not None:
        words += ["--ledger", ledger]
    first, more = changes[0], len(changes) - 1
    others = f", and so are {more:,} more" if more else ""
    return UsageFault(
        code="identity_mismatch",
        fact=f"Tool {excerpt(first.name)} of server {excerpt(first.server)} is {first.recorded} on record, and is "
        f"declared as {first.declared} now{others}",
        advice=f"`{shlex.join(words)}` has the old ids lead to the new ones (--dry-run shows what changes). Or declare "
        "what is on record.",
    )


def differences(recorded: Recorded, other: Recorded) -> list[tuple[str, str, str]]:
    """Return what is made otherwise: its word, how it was, and how it is now."""
    found: list[tuple[str, str, str]] = []
    if recorded.style != other.style:
        found.append(("style", recorded.style, other.style))
    if recorded.server_name != other.server_name:
        found.append(("server_name", recorded.server_name, other.server_name))
    if dict(recorded.aliases) != dict(other.aliases):
        found.append(("aliases", _pairs(recorded), _pairs(other)))
    return found


def _pairs(made: Recorded) -> str:
    return ", ".join(f"{integration} = {alias}" for integration, alias in made.aliases.items()) or "none"


def _options(recorded: Recorded, other: Recorded) -> Iterator[str]:
    if recorded.style != other.style:
        yield from ("--style", other.style)
    if recorded.server_name != other.server_name:
        yield from ("--server-name", other.server_name)
    for integration, alias in other.aliases.items():
        if recorded.aliases.get(integration) != alias:
            yield from ("--alias", f"{integration}={alias}")
