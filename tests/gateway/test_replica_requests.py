"""Requests between replicas: read by their target and nobody else, once, in time, and whole or not at all."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.joined_replica import joined
from truename.config import Config, Settings
from truename.gateway.http.session_record import SessionRecord
from truename.gateway.replicas.client import PATH, PeerClient, PeerFailure
from truename.gateway.replicas.sealing import (
    FrameReader,
    FrameWriter,
    RequestHead,
    SealError,
    SenderWindow,
    open_request,
    seal_request,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from truename.gateway.replicas.receiving import PeerReply, PeerRequest
    from truename.gateway.replicas.replicas import Replicas

KEY = bytes(range(32))
HEAD = RequestHead("ann", 1, "bob", 2, 7, 3, "http", {"path": "/mcp"})


@given(st.binary(max_size=300), st.data())
def test_no_bit_of_a_request_can_be_changed(body: bytes, data: st.DataObject) -> None:
    sealed, _ = seal_request(KEY, HEAD, body)
    assert open_request(KEY, sealed).body == body
    place = data.draw(st.integers(0, len(sealed) * 8 - 1))
    changed = bytearray(sealed)
    changed[place // 8] ^= 1 << place % 8
    for other, key in ((bytes(changed), KEY), (sealed[:-1], KEY), (sealed, bytes(32))):
        with pytest.raises(SealError):
            open_request(key, other)


@given(st.lists(st.binary(max_size=200_000), max_size=4), st.integers(1, 70_000), st.data())
def test_a_response_is_read_as_it_was_written_however_it_is_cut(
    pieces: list[bytes], size: int, data: st.DataObject
) -> None:
    salt = bytes(16)
    writer = FrameWriter(KEY, salt)
    frames = [writer.head({"status": 200}), *(writer.body(piece) for piece in pieces), writer.end()]
    text = b"".join(frames)

    def read(text: bytes) -> tuple[list[Any], bool]:
        reader, found = FrameReader(KEY, salt), list[Any]()
        for at in range(0, len(text), size):
            found += reader.feed(text[at : at + size])
        return found, reader.is_over

    (head, *body), is_over = read(text)
    assert head == {"status": 200}
    assert b"".join(body) == b"".join(pieces)
    assert is_over
    place = data.draw(st.integers(0, len(text) - 1))
    # Cut off anywhere it is not over; changed anywhere it is never over, whatever came before.
    assert not read(text[:place])[1]
    changed = text[:place] + bytes((text[place] ^ 1,)) + text[place + 1 :]
    try:
        found, is_over = read(changed)
    except SealError:
        return
    assert not is_over
    assert b"".join(found[1:]) == b"".join(pieces)[: len(b"".join(found[1:]))]


@given(st.lists(st.integers(1, 10_000), max_size=200))
def test_a_number_counts_once(numbers: list[int]) -> None:
    window, used = SenderWindow(), set[int]()
    for number in numbers:
        is_admitted = window.admits(number)
        assert not (is_admitted and number in used)
        # Whoever counts up is admitted always, and so is who comes a little later.
        assert is_admitted or number in used or number <= max(used) - 4_096
        used.add(number)


@asynccontextmanager
async def _replica(folder: Path, **settings: Any) -> AsyncIterator[Replicas]:
    config = Config(path=folder / "mcp.json", settings=Settings(**settings))
    record = SessionRecord(config.state_location(), 60)
    try:
        async with joined(config, record) as replicas:
            yield replicas
    finally:
        record.close()


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


async def _echo(request: PeerRequest, reply: PeerReply) -> None:
    await reply.begin({"said": request.about, "by": request.sender.id})
    await reply.write(request.body)
    await reply.end(b"!")


async def _answer(client: PeerClient, replica: Any, kind: str, body: bytes = b"") -> tuple[dict[str, Any], bytes]:
    response = await client.send(replica, kind, {"a": 1}, body)
    try:
        return response.about, b"".join([piece async for piece in response.body()])
    finally:
        response.close()


@pytest.mark.anyio
async def test_replicas_answer_one_another(tmp_path: Path) -> None:
    async with _replica(tmp_path) as one, _replica(tmp_path) as two:
        two.handle("echo", _echo)
        target = await one.registry.found(two.registry.own.id)
        large = bytes(1_000_000)
        for body in (b"", b"x", large):
            about, found = await _answer(one.client, target, "echo", body)
            assert about == {"said": {"a": 1}, "by": one.registry.own.id}
            assert found == body + b"!"
        with pytest.raises(PeerFailure, match="does not know") as failure:
            await _answer(one.client, target, "other")
        assert failure.value.is_certain


@pytest.mark.anyio
async def test_what_is_foreign_late_or_sent_again_is_refused(tmp_path: Path) -> None:
    async with _replica(tmp_path) as one, _replica(tmp_path) as two, httpx2.AsyncClient() as http:
        asked = list[bytes]()

        async def noted(request: PeerRequest, reply: PeerReply) -> None:
            asked.append(request.body)
            await _echo(request, reply)

        two.handle("echo", noted)
        target = await one.registry.found(two.registry.own.id)
        assert target is not None
        own, key = one.registry.own, _key_of(tmp_path)
        url = f"http://{target.address}{PATH}"
        await two.registry.found(own.id)

        async def refusal(head: RequestHead, *, key: bytes = key) -> str | int:
            sealed, salt = seal_request(key, head, b"x")
            response = await http.post(url, content=sealed)
            if response.status_code != 200:
                return response.status_code
            (about, *_) = FrameReader(key, salt).feed(response.content)
            assert isinstance(about, dict)
            return str(about.get("refused", ""))

        beat = two.registry.beat
        head = RequestHead(own.id, own.fence, target.id, target.fence, beat, 10_000, "echo", {})
        assert await refusal(head, key=bytes(32)) == 403
        assert await refusal(_with(head, sender="nobody")) == "it is from a replica that has no lease"
        assert await refusal(_with(head, sender_fence=own.fence + 1)) == "it is from a replica that has no lease"
        gone = "it is for a replica that is not here any more"
        assert await refusal(_with(head, target=own.id)) == gone
        assert await refusal(_with(head, target_fence=target.fence + 1)) == gone
        assert await refusal(_with(head, beat=beat - 30)) == "it is late"
        assert await refusal(_with(head, beat=beat + 30)) == "it is late"
        assert asked == []
        assert await refusal(head) == ""
        assert await refusal(head) == "it was sent before"
        assert asked == [b"x"]
        assert (await http.post(url, content=b"")).status_code == 403
        assert (await http.get(url)).status_code == 404
        assert (await http.post(url.removesuffix(PATH) + "/mcp", content=b"{}")).status_code == 404
        assert (await http.post(url, content=bytes(5 * 1024 * 1024))).status_code == 413
        # A response that nobody sealed says nothing certain.
        with pytest.raises(PeerFailure) as failure:
            await _answer(PeerClient(one.registry, bytes(32)), target, "echo")
        assert not failure.value.is_certain


def _with(head: RequestHead, **changes: Any) -> RequestHead:
    fields = {name: getattr(head, name) for name in RequestHead.__struct_fields__}
    return RequestHead(**{**fields, **changes})


def _key_of(folder: Path) -> bytes:
    record = SessionRecord(Config(path=folder / "mcp.json").state_location(), 60)
    try:
        return record.derived_key(b"replicas 1")
    finally:
        record.close()


@pytest.mark.anyio
async def test_whoever_has_not_the_key_fills_no_memory(tmp_path: Path) -> None:
    async with _replica(tmp_path, max_incoming=1_000_000) as one, httpx2.AsyncClient() as http:
        url = f"http://{one.registry.own.address}{PATH}"
        for _ in range(3):
            # What was refused does not count any more.
            assert (await http.post(url, content=bytes(2_000_000))).status_code == 503
            assert (await http.post(url, content=bytes(900_000))).status_code == 403


@pytest.mark.anyio
async def test_an_address_that_refuses_is_certain_and_one_that_breaks_off_is_not(tmp_path: Path) -> None:
    async with _replica(tmp_path) as one:
        async with _replica(tmp_path) as two:
            begun = anyio.Event()

            async def hangs(request: PeerRequest, reply: PeerReply) -> None:
                begun.set()
                await anyio.sleep_forever()

            two.handle("hang", hangs)
            target = await one.registry.found(two.registry.own.id)
            assert target is not None
            failures = list[PeerFailure]()

            async def ask() -> None:
                with pytest.raises(PeerFailure) as failure:
                    await _answer(one.client, target, "hang")
                failures.append(failure.value)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await begun.wait()
                # Others took its lease: whoever waits for it is told.
                two.registry.close()
        assert [failure.is_certain for failure in failures] == [False]
        with pytest.raises(PeerFailure) as failure:
            await _answer(one.client, replace(target, id="another"), "echo")
        assert failure.value.is_certain
        assert failure.value.has_ended
