"""The suite's tools and the prompt that ask the client something: name, question, what is made of the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.conformance.dialogues import Answers, Dialogue, Round, answer_text, elicit, roots, sample

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["ASKING_PROMPTS", "ASKING_TOOLS"]

_TEXT: Final = {"type": "string"}
_FLAG: Final = {"type": "boolean"}


def _always(*rounds: Round) -> Callable[[Mapping[str, Any]], tuple[Round, ...]]:
    return lambda _: rounds


def _after(words: str) -> Callable[[Answers], str]:
    return lambda answers: words + "; ".join(map(answer_text, answers.values()))


def _welcome(answers: Answers) -> str:
    return f"Hello, {(answers['user_name'].get('content') or {}).get('name', 'whoever you are')}!"


def _one_question(words: str, key: str) -> Callable[[Mapping[str, Any]], tuple[Round, ...]]:
    user = {"username": {**_TEXT, "description": "User's response"}, "email": {**_TEXT, "description": "User's email"}}

    def ask(arguments: Mapping[str, Any]) -> tuple[Round, ...]:
        said = str(arguments.get(key, words))
        return ({"answer": sample(said) if key == "prompt" else elicit(said, ("username", "email"), **user)},)

    return ask


_DEFAULTS: Final = elicit(
    "Please look at these settings.",
    name={**_TEXT, "default": "John Doe"},
    age={"type": "integer", "default": 30},
    score={"type": "number", "default": 95.5},
    status={**_TEXT, "enum": ["active", "inactive", "pending"], "default": "active"},
    verified={**_FLAG, "default": True},
)


def _titled(*titles: str) -> list[dict[str, str]]:
    return [{"const": f"value{number}", "title": title} for number, title in enumerate(titles, 1)]


_PLAIN: Final = {**_TEXT, "enum": ["option1", "option2", "option3"]}
_ENUMS: Final = elicit(
    "Please choose.",
    untitledSingle=_PLAIN,
    titledSingle={**_TEXT, "oneOf": _titled("First Option", "Second Option", "Third Option")},
    legacyEnum={
        **_TEXT,
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti={"type": "array", "items": _PLAIN},
    titledMulti={"type": "array", "items": {"anyOf": _titled("First Choice", "Second Choice", "Third Choice")}},
)

_NAME: Final = elicit("What is your name?", ("name",), name=_TEXT)
_OK: Final = elicit("Please confirm", ("ok",), ok=_FLAG)
_CAPITAL: Final = sample("What is the capital of France?")

ASKING_TOOLS: Final[Mapping[str, Dialogue]] = {
    "test_sampling": Dialogue(_one_question("Say something.", "prompt"), _after("LLM response: ")),
    "test_elicitation": Dialogue(_one_question("Who are you?", "message"), _after("User response: ")),
    "test_elicitation_sep1034_defaults": Dialogue(_always({"settings": _DEFAULTS}), _after("Elicitation completed: ")),
    "test_elicitation_sep1330_enums": Dialogue(_always({"choices": _ENUMS}), _after("Elicitation completed: ")),
    "test_missing_capability": Dialogue(_always({"needed": sample("Are you there?")}), _after("LLM response: ")),
    "test_streaming_elicitation": Dialogue(_always({"confirm": _OK}), _after("User response: ")),
    "test_input_required_result_elicitation": Dialogue(_always({"user_name": _NAME}), _welcome),
    "test_input_required_result_sampling": Dialogue(_always({"capital_question": _CAPITAL}), _after("LLM response: ")),
    "test_input_required_result_list_roots": Dialogue(_always({"client_roots": roots()}), _after("Roots: ")),
    "test_input_required_result_request_state": Dialogue(_always({"confirm": _OK}), _after("state-ok: "), state=True),
    "test_input_required_result_multiple_inputs": Dialogue(
        _always({"user_name": _NAME, "greeting": sample("Generate a greeting", 50), "client_roots": roots()}),
        _after("All answered: "),
        state=True,
    ),
    "test_input_required_result_multi_round": Dialogue(
        _always(
            {"step1": elicit("Step 1: What is your name?", ("name",), name=_TEXT)},
            {"step2": elicit("Step 2: What is your favorite color?", ("color",), color=_TEXT)},
        ),
        _after("Both answered: "),
        state=True,
    ),
    "test_input_required_result_tampered_state": Dialogue(_always({"confirm": _OK}), _after("state-ok: "), state=True),
    "test_input_required_result_capabilities": Dialogue(
        _always({"user_name": _NAME, "capital_question": _CAPITAL, "client_roots": roots()}), _after("Answered: ")
    ),
}

ASKING_PROMPTS: Final[Mapping[str, Dialogue]] = {
    "test_input_required_result_prompt": Dialogue(
        _always({"user_context": elicit("What context should the prompt use?", ("context",), context=_TEXT)}),
        _after("Please go on with this context: "),
    ),
}
