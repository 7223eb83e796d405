"""The golden run: what 10,000 requests led to before the gateway was written anew, and what they lead to now.

The record (`tests/data/golden_run.jsonl.gz`) was made by the gateway of commit 8f88117. Each difference is one that the
CHANGELOG says (`MEANT`), or a defect. A tenth is run here; ``make golden`` runs all.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

import truename
from tests.support.golden_request_tables import GATEWAYS
from tests.support.golden_run import Golden, digest_of, drawn, played, read_record

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.golden_requests import Step

Answer = dict[str, Any]

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

SHARE: Final = float(os.environ.get("TRUENAME_GOLDEN", "0.1"))
SRC: Final = Path(truename.__file__).parents[1]
CHANGELOG: Final = Path("CHANGELOG.md")


def _errors(answer: Answer) -> list[dict[str, Any]]:
    """Return the errors that an answer consists of; none where it has anything else."""
    messages = [_json(text) for text in answer["messages"]]
    errors = [one["error"] for one in messages if isinstance(one, dict) and isinstance(one.get("error"), dict)]
    return errors if len(errors) == len(messages) else []


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _code(answer: Answer) -> Any:
    errors = _errors(answer)
    return errors[0]["code"] if len(errors) == 1 else None


def _text(answer: Answer) -> str:
    return "".join(answer["messages"])


def _changed(old: Answer, new: Answer) -> set[str]:
    return {key for key in {*old, *new} if old.get(key) != new.get(key)}


def _is_stateless(step: Step) -> bool:
    version = dict(step.headers).get("mcp-protocol-version", "").strip()
    return version not in {"", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}


@dataclass(frozen=True)
class Meant:
    """A difference that is meant: why, in the words of the CHANGELOG, and which members of an answer it explains."""

    reason: str
    words: str
    explains: Callable[[Step, Answer, Answer], frozenset[str]]


_NOTHING: Final[frozenset[str]] = frozenset()
_ALL: Final = frozenset({"status", "type", "messages", "received", "audit", "recorded", "has_session"})


def _one_body(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    is_one = len(new["messages"]) == 1 and new.get("type") == "application/json"
    is_so = is_one and old.get("type") == "text/event-stream" and not _is_stateless(step)
    return frozenset({"type"}) if is_so else _NOTHING


def _no_body(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    is_ended = step.verb == "DELETE" and new.get("status") == 200
    is_so = (new.get("status") == 202 or is_ended) and not new.get("type") and not new["messages"]
    is_text = not old.get("type") and new.get("type") == "text/plain" and new.get("status") in {400, 413}
    return frozenset({"type"}) if (is_so or is_text) and old.get("status") == new.get("status") else _NOTHING


def _own_words(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    codes = {_code(old), _code(new)}
    is_so = _is_stateless(step) and len(codes) == 1 and codes <= {-32020, -32602} and old["status"] == new["status"]
    return frozenset({"messages"}) if is_so else _NOTHING


def _no_json(_: Step, old: Answer, new: Answer) -> frozenset[str]:
    is_so = _code(old) == _code(new) == -32700 and old["status"] == new["status"]
    return frozenset({"messages"}) if is_so else _NOTHING


def _numbers(_: Step, old: Answer, new: Answer) -> frozenset[str]:
    """Explain what is equal once numbers are read."""
    found = set()
    for key in ("messages", "received"):
        pairs = list(zip(old.get(key, []), new.get(key, []), strict=False))
        is_whole = len(old.get(key, [])) == len(new.get(key, []))
        if is_whole and all(_read(one) == _read(other) for one, other in pairs):
            found.add(key)
    return frozenset(found)


def _read(text: str) -> Any:
    content = _json(text)
    if isinstance(content, dict) and isinstance(content.get("arguments"), str):
        content["arguments"] = json.loads(content["arguments"], object_pairs_hook=list)
    return content


def _no_session_named(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    is_so = new.get("status") in {400, 405, 406} and not new.get("has_session")
    is_so = is_so and (new["status"] != 405 or "mcp-session-id" not in dict(step.headers))
    return frozenset({"has_session"}) if is_so else _NOTHING


def _says(step: Step, *parts: bytes) -> bool:
    return any(part in step.body for part in parts)


def _id_that_is_none(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    odd = rb'"id":(null|true|false|-?\d+\.\d+|\d+e\d+|\[|\{)'
    is_so = (
        re.search(odd, step.body) and _code(new) == -32600 and (new["status"] == 400 or step.about.startswith("line"))
    )
    return frozenset({"status", "type", "messages"}) if is_so and not _ran(new) else _NOTHING


def _ran(answer: Answer) -> bool:
    return bool(answer.get("received"))


def _no_message(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    is_so = _code(new) == -32600 and _code(old) == -32602 and "no" in _text(new)
    return frozenset({"messages"}) if is_so and old["status"] == new["status"] else _NOTHING


def _two_in_one(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    message = _json(step.body.decode("utf-8", "replace"))
    is_both = isinstance(message, dict) and "method" in message and message.keys() & {"result", "error"}
    is_refused = _code(new) == -32600 or (step.about.startswith("line") and not new["messages"])
    return _ALL if is_both and is_refused and not _ran(new) else _NOTHING


def _true_token(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    is_so = _says(step, b'"progressToken": true') and _code(new) == -32602 and not _ran(new)
    return _ALL if is_so else _NOTHING


def _null_token(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    is_so = _says(step, b'"progressToken": null') and _code(old) == -32602 and not _ran(old)
    return _ALL if is_so else _NOTHING


_TWICE: Final = (b'"text":"a","text":"b"', b'{"x":1,"x":2}', b'"\\u0061":1,"a":2', b'"arguments":{},"arguments"')


def _twice_refused(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    is_so = "twice" in _text(new) and "invalid_call" in _text(new) and not _ran(new)
    # Who cannot be told what the arguments are does not read them out for the audit log either.
    is_odd = _says(step, *_TWICE) and _code(old) == _code(new) == -32602 and not _ran(old)
    found = {"messages", "received", "audit", "recorded"} if is_so else {"audit"} if is_odd else _NOTHING
    return frozenset(found)


def _twice_passed(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    is_so = _says(step, *_TWICE) and _ran(new) and _ran(old) and _code(new) == _code(old)
    return frozenset({"received"}) if is_so else _NOTHING


def _beyond_all(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    return frozenset({"received", "messages", "status"}) if _says(step, b"1e999") and _ran(new) else _NOTHING


def _cancelled(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    is_so = step.is_cancelled and _code(new) == -32800 and "held" in _text(old)
    return frozenset({"messages", "audit"}) if is_so else _NOTHING


def _probes(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    is_probe = step.path in {"/healthz", "/readyz", "/metrics"} and step.verb not in {"GET", "HEAD"}
    is_so = is_probe and new["status"] == 405 and new.get("allow") == "GET, HEAD"
    return frozenset({"status", "allow", "messages", "type"}) if is_so else _NOTHING


def _body_first(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    is_so = old.get("status") == 404 and "Session not found" in _text(old) and _code(new) in {-32700, -32600}
    return frozenset({"status", "messages"}) if is_so and new["status"] == 400 else _NOTHING


def _twice_in_result(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    is_so = "a result in which the key 'content' occurs twice" in _text(new) and "second" in _text(old)
    return frozenset({"messages", "audit"}) if is_so else _NOTHING


def _both_in_response(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    is_so = _code(old) == 1 and any('"params": {"name": "both"}' in one for one in new.get("received", ()))
    return frozenset({"messages", "audit"}) if is_so and old.get("received") == new["received"] else _NOTHING


def _media_type(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    kind = dict(step.headers).get("content-type")
    is_taken = kind == "APPLICATION/JSON" and old.get("status") == 415
    is_refused = kind == "application/jsonx" and new.get("status") == 400 and not _ran(new)
    return _ALL if is_taken or is_refused else _NOTHING


def _half_of_a_character(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    is_half = step.body.startswith(b"\xef\xbb\xbf") or re.search(rb"\\ud83d(?!\\ude80)", step.body) is not None
    is_so = is_half and _is_stateless(step) and _code(new) == -32700 and new["status"] == 400
    return _ALL if is_so and not _ran(new) and not _ran(old) else _NOTHING


def _method_with_a_blank(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    is_so = "LocalProtocolError: Illegal header value" in _text(old) and _code(new) == -32601
    return frozenset({"messages", "received"}) if is_so else _NOTHING


def _exception(_: Step, old: Answer, new: Answer) -> frozenset[str]:
    is_so = "argument of type 'int' is not iterable" in _text(old) and _code(new) == -32603
    return frozenset({"messages"}) if is_so else _NOTHING


def _said_again(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    def without_capabilities(received: str) -> Any:
        said = json.loads(received)
        (said.get("meta") or {}).pop("io.modelcontextprotocol/clientCapabilities", None)
        return said

    before, now = (list(map(without_capabilities, answer.get("received", ()))) for answer in (old, new))
    return frozenset({"received"}) if step.about.startswith("line") and before == now else _NOTHING


def _asked_before(step: Step, old: Answer, new: Answer) -> frozenset[str]:
    """Explain that nobody is asked again: a call with a null token had asked, which was none before."""
    first, *rest = old.get("audit", [""])
    is_so = rest == new.get("audit") and '"kind": "approval"' in first and '"what": "asked"' in first
    return frozenset({"audit"}) if is_so and step.about.startswith("line") else _NOTHING


def _counted(_: Step, old: Answer, new: Answer) -> frozenset[str]:
    """Explain how often in a minute a wrong name was called: it depends on how fast the run is."""
    code = re.compile(r'"dev\.truename/error":"(\w+)"')
    told = (_text(old), _text(new))
    is_so = any("times. Do not repeat this call" in one for one in told)
    return frozenset({"messages"}) if is_so and code.findall(told[0]) == code.findall(told[1]) else _NOTHING


def _lacking_field(_: Step, old: Answer, new: Answer) -> frozenset[str]:
    """Explain a refusal that names the missing field alone."""
    short = [
        text.replace("this session has no platform or app", "this session has no platform") for text in old["messages"]
    ]
    return frozenset({"messages"}) if short != old["messages"] and short == new["messages"] else _NOTHING


MEANT: Final[tuple[Meant, ...]] = (
    Meant(
        "In a session, an answer that comes first is one JSON body.",
        "an answer that comes within 0.1 s and before anything else is one JSON body, not a stream",
        _one_body,
    ),
    Meant(
        "The type of a body is named where there is one.",
        "HTTP 202 and the end of a session name no type of a body, and a plain text does",
        _no_body,
    ),
    Meant(
        "The words are the gateway's own, the codes those of before.",
        "Errors about headers and `_meta` of 2026-07-28 have our own words and the same codes",
        _own_words,
    ),
    Meant(
        "Another parser reads what clients send.",
        "A parse error (-32700) says in other words where a text is no JSON",
        _no_json,
    ),
    Meant(
        "A number is written as it came.",
        "`1.0` stays `1.0` and a line break becomes a blank, in results too",
        _numbers,
    ),
    Meant(
        "What is refused begins no session, and is of none.",
        "HTTP 400 and 406 name no session, and HTTP 405 none that was not named",
        _no_session_named,
    ),
    Meant(
        "Such an id had made a notification of a request.",
        "A request whose `id` is null, a fraction, true or a list is refused with HTTP 400 and -32600",
        _id_that_is_none,
    ),
    Meant(
        "What is no message has the code of that.",
        "A body that is no JSON-RPC message has -32600 and a plain text instead of -32602 and pydantic's",
        _no_message,
    ),
    Meant(
        "It could be read in two ways.", "A message that is a request and a response at once is refused", _two_in_one
    ),
    Meant("Python takes true for 1.", "`true` is no progress token", _true_token),
    Meant("Null is nothing.", "A progress token that is null is none", _null_token),
    Meant(
        "Each reader could take another of the two.",
        "Where something depends on them, a key that stands twice refuses the call",
        _twice_refused,
    ),
    Meant(
        "Where nothing depends on arguments they pass as they came.",
        "Arguments pass as the bytes that came",
        _twice_passed,
    ),
    Meant(
        "The server judges numbers that nobody else reads.",
        "a number beyond all numbers (`1e999`) is the server's to judge",
        _beyond_all,
    ),
    Meant(
        "A client that cancels waits for nothing.",
        "A call that its client cancels is answered without waiting for its server",
        _cancelled,
    ),
    Meant(
        "Probes are read.",
        "`/healthz`, `/readyz` and `/metrics` answer GET and HEAD, and other methods with 405",
        _probes,
    ),
    Meant(
        "What cannot be read is refused before its session is looked for.",
        "before its session is looked for",
        _body_first,
    ),
    Meant(
        "A result with two contents would be two results.",
        "a member of a tool's result that stands twice is a violation of the protocol",
        _twice_in_result,
    ),
    Meant(
        "JSON-RPC has no such response; most servers that send one mean its result.",
        "Of a server's response with a result and an error the result counts",
        _both_in_response,
    ),
    Meant(
        "RFC 9110, section 8.3.1.",
        "The media type of a request is compared whole, and without case",
        _media_type,
    ),
    Meant(
        "A server could not be given it as text.",
        "Half of a character (`\\ud83d`) or a byte order mark in a request of 2026-07-28 is a parse error",
        _half_of_a_character,
    ),
    Meant(
        "Any method that servers are asked for can be repeated in a header.",
        "a method that ends with a blank reaches its server",
        _method_with_a_blank,
    ),
    Meant(
        "Its text is the gateway's own affair.",
        "An exception that is not meant for clients has -32603 in all versions",
        _exception,
    ),
    Meant("A client may begin anew.", "what a second `initialize` says counts", _said_again),
    Meant("The session may have an app.", "a refusal names the field that the session lacks", _lacking_field),
    Meant(
        "The person was asked by the call with such a token.", "A progress token that is null is none", _asked_before
    ),
)


def explained(step: Step, old: Answer, new: Answer) -> list[str]:
    """Return the members of an answer that differ, and that nothing explains."""
    left = _changed(old, new) - _counted(step, old, new)
    for meant in MEANT:
        left -= meant.explains(step, old, new)
    return sorted(left)


@pytest.fixture(scope="module")
def golden() -> Golden:
    return read_record()


def test_each_meant_difference_stands_in_the_changelog() -> None:
    told = " ".join(CHANGELOG.read_text(encoding="utf-8").split())
    assert [meant.words for meant in MEANT if meant.words not in told] == []


def test_the_requests_are_those_of_the_record(golden: Golden) -> None:
    drawn_now = {gateway: digest_of(drawn(gateway, golden.surveys[gateway])) for gateway in GATEWAYS}
    assert drawn_now == golden.digests
    assert sum(GATEWAYS.values()) >= 10_000


@pytest.mark.parametrize("gateway", GATEWAYS)
async def test_requests_lead_to_what_they_led_to_before(gateway: str, golden: Golden, tmp_path: Path) -> None:
    requests = drawn(gateway, golden.surveys[gateway], SHARE)
    answers = await played(gateway, requests, SRC, tmp_path)
    end = answers.pop()
    assert end["broken"] == [], "the audit log does not verify"
    before = golden.answers[gateway]
    differing = [
        {
            "request": step,
            "members": left,
            "before": {key: old.get(key) for key in left},
            "now": {key: new.get(key) for key in left},
        }
        for step, old, new in zip(requests, before, answers, strict=False)
        if (left := explained(step, old, new))
    ]
    assert differing[:5] == [], f"{len(differing)} of {len(requests)} differ"
    assert SHARE < 1 or end["audit"] == before[-1]["audit"]
    # Servers are told of calls that their clients cancelled.
    assert end["cancelled"] == sum(_is_cancelled(answer) for answer in answers)


def _is_cancelled(answer: Answer) -> bool:
    return bool(_code(answer) == -32800)
