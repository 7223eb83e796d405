"""Attacks on the machine and on what waits: environments, programs that clients name, states of others."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.attacks.conftest import Source, call, tool
from tests.attacks.plain import starting
from tests.gateway.conftest import raw_client
from tests.support.auth_entrance import bearer, known
from truename.config import ServerConfig

if TYPE_CHECKING:
    from pathlib import Path

    from tests.attacks.conftest import Bench
    from tests.gateway.conftest import Raw

pytestmark = pytest.mark.anyio

TELL = "import os, sys; sys.exit(os.environ.get('BANK_TOKEN', 'nothing'))"


async def test_a_program_that_reads_the_environment(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Local server compromise: what a shell exports for one server is read by every program that is started in it."""
    monkeypatch.setenv("BANK_TOKEN", "token-of-the-bank")
    assert (
        subprocess.run([sys.executable, "-c", TELL], capture_output=True, check=False).stderr == b"token-of-the-bank\n"
    )

    async with bench.lab.gateway(ServerConfig(key="evil", command=sys.executable, args=("-c", TELL))) as gateway:
        assert "Its last output: nothing" in (gateway.status().servers[0].error or "")


async def test_a_client_that_names_a_program(bench: Bench, tmp_path: Path) -> None:
    """A proxy for pipes that runs what its client says: whoever reaches its port runs anything on the machine."""
    ran = tmp_path / "ran"
    words = {"transportType": "stdio", "command": sys.executable, "args": f"-c open({str(ran)!r},'w')"}
    async with bench.upstreams.app(starting()) as address, raw_client(address) as http:
        assert (await http.http.get(f"{address}/stdio", params=words)).status_code == 200
    assert ran.exists()

    ran.unlink()
    fs = Source("fs", tool("read"))
    async with bench.here(fs) as http:
        for path in ("/stdio", "/sse", "/mcp", "/mcp/for/stdio", "/mcp/only/fs"):
            await http.http.get(http.address + path, params=words)
            await http.http.post(http.address + path, params=words, json=words)
        for method in ("tools/list", "server/discover"):
            await http.post(method, {**words, "_meta": words}, headers={"x-command": sys.executable})
        assert await call(http, "fs_read") == "fs:read"
    assert not ran.exists()


WAITING: dict[str, Any] = {
    "resultType": "input_required",
    "inputRequests": {"q": {"method": "elicitation/create", "params": {"mode": "form", "message": "Sure?"}}},
    "requestState": "pays-999-of-ann",
}
CAPABLE: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}


async def test_the_state_of_another(bench: Bench) -> None:
    """State-handle hijack: a call waits for ann's word, and bob, who saw its handle, gives it."""
    tokens, access = known("ann", "bob")
    bank = Source("bank", tool("pay"))
    bank.waits = WAITING

    async def paid(http: Raw, who: str, **more: Any) -> dict[str, Any]:
        params = {"name": "bank_pay", "arguments": {}, "_meta": CAPABLE, **more}
        answer = await http.post("tools/call", params, headers=bearer(tokens[who]))
        return dict(answer.json())

    async with bench.plain(bank) as http:
        state = (await paid(http, "ann"))["result"]["requestState"]
        went_on = await paid(http, "bob", requestState=state, inputResponses={"q": {"action": "accept"}})
        assert went_on["result"]["content"][0]["text"] == "bank:pay"
    assert [one.get("requestState") for one in bank.called] == [None, "pays-999-of-ann"]

    bank.called.clear()
    async with bench.here(bank, access=access) as http:
        state = (await paid(http, "ann"))["result"]["requestState"]
        for stolen in (state, "pays-999-of-ann", f"{state.partition('.')[0]}.another", "."):
            refused = await paid(http, "bob", requestState=stolen, inputResponses={"q": {"action": "accept"}})
            assert refused["error"]["code"] == -32602
        went_on = await paid(http, "ann", requestState=state, inputResponses={"q": {"action": "accept"}})
        assert went_on["result"]["content"][0]["text"] == "bank:pay"
    assert [one.get("requestState") for one in bank.called] == [None, "pays-999-of-ann"]
