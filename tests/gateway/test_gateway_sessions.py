"""Handshake sessions over HTTP go on after a restart of the gateway, for who began them and for nobody else."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp_types import ElicitResult

from tests.gateway.restarts import Place, free_port, served
from tests.gateway.streams import BOTH, Reader, reader
from tests.support.auth_entrance import bearer, known
from truename.config import Config, Settings
from truename.config.telemetry import Telemetry
from truename.errors import StoreError
from truename.gateway import Gateway, listening
from truename.gateway.http.session_record import SessionRecord

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tests.gateway.conftest import Lab

pytestmark = [pytest.mark.slow, pytest.mark.anyio]


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


async def _text(client: Reader, name: str, id: int | str = 5) -> str:
    async with client.call(name, id) as stream:
        return str((await stream.message())["result"]["content"][0]["text"])


async def _names(client: Reader) -> list[str]:
    async with client.post("tools/list", {}, id="names") as stream:
        return sorted(tool["name"] for tool in (await stream.message())["result"]["tools"])


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_session_goes_on_after_restarts_under_its_id(lab: Lab, tmp_path: Path, version: str) -> None:
    place = Place(tmp_path, lab.normal("w", "get"))
    async with httpx2.AsyncClient(timeout=15) as http:
        async with place.gateway() as address:
            client = Reader(http, f"{address}/mcp", version)
            await client.open()
            assert await _text(client, "w_get") == "w:get"
        id = client.headers["mcp-session-id"]
        assert id.isascii()
        assert len(id) <= 1_024
        for _ in range(2):
            async with place.gateway(), client.call("w_get") as stream:
                assert stream.response.headers["mcp-session-id"] == id
                (answer,) = await stream.rest()
                assert answer["result"]["content"][0]["text"] == "w:get"


async def test_a_session_of_a_client_that_sends_no_version_goes_on_in_its_own(lab: Lab, tmp_path: Path) -> None:
    # As Gemini CLI does.
    place = Place(tmp_path, lab.normal("w", "get"))
    async with httpx2.AsyncClient(timeout=15) as http:
        async with place.gateway() as address:
            client = Reader(http, f"{address}/mcp", "2025-06-18")
            await client.open()
        del client.headers["mcp-protocol-version"]
        async with place.gateway():
            assert await _text(client, "w_get") == "w:get"
            assert await _names(client) == ["get"]


SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "Me."}, "model": "m"}


@pytest.mark.parametrize(
    ("tool", "method", "answer"),
    [
        ("ask", "elicitation/create", {"action": "decline"}),
        ("sample", "sampling/createMessage", SAMPLED),
    ],
)
async def test_its_client_is_known_by_what_it_said_at_the_beginning(
    lab: Lab, tmp_path: Path, tool: str, method: str, answer: dict[str, Any]
) -> None:
    """What it can answer, and under ``names = "detect"`` which names it gets."""
    place = Place(tmp_path, lab.script("near", "asking", "near"), lab.normal("w", "get.it"), names="detect")
    hello = {"capabilities": {method.partition("/")[0]: {}}, "clientInfo": {"name": "codex-mcp-client", "version": "1"}}
    async with httpx2.AsyncClient(timeout=15) as http:
        async with place.gateway() as address:
            client = Reader(http, f"{address}/mcp", "2025-11-25")
            async with client.post("initialize", {"protocolVersion": client.version, **hello}) as stream:
                await stream.rest()
                client.headers["mcp-session-id"] = stream.response.headers["mcp-session-id"]
            before = await _names(client)
        async with place.gateway():
            assert await _names(client) == before
            async with client.call(next(one for one in before if one.endswith(tool))) as stream:
                asked = await stream.message()
                assert asked["method"] == method
                # An answer to a question of the process before is for none of this one.
                await client.send({"id": 1, "result": {"action": "accept", "content": {}}})
                await client.send({"id": asked["id"], "result": answer})
                (told,) = await stream.rest()
    assert told["result"]["structuredContent"]["answer"] == answer


async def test_the_first_requests_after_a_restart_open_one_session(lab: Lab, tmp_path: Path) -> None:
    place = Place(tmp_path, lab.normal("w", "get"), max_sessions=1)
    async with httpx2.AsyncClient(timeout=15) as http:
        async with place.gateway() as address:
            client = Reader(http, f"{address}/mcp", "2025-11-25")
            await client.open()
        async with place.gateway(max_sessions=1):
            told: list[str] = []

            async def call(id: int) -> None:
                told.append(await _text(client, "w_get", id))

            async with anyio.create_task_group() as tasks:
                for number in range(10):
                    tasks.start_soon(call, number)
    assert told == ["w:get"] * 10


async def test_a_listener_that_comes_back_is_told_to_look_again_and_then_every_change(lab: Lab, tmp_path: Path) -> None:
    place = Place(tmp_path, lab.script("c", "changing"))
    async with httpx2.AsyncClient(timeout=15) as http:
        async with place.gateway() as address:
            client = Reader(http, f"{address}/mcp", "2025-06-18")
            await client.open()
            async with client.get() as listening:
                async with client.call("c_grow", arguments={"name": "alpha"}) as stream:
                    await stream.rest()
                assert (await listening.message())["method"] == "notifications/tools/list_changed"
        # With the id of the last event that it has, and without one.
        for last in (listening.last, None):
            async with place.gateway(), client.get(last) as listening:
                with anyio.fail_after(10):
                    assert (await listening.message())["method"] == "notifications/tools/list_changed"
                    for name in ("beta", "gamma"):
                        async with client.call("c_grow", arguments={"name": name}) as stream:
                            await stream.rest()
                        assert (await listening.message())["method"] == "notifications/tools/list_changed"
                        assert name in await _names(client)


async def _listen(
    client: Reader, last: str | None, parts: list[bytes], *, task_status: anyio.abc.TaskStatus[None]
) -> None:
    async with client.get(last) as listening:
        task_status.started()
        parts.extend([part async for part in listening.response.aiter_raw()])


@pytest.mark.parametrize("resumed", [False, True])
async def test_a_listener_is_told_at_the_end_to_come_back_when_the_gateway_may_be_there_again(
    lab: Lab, tmp_path: Path, resumed: bool
) -> None:
    place = Place(tmp_path, lab.script("c", "changing"))
    parts: list[bytes] = []
    async with httpx2.AsyncClient(timeout=15) as http, anyio.create_task_group() as tasks:
        client = Reader(http, f"http://127.0.0.1:{place.port}/mcp", "2025-06-18")
        async with place.gateway():
            await client.open()
            last = None
            if resumed:
                async with client.get() as listening:
                    async with client.call("c_grow", arguments={"name": "alpha"}) as stream:
                        await stream.rest()
                    await listening.message()
                last = listening.last
            await tasks.start(_listen, client, last, parts)
    # A line of its own, and no event: nothing is to be read of it.
    assert b"".join(parts).endswith(b"retry: 10000\r\n")


@pytest.mark.parametrize("id", [7, "seven", "ß" * 20])
async def test_who_comes_back_for_a_call_that_the_end_cut_off_is_told_so_once(
    lab: Lab, tmp_path: Path, id: int | str
) -> None:
    journal = tmp_path / "ran"
    place = Place(tmp_path, lab.script("j", "journal", str(journal), "hold"), drain_timeout=0.0)
    async with httpx2.AsyncClient(timeout=15) as http:
        async with place.gateway() as address:
            client = Reader(http, f"{address}/mcp", "2025-11-25")
            await client.open()
            async with client.call("j_hold", id) as stream:
                await stream.next()
        journal.with_suffix(".gate").touch()
        async with place.gateway():
            async with client.get(stream.last) as again:
                (answer,) = await again.rest()
            assert answer["id"] == id
            assert "restarted" in answer["error"]["message"]
            assert "Whether it took effect is unknown" in answer["error"]["message"]
            async with client.get(again.last, status=405):
                pass
            async with client.get("1-2-!", status=400):
                pass


async def test_a_session_that_ended_for_want_of_requests_stays_ended(lab: Lab, tmp_path: Path) -> None:
    place = Place(tmp_path, lab.normal("w", "get"), session_timeout=0.3)
    async with httpx2.AsyncClient(timeout=15) as http:
        async with place.gateway() as address, reader(address) as client:
            await anyio.sleep(0.5)
            assert (await _raw(http, client, "POST")).status_code == 404
        async with place.gateway(session_timeout=0.3):
            assert (await _raw(http, client, "POST")).status_code == 404


async def test_while_a_stream_is_open_a_session_lasts_also_over_a_restart(lab: Lab, tmp_path: Path) -> None:
    place = Place(tmp_path, lab.normal("w", "get"), session_timeout=2.5)
    async with httpx2.AsyncClient(timeout=15) as http:
        async with place.gateway() as address:
            client = Reader(http, f"{address}/mcp", "2025-11-25")
            await client.open()
            async with client.get():
                await anyio.sleep(2.8)
        async with place.gateway():
            assert await _text(client, "w_get") == "w:get"


@pytest.mark.parametrize("look", [0, 1])
async def test_a_session_is_not_said_to_be_over_while_the_state_cannot_be_read(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: int
) -> None:
    place = Place(tmp_path, lab.normal("w", "get"))
    async with httpx2.AsyncClient(timeout=15) as http:
        async with place.gateway() as address:
            client = Reader(http, f"{address}/mcp", "2025-11-25")
            await client.open()
        async with place.gateway():
            good, looks = SessionRecord.good, count()

            async def away(self: SessionRecord, *asked: str) -> Any:
                if next(looks) == look:
                    raise StoreError(file="state.db", key="", problem="it is away", remedy="Wait.", code="unusable")
                return await good(self, *asked)

            monkeypatch.setattr(SessionRecord, "good", away)
            answer = await _raw(http, client, "POST")
            assert (answer.status_code == 404, "nothing was run" in answer.text) == (False, True)
            assert await _text(client, "w_get") == "w:get"


async def test_with_names_in_memory_no_session_outlives_the_gateway(lab: Lab, tmp_path: Path) -> None:
    # Its names may mean other tools then.
    place = Place(tmp_path, lab.normal("w", "get"), state="memory")
    async with httpx2.AsyncClient(timeout=15) as http:
        async with place.gateway() as address, reader(address) as client:
            assert (await _raw(http, client, "POST")).status_code == 200
        async with place.gateway(state="memory"):
            assert (await _raw(http, client, "POST")).status_code == 404
    assert not (tmp_path / "state").exists()


async def test_a_session_without_room_is_told_so_and_goes_on_when_there_is_some(lab: Lab, tmp_path: Path) -> None:
    place = Place(tmp_path, lab.normal("w", "get"), max_sessions=1)
    async with httpx2.AsyncClient(timeout=15) as http:
        async with place.gateway() as address, reader(address) as client:
            pass
        async with place.gateway(max_sessions=1) as address, reader(address) as other:
            assert (await _raw(http, client, "POST")).status_code == 503
            forged = await _raw(http, client, "POST", id="x" * 40)
            assert forged.status_code == 404
            assert (await _raw(http, other, "DELETE")).status_code == 200
            assert (await _raw(http, client, "POST")).status_code == 200


LISTING = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


async def _raw(
    http: httpx2.AsyncClient, client: Reader, method: str, *, id: str | None = None, url: str | None = None, **more: str
) -> httpx2.Response:
    headers = {**client.headers, **more, **({} if id is None else {"mcp-session-id": id})}
    return await http.request(method, url or client.url, json=LISTING if method == "POST" else None, headers=headers)


class House:
    """A gateway with a session of ann's, one that she ended, and one that is over."""

    def __init__(self, http: httpx2.AsyncClient, gateway: Gateway, address: str, tokens: dict[str, str]) -> None:
        self.http, self.gateway, self.address, self.tokens = http, gateway, address, tokens
        self.ids: dict[str, str] = {}

    async def begin(self, name: str, who: str = "ann", path: str = "/mcp") -> str:
        client = Reader(self.http, self.address + path, "2025-11-25")
        client.headers |= bearer(self.tokens[who])
        await client.open()
        self.ids[name] = client.headers["mcp-session-id"]
        return self.ids[name]

    async def ask(self, id: str, method: str = "POST", who: str = "ann", path: str = "/mcp") -> httpx2.Response:
        headers = {**BOTH, **bearer(self.tokens[who]), "mcp-protocol-version": "2025-11-25"}
        raw = [(key.encode(), value.encode()) for key, value in headers.items()]
        raw.append((b"mcp-session-id", id.encode("utf-8")))
        body = LISTING if method == "POST" else None
        return await self.http.request(method, self.address + path, json=body, headers=raw)

    @property
    def open(self) -> int:
        assert self.gateway.metrics is not None
        assert self.gateway.metrics.sessions is not None
        return self.gateway.metrics.sessions()


def _other(character: str) -> str:
    return "-" if character == "_" else "_"


FOREIGN: dict[str, tuple[Callable[[House], str], str, str]] = {
    "nonsense": (lambda _: "nonsense", "ann", "/mcp"),
    "as long as any": (lambda _: "x" * 1_024, "ann", "/mcp"),
    "far too long": (lambda _: "x" * 20_000, "ann", "/mcp"),
    "of the SDK's form": (lambda _: "0" * 32, "ann", "/mcp"),
    "no ASCII": (lambda _: "séance", "ann", "/mcp"),
    "altered at its end": (lambda house: house.ids["live"][:-1] + _other(house.ids["live"][-1]), "ann", "/mcp"),
    "altered at its beginning": (lambda house: _other(house.ids["live"][0]) + house.ids["live"][1:], "ann", "/mcp"),
    "padded": (lambda house: house.ids["live"] + "=", "ann", "/mcp"),
    "cut": (lambda house: house.ids["live"][:-4], "ann", "/mcp"),
    "another principal's": (lambda house: house.ids["live"], "bob", "/mcp"),
    "another principal's, not open now": (lambda house: house.ids["before"], "bob", "/mcp"),
    "another path's": (lambda house: house.ids["live"], "ann", "/mcp/only/w"),
    "another path's, not open now": (lambda house: house.ids["before"], "ann", "/mcp/for/cursor"),
    "another's at another path": (lambda house: house.ids["before"], "bob", "/mcp/only/w"),
    "ended here": (lambda house: house.ids["ended"], "ann", "/mcp"),
    "ended before the restart": (lambda house: house.ids["ended before"], "ann", "/mcp"),
    "ended here, and not opened": (lambda house: house.ids["ended unopened"], "ann", "/mcp"),
    "of another gateway": (lambda house: house.ids["elsewhere"], "ann", "/mcp"),
}


@pytest.fixture
async def house(lab: Lab, tmp_path: Path) -> AsyncIterator[House]:
    tokens, access = known("ann", "bob")
    servers = (lab.normal("w", "get"),)
    config = Config(
        path=tmp_path / "mcp.json", servers=servers, settings=Settings(access=access, telemetry=Telemetry(metrics=True))
    )
    other = Config(path=tmp_path / "other.json", servers=servers, settings=Settings(access=access))
    async with httpx2.AsyncClient(timeout=15) as http:
        ids: dict[str, str] = {}
        for one, names in ((other, ("elsewhere",)), (config, ("before", "ended before", "ended unopened"))):
            async with Gateway(one) as gateway, listening(gateway) as address:
                earlier = House(http, gateway, address, tokens)
                for name in names:
                    ids[name] = await earlier.begin(name)
                if one is config:
                    assert (await earlier.ask(ids["ended before"], "DELETE")).status_code == 200
        async with Gateway(config) as gateway, listening(gateway) as address:
            found = House(http, gateway, address, tokens)
            await found.begin("live")
            await found.begin("ended")
            found.ids |= ids
            for name in ("ended", "ended unopened"):
                assert (await found.ask(found.ids[name], "DELETE")).status_code == 200
            # Other paths are in use too.
            await found.begin("other", path="/mcp/only/w")
            yield found


async def test_what_is_no_session_of_who_asks_is_answered_alike_and_takes_no_room(house: House) -> None:
    unknown = await house.ask("0" * 40)
    before = house.open
    for method in ("POST", "GET", "DELETE", "PUT"):
        for what, (id, who, path) in FOREIGN.items():
            answer = await house.ask(id(house), method, who, path)
            heads = [sorted(one for one in each.headers if one != "date") for each in (answer, unknown)]
            assert (answer.status_code, answer.text, heads[0]) == (404, unknown.text, heads[1]), (what, method)
    assert house.open == before
    # Whose they are, they are good.
    for name in ("live", "before"):
        assert (await house.ask(house.ids[name])).status_code == 200
    assert house.open == before + 1


async def test_an_altered_id_is_no_session(house: House) -> None:
    """A law, over the wire: whatever is changed of an id that is good, it is as unknown as any other."""
    unknown = (await house.ask("0" * 40)).text
    before, id = house.open, house.ids["before"]
    asked: list[str] = []

    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        place=st.integers(0, len(id) - 1),
        cut=st.integers(0, 3),
        put=st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=3),
    )
    def collect(place: int, cut: int, put: str) -> None:
        altered = id[:place] + put + id[place + cut :]
        if altered not in {id, ""}:
            asked.append(altered)

    collect()
    for altered in asked:
        answer = await house.ask(altered)
        assert (answer.status_code, answer.text) == (404, unknown), altered
    assert house.open == before
    assert (await house.ask(id)).status_code == 200


@pytest.mark.parametrize("lost", ["the record", "the state"])
async def test_without_the_record_every_session_has_to_begin_anew(lab: Lab, tmp_path: Path, lost: str) -> None:
    place = Place(tmp_path, lab.normal("w", "get"))
    async with httpx2.AsyncClient(timeout=15) as http:
        async with place.gateway() as address, reader(address) as client:
            pass
        assert place.record.stat().st_mode & 0o077 == 0
        if lost == "the record":
            for part in place.record.parent.glob(f"{place.record.name}*"):
                part.unlink()
        else:
            (tmp_path / "state").rename(tmp_path / "gone")
        async with place.gateway():
            assert (await _raw(http, client, "POST")).status_code == 404


class Ears:
    """Hears what an SDK client is told of lists, and declines what it is asked."""

    def __init__(self) -> None:
        self.changes = 0
        self._log = anyio.Event()

    async def hear(self, message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self.changes += 1
            self._log.set()
            self._log = anyio.Event()

    async def heard(self, changes: int) -> None:
        with anyio.fail_after(20):
            while self.changes < changes:
                await self._log.wait()

    async def answer(self, _: Any, __: Any) -> ElicitResult:
        return ElicitResult(action="decline")

    @property
    def callbacks(self) -> dict[str, Any]:
        return {"message_handler": self.hear, "elicitation_callback": self.answer}


async def test_the_official_client_goes_on_listening_and_answering(
    lab: Lab, tmp_path: Path, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    place, ears = Place(tmp_path, lab.script("c", "changing"), lab.script("near", "asking", "near")), Ears()
    async with anyio.create_task_group() as tasks:
        async with place.gateway() as address:
            client = await _opened(tasks, connect(f"{address}/mcp", "legacy", **ears.callbacks))
            assert said(await client.call_tool("c_grow", {"name": "alpha"})) == "changing:grow"
            await ears.heard(1)
        async with place.gateway():
            # It is told so when it listens again, a second later.
            await ears.heard(2)
            assert said(await client.call_tool("c_grow", {"name": "beta"})) == "changing:grow"
            await ears.heard(3)
            assert "c_beta" in [tool.name for tool in (await client.list_tools()).tools]
            asked = await client.call_tool("near_ask", {})
            assert asked.structured_content["answer"] == {"action": "decline"}
            tasks.cancel_scope.cancel()


async def test_killed_and_started_again_it_goes_on_with_the_sessions_of_all_clients(
    lab: Lab, tmp_path: Path, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    """`truename serve`, a client by hand and the SDK's own."""
    config = lab.config_file(lab.normal("w", "get"), lab.script("near", "asking", "near"))
    written = json.loads(config.read_text())
    del written["truename"]["state"]
    config.write_text(json.dumps(written))
    port, state, ears = free_port(), tmp_path / "own", Ears()
    async with httpx2.AsyncClient(timeout=15) as http, anyio.create_task_group() as tasks:
        async with served(config, port, state) as process:
            address = f"http://127.0.0.1:{port}"
            by_hand = Reader(http, f"{address}/mcp", "2025-06-18")
            await by_hand.open()
            assert await _text(by_hand, "w_get", 1) == "w:get"
            client = await _opened(tasks, connect(f"{address}/mcp", "legacy", **ears.callbacks))
            assert said(await client.call_tool("w_get", {})) == "w:get"
            process.kill()
            await process.wait()
        async with served(config, port, state):
            assert await _text(by_hand, "w_get", 2) == "w:get"
            with anyio.fail_after(30):
                assert said(await client.call_tool("w_get", {})) == "w:get"
                asked = await client.call_tool("near_ask", {})
            assert asked.structured_content["answer"] == {"action": "decline"}
            tasks.cancel_scope.cancel()


async def _opened(tasks: anyio.abc.TaskGroup, connecting: Any) -> Any:
    async def hold(*, task_status: anyio.abc.TaskStatus[Any]) -> None:
        async with connecting as client:
            task_status.started(client)
            await anyio.sleep_forever()

    return await tasks.start(hold)
