"""From what was noted on both sides to what can be said: which tool was shown how, and where its calls arrived."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from lab.awkward.answers import LATER
from lab.results import Handshake, Probe, SeenTool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lab.awkward import Received
    from lab.model import Script, Step
    from lab.scenarios import Server

__all__ = ["BASE", "failure_text", "followed", "handshake", "ordered", "probes", "seen_tools"]

# Marks of the n-th server begin at n times this.
BASE: Final = 1000
_LONGEST: Final = 400
_TELLING: Final = re.compile(r"error|exception|invalid|fail|refus|unsupported|unknown", re.IGNORECASE)
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
_PORTS: Final = re.compile(r"(?<=127\.0\.0\.1:)\d+|(?<=localhost:)\d+")
_LONG_IDS: Final = re.compile(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b0x[0-9a-f]{6,}")


def arrivals(servers: Sequence[Server], received: Sequence[Sequence[Received]]) -> dict[int, tuple[str, str]]:
    """Return step number -> (server's key, tool) of all calls that arrived."""
    out: dict[int, tuple[str, str]] = {}
    for server, messages in zip(servers, received, strict=True):
        for one in messages:
            params = one.message.get("params") or {}
            number = _number((params.get("arguments") or {}).get("q"))
            if one.message.get("method") == "tools/call" and number is not None:
                out.setdefault(number, (server.key, str(params.get("name"))))
    return out


def _number(text: Any) -> int | None:
    return int(text[1:]) if isinstance(text, str) and re.fullmatch(r"k\d+", text) else None


def seen_tools(
    servers: Sequence[Server],
    script: Script,
    reached: Mapping[int, tuple[str, str]],
    listed: Mapping[int, str] | None,
) -> tuple[SeenTool, ...]:
    """Return what became of each entry of the servers' lists; ``listed`` are Truename's names, by mark."""
    shown: dict[int, str] = {}
    for offered in script.seen.values():
        shown.setdefault(offered.mark or 0, offered.shown)
    called = {step.mark: step for step in reversed(script.plan) if step.mark is not None}
    there_are = {(server, upstream) for _, server, upstream in _entries(servers)}
    out = []
    for mark, server, upstream in _entries(servers):
        tool = SeenTool(server=server, upstream=upstream, shown=shown.get(mark))
        tool = replace(tool, listed=None if listed is None else listed.get(mark))
        judged = _judged(tool, called.get(mark), script, reached, any_shown=bool(shown))
        # A call that arrives under a name that no server has runs nothing, though it left the client.
        lost = judged.reached is not None and judged.reached not in there_are
        out.append(replace(judged, outcome="unreachable") if lost else judged)
    return tuple(_copies(out))


def _entries(servers: Sequence[Server]) -> Iterator[tuple[int, str, str]]:
    for place, server in enumerate(servers):
        for number, name in enumerate(server.names, 1):
            yield place * BASE + number, server.key, name


def _judged(
    tool: SeenTool, step: Step | None, script: Script, reached: Mapping[int, tuple[str, str]], *, any_shown: bool
) -> SeenTool:
    if tool.shown is None:
        return replace(tool, outcome="missing" if any_shown else "failed")
    if step is not None and step.number in reached:
        there = reached[step.number]
        right = there == (tool.server, tool.upstream)
        return replace(tool, outcome="right") if right else replace(tool, reached=there, outcome="misrouted")
    told = step is not None and step.number < len(script.results)
    return replace(tool, outcome="unreachable" if told else "uncalled")


def _copies(tools: Sequence[SeenTool]) -> Iterator[SeenTool]:
    """Call the missing second entry of a name a copy, if the name is reached all the same."""
    counts = Counter((tool.server, tool.upstream) for tool in tools)
    right = {(tool.server, tool.upstream) for tool in tools if tool.outcome == "right"}
    for tool in tools:
        key = (tool.server, tool.upstream)
        spare = tool.outcome == "missing" and counts[key] > 1 and key in right
        yield replace(tool, outcome="copy") if spare else tool


def probes(script: Script, reached: Mapping[int, tuple[str, str]], *, ended: bool) -> tuple[Probe, ...]:
    """Return what became of the wrong names; the last one that was tried may have ended the run."""
    out = []
    for step in script.plan:
        if step.probe is None or step.number > len(script.results):
            continue
        answer = script.results[step.number] if step.number < len(script.results) else None
        past = script.history[step.number] if step.number < len(script.history) else step.sent_name
        out.append(
            Probe(
                probe=step.probe,
                name=step.shown,
                reached=reached.get(step.number),
                answer=None if answer is None else cleaned(answer),
                history=None if past == step.sent_name else past,
                ended=ended and answer is None,
            )
        )
    return tuple(out)


def followed(script: Script, turns_marks: Sequence[Sequence[int | None]]) -> bool | None:
    """Say whether the model saw a tool that came later; None if nothing was to come."""
    if not any(step.probe == "after-rename" for step in script.plan):
        return None
    return any(mark is not None and mark % BASE >= LATER for marks in turns_marks for mark in marks)


def ordered(script: Script) -> bool | None:
    """Say whether the tools were shown in the servers' order; None if none was."""
    marks = [tool.mark or 0 for tool in script.seen.values()]
    return marks == sorted(marks) if marks else None


def handshake(received: Sequence[Received]) -> Handshake | None:
    """Return what the client said of itself to one server; None if it never came."""
    if not received:
        return None
    methods = [str(one.message.get("method")) for one in received if "method" in one.message]
    begun = next((one for one in received if one.message.get("method") == "initialize"), received[0])
    params = begun.message.get("params") or {}
    meta = params.get("_meta") or {}
    called = next((one for one in received if one.message.get("method") == "tools/call"), None)
    call_meta = ((called.message.get("params") or {}).get("_meta") or {}) if called else {}
    headers = {name.lower(): value for name, value in begun.headers.items()}
    return Handshake(
        client_info=params.get("clientInfo") or meta.get("io.modelcontextprotocol/clientInfo") or {},
        protocol=params.get("protocolVersion") or headers.get("mcp-protocol-version"),
        user_agent=headers.get("user-agent"),
        capabilities=params.get("capabilities") or meta.get("io.modelcontextprotocol/clientCapabilities") or {},
        discovers_first=methods[:1] == ["server/discover"],
        methods=tuple(dict.fromkeys(methods)),
        call_meta=tuple(sorted(call_meta)),
    )


def cleaned(text: str, places: Mapping[str, str] | None = None) -> str:
    """Return a text without what differs from run to run: escapes, ports, ids, and the places of this machine."""
    for place, word in (places or {}).items():
        text = text.replace(place, word)
    text = _LONG_IDS.sub("ID", _PORTS.sub("PORT", _ESCAPES.sub("", text))).strip()
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def failure_text(output: str, places: Mapping[str, str]) -> str:
    """Return the line of a client's output that says best why it stopped."""
    lines = [said for line in _ESCAPES.sub("", output).splitlines() if (said := _said(line.strip()))]
    for wanted in (lambda line: line.startswith("LAB FAILURE"), _TELLING.search):
        if telling := [line for line in lines if wanted(line)]:
            return cleaned(telling[-1].removeprefix("LAB FAILURE "), places)
    return cleaned(lines[-1], places) if lines else "it said nothing"


def _said(line: str) -> str:
    """Return what a line says; of a JSON object, the text under the keys that hold one."""
    if not line.startswith("{"):
        return line
    try:
        found = json.loads(line)
    except ValueError:
        return line
    return next(_telling_texts(found), "")


def _telling_texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, str) and key in {"error", "message", "text"}:
                yield inner
            else:
                yield from _telling_texts(inner)
