"""How a model gets at the tools of a client: at once, or by the search that some clients put in front of them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lab.model.turn import Offered, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lab.model.script import Approach
    from lab.model.turn import Turn

__all__ = ["APPROACHES", "Bridged", "Coding", "Direct", "Searching", "Selecting", "approach"]


class Direct:
    """All tools are offered in the request."""

    def concerns(self, turn: Turn) -> bool:
        """Say whether a server's tool is offered."""
        return bool(self.offered(turn))

    def opening(self, turn: Turn) -> Sequence[Step]:  # noqa: ARG002 - nothing is hidden here
        """Return nothing: the tools are in sight."""
        return ()

    def offered(self, turn: Turn) -> Sequence[Offered]:
        """Return the tools that carry a mark."""
        return [tool for tool in turn.tools if tool.mark is not None]

    def call(self, step: Step) -> Step:
        """Return the step itself."""
        return step


class Selecting(Direct):
    """The request lists names only; a search tool is asked for some of them (Claude Code).

    ``tool`` is the search tool, ``names`` how a listed name looks, ``most`` how many are asked for at a time.
    """

    def __init__(self, tool: str, names: str, most: int) -> None:
        self._tool, self._names, self._most = tool, re.compile(names, re.MULTILINE), most

    def concerns(self, turn: Turn) -> bool:
        """Say whether the search tool and at least one listed name are there, or a tool that needs no search."""
        if any(tool.mark is not None for tool in turn.tools):
            return True
        return any(tool.name == self._tool for tool in turn.tools) and bool(self._listed(turn))

    def opening(self, turn: Turn) -> Sequence[Step]:
        """Return searches for all the names that are listed."""
        listed = self._listed(turn)
        return [
            Step(name=self._tool, arguments={"query": "select:" + ",".join(some), "max_results": len(some)})
            for some in (listed[start : start + self._most] for start in range(0, len(listed), self._most))
        ]

    def _listed(self, turn: Turn) -> list[str]:
        return list(dict.fromkeys(self._names.findall(turn.text)))


class Bridged(Selecting):
    """As `Selecting`, but what the search finds stays hidden: it is called through one more tool (Qwen Code)."""

    _LISTED: Final = re.compile(r'^- "([^"]+)": "(\[lab:\d+\])', re.MULTILINE)
    _FOUND: Final = re.compile(r'\{"name":"([^"]+)","description":"(\[lab:\d+\])')

    def offered(self, turn: Turn) -> Sequence[Offered]:
        """Return what was listed with a description, and what the searches told."""
        pairs = self._LISTED.findall(turn.text)
        pairs += [pair for result in turn.results for pair in self._FOUND.findall(result)]
        return [Offered(name=name, description=mark) for name, mark in pairs]

    def call(self, step: Step) -> Step:
        """Return the call of the tool that calls tools."""
        inner = step.arguments or {"q": "kNUMBER"}
        return replace(step, name="tool_call", arguments={"name": step.name, "arguments": inner}, means=step.shown)


class Searching(Direct):
    """Nothing is listed; the client runs the model's search over descriptions (Codex with models that it knows)."""

    def concerns(self, turn: Turn) -> bool:
        """Say whether the search is offered."""
        return any(tool.name == "tool_search" for tool in turn.tools)

    def opening(self, turn: Turn) -> Sequence[Step]:  # noqa: ARG002 - nothing is listed
        """Return one search for the word that all descriptions have."""
        return [Step(kind="search", name="tool_search", arguments={"query": "awkward tool", "limit": 1000})]


class Coding(Direct):
    """The model writes programs that call the tools (Codex's code mode)."""

    # What a program prints is cut when it is long, so the list comes in pieces.
    _PIECE: Final = 40
    _PIECES: Final = 8
    _LISTING: Final = (
        "text(JSON.stringify(ALL_TOOLS.map(t => [t.name, (t.description.match(/\\[lab:\\d+\\]/) || [])[0]])"
        ".filter(t => t[1]).slice({}, {})))"
    )

    def concerns(self, turn: Turn) -> bool:
        """Say whether programs can be run."""
        return any(tool.name == "exec" for tool in turn.tools)

    def opening(self, turn: Turn) -> Sequence[Step]:  # noqa: ARG002 - nothing is listed
        """Return the programs that list the tools."""
        starts = range(0, self._PIECES * self._PIECE, self._PIECE)
        codes = [self._LISTING.format(start, start + self._PIECE) for start in starts]
        return [Step(kind="code", name="exec", code=code) for code in codes]

    def offered(self, turn: Turn) -> Sequence[Offered]:
        """Return what the first programs printed."""
        texts = [text[text.find("[[") :] for text in turn.results[: self._PIECES] if "[[" in text]
        listed = [pair for text in texts for pair in json.JSONDecoder().raw_decode(text)[0]]
        return [Offered(name=name, description=mark) for name, mark in listed]

    def call(self, step: Step) -> Step:
        """Return the program that calls the tool; ``NUMBER`` becomes the step's number when it is known."""
        arguments = json.dumps(step.arguments) if step.arguments else "{q: 'kNUMBER'}"
        code = f"text(await tools[{json.dumps(step.name)}]({arguments}))"
        return replace(step, kind="code", name="exec", namespace=None, code=code, means=step.shown)


APPROACHES: Final[Mapping[str, Callable[[], Approach]]] = {
    "direct": Direct,
    "claude-search": lambda: Selecting("ToolSearch", r"^(mcp__\S+)$", 50),
    "qwen-search": lambda: Bridged("tool_search", r'^- "(mcp__[^"]+)"', 20),
    "codex-search": Searching,
    "codex-code": Coding,
}


def approach(name: str) -> Approach:
    """Return the approach of a client's row."""
    return APPROACHES[name]()
