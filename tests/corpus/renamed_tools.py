"""Real servers of which a fifth of the tools is renamed, and edited, in several ways."""

from __future__ import annotations

import copy
import random
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.corpus.collection import catalogues
from truename.naming.words import words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["RENAMED", "at_random", "described", "renamed", "servers", "untouched", "widened"]

VERBS = {"get": "fetch", "list": "enumerate", "create": "add", "delete": "remove", "update": "modify", "search": "find"}
# How a tool is renamed, and the share of such tools, also edited, whose new name is found.
RENAMED: dict[str, tuple[Callable[[str], str], float]] = {
    "another style": (lambda name: "-".join(words(name)) + "-x", 0.99),
    "a prefix": (lambda name: f"acme_{name}", 0.99),
    "another verb": (lambda name: "_".join(VERBS.get(word, word) for word in words(name)) + "_v2", 0.99),
    "the first word gone": (lambda name: "_".join((*words(name)[1:], "now")), 0.97),
    "nothing in common": (lambda name: f"zulu_{hash_of(name)}", 0.8),
}


def hash_of(text: str) -> int:
    return random.Random(text).randrange(10**9)


def snake(name: str) -> str:
    return "_".join(words(name))


def camel(name: str) -> str:
    first, *others = words(name) or [name]
    return first + "".join(word.capitalize() for word in others)


# Ways in which real releases renamed tools; of each rename one is drawn, for some two.
HABITS: Sequence[Callable[[str], str]] = (
    lambda name: f"acme_{snake(name)}",
    lambda name: f"{camel(name)}Tool",
    camel,
    snake,
    lambda name: "_".join(VERBS.get(word, word) for word in words(name)),
    lambda name: snake(name) + ("" if name.endswith("s") else "s"),
    lambda name: snake(name).removesuffix("s"),
    lambda name: "_".join((*words(name)[1:], *words(name)[:1])),
    lambda name: snake(name).replace("_", "-"),
    lambda name: f"{snake(name)}_v2",
    lambda name: ".".join(words(name)),
)


def at_random(name: str) -> str:
    """Return a name as a release could have changed it: in one or two ways, and always another one."""
    chance = random.Random(name)
    found = name
    for habit in chance.sample(HABITS, chance.choice((1, 2))):
        found = habit(found)
    return found if found not in {name, ""} else f"acme_{name}"


RENAMED["at random, as people do"] = (at_random, 0.95)


@cache
def servers() -> list[list[dict[str, Any]]]:
    """Return the tools of up to 150 real servers that have some, each name once."""
    listed = [row["tools"] for row in catalogues()]
    unique = [list({tool["name"]: tool for tool in tools}.values()) for tools in listed]
    some = [tools for tools in unique if 4 <= len(tools) <= 120]
    return random.Random(5).sample(some, min(150, len(some)))


def described(tool: dict[str, Any]) -> None:
    tool["description"] = f"Now with more care. {tool.get('description') or ''}"


def widened(tool: dict[str, Any]) -> None:
    schema = tool["inputSchema"] = dict(tool.get("inputSchema") or {"type": "object"})
    properties = schema.get("properties")
    schema["properties"] = {**(properties if isinstance(properties, dict) else {}), "zz_more": {"type": "string"}}


def untouched(tool: dict[str, Any]) -> None:
    pass


def renamed(
    tools: Sequence[dict[str, Any]], new_name: Callable[[str], str], edit: Callable[[dict[str, Any]], None]
) -> tuple[list[dict[str, Any]], set[tuple[str, str]]]:
    """Return a list of which a fifth was renamed and edited, and the true pairs."""
    chance = random.Random(len(tools))
    taken = {tool["name"] for tool in tools}
    new, truth = copy.deepcopy(list(tools)), set()
    for tool in chance.sample(new, max(1, len(new) // 5)):
        name = new_name(tool["name"])
        if name not in taken:
            taken.add(name)
            truth.add((tool["name"], name))
            tool["name"] = name
            edit(tool)
    return new, truth
