"""Apply the identities that an operator declares for servers, and compare them with the ledger's.

The configuration may declare that a server is ``salesforce@2``, and that one of its tools has version 3. By default the
integration comes from the server's key, and all versions are 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.dialects import Reason
from truename.errors import InvalidName, LedgerError
from truename.identity import MAX_COMPONENT, ToolId, component, is_name, lower_ascii

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "UNDECLARED",
    "Bindings",
    "IdentityChange",
    "Owners",
    "ServerIdentity",
    "identity_changes",
    "identity_mismatch",
    "integration_error",
]

Bindings = Mapping[tuple[str, str], ToolId]
Owners = Mapping[ToolId, tuple[str, str]]
_DIGEST: Final = re.compile(r"-[0-9a-f]{8}")
_DIGEST_LENGTH: Final = 9


@dataclass(frozen=True, kw_only=True)
class ServerIdentity:
    """The identity that an operator declares for a server: integration, its version, and versions of single tools.

    ``integration`` None: derived from the server's key. ``version`` None: 1. ``versions`` are by the server's own tool
    names. Raises `InvalidName` for an integration that is not a name of the grammar, and `InvalidToolId` for a version
    that is not a whole number above 0.

    >>> ServerIdentity(integration="Salesforce", version=2, versions={"create_lead": 3}).integration
    'salesforce'
    """

    integration: str | None = None
    version: int | None = None
    versions: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    def __post_init__(self) -> None:
        if self.integration is not None:
            if error := integration_error(self.integration):
                reason = Reason("character", error)
                raise InvalidName(name=self.integration, dialect="an integration", reasons=(reason,))
            object.__setattr__(self, "integration", lower_ascii(self.integration))
        for version in (1 if self.version is None else self.version, *self.versions.values()):
            ToolId("x", version, None, "x", 1)

    def version_of(self, tool: str) -> int:
        """Return the version of one tool, by the server's own name for it."""
        return self.versions.get(tool, 1)


UNDECLARED: Final = ServerIdentity()


def integration_error(text: str) -> str:
    """Return the reason why a text cannot be an integration; "" if it can.

    >>> integration_error("data-grout"), integration_error("My Server")
    ('', "an integration has letters, digits, '_' and '-' only, and 200 characters at most")
    """
    folded = lower_ascii(text)
    if is_name(folded) and len(folded) <= MAX_COMPONENT:
        return ""
    return f"an integration has letters, digits, '_' and '-' only, and {MAX_COMPONENT} characters at most"


class IdentityChange(NamedTuple):
    """A tool whose recorded id differs from the id declared now."""

    server: str
    name: str
    recorded: ToolId
    declared: ToolId


def identity_changes(bound: Bindings, declared: Mapping[str, ServerIdentity]) -> tuple[IdentityChange, ...]:
    """Return the tools whose recorded ids differ from those declared, for the servers in ``declared``.

    >>> bound = {("sf2", "get"): ToolId.parse("sf2@1/get@1")}
    >>> [str(one.declared) for one in identity_changes(bound, {"sf2": ServerIdentity(integration="salesforce")})]
    ['salesforce@1/get@1']
    >>> identity_changes(bound, {"sf2": ServerIdentity()})
    ()
    """
    return tuple(_changes(bound, declared))


def identity_mismatch(changes: Sequence[IdentityChange]) -> LedgerError:
    """Build the error for recorded ids that differ from those declared; it names the first of them."""
    first = changes[0]
    return LedgerError(
        code="identity_mismatch",
        origin=first.server,
        name=first.name,
        recorded=str(first.recorded),
        wanted=str(first.declared),
        count=len(changes),
    )


def _changes(bound: Bindings, declared: Mapping[str, ServerIdentity]) -> Iterator[IdentityChange]:
    for (server, name), recorded in bound.items():
        if (identity := declared.get(server)) is not None:
            integration = identity.integration
            if not integration:
                own = component(server).name
                integration = recorded.integration if _comes_from(own, recorded.integration) else own
            expected = ToolId(
                integration, identity.version or 1, recorded.suite, recorded.tool, identity.version_of(name)
            )
            if expected != recorded:
                yield IdentityChange(server, name, recorded, expected)


def _comes_from(own: str, recorded: str) -> bool:
    """Return whether an integration is a server key's own, with or without appended digests."""
    while recorded != own:
        # A long name is cut to leave space for a digest.
        if len(recorded) >= MAX_COMPONENT - 2 * _DIGEST_LENGTH and own.startswith(recorded):
            return True
        recorded, digest = recorded[:-_DIGEST_LENGTH], recorded[-_DIGEST_LENGTH:]
        if not _DIGEST.fullmatch(digest):
            return False
    return True
