"""Another configuration that is refused, or makes no difference: which settings are fixed, and what stays as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway.reloads import another, names
from truename.config import Config
from truename.config.audit import Audit
from truename.config.settings import SETTINGS
from truename.config.telemetry import Telemetry
from truename.config.trust import Trust
from truename.errors import ConfigError, DuplicateTool, InvalidName, LedgerError
from truename.gateway import Gateway, Reloaded, listening
from truename.gateway import shown as shown_module
from truename.gateway.reloading import differences
from truename.gateway.upstream.replacing import is_same_connection
from truename.ledger import Ledger

if TYPE_CHECKING:
    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio


async def test_nothing_changes_where_nothing_is_otherwise(lab: Lab) -> None:
    async with lab.gateway(lab.normal("w", "get")) as gateway:
        changed = await gateway.reload(another(gateway))
        assert not changed
        assert str(changed) == "nothing changed"


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "the ledger": ({"state": "/nowhere/x.db"}, ConfigError, "state: it cannot change while the gateway runs"),
    "the address": ({"names": "detect"}, ConfigError, "names: it cannot change while the gateway runs"),
    "sessions": ({"max_sessions": 3}, ConfigError, "max_sessions: it cannot change"),
    "the style": ({"style": "server-prefix"}, LedgerError, "This ledger was created with"),
    "aliases": ({"aliases": {"w": "x"}}, LedgerError, "This ledger was created with"),
    "the server's name": ({"server_name": "other"}, LedgerError, "This ledger was created with"),
    "what no file may have": ({"token": "a b"}, ConfigError, "it cannot be sent as a bearer token"),
    "no name": ({"overrides": {"cursor": {"w@1/get@1": "a b"}}}, InvalidName, "'a b'"),
    "two of one name": (
        {"overrides": {"cursor": {"w@1/get@1": "same", "w@1/put@1": "same"}}},
        DuplicateTool,
        "same",
    ),
    "another's name": ({"overrides": {"cursor": {"w@1/get@1": "put"}}}, LedgerError, "is held by w@1/put@1"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_can_not_be_changes_nothing(lab: Lab, case: str) -> None:
    settings, kind, text = REFUSED[case]
    one, two = lab.normal("w", "get", "put"), lab.normal("two", "get")
    async with lab.gateway(one, two, style="on-conflict") as gateway:
        config, shown, pool = gateway.config, names(gateway), dict(gateway.registry.pool)
        with pytest.raises((kind, ExceptionGroup)) as caught:
            await gateway.reload(another(gateway, replace(one, timeout=3.0), lab.normal("new", "x"), **settings))
        error = caught.value
        if isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        assert isinstance(error, kind)
        assert text in str(error)
        assert gateway.config is config
        assert dict(gateway.registry.pool) == pool
        assert gateway.registry.settings is config.settings
        assert names(gateway) == shown
        assert not [event for event in lab.events if event.server == "new"]


async def test_a_ledger_that_fails_meanwhile_changes_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    async with lab.gateway(lab.normal("w", "get"), lab.normal("v", "get")) as gateway:
        config, registry = gateway.config, gateway.registry

        def full(*_: object, **__: object) -> None:
            raise LedgerError(code="unusable", path=Path("x"), reason="no space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "remember", full)
            with pytest.raises(LedgerError, match="no space left"):
                await gateway.reload(another(gateway, lab.normal("w", "get", "put"), call_timeout=3.0))
        assert (gateway.config, registry.settings, sorted(registry.pool)) == (config, config.settings, ["v", "w"])
        await gateway.settle()
        assert names(gateway) == ["v_get", "w_get"]


async def test_lists_that_can_not_be_made_change_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    async with lab.gateway(lab.normal("w", "get"), lab.normal("v", "get")) as gateway:
        config, registry, shown = gateway.config, gateway.registry, names(gateway)

        def broken(*_: object, **__: object) -> None:
            raise RuntimeError("made on purpose")

        with monkeypatch.context() as patch:
            patch.setattr(shown_module, "described", broken)
            with pytest.raises(RuntimeError, match="made on purpose"):
                await gateway.reload(another(gateway, lab.normal("v", "get"), names_in_texts=False))
        assert (gateway.config, registry.settings, sorted(registry.pool)) == (config, config.settings, ["v", "w"])
        await gateway.settle()
        assert names(gateway) == shown


async def test_a_tool_that_has_no_name_is_no_fault_of_the_names_that_are_fixed(lab: Lab) -> None:
    wanted = {"openai": {"w@1/get@1": "fetch"}}
    async with lab.gateway(lab.normal("w", "get", "x" * 900)) as gateway:
        assert (await gateway.reload(another(gateway, overrides=wanted))).settings == ("overrides",)
        assert "fetch" in names(gateway, "/mcp/for/openai")


async def test_a_gateway_for_one_server_keeps_it(lab: Lab) -> None:
    one, two = lab.normal("one", "get"), lab.normal("two", "get")
    config = Config(servers=(one, two))
    async with Gateway(config, only="one") as gateway:
        assert not await gateway.reload(replace(config, servers=(one,)))
        with pytest.raises(ConfigError, match=r"no server remains of those that this gateway serves \('one'\)"):
            await gateway.reload(replace(config, servers=(two,)))
        assert names(gateway) == ["get"]


FIXED = {
    *("vault_key_command", "vault_key_file"),
    *("state", "names", "recording", "max_body", "max_claims", "max_depth", "max_entries"),
    *("max_incoming", "max_requests", "max_unread", "principal_share", "replica_address", "reserved_share"),
    *("max_sessions", "max_tasks", "max_views", "resume_bytes", "resume_events", "resume_total", "session_timeout"),
    *("allow_addresses", "search_ranking", "tls_certificate", "tls_key"),
}
# Declared field by field.
TABLES = {"access", "approvals", "audit", "telemetry", "trust"}


def test_a_setting_that_is_built_into_what_runs_is_declared_as_fixed() -> None:
    assert {key for key, row in SETTINGS.items() if not row.live} == FIXED | TABLES


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"audit": Audit(path="/nowhere")}, "audit.path"),
        ({"audit": Audit(key="k" * 32)}, "audit.key"),
        ({"audit": Audit(max_segment=5_000)}, "audit.max_segment"),
        ({"audit": Audit(max_waiting=3)}, "audit.max_waiting"),
        ({"telemetry": Telemetry(metrics=True)}, "telemetry.metrics"),
        ({"trust": Trust(pins="/nowhere")}, "trust.pins"),
    ],
)
async def test_a_fixed_field_of_a_table_is_refused_by_its_key(lab: Lab, changes: dict[str, Any], key: str) -> None:
    async with lab.gateway(lab.normal("w", "get")) as gateway:
        with pytest.raises(ConfigError) as caught:
            await gateway.reload(another(gateway, **changes))
    assert (caught.value.key, caught.value.problem) == (key, "it cannot change while the gateway runs")


async def test_an_address_that_others_reach_keeps_its_token(lab: Lab) -> None:
    async with lab.gateway(lab.normal("w", "get"), token="old") as gateway, listening(gateway, "0.0.0.0"):
        with pytest.raises(ConfigError, match="can be reached from other machines, but no authentication"):
            await gateway.reload(another(gateway, token=None))
    # Nobody listens any more.
    async with lab.gateway(lab.normal("w", "get"), token="old") as gateway:
        assert (await gateway.reload(another(gateway, token=None))).settings == ("token",)


def test_differences_are_of_servers_that_run(lab: Lab) -> None:
    one = lab.normal("one", "get")
    off = replace(one, disabled=True)
    assert differences(Config(servers=(off,)), Config(servers=(one,))) == Reloaded(added=("one",))
    assert differences(Config(servers=(one,)), Config(servers=(off,))) == Reloaded(removed=("one",))


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"idempotent": ("x",)}, True),
        ({"max_concurrent": 3}, True),
        ({"timeout": 3.0}, True),
        ({"start": "lazy", "idle_timeout": 3.0}, True),
        ({"registry_name": "io.github.acme/one"}, True),
        ({"env": {"A": "b"}}, False),
        ({"cwd": "/"}, False),
        ({"isolation": "session"}, False),
    ],
)
def test_another_connection_is_for_what_a_connection_is_made_of(lab: Lab, changes: dict[str, Any], same: bool) -> None:
    one = lab.normal("one", "get")
    assert is_same_connection(one, replace(one, **changes)) is same


def test_the_time_of_a_call_is_no_matter_of_the_connection_over_http_either(lab: Lab) -> None:
    one = lab.at("one", "http://127.0.0.1:1/mcp")
    assert is_same_connection(one, replace(one, timeout=3.0))
    assert is_same_connection(one, replace(one, idempotent=("x",)))
