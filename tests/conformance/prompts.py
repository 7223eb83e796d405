"""The suite's prompts, and what completes their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from mcp_types import ContentBlock, Prompt, PromptArgument, PromptMessage

from tests.conformance.contents import embedded, picture, text

__all__ = ["PROMPTS", "completed", "described", "said"]

Arguments = Mapping[str, str]

_ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
}
_WORDS: Final = ("paris", "park", "party", "test", "testing", "text")


def _simple(_: Arguments) -> tuple[ContentBlock, ...]:
    return (text("This is a simple prompt for testing."),)


def _with_arguments(arguments: Arguments) -> tuple[ContentBlock, ...]:
    return (text(f"Prompt with arguments: arg1='{arguments.get('arg1')}', arg2='{arguments.get('arg2')}'"),)


def _with_resource(arguments: Arguments) -> tuple[ContentBlock, ...]:
    resource = embedded(arguments.get("resourceUri", "test://none"), "Embedded resource content for testing.")
    return resource, text("Please process the embedded resource above.")


def _with_image(_: Arguments) -> tuple[ContentBlock, ...]:
    return picture(), text("Please analyze the image above.")


PROMPTS: Final[Mapping[str, Callable[[Arguments], tuple[ContentBlock, ...]]]] = {
    "test_simple_prompt": _simple,
    "test_prompt_with_arguments": _with_arguments,
    "test_prompt_with_embedded_resource": _with_resource,
    "test_prompt_with_image": _with_image,
}


def described(name: str) -> Prompt:
    arguments = [PromptArgument(name=one, required=True) for one in _ARGUMENTS.get(name, ())]
    return Prompt(name=name, description=f"Is what the suite calls {name}.", arguments=arguments)


def said(*content: ContentBlock) -> list[PromptMessage]:
    return [PromptMessage(role="user", content=block) for block in content]


def completed(beginning: str) -> list[str]:
    return [word for word in _WORDS if word.startswith(beginning)]
