"""Sessions at several gateways of one state: whoever asks at another one is authenticated by both."""

from __future__ import annotations

import base64
import sqlite3
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest

from tests.gateway.restarts import Place
from tests.gateway.streams import Reader
from tests.support.auth_entrance import bearer, known
from tests.support.gateway_metrics import at, scraped
from tests.support.joined_replica import joined
from tests.support.postgresql_wire import Wire
from tests.support.state_places import new_place, shared_server
from truename.config import Config, Settings
from truename.config.telemetry import Telemetry
from truename.errors import StoreError
from truename.gateway import Gateway, listening
from truename.gateway.http import replica_listener
from truename.gateway.http.session_forwarding import KIND
from truename.gateway.http.session_record import SessionRecord
from truename.gateway.replicas import registry
from truename.gateway.replicas.client import PeerFailure
from truename.storage import StateLocation, open_database
from truename.storage.postgresql_link import unlink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.gateway.conftest import Lab
    from truename.storage import Database, Schema

pytestmark = [pytest.mark.slow, pytest.mark.anyio]


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@asynccontextmanager
async def _gateways(lab: Lab, folder: Path, **settings: Any) -> AsyncIterator[tuple[Config, str, str]]:
    """Run two gateways of one configuration; gives the addresses."""
    config = Place(folder, lab.normal("w", "get"), **settings).config
    async with (
        Gateway(config) as first,
        listening(first) as one,
        Gateway(config) as second,
        listening(second) as two,
    ):
        yield config, one, two


async def _called(client: Reader, address: str, headers: dict[str, str]) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "w_get", "arguments": {}}}
    return await client.http.post(f"{address}/mcp", json=body, headers={**client.headers, **headers})


async def test_a_session_is_its_principals_at_every_gateway(lab: Lab, tmp_path: Path) -> None:
    tokens, access = known("ann", "bob")
    async with _gateways(lab, tmp_path, access=access) as (_, one, two), httpx2.AsyncClient(timeout=15) as http:
        client = Reader(http, f"{one}/mcp", "2025-06-18")
        client.headers |= bearer(tokens["ann"])
        await client.open()
        for address in (one, two):
            assert (await _called(client, address, {})).json()["result"]["content"][0]["text"] == "w:get"
            assert (await _called(client, address, bearer(tokens["bob"]))).status_code == 404
            assert (await _called(client, address, bearer("nobody"))).status_code == 401


async def test_a_replica_is_no_way_around_authentication(lab: Lab, tmp_path: Path) -> None:
    """Also one that has the key of the scope, and asks the owner of a session for somebody else, or for nobody."""
    tokens, access = known("ann", "bob")
    async with _gateways(lab, tmp_path, access=access) as (config, one, _), httpx2.AsyncClient(timeout=15) as http:
        client = Reader(http, f"{one}/mcp", "2025-06-18")
        client.headers |= bearer(tokens["ann"])
        await client.open()
        record = SessionRecord(config.state_location(), 60)
        async with joined(config, record) as intruder:
            (owner, *_) = intruder.registry.observed.replicas
            body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"w_get","arguments":{}}}'

            async def asked(path: str = "/mcp", method: str = "POST", **headers: str) -> tuple[int, bytes]:
                said = {**client.headers, "content-type": "application/json", **headers}
                pairs = [(name, text) for name, text in said.items() if text]
                about = {"method": method, "path": path, "query": "", "headers": pairs, "client": None}
                response = await intruder.client.send(owner, KIND, about, body)
                try:
                    return response.about["status"], b"".join([piece async for piece in response.body()])
                finally:
                    response.close()

            status, answer = await asked()
            assert (status, b"w:get" in answer) == (200, True)
            assert (await asked(authorization=""))[0] == 401
            assert (await asked(**bearer("nobody")))[0] == 401
            assert (await asked(**bearer(tokens["bob"])))[0] == 404
        record.close()


async def test_a_request_that_is_no_clients_is_refused(lab: Lab, tmp_path: Path) -> None:
    async with _gateways(lab, tmp_path) as (config, _, _):
        record = SessionRecord(config.state_location(), 60)
        async with joined(config, record) as intruder:
            (owner, *_) = intruder.registry.observed.replicas
            good: dict[str, Any] = {"method": "POST", "path": "/mcp", "query": "", "headers": [], "client": None}
            bad: list[dict[str, Any]] = [
                {},
                {**good, "headers": [["only one"]]},
                {**good, "headers": [["a", 5]]},
                {**good, "headers": 5},
                {**good, "headers": [["\u4e2d", "x"]]},
                {**good, "path": "/healthz"},
                {**good, "path": "/metrics"},
                {**good, "client": 5},
            ]
            for about in bad:
                with pytest.raises(PeerFailure) as failure:
                    await intruder.client.send(owner, KIND, about, b"")
                assert failure.value.was_refused
        record.close()


async def test_gateways_tell_how_many_of_them_are_alive(lab: Lab, tmp_path: Path) -> None:
    async with _gateways(lab, tmp_path, telemetry=Telemetry(metrics=True)) as (_, one, two):
        with anyio.fail_after(10):
            for address in (one, two):
                while at(await scraped(address), "truename_replicas") != 2:
                    # The first sees the second at its next look.
                    await anyio.sleep(0.02)


async def test_a_gateway_that_starts_while_the_server_is_away_for_a_moment_takes_no_session_of_another(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUENAME_VAULT_KEY", base64.b64encode(b"k" * 32).decode())
    with new_place() as direct, Wire(shared_server()) as wire:
        over_wire = wire.url(direct.scope)
        state = f"{direct.url}&scope={direct.scope}"
        first, second = (
            Place(tmp_path / name, lab.normal("w", "get"), state=where, telemetry=Telemetry(metrics=True))
            for name, where in (("one", state), ("two", over_wire))
        )
        async with first.gateway() as one, httpx2.AsyncClient(timeout=15) as http:
            client = Reader(http, f"{one}/mcp", "2025-06-18")
            await client.open()
            wire.cut_before = b"INSERT INTO replica "
            async with second.gateway() as two:
                assert (await _called(client, two, {})).json()["result"]["content"][0]["text"] == "w:get"
                # It is the first gateway's still.
                assert [at(await scraped(address), "truename_sessions") for address in (one, two)] == [1, 0]
        while unlink(StateLocation.of(over_wire)):
            pass


async def test_a_gateway_that_starts_without_the_others_takes_no_session_and_joins_when_it_can(
    lab: Lab, tmp_path: Path, place: StateLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUENAME_VAULT_KEY", base64.b64encode(b"k" * 32).decode())
    gateway = Place(tmp_path, lab.normal("w", "get"), state=place.address, telemetry=Telemetry(metrics=True))
    async with (
        gateway.gateway() as one,
        Gateway(gateway.config) as second,
        httpx2.AsyncClient(timeout=15) as http,
    ):
        early, late = Reader(http, f"{one}/mcp", "2025-06-18"), Reader(http, f"{one}/mcp", "2025-06-18")
        await early.open()
        lock = place.path or tmp_path / "none.db"
        with closing(sqlite3.connect(lock, isolation_level=None, check_same_thread=False)) as other:

            def locked(where: StateLocation, schema: Schema) -> Database:
                if where.url is not None:
                    raise StoreError(file=where.name, key="", problem="it is away", remedy="", code="unusable")
                if not other.in_transaction:
                    other.execute("BEGIN IMMEDIATE")
                return open_database(where, schema, patience=0.01)

            with monkeypatch.context() as patch:
                patch.setattr(registry, "open_database", locked)
                patch.setattr(replica_listener, "_PATIENCE", 0.0)
                patch.setattr(replica_listener, "_PAUSE_ALONE", 0.02)
                async with listening(second) as two:
                    assert (await _called(early, two, {})).status_code == 404
                    late.url = f"{two}/mcp"
                    await late.open()
                    assert (await _called(late, one, {})).status_code == 404
                    patch.setattr(registry, "open_database", open_database)
                    if other.in_transaction:
                        other.execute("ROLLBACK")
                    with anyio.fail_after(20):
                        while [at(await scraped(address), "truename_replicas") for address in (one, two)] != [2, 2]:
                            await anyio.sleep(0.02)
                    for address in (one, two):
                        for client in (early, late):
                            answer = (await _called(client, address, {})).json()
                            assert answer["result"]["content"][0]["text"] == "w:get"
                    assert [at(await scraped(address), "truename_sessions") for address in (one, two)] == [1, 1]
                # What began at it alone ended with it.
                assert (await _called(late, one, {})).status_code == 404


async def test_a_start_waits_for_a_file_that_is_locked_for_a_moment(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, lab.normal("w", "get"))
    async with place.gateway() as one, Gateway(place.config) as second, httpx2.AsyncClient(timeout=15) as http:
        client, tries = Reader(http, f"{one}/mcp", "2025-06-18"), list[str]()
        await client.open()

        def locked(where: StateLocation, schema: Schema) -> Database:
            tries.append(where.name)
            if len(tries) < 3:
                raise StoreError(file=where.name, key="", problem="another process is writing", remedy="", code="busy")
            return open_database(where, schema)

        monkeypatch.setattr(registry, "open_database", locked)
        async with listening(second) as two:
            assert len(tries) == 3
            assert (await _called(client, two, {})).json()["result"]["content"][0]["text"] == "w:get"


async def test_with_state_in_memory_there_are_no_replicas() -> None:
    config = Config(settings=Settings(state="memory"))
    async with Gateway(config) as gateway, listening(gateway) as address, httpx2.AsyncClient(timeout=15) as http:
        client = Reader(http, f"{address}/mcp", "2025-06-18")
        await client.open()
        async with client.post("ping", {}) as stream:
            assert (await stream.message())["result"] == {}
