"""Questions in the streams of calls over HTTP: each belongs to the call in whose stream it came."""

from __future__ import annotations

import json

from truename.gateway.questions.origins import NOBODYS, RequestOrigins


def question(number: int, method: str = "elicitation/create") -> bytes:
    return b"data: " + json.dumps({"jsonrpc": "2.0", "id": number, "method": method}).encode() + b"\n\n"


def test_a_question_belongs_to_the_call_of_its_stream() -> None:
    origins = RequestOrigins()
    first, second = origins.watch(101), origins.watch(102)
    first(question(1))
    second(question(2))
    assert (origins.of(2), origins.of(1), origins.of(1)) == (102, 101, None)
    second(question(1))
    assert origins.of(1) == 102


def test_questions_of_two_calls_with_one_number_at_once_are_nobodys() -> None:
    origins = RequestOrigins()
    origins.watch(101)(question(1))
    origins.watch(102)(question(1))
    assert (origins.of(1), origins.of(1), origins.of(1)) == (NOBODYS, NOBODYS, None)
    origins.watch(102)(question(1))
    assert origins.of(1) == 102


def test_what_is_no_question_takes_no_number() -> None:
    origins = RequestOrigins()
    origins.watch(101)(question(1, "ping"))
    origins.watch(102)(question(1))
    assert origins.of(1) == 102
