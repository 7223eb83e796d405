"""Homes with several clients, from the first doctor to the last disconnect: each keeps tools, credentials and lists.

What a client makes of its entries is taken from the table of clients; the servers say who was called with what.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client as McpClient
from mcp import StdioServerParameters

from tests.cli.homes_of_clients import HOMES, write
from tests.support.cli_own_credentials import gateway
from truename import dialects
from truename.clients import Machine, find
from truename.clients.kept_names import matches
from truename.clients.table import config_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.cli.conftest import Run
    from tests.cli.homes_of_clients import Client
    from truename.clients import FoundFile
    from truename.config import ServerConfig

pytestmark = pytest.mark.slow


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "ACCOUNT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    (project := tmp_path / "home" / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.chdir(project)
    return project


@pytest.mark.parametrize("name", HOMES)
def test_each_client_keeps_its_tools_its_credentials_and_its_lists(name: str, work: Path, run: Run) -> None:
    home = HOMES[name]
    before = write(home, work.parent)
    clients = [one.name for one in home.clients]

    first = run("doctor", "--start", "--json").document
    made = run("init", "--copy-secrets")
    assert Path("truename.toml").is_file(), made.err
    with gateway() as (_, url, _):
        connected = [run("connect", client, "--url", url, "--yes", "--scope", *scopes(client)) for client in clients]
        seen = {one.name: reached(one) for one in home.clients}
        last = run("doctor", "--start", "--json").document
        again = [run("connect", client, "--url", url, "--yes", "--scope", *scopes(client)) for client in clients]
    undone = [run("disconnect", client, "--yes") for client in clients]

    assert [one.status for one in (*connected, *again, *undone)] == [0] * 3 * len(clients)
    assert {client.name: client.answers() for client in home.clients} == seen
    assert not [one for one in last["findings"] if curable(one) and one["client"] in titles(clients)]
    assert len(last["findings"]) <= len(first["findings"])
    assert all("already connected" in one.out for one in again)
    assert {path: path.read_bytes() for path in before} == before


def test_a_broken_file_is_told_and_left_as_it_is(work: Path, run: Run) -> None:
    before = write(HOMES["many"], work.parent)
    path = work.parent / ".codeium" / "windsurf" / "mcp_config.json"
    run("init", "--copy-secrets")

    done = run("connect", "windsurf", "--yes")

    assert done.status != 0
    assert str(path) in done.err
    assert path.read_bytes() == before[path]


def scopes(_: str) -> list[str]:
    return ["user", "--scope", "project"]


def titles(clients: Sequence[str]) -> set[str]:
    return {file.title for client in clients for file in config_files(client)} | {*clients}


def curable(finding: dict[str, Any]) -> bool:
    return any(f"truename {command}" in finding["remedy"] for command in ("connect", "disconnect", "init"))


def reached(client: Client) -> tuple[list[str], list[str]]:
    """Return what all calls of a client's tools answer: of those that its lists leave to the model, and of others."""
    found = [one for one in find(Machine.here()) if one.file.client == client.name]
    entries = {one.server.key: one.server for file in found for one in file.servers}
    listed = {key: anyio.run(names_of, entry) for key, entry in entries.items()}
    outcome = dialects.get(config_files(client.name)[0].dialect).simulate_all(list(listed.items()))
    calls = [(outcome.reaches[text], is_denied(found, tool, text)) for tool, text in outcome.shown.items()]
    answers = anyio.run(answers_of, entries, [tool for tool, _ in calls])
    told = [(text, denied) for text, (_, denied) in zip(answers, calls, strict=True)]
    return sorted(text for text, denied in told if not denied), sorted(text for text, denied in told if denied)


def is_denied(found: Sequence[FoundFile], tool: tuple[str, str], shown: str) -> bool:
    key, name = tool
    kept = [one for file in found for one in file.kept]
    offers = [one for one in kept if one.effect == "only" and one.server == key]
    is_offered = not offers or any(matches(one, key, name, shown) for one in offers)
    return not is_offered or any(matches(one, key, name, shown) for one in kept if one.effect in {"deny", "without"})


@asynccontextmanager
async def connecting(entry: ServerConfig) -> Any:
    target: Any = entry.url
    if target is None:
        environ = {**os.environ, **entry.env}
        target = StdioServerParameters(command=str(entry.command), args=list(entry.args), env=environ)
    async with McpClient(target) as client:
        yield client


async def names_of(entry: ServerConfig) -> list[str]:
    async with connecting(entry) as client:
        return [tool.name for tool in (await client.list_tools()).tools]


async def answers_of(entries: dict[str, ServerConfig], tools: list[tuple[str, str]]) -> list[str]:
    answers: dict[tuple[str, str], str] = {}
    for key, entry in entries.items():
        async with connecting(entry) as client:
            for tool in tools:
                if tool[0] == key:
                    result = await client.call_tool(tool[1], {})
                    answers[tool] = result.content[0].text
    return [answers[tool] for tool in tools]
