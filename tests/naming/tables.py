"""What the tests of naming share: a table of names by ids, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truename import Catalog, project

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename import NameTable, Style

__all__ = ["named", "table"]


def table(
    tools: tuple[str, ...] | Mapping[str, list[str]],
    client: str = "openai",
    style: str | Style = "prefixed",
    aliases: Mapping[str, str] | None = None,
) -> NameTable:
    catalog = Catalog.of(*tools, aliases=aliases) if isinstance(tools, tuple) else Catalog.from_mcp(tools, aliases)
    return project(catalog, client, style=style)


def named(names: NameTable) -> dict[str, str]:
    return {str(id): name for id, name in names.items()}
