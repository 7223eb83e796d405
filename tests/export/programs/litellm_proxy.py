"""Serve LiteLLM's proxy: `litellm_proxy.py CONFIG PORT`. It runs in an environment of its own.

LiteLLM keeps display names of tools in its database only. Its database client needs engines that are no Python package,
so the tables are kept in memory here: everything above them, the REST API and the MCP gateway, is LiteLLM's own.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import uvicorn

os.environ["CONFIG_FILE_PATH"] = sys.argv[1]

from litellm.proxy import proxy_server


def read(data: dict[str, Any]) -> dict[str, Any]:
    """Return columns as they are read: JSON is written as a text, and read as a value."""
    return {
        name: json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[") else value
        for name, value in data.items()
    }


class Row:
    """A row, as the database client returns it."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Return the columns."""
        return dict(self.__dict__)

    dict = model_dump


def matches(row: Row, where: dict[str, Any]) -> bool:
    """Return whether a row fulfils all conditions."""
    return all(fulfils(row, name, wanted) for name, wanted in where.items())


def fulfils(row: Row, name: str, wanted: Any) -> bool:
    """Return whether a row fulfils one condition, of those that LiteLLM writes."""
    if name in ("OR", "AND"):
        return (any if name == "OR" else all)(matches(row, one) for one in wanted)
    if name == "NOT":
        several = wanted if isinstance(wanted, list) else [wanted]
        return not any(matches(row, one) for one in several)
    value = getattr(row, name)
    if not isinstance(wanted, dict):
        return bool(value == wanted)
    folded = wanted.get("mode") == "insensitive"
    checks = {
        "equals": lambda one: same(value, one, folded),
        "in": lambda one: value in one,
        "not": lambda one: value != one,
    }
    return all(checks[word](one) for word, one in wanted.items() if word in checks)


def same(value: Any, wanted: Any, folded: bool) -> bool:
    """Return whether two values are equal, in any case if so asked."""
    if folded and isinstance(value, str) and isinstance(wanted, str):
        return value.lower() == wanted.lower()
    return bool(value == wanted)


class Table:
    """A table in memory."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def _having(self, where: dict[str, Any] | None) -> list[Row]:
        return [row for row in self.rows if matches(row, where or {})]

    async def find_many(self, where: dict[str, Any] | None = None, **_: Any) -> list[Row]:
        return self._having(where)

    async def find_first(self, where: dict[str, Any] | None = None, **_: Any) -> Row | None:
        return next(iter(self._having(where)), None)

    find_unique = find_first

    async def count(self, where: dict[str, Any] | None = None, **_: Any) -> int:
        return len(self._having(where))

    async def create(self, data: dict[str, Any], **_: Any) -> Row:
        now = datetime.now(UTC)
        row = Row({"server_id": str(uuid.uuid4()), "created_at": now, "updated_at": now, **read(data)})
        self.rows.append(row)
        return row

    async def update(self, where: dict[str, Any], data: dict[str, Any], **_: Any) -> Row | None:
        row = await self.find_first(where)
        if row is not None:
            row.__dict__.update(read(data), updated_at=datetime.now(UTC))
        return row

    async def update_many(self, where: dict[str, Any], data: dict[str, Any], **_: Any) -> int:
        for row in self._having(where):
            row.__dict__.update(read(data))
        return len(self._having(where))

    async def upsert(self, where: dict[str, Any], data: dict[str, Any], **_: Any) -> Row | None:
        return await self.update(where, data["update"]) or await self.create(data["create"])

    async def delete(self, where: dict[str, Any], **_: Any) -> Row | None:
        row = await self.find_first(where)
        if row is not None:
            self.rows.remove(row)
        return row

    async def delete_many(self, where: dict[str, Any] | None = None, **_: Any) -> int:
        gone = self._having(where)
        self.rows = [row for row in self.rows if row not in gone]
        return len(gone)


class Tables:
    """All tables by name; a transaction is nothing special."""

    def __getattr__(self, name: str) -> Table:
        if name.startswith("__"):
            raise AttributeError(name)
        table = Table()
        setattr(self, name, table)
        return table

    @asynccontextmanager
    async def tx(self, **_: Any) -> Any:
        yield self

    async def query_raw(self, *_: Any, **__: Any) -> list[Any]:
        return []

    query_first = execute_raw = query_raw


class Database:
    """LiteLLM's database client, without a database."""

    def __init__(self) -> None:
        self.db = self.writer_db = self.reader_db = Tables()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        async def nothing(*_: Any, **__: Any) -> None:
            return None

        return nothing


_lifespan = proxy_server.app.router.lifespan_context


@asynccontextmanager
async def lifespan(app: Any) -> Any:
    """Start as LiteLLM does, then put the tables in."""
    async with _lifespan(app) as state:
        proxy_server.prisma_client = Database()
        yield state


proxy_server.app.router.lifespan_context = lifespan
uvicorn.run(proxy_server.app, host="127.0.0.1", port=int(sys.argv[2]), log_level="error")
