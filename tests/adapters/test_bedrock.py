"""Amazon Bedrock Converse: shapes that botocore's own model accepts, and answers that are damaged."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.bedrock_endpoint import accepts_bedrock, accepts_tool_config
from tests.adapters.model_apis import BEDROCK, awkward_catalog
from truename import Catalog, project
from truename.adapters import bedrock
from truename.errors import InvalidCall, InvalidPayload

NAMES = project(Catalog.of("a@1/b@1"), "bedrock-converse")
USE: dict[str, Any] = {"toolUseId": "t1", "name": "a_b", "input": {"q": 1}}


def answer(*uses: Any, stop: Any = "tool_use") -> dict[str, Any]:
    content = [{"toolUse": use} for use in uses]
    return {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": stop}


@pytest.mark.parametrize("dialect", ["bedrock-converse", "bedrock-nova", "universal"])
def test_tools_are_what_the_service_s_model_knows(dialect: str) -> None:
    names = project(awkward_catalog(), dialect)

    accepts_tool_config({"tools": bedrock.tools(names), "toolChoice": bedrock.tool_choice("required", names)})
    accepts_tool_config({"tools": bedrock.tools(NAMES), "toolChoice": bedrock.tool_choice("a/b", NAMES)})


def test_there_is_no_choice_of_none() -> None:
    assert bedrock.tool_choice("auto", NAMES) == {"auto": {}}
    with pytest.raises(InvalidPayload, match="omit toolConfig"):
        bedrock.tool_choice("none", NAMES)


def test_a_message_alone_is_read_and_what_the_service_runs_itself_is_no_call() -> None:
    served = {**USE, "toolUseId": "t2", "type": "server_tool_use"}
    message = answer(USE, served)["output"]["message"]

    assert [call.call_id for call in bedrock.calls(message, NAMES)] == ["t1"]


WHERE = "output.message.content[0].toolUse"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (3, "the response"),
        ({}, "output"),
        ({"output": {}}, "output.message"),
        ({"output": {"message": {}}}, "output.message.content"),
        ({"content": "x"}, "content"),
        (answer("x"), WHERE),
        (answer(None), WHERE),
        (answer({**USE, "toolUseId": 3}), f"{WHERE}.toolUseId"),
        (answer({**USE, "name": None}), f"{WHERE}.name"),
        (answer({**USE, "input": None}), f"{WHERE}.input"),
        (answer({**USE, "input": "{}"}), f"{WHERE}.input"),
        (answer({**USE, "input": {"q": {1: 2}}}), f"{WHERE}.input.q"),
        (answer({**USE, "surprise": 1}), f"{WHERE}.surprise"),
        (answer(USE, USE), "output.message.content[1].toolUse.toolUseId"),
        (answer(USE, stop="max_tokens"), f"{WHERE}.input"),
        (answer(USE, stop=[]), "stopReason"),
    ],
)
def test_a_damaged_answer_is_refused_with_the_field_that_is_wrong(given: Any, field: str) -> None:
    with pytest.raises(InvalidCall) as caught:
        bedrock.calls(given, NAMES)

    assert caught.value.field == field


START = {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "t1", "name": "a_b"}}}}
STOP = {"contentBlockStop": {"contentBlockIndex": 0}}
END = {"messageStop": {"stopReason": "tool_use"}}


def delta(text: Any, place: int = 0) -> dict[str, Any]:
    return {"contentBlockDelta": {"contentBlockIndex": place, "delta": {"toolUse": {"input": text}}}}


@pytest.mark.parametrize(
    ("stream", "field"),
    [
        ([START, delta("{}")], "events"),
        ([START, delta("{}"), STOP], "events"),
        ([START, delta("{"), STOP, END], f"{WHERE}.input"),
        ([START, delta(3)], "events[1].contentBlockDelta.delta.toolUse.input"),
        ([START, delta("{}", 1)], "arguments"),
        ([START, START], "events[1].contentBlockStart.start.toolUse"),
        ([{"contentBlockStart": {"start": {"toolUse": {}}}}], "events[0].contentBlockStart.contentBlockIndex"),
        ([START, STOP, {"messageStop": {"stopReason": 3}}], "events[2].messageStop.stopReason"),
        (["x"], "events[0]"),
    ],
)
def test_a_stream_that_is_cut_or_contradicts_itself_is_no_call(stream: list[Any], field: str) -> None:
    for given in (stream, {"stream": stream}):
        with pytest.raises(InvalidCall) as caught:
            bedrock.calls(given, NAMES)
        assert caught.value.field == field


def test_results_carry_texts_json_images_and_the_failure() -> None:
    (call,) = bedrock.calls(answer(USE), NAMES)
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}

    made = [
        bedrock.result(call, {"n": 1}),
        bedrock.result(call, [1], is_error=True),
        bedrock.result(call, [image, {"type": "text", "text": "b"}]),
        bedrock.result(call),
    ]

    accepts_bedrock([{"role": "user", "content": made}])
    BEDROCK.accepts([{"role": "user", "content": made}])
    assert made[1]["toolResult"]["status"] == "error"
    for wrong in ({**image, "data": "?"}, {**image, "mimeType": "image/tiff"}):
        with pytest.raises(InvalidPayload, match="not an image"):
            bedrock.result(call, [wrong])
