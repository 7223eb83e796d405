"""Requests between replicas: read by their target and nobody else, once, in time, and whole or not at all."""

from __future__ import annotations

from base64 import b64decode, b64encode
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as replace_head

from tests.support.joined_replica import joined
from truename.config import Config, Settings
from truename.gateway.http.session_record import SessionRecord
from truename.gateway.replicas.client import PATH, PROOF, PeerClient, PeerFailure
from truename.gateway.replicas.sealing import (
    FrameReader,
    FrameWriter,
    RequestHead,
    SealedRequest,
    SealError,
    SenderWindow,
    open_content,
    open_head,
    seal_request,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from truename.gateway.replicas.receiving import PeerReply, PeerRequest
    from truename.gateway.replicas.replicas import Replicas

KEY = bytes(range(32))
HEAD = RequestHead("ann", 1, "bob", 2, 7, 3, "http")


@given(st.binary(max_size=300), st.data())
def test_no_bit_of_a_request_can_be_changed(body: bytes, data: st.DataObject) -> None:
    sealed = seal_request(KEY, HEAD, {"path": "/mcp"}, body)
    opened = open_head(KEY, sealed.proof)
    assert open_content(KEY, opened, sealed.content) == ({"path": "/mcp"}, body)
    assert opened.head.size == len(sealed.content)
    other = seal_request(KEY, HEAD, {"path": "/mcp"}, body)
    proof = b64decode(sealed.proof)
    for text, key in ((_changed(proof, data), KEY), (proof[:-1], KEY), (proof, bytes(32))):
        with pytest.raises(SealError):
            open_head(key, b64encode(text))
    for text in (_changed(sealed.content, data), sealed.content[:-1], other.content, proof[16:]):
        with pytest.raises(SealError):
            open_content(KEY, opened, text)


@given(st.binary(max_size=200))
def test_what_is_no_head_is_refused_as_such(proof: bytes) -> None:
    for text in (proof, b64encode(proof), proof * 100):
        with pytest.raises(SealError):
            open_head(KEY, text)


def _changed(text: bytes, data: st.DataObject) -> bytes:
    place = data.draw(st.integers(0, len(text) * 8 - 1))
    changed = bytearray(text)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


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
            numbers.append(numbers[-1] + 1)
            return await answer(seal_request(key, replace_head(head, number=numbers[-1]), {}, b"x"), key=key)

        async def answer(sealed: SealedRequest, *, key: bytes = key) -> str | int:
            response = await http.post(url, content=sealed.content, headers={PROOF.decode(): sealed.proof.decode()})
            if response.status_code != 200:
                return response.status_code
            (about, *_) = FrameReader(key, sealed.salt).feed(response.content)
            assert isinstance(about, dict)
            return str(about.get("refused", ""))

        numbers, beat = [10_000], two.registry.beat
        head = RequestHead(own.id, own.fence, target.id, target.fence, beat, 0, "echo")
        assert await refusal(head, key=bytes(32)) == 403
        assert await refusal(replace_head(head, sender="nobody")) == "it is from a replica that has no lease"
        assert await refusal(replace_head(head, sender_fence=own.fence + 1)) == "it is from a replica that has no lease"
        gone = "it is for a replica that is not here any more"
        assert await refusal(replace_head(head, target=own.id)) == gone
        assert await refusal(replace_head(head, target_fence=target.fence + 1)) == gone
        assert await refusal(replace_head(head, beat=beat - 30)) == "it is late"
        assert await refusal(replace_head(head, beat=beat + 30)) == "it is late"
        assert asked == []
        assert await refusal(head) == ""
        assert asked == [b"x"]
        sealed = seal_request(key, replace_head(head, number=20_000), {}, b"y")
        assert await answer(sealed) == ""
        # It ran: whoever sends it again gets no word by which its sender would take it for one that did not.
        for again in (sealed, sealed._replace(content=b"")):
            assert await answer(again) == 403
        cut = seal_request(key, replace_head(head, number=20_001), {}, b"z")
        assert await answer(cut._replace(content=cut.content[:-1])) == 403
        assert asked == [b"x", b"y"]
        assert (await http.post(url, content=b"")).status_code == 403
        assert (await http.get(url)).status_code == 404
        assert (await http.post(url.removesuffix(PATH) + "/mcp", content=b"{}")).status_code == 404
        # A response that nobody sealed says nothing certain.
        with pytest.raises(PeerFailure) as failure:
            await _answer(PeerClient(one.registry, bytes(32)), target, "echo")
        assert not failure.value.is_certain


def _key_of(folder: Path) -> bytes:
    record = SessionRecord(Config(path=folder / "mcp.json").state_location(), 60)
    try:
        return record.derived_key(b"replicas 1")
    finally:
        record.close()


@pytest.mark.anyio
async def test_whoever_has_not_the_key_takes_no_room_from_replicas(tmp_path: Path) -> None:
    async with _replica(tmp_path) as one, _replica(tmp_path, max_incoming=100_000) as two, AsyncExitStack() as stack:
        two.handle("echo", _echo)
        target = await one.registry.found(two.registry.own.id)
        assert target is not None
        await two.registry.found(one.registry.own.id)
        host, _, port = target.address.rpartition(":")
        known = await stack.enter_async_context(await anyio.connect_tcp(host, int(port)))

        async def ask(number: int) -> bytes:
            own = one.registry.own
            head = RequestHead(own.id, own.fence, target.id, target.fence, two.registry.beat, number, "echo")
            await known.send(_raw(seal_request(_key_of(tmp_path), head, {}, b"x")))
            return await known.receive()

        assert (await ask(101)).startswith(b"HTTP/1.1 200")
        head = f"POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-length: 4000000\r\n\r\n".encode()
        for number in range(300):
            stream = await stack.enter_async_context(await anyio.connect_tcp(host, int(port)))
            if number % 3:
                with suppress(OSError, anyio.BrokenResourceError):
                    await stream.send(head + bytes(1_000_000 if number % 30 == 1 else 1_000))
        # All of it is refused, or waits beside; a connection on which a replica asked before is not closed for it.
        for _ in range(20):
            assert (await _answer(one.client, target, "echo", bytes(90_000)))[1] == bytes(90_000) + b"!"
        assert (await ask(102)).startswith(b"HTTP/1.1 200")


def _raw(sealed: SealedRequest) -> bytes:
    head = f"POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(sealed.content)}\r\n{PROOF.decode()}: "
    return head.encode() + sealed.proof + b"\r\n\r\n" + sealed.content


@pytest.mark.anyio
async def test_a_request_for_which_there_is_no_room_is_certainly_not_run(tmp_path: Path) -> None:
    settings = {"max_incoming": 100_000, "max_body": 200_000}
    async with _replica(tmp_path, **settings) as one, _replica(tmp_path, **settings) as two:
        two.handle("echo", _echo)
        target = await one.registry.found(two.registry.own.id)
        assert target is not None
        own = one.registry.own
        head = RequestHead(own.id, own.fence, target.id, target.fence, two.registry.beat, 50, "echo")
        sealed = seal_request(_key_of(tmp_path), head, {}, bytes(90_000))
        host, _, port = target.address.rpartition(":")
        async with await anyio.connect_tcp(host, int(port)) as stream:
            await stream.send(_raw(sealed)[:-1])

            async def ask() -> None:
                with anyio.fail_after(10):
                    while True:
                        await _answer(one.client, target, "echo", bytes(50_000))

            with pytest.raises(PeerFailure, match="too many bytes") as failure:
                await ask()
            assert failure.value.is_certain
            assert failure.value.was_refused
            await stream.send(sealed.content[-1:])
            assert (await stream.receive()).startswith(b"HTTP/1.1 200")
        # One alone may be longer than all together.
        assert (await _answer(one.client, target, "echo", bytes(150_000)))[1] == bytes(150_000) + b"!"
        with pytest.raises(PeerFailure, match="too large") as failure:
            await _answer(one.client, target, "echo", bytes(2_000_000))
        assert failure.value.is_certain


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
