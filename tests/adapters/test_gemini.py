"""Gemini: shapes that the library's own types accept, calls without ids, and answers that are damaged."""

from __future__ import annotations

from typing import Any

import pytest
from google.genai import types

from tests.adapters.model_apis import GEMINI, awkward_catalog
from truename import Catalog, project
from truename.adapters import gemini
from truename.adapters.wire import RefusedCall
from truename.errors import InvalidCall

NAMES = project(Catalog.of("a@1/b@1"), "google-gemini")
CALL: dict[str, Any] = {"id": "c", "name": "a_b", "args": {"q": 1}}


def response(*parts: Any, finish: Any = "STOP", **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}], **more}


def part(**more: Any) -> dict[str, Any]:
    call = {key: value for key, value in {**CALL, **more}.items() if value is not None}
    return {"functionCall": call}


def test_tools_are_what_the_library_knows() -> None:
    (tool,) = gemini.tools(GEMINI.names(awkward_catalog()))

    types.Tool.model_validate(tool)
    assert gemini.tools(project(Catalog.of(), "google-gemini")) == []


@pytest.mark.parametrize(
    ("choice", "mode", "names"),
    [("auto", "AUTO", None), ("none", "NONE", None), ("required", "ANY", None), ("a/b", "ANY", ["a_b"])],
)
def test_choices(choice: str, mode: str, names: list[str] | None) -> None:
    made = types.ToolConfig.model_validate(gemini.tool_choice(choice, NAMES))

    assert made.function_calling_config is not None
    assert made.function_calling_config.mode == mode
    assert made.function_calling_config.allowed_function_names == names


@pytest.mark.parametrize(
    "answer",
    [
        response(part()),
        response({"function_call": CALL}),
        types.GenerateContentResponse.model_validate(response(part())),
        [response({"text": "x"}, finish=""), response(part(), responseId="r")],
        {"role": "model", "candidates": [{"content": {"parts": [part()]}}]},
    ],
)
def test_calls_are_read_in_either_spelling_typed_or_streamed(answer: Any) -> None:
    (call,) = gemini.calls(answer, NAMES)

    assert (call.call_id, dict(call.arguments)) == ("c", {"q": 1})


def test_calls_without_ids_get_some_that_are_the_same_each_time_and_never_go_to_the_api() -> None:
    answer = response({"text": "x"}, part(id=None), part(id=None, args=None), responseId="r1")

    calls = gemini.calls(answer, NAMES)
    other = gemini.calls({**answer, "responseId": "r2"}, NAMES)
    mine = gemini.calls({**answer, "responseId": None}, NAMES, turn="7")

    assert calls == gemini.calls(answer, NAMES)
    assert len({call.call_id for call in (*calls, *other, *mine)}) == 6
    assert "id" not in gemini.result(calls[0], "x")["functionResponse"]
    assert gemini.result(gemini.calls(response(part()), NAMES)[0], "x")["functionResponse"]["id"] == "c"


def test_a_blocked_prompt_has_no_calls() -> None:
    assert gemini.calls({"promptFeedback": {"blockReason": "SAFETY"}}, NAMES) == ()
    assert gemini.calls({"candidates": [{"finishReason": "SAFETY"}]}, NAMES) == ()


WHERE = "candidates[0].content.parts[0].functionCall"


@pytest.mark.parametrize(
    ("answer", "field"),
    [
        (3, "the response"),
        ({}, "candidates"),
        ({"candidates": [{}, {}]}, "candidates"),
        ({"candidates": ["x"]}, "candidates[0]"),
        (response(3), "candidates[0].content.parts[0]"),
        (response({"functionCall": "x"}), WHERE),
        (response(part(name=None)), f"{WHERE}.name"),
        (response(part(name=["a_b"])), f"{WHERE}.name"),
        (response(part(id=12)), f"{WHERE}.id"),
        (response(part(id="")), f"{WHERE}.id"),
        (response(part(id=None)), f"{WHERE}.id"),
        (response(part(args="{}")), f"{WHERE}.args"),
        (response(part(args=[1])), f"{WHERE}.args"),
        (response(part(args={"q": float("inf")})), f"{WHERE}.args.q"),
        (response(part(surprise=1)), f"{WHERE}.surprise"),
        (response(part(willContinue=True)), f"{WHERE}.partialArgs"),
        (response(part(), part()), "candidates[0].content.parts[1].functionCall.id"),
        (response(part(), finish="MAX_TOKENS"), f"{WHERE}.args"),
        ([response(part(), finish="")], "candidates"),
        ([response(part()), {"candidates": [{}, {}]}], "responses[1].candidates"),
        (response(part(), finish=[1]), "candidates[0].finishReason"),
        (["x"], "responses[0]"),
    ],
)
def test_a_damaged_answer_is_refused_with_the_field_that_is_wrong(answer: Any, field: str) -> None:
    with pytest.raises(InvalidCall) as caught:
        gemini.calls(answer, NAMES)

    assert caught.value.field == field


def test_results_are_output_or_error_and_images_stand_beside_them() -> None:
    (call,) = gemini.calls(response(part()), NAMES)
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}

    made = [
        gemini.result(call, {"degrees": 1}),
        gemini.result(call, "no", is_error=True),
        gemini.result(call, [image, {"type": "text", "text": "b"}]),
        gemini.result(
            RefusedCall(call_id="d", wire_name="x", namespace=None, error=InvalidCall(field="a", problem="b"))
        ),
    ]

    GEMINI.accepts([{"role": "user", "parts": made}])
    assert [one["functionResponse"]["response"] for one in made] == [
        {"output": {"degrees": 1}},
        {"error": "no"},
        {"output": "b"},
        {"output": ""},
    ]
