"""What standard error tells: one line each, as text or as JSON, printable, and without secrets."""

from __future__ import annotations

import json
import logging
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from truename import ToolId
from truename.catalog import Origin, Tool
from truename.cli._logs import log_to_stderr
from truename.gateway import UpstreamError
from truename.gateway.call_records import CallRecords
from truename.gateway.mcp.connection import ClientConnection
from truename.gateway.mcp.requests import Request

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger("truename.gateway")
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture(autouse=True)
def _logging() -> Iterator[None]:
    root, own = logging.getLogger(), logging.getLogger("truename")
    handlers, level = root.handlers, own.level
    yield
    root.handlers = handlers
    own.setLevel(level)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_each_event_is_one_json_object_of_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("json")
    log.warning("server %r says %s", "w", "one\ntwo\x1b[31m\u202e")
    (said,) = lines(capsys)
    assert said.pop("at").endswith("+00:00")
    assert said == {
        "level": "warning",
        "logger": "truename.gateway",
        "message": "server 'w' says one\\ntwo\\x1b[31m\\u202e",
    }


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_level_is_that_of_our_own_messages_and_others_tell_what_is_bad(form: Any, capsys: Any) -> None:
    log_to_stderr(form, "debug")
    log.debug("ours")
    logging.getLogger("httpx2").setLevel(logging.DEBUG)
    logging.getLogger("httpx2").debug("whole messages")
    logging.getLogger("httpx2").warning("theirs")
    told = capsys.readouterr().err
    assert ("ours" in told, "theirs" in told, "whole" in told) == (True, True, False)


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    "secret",
    [
        "Bearer abcdefgh12345678",
        "ghp_0123456789abcdefghij0123456789abcdef",
        "https://ann:hunter2hunter2@host/",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    ],
)
def test_what_tells_itself_as_a_secret_is_not_shown(form: Any, secret: str, capsys: Any) -> None:
    log_to_stderr(form)
    log.warning("refused with %s; try again", secret)
    try:
        raise ValueError(f"no {secret}")
    except ValueError:
        log.exception("it failed")
    told = capsys.readouterr().err
    assert told.count("[redacted]") == 2
    assert not [part for part in ("abcdefgh", "0123456789", "hunter2", "c2lnbmF0dXJl") if part in told]


def test_what_is_of_a_call_says_of_which(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("json")
    records, client = CallRecords(), ClientConnection()
    records.listen(lambda _: log.warning("over"))
    params = {"name": "x", "_meta": {"traceparent": TRACE}}
    begun = records.begin(Request("tools/call", params, 1, client, client.channel))
    assert begun is not None
    id = ToolId.parse("w@1/read@1")
    begun[0].found(Tool(id, Origin("w", "read", "w"), {"name": "read"}), "sha256:1")
    log.warning("busy")
    records.end(*begun)
    told = lines(capsys)
    assert [one["message"] for one in told] == ["busy", "over"]
    assert (told[0]["call"], told[0]["tool"], told[0]["principal"], told[0]["trace"]) == (
        *(1, "w@1/read@1", "local", TRACE),
    )


def test_how_servers_fare_is_an_event_for_machines_and_progress_for_people(capsys: Any) -> None:
    error = UpstreamError(server="w", kind="lost", problem="went", remedy="Look.")
    for form in ("text", "json"):
        log_to_stderr(form)
        log.warning("%s", error)
    (said,) = lines(capsys)
    assert said["message"] == "Server 'w' went. Look."


def say(name: str, at: float) -> None:
    said = {"name": name, "levelno": logging.WARNING, "levelname": "WARNING", "lineno": 7, "msg": "bad", "created": at}
    logging.getLogger(name).handle(logging.makeLogRecord(said))


def test_what_a_server_makes_a_library_say_without_end_is_said_ten_times_a_minute_and_counted(capsys: Any) -> None:
    log_to_stderr("json")
    for number in range(25):
        say("mcp.client.session", number / 10)
        say("truename.gateway", number / 10)
    told = lines(capsys)
    assert Counter(one["logger"] for one in told) == {"mcp.client.session": 10, "truename.gateway": 25}
    for number in range(12):
        say("mcp.client.session", 61 + number)
    assert [one.get("left_out") for one in lines(capsys)] == [15, *[None] * 9]
    log_to_stderr("text")
    for _ in range(12):
        say("mcp.client.session", 0)
    say("mcp.client.session", 60)
    assert capsys.readouterr().err.splitlines()[-1] == "warning: bad (2 more like it were left out)"
