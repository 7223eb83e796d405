"""`truename policy rules`: what each rule matches, and the servers that it is about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.cli.conftest import columned

if TYPE_CHECKING:
    from tests.cli.conftest import Run

NAME = "io.github.acme/tickets"
SERVERS: dict[str, Any] = {
    "tickets": {"command": "x", "registry_name": NAME},
    "desk": {"command": "y", "registry_name": NAME.upper()},
    "other": {"command": "z"},
    "off": {"command": "z", "registry_name": NAME, "disabled": True},
}
RULES: list[dict[str, Any]] = [
    {"name": "publisher", "outcome": "deny", "registry_names": ["io.github.acme/*"], "reason": "left the company"},
    {"name": "both", "outcome": "ask", "registry_names": ["*"], "servers": ["d*"]},
    {"name": "nobody", "outcome": "deny", "registry_names": ["com.example/*"]},
    {"name": "all", "outcome": "ask", "tools": ["*/drop_*"], "annotations": {"readOnlyHint": False}},
]


def configured(**truename: object) -> Path:
    path = Path("gateway.json")
    path.write_text(json.dumps({"mcpServers": SERVERS, "truename": truename}), "utf-8")
    return path


def test_each_rule_tells_the_servers_that_it_is_about_and_why(run: Run) -> None:
    outcome = run("policy", "rules", "--config", configured(policy={"rules": RULES}), "--json")
    rules = {one["name"]: one for one in outcome.document["rules"]}

    assert {name: one["servers"] and [server["key"] for server in one["servers"]] for name, one in rules.items()} == {
        "publisher": ["tickets", "desk"],
        "both": ["desk"],
        "nobody": [],
        "all": None,
    }
    assert rules["publisher"]["servers"][0]["registry_name"] == NAME
    assert rules["all"]["matches"] == {"tools": ["*/drop_*"], "annotations": {"readOnlyHint": False}}
    assert outcome.document["default"] == "allow"


def test_people_read_it_in_a_table(run: Run) -> None:
    out = run("policy", "rules", "--config", configured(policy={"rules": RULES})).out
    table = "\n".join(columned(out))

    assert NAME in table
    assert "none now" in table
    assert "readOnlyHint = false" in " ".join(out.split())
    assert "calls that no rule matches are allowed" in " ".join(out.split())


def test_without_a_policy_every_call_is_allowed(run: Run) -> None:
    assert "every call is allowed" in run("policy", "rules", "--config", configured()).out
    assert run("policy", "rules", "--config", configured(), "--json").document == {"default": None, "rules": []}
    assert "0 rules" in run("policy", "rules", "--config", configured(policy={"default": "deny"})).out


def test_no_control_character_of_a_rule_reaches_the_terminal(run: Run) -> None:
    rules = [{"name": "a\x1b[31m\u202e", "outcome": "deny", "servers": ["\x1b[2J*"], "reason": "\x07"}]
    out = run("policy", "rules", "--config", configured(policy={"rules": rules})).out

    assert not {"\x1b", "\u202e", "\x07"} & set(out)


def test_a_rule_that_cannot_match_is_an_error_with_its_place(run: Run) -> None:
    rules = [{"outcome": "deny", "registry_names": ["tickets"]}]
    outcome = run("policy", "rules", "--config", configured(policy={"rules": rules}))

    assert outcome.status == 2
    assert "policy.rules[0].registry_names" in outcome.err
