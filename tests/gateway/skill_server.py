"""A server with skills: `SKILL.md` speaks of its tools in its own names, and each digest is that of what is read."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["EXTENSION", "SKILL", "SkillServer", "digest_of", "file_of"]

EXTENSION = "io.modelcontextprotocol/skills"
SKILL = """---
name: pdf
description: Work on documents
allowed-tools: search Bash(git search:*) Read
---
# Documents

Call `search` first, then get_page; see [more](references/more.md).
"""

_CACHE = {"ttlMs": 300_000, "cacheScope": "public"}


def digest_of(raw: str | bytes) -> str:
    return "sha256:" + hashlib.sha256(raw.encode() if isinstance(raw, str) else raw).hexdigest()


def file_of(uri: str, text: str) -> dict[str, Any]:
    return {"uri": uri, "digest": digest_of(text), "size": len(text.encode())}


class SkillServer:
    """``files`` are the server's resources by URI, ``entries`` what it lists; both may be changed while it runs.

    ``waits`` are files that it never reads to the end.
    """

    def __init__(
        self,
        label: str,
        *,
        tools: tuple[str, ...] = ("search", "get_page"),
        skill: str = SKILL,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.label = label
        self.tools = list(tools)
        self.reads: list[str] = []
        self.waits: set[str] = set()
        self.files = {"skill://pdf/SKILL.md": skill, "skill://pdf/references/more.md": f"{label}: call search"}
        self.entries: list[dict[str, Any]] = [
            {
                "uri": "skill://pdf/SKILL.md",
                "frontmatter": {
                    "name": "pdf",
                    "description": "Work on documents",
                    "allowed-tools": "search Bash(git search:*) Read",
                },
                "resources": [file_of(uri, text) for uri, text in self.files.items()],
            }
        ]
        self.settings = {"directoryRead": True} if settings is None else dict(settings)

    async def list_tools(self, _: Any, __: object) -> types.ListToolsResult:
        plain = {"type": "object"}
        return types.ListToolsResult(tools=[types.Tool(name=one, input_schema=plain) for one in self.tools])

    async def call_tool(self, _: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text=f"{self.label}:{params.name}")])

    async def list_resources(self, _: Any, __: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[])

    async def read(self, _: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        self.reads.append(params.uri)
        if params.uri in self.waits:
            await anyio.sleep_forever()
        if params.uri not in self.files:
            raise MCPError(-32602, f"There is no {params.uri}")
        text = self.files[params.uri]
        said = types.TextResourceContents(uri=params.uri, text=text, mime_type="text/markdown", _meta={"x": 1})
        return types.ReadResourceResult(contents=[said], ttl_ms=300_000, cache_scope="public")

    async def list_skills(self, _: Any, params: types.PaginatedRequestParams) -> dict[str, Any]:
        """Return one entry a page."""
        at = int(params.cursor or 0)
        more = {"nextCursor": str(at + 1)} if at + 1 < len(self.entries) else {}
        return {"skills": self.entries[at : at + 1], **_CACHE, **more}

    async def get_skill(self, _: Any, params: types.ReadResourceRequestParams) -> dict[str, Any]:
        for entry in self.entries:
            if entry["uri"] == params.uri:
                return {"skill": entry, **_CACHE}
        raise MCPError(-32602, f"No skill is served at {params.uri}")

    async def read_directory(self, _: Any, params: types.ReadResourceRequestParams) -> dict[str, Any]:
        root = f"{params.uri}/"
        below = {uri.removeprefix(root): text for uri, text in self.files.items() if uri.startswith(root)}
        if not below:
            raise MCPError(-32602, f"{params.uri} is not a directory")
        children = [
            {"uri": root + path, "name": path, "size": len(text)} for path, text in below.items() if "/" not in path
        ]
        folders = sorted({path.partition("/")[0] for path in below if "/" in path})
        children += [{"uri": root + one, "name": one, "mimeType": "inode/directory"} for one in folders]
        return {"resources": children}

    def server(self) -> Server[Any]:
        """Return it as a server of the SDK."""
        server = Server(
            self.label,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_read_resource=self.read,
        )
        server.extensions = {EXTENSION: self.settings}
        server.add_request_handler("skills/list", types.PaginatedRequestParams, self.list_skills)
        server.add_request_handler("skills/get", types.ReadResourceRequestParams, self.get_skill)
        server.add_request_handler("resources/directory/read", types.ReadResourceRequestParams, self.read_directory)
        return server
