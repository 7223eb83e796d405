"""The suite's resources, and the template of more."""

from __future__ import annotations

import json
import re
from typing import Final

from mcp_types import BlobResourceContents, Resource, ResourceTemplate, TextResourceContents

from tests.conformance.contents import PNG

__all__ = ["RESOURCES", "TEMPLATES", "contents_of"]

Contents = TextResourceContents | BlobResourceContents

_FIXED: Final[dict[str, Contents]] = {
    one.uri: one
    for one in (
        TextResourceContents(
            uri="test://static-text",
            mime_type="text/plain",
            text="This is the content of the static text resource.",
        ),
        BlobResourceContents(uri="test://static-binary", mime_type="image/png", blob=PNG),
        TextResourceContents(uri="test://watched-resource", mime_type="text/plain", text="This one can be watched."),
    )
}
_PLACE: Final = re.compile(r"test://template/([^/]+)/data")

RESOURCES: Final = [
    Resource(
        uri=uri,
        name=uri.rpartition("/")[2],
        description=f"Is what the suite reads at {uri}.",
        mime_type=one.mime_type,
    )
    for uri, one in _FIXED.items()
]
TEMPLATES: Final = [
    ResourceTemplate(
        uri_template="test://template/{id}/data",
        name="numbered",
        description="Is a resource for every id.",
        mime_type="application/json",
    )
]


def contents_of(uri: str) -> Contents | None:
    """What stands at this address, if anything does."""
    if found := _FIXED.get(uri):
        return found
    if not (place := _PLACE.fullmatch(uri)):
        return None
    document = {"id": place[1], "templateTest": True, "data": f"Data for ID: {place[1]}"}
    return TextResourceContents(uri=uri, mime_type="application/json", text=json.dumps(document))
