"""Keys and items of a request are bounded before it is parsed, and large arguments are digested beside the loop."""

from __future__ import annotations

import json
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import anyio
import pytest
import rfc8785
from anyio.streams.buffered import BufferedByteReceiveStream
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.conftest import ERAS
from tests.support.gateway_bounds import _answer, _call, _headers
from truename.config.audit import Audit
from truename.gateway import listening
from truename.gateway.protocol import entries
from truename.gateway.protocol.digesting import off_loop
from truename.gateway.protocol.entries import EntryCounter, has_more_entries
from truename.naming import suggest
from truename.policy import read_policy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio

TEXTS = st.text('\\",[]{}: a\n\u00e9', max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=40,
)


def _entries(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(_entries, value.values()))
    return len(value) + sum(map(_entries, value)) if isinstance(value, list) else 0


@given(VALUES, st.sampled_from((None, 0, 2)), st.booleans(), st.integers(1, 50))
def test_entries_are_counted_as_a_parser_finds_them_whatever_pieces_they_come_in(
    value: Any, indent: int | None, is_ascii: bool, step: int
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode()
    counter, found = EntryCounter(), 0

    for start in range(0, len(text), step):
        found = counter.feed(text[start : start + step])

    assert found == _entries(value)


@given(st.binary(max_size=300))
def test_what_is_no_json_has_some_count_too(text: bytes) -> None:
    assert EntryCounter().feed(text) <= len(text)


async def test_a_long_text_is_counted_in_slices_between_which_others_have_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = 0

    async def turn() -> None:
        nonlocal turns
        turns += 1

    monkeypatch.setattr(entries, "checkpoint", turn)
    text = json.dumps({"table": "1,2,3\n" * 100_000}).encode()

    assert not await has_more_entries(text, 50_000)
    assert turns == len(text) // entries.SLICE + 1


@pytest.mark.parametrize("era", ERAS)
async def test_a_request_of_too_many_entries_is_refused_before_it_is_parsed(
    lab: Lab, raw: Callable[[str], Any], era: str
) -> None:
    async with lab.serving(lab.normal("w", "echo"), max_entries=500) as address, raw(address) as http:
        headers = await _headers(http, era)
        wide = json.dumps({str(number): 1 for number in range(501)})
        refused = await http.http.post(f"{address}/mcp", content=_call(wide, "7"), headers=headers)
        within = json.dumps({"text": "1,2,[3],{}" * 1_000, "rows": [[number] for number in range(200)]})
        after = await http.http.post(f"{address}/mcp", content=_call(within), headers=headers)

    error = refused.json()
    assert (refused.status_code, error["id"], error["error"]["code"]) == (413, 7, -32600)
    assert error["error"]["message"].startswith("The message has more than the 500 keys and items of max_entries;")
    assert _answer(after.text)["result"]["content"][0]["text"] == "w:echo"


async def test_over_stdio_such_a_request_is_answered_under_its_id(lab: Lab) -> None:
    params = lab.over_stdio(lab.normal("w", "echo"), max_entries=500)
    wide = json.dumps(list(range(600)))
    async with await anyio.open_process(
        [params.command, *params.args], env=params.env, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines = BufferedByteReceiveStream(process.stdout)
        with anyio.fail_after(30):
            for arguments, id in ((f'{{"x": {wide}}}', "8"), ('{"x": []}', "9")):
                await process.stdin.send(_call(arguments, id).encode() + b"\n")
            answers = [json.loads(await lines.receive_until(b"\n", 1_000_000)) for _ in range(2)]
            await process.stdin.aclose()
            await process.wait()

    assert (answers[0]["id"], answers[0]["error"]["code"]) == (8, -32600)
    assert answers[1]["result"]["content"][0]["text"] == "w:echo"


@pytest.mark.parametrize("wrapped", [False, True])
async def test_large_arguments_are_digested_beside_the_loop(
    lab: Lab, raw: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wrapped: bool
) -> None:
    plain, where = rfc8785.dumps, []

    def dumps(value: Any) -> bytes:
        found = plain(value)
        if len(found) > 50_000:
            where.append(threading.current_thread())
        return found

    monkeypatch.setattr(rfc8785, "dumps", dumps)
    monkeypatch.setattr("truename.policy.arguments.rfc8785.dumps", dumps)
    policy = read_policy({"rules": [{"name": "all", "outcome": "allow", "tools": ["*"]}]})
    arguments: dict[str, Any] = {"rows": list(range(20_000))}
    name = "call_tool" if wrapped else "w_echo"
    given = {"name": "w_echo", "arguments": arguments} if wrapped else arguments
    settings: dict[str, Any] = {"tool_search": "on"} if wrapped else {}
    audit = Audit(path=str(tmp_path / "audit"), arguments="digest")
    async with lab.gateway(lab.normal("w", "echo"), policy=policy, audit=audit, **settings) as gateway:
        calls: list[Any] = []
        gateway.registry.call_records.listen(calls.append)
        async with listening(gateway) as address, raw(address) as http:
            result = await http.result("tools/call", {"name": name, "arguments": given})

    assert result["content"][0]["text"] == "w:echo"
    assert calls[0].arguments_digest.startswith("sha256:")
    assert where
    assert threading.main_thread() not in where


async def test_one_is_digested_at_a_time_so_that_the_loop_has_every_other_turn() -> None:
    running, most = 0, 0
    turn = threading.Lock()

    def work(_: int) -> None:
        nonlocal running, most
        with turn:
            running += 1
            most = max(most, running)
        sum(range(1_000))
        with turn:
            running -= 1

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(off_loop, work, number)

    assert most == 1


@pytest.mark.parametrize("name", ["m_tool_1x", "m/tool_1x"])
async def test_what_finds_near_names_is_built_beside_the_loop(
    lab: Lab, raw: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    build, where = suggest._Index.of, []

    def built(names: Any) -> Any:
        where.append(threading.current_thread())
        return build(names)

    monkeypatch.setattr(suggest._Index, "of", built)
    async with lab.serving(lab.script("m", "many", "600"), tool_search="off") as address, raw(address) as http:
        for _ in range(2):
            wrong = await http.result("tools/call", {"name": name})
            assert "Did you mean" in wrong["content"][0]["text"]

    assert len(where) == 1
    assert threading.main_thread() not in where
