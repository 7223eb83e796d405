"""What is told to whom the door is closed, so that a client knows where to get a token (RFC 6750, RFC 9728)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from truename.access.admission import Refusal

__all__ = ["METADATA", "Resource"]

METADATA: Final = "/.well-known/oauth-protected-resource"


@dataclass(frozen=True, kw_only=True)
class Resource:
    """The gateway as a protected resource: its identifier, who issues tokens for it, and which scopes it wants.

    All addresses of one gateway are one resource (RFC 8707): what a token may do does not depend on the names that
    are shown.

    >>> Resource(identifier="https://tools.example/mcp", issuers=("https://idp.example",)).metadata_url
    'https://tools.example/.well-known/oauth-protected-resource/mcp'
    """

    identifier: str
    issuers: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    name: str = "Truename"

    @property
    def metadata_url(self) -> str:
        """Where its metadata is (RFC 9728 section 3.1)."""
        parts = urlsplit(self.identifier)
        return f"{parts.scheme}://{parts.netloc}{METADATA}{parts.path}"

    def is_metadata(self, path: str) -> bool:
        """Tell whether this path is where a client may look for it: for the resource, one of its paths, or the root."""
        own = urlsplit(self.identifier).path
        return path in {METADATA, METADATA + own} or path.startswith(f"{METADATA}{own}/")

    @property
    def metadata(self) -> dict[str, Any]:
        """Its metadata (RFC 9728 section 2)."""
        more = {"scopes_supported": list(self.scopes)} if self.scopes else {}
        return {
            "resource": self.identifier,
            "authorization_servers": list(self.issuers),
            "bearer_methods_supported": ["header"],
            "resource_name": self.name,
            **more,
        }

    def challenge(self, refusal: Refusal) -> str:
        """Return the value of WWW-Authenticate for somebody who was not let in."""
        said = {"error": refusal.error, "error_description": refusal.text if refusal.error else ""}
        if self.issuers:
            said["resource_metadata"] = self.metadata_url
            said["scope"] = " ".join(refusal.scopes or self.scopes)
        listed = ", ".join(f'{key}="{_quotable(value)}"' for key, value in said.items() if value)
        return f"Bearer {listed}".rstrip()


def _quotable(text: str) -> str:
    return "".join(letter for letter in text if letter.isascii() and letter.isprintable() and letter not in '"\\')
