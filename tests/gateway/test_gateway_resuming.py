"""Clients whose streams break off: they come back, and get what they missed, once and nothing of anybody else's."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.gateway.streams import reader
from truename.gateway import listening

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.conftest import Lab

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("streams_at_once", "schemes")]


def _ran(journal: Path) -> list[str]:
    return [line.split()[0] for line in journal.read_text().splitlines()]


async def _runs(journal: Path) -> None:
    with anyio.fail_after(10):
        while not journal.exists():
            await anyio.sleep(0.01)


async def test_a_stream_begins_with_the_place_to_come_back_to(lab: Lab) -> None:
    async with lab.serving(lab.normal("w", "get")) as address, reader(address) as client, client.call("get") as stream:
        first = await stream.next()
        assert first.id
        assert first.retry
        assert first.message is None
        (answer,) = await stream.rest()
        assert answer["result"]["content"][0]["text"] == "w:get"


async def test_an_answer_that_comes_first_has_no_place_to_come_back_to(lab: Lab) -> None:
    # The TypeScript SDK of these versions comes back for any stream on which it read an id, though it was answered.
    async with (
        lab.serving(lab.normal("w", "get")) as address,
        reader(address, "2025-06-18") as client,
        client.call("get") as stream,
    ):
        first = await stream.next()
        assert not first.id
        assert first.message is not None
        assert first.message["result"]["content"][0]["text"] == "w:get"


async def test_who_comes_back_for_more_than_the_answer_is_told_that_there_is_no_stream(lab: Lab) -> None:
    # Not an empty stream: the TypeScript SDK would come back for that one too, and for ever.
    async with lab.serving(lab.normal("w", "get")) as address, reader(address) as client:
        async with client.call("get") as stream:
            assert len(await stream.rest()) == 1
        async with client.get(stream.last, status=405) as again:
            assert "This stream has ended" in (await again.response.aread()).decode()


@pytest.mark.parametrize("order", ["answered first", "back first"])
async def test_a_call_goes_on_while_its_client_is_away_and_answers_when_it_is_back(
    order: str, lab: Lab, tmp_path: Path
) -> None:
    journal = tmp_path / "ran"
    async with lab.serving(lab.script("j", "journal", str(journal), "hold")) as address, reader(address) as client:
        async with client.call("hold", 7) as stream:
            await stream.next()
        await _runs(journal)
        if order == "answered first":
            journal.with_suffix(".gate").touch()
        assert stream.last is not None
        async with client.get(stream.last) as again:
            journal.with_suffix(".gate").touch()
            (answer,) = await again.rest()
        assert answer["id"] == 7
        assert answer["result"]["content"][0]["text"] == "journal:hold"
        # What was given once is there for who lost it again; after it there is nothing.
        async with client.get(stream.last) as again:
            assert await again.rest() == [answer]
            assert again.last is not None
        async with client.get(again.last, status=405):
            pass
    assert _ran(journal) == ["hold"]


async def test_who_comes_back_takes_the_place_of_the_connection_that_was_not_seen_to_break(
    lab: Lab, tmp_path: Path
) -> None:
    journal = tmp_path / "ran"
    async with (
        lab.serving(lab.script("j", "journal", str(journal), "hold")) as address,
        reader(address) as client,
        client.call("hold") as stale,
    ):
        await stale.next()
        assert stale.last is not None
        async with client.get(stale.last) as again:
            assert await stale.rest() == []
            async with client.get(stale.last) as last:
                assert await again.rest() == []
                journal.with_suffix(".gate").touch()
                assert len(await last.rest()) == 1


async def test_a_question_that_comes_meanwhile_is_asked_when_its_client_is_back(lab: Lab) -> None:
    async with (
        lab.serving(lab.script("near", "asking", "near")) as address,
        reader(address, elicitation={}) as client,
    ):
        async with client.call("ask") as stream:
            await stream.next()
        assert stream.last is not None
        async with client.get(stream.last) as again:
            asked = await again.message()
            assert asked["method"] == "elicitation/create"
            await client.send({"id": asked["id"], "result": {"action": "decline"}})
            (answer,) = await again.rest()
        assert answer["result"]["structuredContent"]["answer"] == {"action": "decline"}


async def test_only_what_that_stream_missed_is_given_and_to_its_session_alone(lab: Lab) -> None:
    async with (
        lab.serving(lab.normal("w", "get", "set")) as address,
        reader(address) as client,
        reader(address) as other,
    ):
        async with client.call("get", 1) as first, client.call("set", 2) as second:
            places = [(await stream.next()).id for stream in (first, second)]
            await first.rest()
            await second.rest()
        for place, id in zip(places, (1, 2), strict=True):
            async with client.get(place) as again:
                assert [message["id"] for message in await again.rest()] == [id]
        async with other.get(places[0], status=400) as refused:
            told = await refused.response.aread()
        assert b"belong to another session or are no longer stored" in told
        async with client.get("nothing-of-the-kind", status=400):
            pass


async def test_what_is_not_kept_any_more_is_said_to_be_gone(lab: Lab) -> None:
    async with (
        lab.serving(lab.normal("w", "get", "big"), resume_events=2, resume_bytes=5_000) as address,
        reader(address) as client,
    ):
        async with client.call("big", arguments={"size": 20_000}) as stream:
            place = (await stream.next()).id
            (answer,) = await stream.rest()
            assert len(answer["result"]["content"][0]["text"]) == 20_000
        async with client.get(place) as again:
            (error,) = await again.rest()
        assert "too large to keep" in error["error"]["message"]
        for _ in range(2):
            async with client.call("get") as stream:
                await stream.rest()
        async with client.get(place, status=400):
            pass


async def test_what_was_told_to_a_session_meanwhile_is_told_when_its_stream_is_back(lab: Lab) -> None:
    async with lab.serving(lab.script("c", "changing")) as address, reader(address) as client:

        async def grow(name: str) -> None:
            async with client.call("grow", name, arguments={"name": name}) as stream:
                await stream.rest()

        async with client.get() as stream:
            await grow("one")
            assert (await stream.message())["method"] == "notifications/tools/list_changed"
        await grow("two")
        async with client.get(stream.last) as again:
            assert (await again.message())["method"] == "notifications/tools/list_changed"


async def test_the_end_of_a_session_ends_the_streams_of_who_came_back(lab: Lab, tmp_path: Path) -> None:
    journal = tmp_path / "ran"
    async with lab.serving(lab.script("j", "journal", str(journal), "hold")) as address, reader(address) as client:
        async with client.call("hold") as stream:
            await stream.next()
        async with client.get(stream.last) as again:
            ended = await client.http.delete(client.url, headers=client.headers)
            assert ended.status_code == 200
            await again.rest()
        async with client.get(stream.last, status=404):
            pass


async def test_a_client_that_never_comes_back_holds_its_call_no_longer_than_a_call_may_take(
    lab: Lab, tmp_path: Path
) -> None:
    journal = tmp_path / "ran"
    server = lab.script("j", "journal", str(journal), "wait")
    async with (
        lab.gateway(server, call_timeout=0.5) as gateway,
        listening(gateway) as address,
        reader(address) as client,
    ):
        async with client.call("wait") as stream:
            await stream.next()
            await _runs(journal)
        drain_tracker: Any = gateway.registry.drain_tracker
        assert drain_tracker.running == 1
        with anyio.fail_after(10):
            while drain_tracker.running:
                await anyio.sleep(0.02)
        async with client.get(stream.last) as again:
            (answer,) = await again.rest()
        assert "did not answer within 0.5 seconds" in answer["result"]["content"][0]["text"]


async def test_many_clients_that_break_off_at_any_moment_get_each_answer_of_their_own(lab: Lab, tmp_path: Path) -> None:
    chance = random.Random(7)
    journal = tmp_path / "ran"
    names = [f"tool{number}" for number in range(8)]
    server = lab.script("j", "journal", str(journal), *names)
    got: list[str] = []

    async def use(address: str, name: str) -> None:
        async with reader(address) as client:
            for id in range(1, 13):
                async with client.call(name, id) as stream:
                    first = await stream.next()
                    # An answer that comes first is no stream, and nobody comes back for it.
                    answers = [first.message] if first.message is not None else []
                    if not answers and chance.random() < 0.3:
                        answers = await stream.rest()
                while not answers:
                    async with client.get(first.id) as stream:
                        answers = await stream.rest() if chance.random() < 0.7 else []
                (answer,) = answers
                assert answer["id"] == id
                got.append(answer["result"]["content"][0]["text"])

    async with lab.serving(server) as address, anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(use, address, name)
    assert Counter(got) == {f"journal:{name}": 12 for name in names}
    assert Counter(_ran(journal)) == dict.fromkeys(names, 12)
