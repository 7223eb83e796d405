"""Rules about servers by their names in the MCP registry, which only the owner of a configuration writes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.policy.calls import call, shown, tool
from truename import Catalog
from truename.config import Config, ServerConfig, Settings, parse
from truename.config.unmatched import idle
from truename.errors import ConfigError
from truename.policy import CallRule, Policy, read_policy

ACME = "io.github.acme/tickets"
RULE = CallRule(name="publisher", outcome="deny", registry_names=("io.github.acme/*",))


def server(key: str, registry_name: str | None = None) -> ServerConfig:
    return ServerConfig(key=key, command="x", registry_name=registry_name)


def decided(policy: Policy | None, id: str, names: Any) -> str:
    assert policy is not None
    return policy.decide(call(names, id)).outcome


def test_two_servers_with_one_registry_name_stay_two_and_both_are_judged() -> None:
    servers = (server("old", ACME), server("new", ACME), server("other"))
    config = Config(servers=servers, settings=Settings(policy=Policy(rules=[RULE], default="allow")))
    names = shown({one.key: [tool("get")] for one in servers})

    assert sorted(map(str, names)) == ["new@1/get@1", "old@1/get@1", "other@1/get@1"]
    assert [decided(config.settings.policy, f"{one.key}/get", names) for one in servers] == ["deny", "deny", "allow"]


def test_a_server_that_states_a_registry_name_has_none() -> None:
    claims = {"registry_name": ACME, "registryName": ACME}
    lying = {**tool("get"), **claims, "_meta": {**claims, "io.modelcontextprotocol.registry/official": claims}}
    config = Config(servers=(server("liar"),), settings=Settings(policy=Policy(rules=[RULE], default="allow")))
    trusting = replace(RULE, outcome="allow")

    assert decided(config.settings.policy, "liar/get", shown({"liar": [lying]})) == "allow"
    assert decided(Policy(rules=[trusting], registered={"other": ACME}), "liar/get", shown({"liar": [lying]})) == "ask"


def test_a_key_that_looks_like_a_registry_name_is_no_registry_name() -> None:
    names = shown({ACME: [tool("get")]})
    (id,) = names

    assert decided(Policy(rules=[RULE], default="allow"), str(id), names) == "allow"


def test_a_configuration_tells_its_policy_the_names_of_its_present_servers() -> None:
    config = Config(servers=(server("a", ACME),), settings=Settings(policy=Policy(rules=[RULE], default="allow")))
    names = shown({"a": [tool("get")]})
    without = replace(config, servers=(server("a"),))

    assert config.registered == {"a": ACME}
    assert decided(config.settings.policy, "a/get", names) == "deny"
    assert decided(without.settings.policy, "a/get", names) == "allow"
    assert without.settings != config.settings


def test_a_rule_takes_no_names_from_another_policy() -> None:
    bound = Policy(rules=[RULE], default="allow", registered={"a": ACME})

    assert decided(Policy(rules=bound.rules, default="allow"), "a/get", shown({"a": [tool("get")]})) == "allow"


def test_rules_of_a_file_are_about_registry_names_of_the_file() -> None:
    servers = {"a": {"command": "x", "registry_name": "io.github.Acme/Tickets"}, "b": {"command": "x"}}
    rules = [{"outcome": "deny", "registry_names": ["io.github.acme/tickets"]}]
    text = json.dumps({"mcpServers": servers, "truename": {"policy": {"rules": rules}}})
    policy = parse(text, Path("/etc/gateway.json"), {}).settings.policy
    names = shown({"a": [tool("get")], "b": [tool("get")]})

    assert [decided(policy, f"{key}/get", names) for key in servers] == ["deny", "allow"]


@pytest.mark.parametrize("glob", ["tickets", "io.github.acme/a/b", "", "io github/x", "acme_x/*", "ï.github/x*"])
def test_a_glob_that_fits_no_registry_name_is_an_error_with_its_place(glob: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_policy({"rules": [{"outcome": "deny", "registry_names": [glob]}]})

    assert caught.value.key == "policy.rules[0].registry_names"


def test_a_registry_name_that_no_server_has_is_reported_as_matching_nothing() -> None:
    rules = [replace(RULE, registry_names=("io.github.acme/*", "io.github.acmee/tickets"))]
    config = Config(servers=(server("a", ACME),), settings=Settings(policy=Policy(rules=rules)))

    assert idle(config.settings, Catalog.from_mcp({"a": ["get"]})) == ("rule 'publisher': 'io.github.acmee/tickets'",)
