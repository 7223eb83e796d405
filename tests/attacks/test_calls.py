"""Attacks by calls: what is sent again, otherwise, too long, too deep, or with heads that servers believe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.attacks.conftest import Source, call, every_way, names, tool
from tests.gateway.office import ASK, Office

if TYPE_CHECKING:
    from pathlib import Path

    from tests.attacks.conftest import Bench

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

SMALL, LARGE = {"arguments": {"amount": 1}}, {"arguments": {"amount": 999}}


@every_way
async def test_an_approval_is_used_for_other_arguments(bench: Bench, tmp_path: Path) -> None:
    bank, office = Source("bank", tool("pay")), Office(tmp_path)
    async with bench.plain(bank, approved={"bank_pay"}) as http:
        assert await call(http, "bank_pay", **SMALL) == await call(http, "bank_pay", **LARGE) == "bank:pay"

    bank.called.clear()
    async with bench.here(bank, policy=ASK, approvals=office.settings(), state=office.state) as http:
        assert "nothing was run" in await call(http, "bank_pay", **SMALL)
        office.decides(scope="arguments")
        assert "nothing was run" in await call(http, "bank_pay", **LARGE)
        assert await call(http, "bank_pay", **SMALL) == "bank:pay"
    assert [one["arguments"] for one in bank.called] == [SMALL["arguments"]]


async def test_an_approved_call_is_sent_again(bench: Bench, tmp_path: Path) -> None:
    """The id of a call that somebody approved: for another call, and for the same one twice."""
    bank, office = Source("bank", tool("pay")), Office(tmp_path)
    named = {"dev.truename/approval": "x"}
    async with bench.plain(bank, approved={"bank_pay"}) as http:
        for arguments in (SMALL, SMALL, LARGE):
            assert await call(http, "bank_pay", **arguments, _meta=named) == "bank:pay"
    assert len(bank.called) == 3

    bank.called.clear()
    async with bench.here(bank, policy=ASK, approvals=office.settings(), state=office.state) as http:

        async def answered(arguments: dict[str, Any]) -> str:
            result = await http.result("tools/call", {"name": "bank_pay", **arguments, "_meta": named})
            return str(result.get("_meta", {}).get("dev.truename/error", "ran"))

        asked = await http.result("tools/call", {"name": "bank_pay", **SMALL})
        named = {"dev.truename/approval": asked["_meta"]["dev.truename/approval"]}
        office.decides()
        assert [await answered(one) for one in (LARGE, SMALL, SMALL)] == ["call_reused", "ran", "call_repeated"]
    assert len(bank.called) == 1


DEEP: dict[str, Any] = {}
for _ in range(300):
    DEEP = {"x": DEEP}


async def test_what_is_too_deep_or_too_long(bench: Bench) -> None:
    fs = Source("fs", tool("read"))
    async with bench.plain(fs) as http:
        assert await call(http, "fs_read", arguments=DEEP) == "fs:read"
        assert await call(http, "fs_read", arguments={"x": "x" * 200_000}) == "fs:read"

    fs.called.clear()
    async with bench.here(fs, max_body=100_000) as http:
        assert "nested deeper" in await call(http, "fs_read", arguments=DEEP)
        answer = await http.post("tools/call", {"name": "fs_read", "arguments": {"x": "x" * 200_000}})
        assert answer.status_code == 413
        assert await call(http, "fs_read") == "fs:read"
    assert len(fs.called) == 1


@every_way
async def test_a_name_without_end(bench: Bench) -> None:
    fs = Source("fs", tool("read" * 5000))
    async with bench.plain(fs) as http:
        assert max(map(len, await names(http))) > 20_000

    async with bench.here(fs) as http:
        assert all(len(one) <= 64 for one in await names(http))


async def test_heads_that_servers_believe(bench: Bench) -> None:
    """What a client says in its headers, and what it puts into arguments that become headers."""
    region = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    fs = Source("fs", {**tool("read"), "inputSchema": region})
    async with bench.plain(fs) as http:
        http.http.headers["x-forwarded-user"] = "admin"
        assert await call(http, "fs_read") == "fs:read"
    assert fs.heads[-1]["x-forwarded-user"] == "admin"

    fs.heads.clear()
    value = "eu\r\nx-forwarded-user: admin"
    async with bench.here(fs) as http:
        http.http.headers["x-forwarded-user"] = "admin"
        sent = {"mcp-param-region": "=?base64?ZXUNCngtZm9yd2FyZGVkLXVzZXI6IGFkbWlu?="}
        params = {"name": "fs_read", "arguments": {"region": value}}
        assert (await http.post("tools/call", params, headers=sent)).status_code == 200
    assert fs.called[-1]["arguments"] == {"region": value}
    assert not [one for one in fs.heads if "x-forwarded-user" in one]
