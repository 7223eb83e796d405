"""Each gateway's configuration is recognised, its servers come over, and nothing of it is lost in silence."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.clients.importers.samples import SAMPLES
from truename.clients.importers import KINDS, ImportedConfig, detect, read_peer
from truename.conventions import Location
from truename.editing import SourceLines
from truename.errors import ConfigError

SERVERS = {
    "toolhive": {
        "tickets": "docker run -i --rm -v /srv/tickets:/data:ro -e REGION -e TICKETS_TOKEN"
        " registry.example/tickets:1.2 --read-only"
    },
    "litellm": {
        "tickets": "http https://tickets.example/mcp",
        "clock": "uvx clock-server",
        "old": "sse https://old.example/sse",
    },
    "contextforge": {"tickets": "http https://tickets.example/mcp", "clock": "off sse https://clock.example/sse"},
    "agentgateway": {
        "tickets": "npx tickets",
        "far": "http https://far.example:443/x",
        "old": "sse http://old.example:8080/sse",
    },
    "docker": {
        "tickets": "docker mcp gateway run --servers tickets",
        "clock": "docker mcp gateway run --servers clock",
    },
    "mcpproxy": {"tickets": "http https://tickets.example/mcp", "clock": "off uvx clock", "new": "off npx new"},
    "ubie": {"tickets": "npx tickets"},
    "mcphub": {"tickets": "http https://tickets.example/mcp", "clock": "off uvx clock"},
    "1mcp": {"tickets": "npx tickets", "maybe": "off x"},
    "metamcp": {"tickets": "http https://tickets.example/mcp", "clock": "uvx clock"},
    "fastmcp": {"tickets": "http https://tickets.example/mcp", "clock": "uvx clock"},
}
RENAMES = {
    "toolhive": {("tickets", "createTicket"): "new_ticket", ("tickets", "closeTicket"): "Close!"},
    "litellm": {},
    "contextforge": {("tickets", "create"): "new_ticket"},
    "fastmcp": {("tickets", "create"): "tickets_new_ticket"},
}
LEFT = {
    "toolhive": {
        ("filter", "tools_filter"),
        ("description", "tools_override.createTicket.description"),
        ("description", "tools_override.find.description"),
        ("access", "permission_profile"),
    },
    "litellm": {
        ("filter", "mcp_servers.tickets.allowed_tools"),
        ("filter", "mcp_servers.tickets.disallowed_tools"),
        ("setting", "mcp_servers.tickets.tool_name_to_description"),
        ("setting", "mcp_servers.tickets.tool_name_to_display_name"),
        ("access", "mcp_servers.tickets.access_groups"),
        ("kept-elsewhere", "mcp_servers.old.auth_type"),
        ("kept-elsewhere", "mcp_servers.old.client_id"),
        ("server", "mcp_servers.api.spec_path"),
        ("setting", "litellm_settings.drop_params"),
        ("setting", "model_list"),
    },
    "contextforge": {
        ("kept-elsewhere", "entities.gateways[0].auth_value"),
        ("server", "entities.tools[1]"),
        ("filter", "entities.servers[0]"),
        ("setting", "entities.prompts[0]"),
    },
    "agentgateway": {
        ("access", "binds[0].listeners[0].routes[0].policies.jwtAuth"),
        ("server", "binds[0].listeners[0].routes[0].backends[0].mcp.targets[3].openapi"),
        ("access", "binds[0].listeners[0].routes[0].backends[0].policies.mcpAuthorization.rules[0]"),
        ("access", "binds[0].listeners[0].routes[0].backends[0].policies.mcpAuthorization.rules[1]"),
    },
    "docker": set(),
    "mcpproxy": {
        ("setting", "listen"),
        ("access", "api_key"),
        ("filter", "mcpServers[0].enabled_tools"),
        ("access", "mcpServers[2].quarantined"),
    },
    "ubie": {
        ("filter", "mcpServers.tickets._extensions.tools.allow"),
        ("filter", "mcpServers.tickets._extensions.tools.deny"),
    },
    "mcphub": {
        ("filter", "mcpServers.tickets.tools.create"),
        ("description", "mcpServers.tickets.tools.find"),
        ("server", "mcpServers.api.type"),
        ("setting", "mcpServers.api.openapi"),
        ("access", "users"),
        ("filter", "groups"),
    },
    "1mcp": {
        ("filter", "mcpServers.tickets.tags"),
        ("filter", "mcpServers.tickets.disabledTools"),
        ("description", "mcpServers.tickets.toolDescriptionOverrides.find"),
        ("setting", "mcpServers.tickets.restartOnExit"),
        ("setting", "mcpServers.maybe.disabled"),
        ("server", "mcpTemplates.ctx"),
    },
    "metamcp": {("kept-elsewhere", "")},
    "fastmcp": {
        ("setting", "mcpServers.tickets.tools.create.arguments"),
        ("filter", "mcpServers.tickets.tools.drop.enabled"),
        ("filter", "mcpServers.tickets.include_tags"),
        ("kept-elsewhere", "mcpServers.clock.auth"),
    },
}


def imported(tmp_path: Path, values: Any, *, name: str = "config.json", kind: str | None = None) -> ImportedConfig:
    path = tmp_path / name
    path.write_text(yaml.safe_dump(values) if name.endswith("yaml") else json.dumps(values, indent=1), "utf-8")
    (found,) = read_peer(path, kind)
    return found


def told(found: ImportedConfig) -> dict[str, str]:
    lines = {}
    for seen in found.seen:
        server = seen.server
        what = f"{server.type} {server.url}" if server.url else " ".join([server.command or "", *server.args])
        lines[server.key] = f"off {what}" if server.disabled else what
    return lines


def left(found: ImportedConfig) -> set[tuple[str, str]]:
    return {(one.rule.name, one.location.key if one.location else "") for one in found.left}


def test_every_kind_has_a_sample() -> None:
    assert set(SAMPLES) == set(KINDS) == set(SERVERS) == set(LEFT)


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("name", ["config.json", "config.yaml"])
def test_servers_renames_and_all_that_is_left_are_told(tmp_path: Path, kind: str, name: str) -> None:
    found = imported(tmp_path, SAMPLES[kind], name=name)

    assert found.kind == kind
    assert told(found) == SERVERS[kind]
    assert {(one.server, one.tool): one.name for one in found.renames} == RENAMES.get(kind, {})
    assert left(found) == LEFT[kind]


@pytest.mark.parametrize("kind", SAMPLES)
def test_each_finding_has_a_sentence_of_fact_and_one_of_what_to_do(tmp_path: Path, kind: str) -> None:
    for finding in imported(tmp_path, SAMPLES[kind]).left:
        assert finding.fact.endswith(".")
        assert finding.remedy.endswith(".")
        assert finding.location is not None


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("name", ["config.json", "config.yaml"])
def test_each_finding_about_a_key_has_the_line_of_the_key(tmp_path: Path, kind: str, name: str) -> None:
    found = imported(tmp_path, SAMPLES[kind], name=name)
    text = Path(found.file).read_text("utf-8").splitlines()

    for finding in SourceLines().all(found.left):
        assert finding.location is not None
        last = re.split(r"[.\[]", finding.location.key)[-1].removesuffix("]")
        if finding.location.key:
            assert last.isdecimal() or last in text[finding.location.line - 1], finding
    assert all(
        SourceLines().found(Location(file=found.file, key=seen.where), is_whole=True).line for seen in found.seen
    )


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the way to every object in a sample."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [path] if isinstance(value, dict) else []
    return found + [place for key, item in inside for place in places(item, (*path, key))]


# What is only named, because it is a whole of its own that is left out as such, and free words by name.
WHOLES = {
    "mcpTemplates",
    "users",
    "groups",
    "model_list",
    "permission_profile",
    "metadata",
    "openapi",
    "mcp_info",
    "cors",
    "jwtAuth",
    "tools",
    "servers",
    "prompts",
    "api",
    "arguments",
}
NAMED = {
    "env",
    "env_vars",
    "headers",
    "static_headers",
    "serverDefaults",
    "mcp_aliases",
    "registry",
    "mcpServers",
    "mcp_servers",
    "tools_override",
    "tool_name_to_display_name",
    "tool_name_to_description",
    "toolDescriptionOverrides",
    "binds",
    "listeners",
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_key_that_nobody_knows_is_told_wherever_it_stands(tmp_path: Path, kind: str) -> None:
    checked = 0
    for place in places(SAMPLES[kind]):
        words = [part for part in place if isinstance(part, str)]
        if WHOLES.intersection(words) or (words and words[-1] in NAMED):
            continue
        changed = copy.deepcopy(SAMPLES[kind])
        target: Any = changed
        for part in place:
            target = target[part]
        target["neverHeardOf"] = {"x": 1}

        keys = [key for _, key in left(imported(tmp_path, changed, kind=kind))]
        assert [key for key in keys if key.endswith("neverHeardOf")], place
        checked += 1
    assert checked


def test_docker_tells_what_the_files_beside_its_registry_say(tmp_path: Path) -> None:
    (tmp_path / "registry.yaml").write_text(yaml.safe_dump(SAMPLES["docker"]), "utf-8")
    (tmp_path / "tools.yaml").write_text("tickets: [create, find]\n", "utf-8")
    (tmp_path / "config.yaml").write_text("clock: {zone: UTC}\n", "utf-8")

    (found,) = read_peer(tmp_path)

    assert told(found) == SERVERS["docker"]
    places = {(one.rule.name, Path(one.location.file).name, one.location.key) for one in found.left if one.location}
    assert places == {("filter", "tools.yaml", "tickets"), ("setting", "config.yaml", "clock")}


def test_a_catalogue_of_docker_says_how_servers_are_started(tmp_path: Path) -> None:
    catalogue = {
        "registry": {
            "tickets": {
                "image": "mcp/tickets",
                "secrets": [{"name": "tickets.token", "env": "TICKETS_TOKEN"}],
                "env": [{"name": "ZONE", "value": "{{tickets.zone}}"}],
                "volumes": ["/srv:/data"],
                "command": ["--all"],
            },
            "far": {"remote": {"url": "https://far.example/sse", "transport_type": "sse"}, "oauth": {"providers": []}},
            "older": {"sseEndpoint": "https://older.example/sse", "remote": {}},
        }
    }

    found = imported(tmp_path, catalogue)

    assert told(found) == {
        "tickets": "docker run -i --rm -v /srv:/data -e TICKETS_TOKEN -e ZONE mcp/tickets --all",
        "far": "sse https://far.example/sse",
        "older": "sse https://older.example/sse",
    }
    assert ("setting", "registry.far.oauth") in left(found)
    assert ("kept-elsewhere", "registry.tickets.command") in left(found)


def test_a_container_that_speaks_http_stays_behind_toolhive_with_its_names(tmp_path: Path) -> None:
    found = imported(tmp_path, SAMPLES["toolhive"] | {"transport": "streamable-http"})

    assert told(found) == {"tickets": "http http://127.0.0.1:41234/mcp"}
    assert found.renames == ()


def test_a_remote_server_of_toolhive_keeps_its_headers(tmp_path: Path) -> None:
    values = {
        "name": "far",
        "transport": "sse",
        "remote_url": "https://far.example/sse",
        "header_forward": {"add_plaintext_headers": {"X-A": "b"}, "add_headers_from_secret": {"X-Key": "far-key"}},
        "remote_auth_config": {"client_id": "x"},
    }

    found = imported(tmp_path, values)

    assert told(found) == {"far": "sse https://far.example/sse"}
    assert set(found.seen[0].server.headers) == {"X-A", "X-Key"}
    assert left(found) == {("kept-elsewhere", "remote_auth_config")}


def test_one_server_of_fastmcp_has_no_prefix_in_new_names(tmp_path: Path) -> None:
    tools = {"create": {"name": "new_ticket"}, "find": {"name": "find"}}
    found = imported(tmp_path, {"mcpServers": {"tickets": {"command": "x", "tools": tools}}}, kind="fastmcp")

    assert [rename.name for rename in found.renames] == ["new_ticket"]


def test_a_project_of_fastmcp_is_run_by_fastmcp(tmp_path: Path) -> None:
    found = imported(tmp_path, {"source": {"path": "server.py"}, "deployment": {"port": 1}}, name="fastmcp.json")

    assert found.seen[0].server.args == ("run", str(tmp_path / "fastmcp.json"), "--transport", "stdio")
    assert left(found) == {("setting", "deployment")}


def test_a_directory_of_toolhive_is_read_file_by_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(json.dumps(SAMPLES["toolhive"] | {"name": name}), "utf-8")

    assert [told(found).keys() for found in read_peer(tmp_path)] == [{"a"}, {"b"}]


REFUSED = [
    ("a.yaml", "a: [1", "not YAML"),
    ("a.yaml", "a: 1\na: 2\n", "duplicate"),
    ("a.yaml", "- 1\n", "named keys"),
    ("a.yaml", "1: 2\n", "named keys"),
    ("a.yaml", "a: !!python/object/apply:os.system [x]\n", "not YAML"),
    ("a.yaml", "a: &a [*a]\n", "not YAML"),
    ("a.yaml", "a: " + "[" * 500 + "]" * 500, "too deeply"),
    ("a.yaml", "x0: &x0 [1,1]\n" + "".join(f"x{n}: &x{n} [*x{n - 1},*x{n - 1}]\n" for n in range(1, 60)), "too large"),
    (
        "a.yaml",
        "x0: &x0 {a: 1, b: 2}\n" + "".join(f"x{n}: &x{n}\n  <<: [*x{n - 1},*x{n - 1}]\n" for n in range(1, 60)),
        "merge too much",
    ),
    ("a.json", '{"a": 1', "not JSON"),
    ("a.json", "{}", "no known gateway"),
    ("a.json", '{"mcpServers": {"a": {"command": "x"}}}', "plain mcpServers"),
]


@pytest.mark.parametrize(("name", "text", "problem"), REFUSED, ids=[problem for *_, problem in REFUSED])
def test_what_is_broken_or_bounded_or_nobodys_is_a_typed_error(
    tmp_path: Path, name: str, text: str, problem: str
) -> None:
    (tmp_path / name).write_text(text, "utf-8")

    with pytest.raises(ConfigError) as caught:
        read_peer(tmp_path / name)

    assert problem in caught.value.problem
    assert caught.value.remedy


def test_an_unknown_gateway_is_told_with_those_that_are_known(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="toolhive"):
        read_peer(tmp_path / "x.json", "kong")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 99999) | st.floats(allow_nan=True) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(SAMPLES)), st.data())
def test_no_value_of_the_wrong_kind_makes_a_reader_stumble(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject
) -> None:
    changed = copy.deepcopy(SAMPLES[kind])
    place = data.draw(st.sampled_from([place for place in every(changed) if place]))
    target: Any = changed
    for part in place[:-1]:
        target = target[part]
    target[place[-1]] = data.draw(JSON)

    found = imported(tmp_path_factory.mktemp("peer"), changed, kind=kind)

    assert all(isinstance(seen.server.key, str) for seen in found.seen)
    assert detect(changed) in {None, *KINDS}


def every(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inside for place in every(item, (*path, key)))]
