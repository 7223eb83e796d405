"""Calls whose digests are computed once, away from where they are needed: those of large arguments take a second."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from truename.policy.call import Call

__all__ = ["DigestedCall", "digested"]


@dataclass(frozen=True, kw_only=True)
class DigestedCall(Call):
    """A call whose arguments nobody changes any more; ``known`` are its digest of arguments and its fingerprint.

    Made by `digested`. A copy with arguments of its own (`copied`) is a plain call again.
    """

    known: tuple[str, str] = field(repr=False)

    def copied(self) -> Call:
        """Return the call with arguments and annotations of its own, which can be changed without harm."""
        return Call(**_parts(self)).copied()

    @property
    def arguments_digest(self) -> str:
        """The digest of the arguments as they were."""
        return self.known[0]

    @property
    def fingerprint(self) -> str:
        """What "the same call" means (`Call.fingerprint`), as it was."""
        return self.known[1]


def digested(call: Call) -> DigestedCall:
    """Return the same call with its digests computed now; its arguments must not be changed afterwards."""
    return DigestedCall(**_parts(call), known=(call.arguments_digest, call.fingerprint))


def _parts(call: Call) -> dict[str, Any]:
    return {one.name: getattr(call, one.name) for one in fields(Call)}
