"""Addresses for one version of a client: names by the rules of that version, and everything else as for the client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.dialects.older import changed_table
from truename.gateway import UnknownView
from truename.gateway.views.view import Asked, read_path
from truename.policy import read_policy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.gateway.conftest import Lab

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("short_names")]

# Before 1.0, Codex cut names after 35 characters here.
SHORT: list[dict[str, Any]] = [
    {"key": "0.1.0", "runs": {"0.1.0": "2026-11-01", "0.9.0": "2026-11-02"}, "max_length": 35}
]
LONG = "read_the_whole_file_again"
POLICY = {
    "default": "allow",
    "rules": [{"name": "not from codex", "outcome": "deny", "tools": ["files/write"], "clients": ["codex-cli"]}],
}


@pytest.fixture
def short_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with changed_table(monkeypatch, "codex-cli", versions=SHORT):
        yield


@pytest.mark.parametrize(
    ("path", "client"),
    [
        ("/mcp/for/codex", "codex-cli"),
        ("/mcp/for/codex@0.169.0", "codex-cli"),
        ("/mcp/for/codex@99.0.0-beta.1", "codex-cli"),
        ("/mcp/for/Codex CLI@0.9", "codex-cli@0.1.0"),
        ("/mcp/for/codex@0.0.1", "codex-cli@0.1.0"),
    ],
)
def test_versions_with_the_same_rules_have_one_view(path: str, client: str) -> None:
    asked = read_path(path, ["files"])

    assert asked == Asked(client)
    assert read_path(asked.path.replace("%40", "@"), ["files"]) == asked


@pytest.mark.parametrize("client", ["codex@", "codex@x", "openai@1", "codex@1@2", "@", "@1", "a@1"])
def test_what_is_no_version_leads_nowhere(client: str) -> None:
    with pytest.raises(UnknownView):
        read_path(f"/mcp/for/{client}", ["files"])


async def test_each_version_gets_names_by_its_rules_and_all_lead_to_the_same_tool(
    lab: Lab, connect: Any, era: str
) -> None:
    seen = {}
    async with lab.serving(lab.normal("files", LONG)) as address:
        for version in ("", "@0.5", "@0.9.0", "@99"):
            async with connect(f"{address}/mcp/for/codex{version}", era) as client:
                (tool,) = (await client.list_tools()).tools
                seen[version] = tool.name
        async with connect(f"{address}/mcp/for/codex", era) as client:
            for name in set(seen.values()):
                assert not (await client.call_tool(name, {})).is_error

    assert seen[""] == seen["@99"] == LONG
    assert seen["@0.5"] == seen["@0.9.0"] != LONG
    assert len(seen["@0.5"]) <= 35 - len("mcp__truename.")


async def test_a_rule_about_a_client_is_about_all_its_versions(lab: Lab, connect: Any, era: str) -> None:
    async with lab.serving(lab.normal("files", "write", "read"), policy=read_policy(POLICY)) as address:
        for path in ("/mcp/for/codex", "/mcp/for/codex@0.5", "/mcp/for/codex@0.5/only/files"):
            async with connect(address + path, era) as client:
                assert [tool.name for tool in (await client.list_tools()).tools] == ["read"], path
                assert (await client.call_tool("write", {})).is_error, path
