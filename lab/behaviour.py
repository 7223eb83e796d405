"""The second page: what clients do with wrong names, renames and errors, and what they say of themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lab.scenarios import UNLISTED
from lab.verdicts import brief, code

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lab.results import Probe, Run, Trial

__all__ = ["behaviour"]

_ERRORS: Final = {"error of JSON-RPC": "JSONRPC-WORDING", "result with isError": "ISERROR-WORDING"}
_SAID: Final = 160
_SEARCHED: Final = ("search_tools", "describe_tools", "call_tool", "its own name")
# What Truename itself answers.
_TOLD: Final = frozenset(_SEARCHED[:2])


def behaviour(runs: Sequence[Run], made: str) -> str:
    """Return the page's text."""
    parts = ["# Wrong names, renames, errors, handshakes", made]
    parts += [
        "The same runs as [the table of names](index.md) answered these questions; without Truename unless said.",
        "## A name that does not exist",
    ]
    parts += [*_wrong(runs), "## A tool that is renamed while the client runs", *_renames(runs)]
    parts += ["## A catalogue that is searched", *_searched(runs)]
    parts += ["## An error of the server, and what the model reads of it", *_errors(runs)]
    parts += ["## What clients say of themselves", *_handshakes(runs)]
    return "\n\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def _wrong(runs: Sequence[Run]) -> Iterator[str]:
    yield (
        "The model calls a tool under a name that it was not shown. Most clients check names themselves, and the "
        "server is never asked. `=` the call reached the tool that was meant, `→` the call was sent to the server as "
        "it is, `-` the client refused it, `X` the run ended, empty: not tried."
    )
    yield (
        "The tool that is meant is `get_weather` of the server `lab`, which clients show with or without a prefix. "
        "*bare name*: without the prefix; *upstream's own name*: `a/b`, the server's own name of a tool that the "
        "client may show as `a_b`; *namespace and name joined*: for clients that send a namespace apart from the name."
    )
    probes = list(dict.fromkeys(probe.probe for run in runs for probe in _probes(run) if probe.probe not in _ERRORS))
    rows = []
    for run in runs:
        found = {probe.probe: probe for probe in _probes(run)}
        if found:
            rows.append([run.title, *(_sign(found.get(name)) for name in probes), _refusal(found.get("no such tool"))])
    yield _table(["client", *probes, "what the model reads"], rows)


def _probes(run: Run) -> Sequence[Probe]:
    trial = run.trial("probes", "bare")
    return trial.probes if trial else ()


def _sign(probe: Probe | None) -> str:
    if probe is None:
        return ""
    if probe.ended:
        return "`X`"
    if probe.reached is None:
        return "`-`"
    return "`=`" if probe.reached[1] in {"get_weather", "a/b"} else "`→`"


def _text(said: str) -> str:
    flat = " ".join(said.split()).replace("|", "\\|").replace("`", "'").replace("<", "&lt;")
    return flat if len(flat) <= _SAID else flat[: _SAID - 1] + "…"


def _refusal(probe: Probe | None) -> str:
    if probe is None:
        return ""
    return "nothing: the run ended" if probe.ended or probe.answer is None else _text(probe.answer)


def _renames(runs: Sequence[Run]) -> Iterator[str]:
    yield (
        "The server renames `get_weather` to `get_weather_v2` and says so; then the model calls the old name. To "
        "Truename these are two tools, because nothing proves that they are one. It never runs the new tool for the "
        "old name, and answers with an error if the client sends it. After `truename rename` the old name goes on "
        "working."
    )
    rows = []
    for run in runs:
        bare, through = run.trial("rename", "bare"), run.trial("rename", "through")
        if bare is not None:
            rows.append([run.title, _followed(bare), _old(bare), _old(through) if through else ""])
    yield _table(
        ["client", "sees the new name in the same run", "the old name", "the old name, through Truename"], rows
    )


def _followed(trial: Trial) -> str:
    return {True: "yes", False: "no", None: "not seen"}[trial.followed]


def _old(trial: Trial) -> str:
    called = [probe for probe in trial.probes if probe.probe == "after-rename"]
    if not called:
        return "the run ended before" if trial.failure else "not called"
    last = called[-1]
    if last.ended or last.answer is None:
        return "the run ended"
    if last.reached is not None and "UPSTREAM-OK" in last.answer:
        return f"runs {code(last.reached[1])}"
    if trial.mode == "through" and "nothing was run" in last.answer:
        return f"answered by Truename: {_text(last.answer)}"
    return ("sent to the server: " if last.reached else "refused by the client: ") + _text(last.answer)


def _searched(runs: Sequence[Run]) -> Iterator[str]:
    yield (
        "Of 200 tools Truename lists one that the setting `pinned` keeps in the list, and three tools that search the "
        "others ([large catalogues](../gateway/large-catalogues.md)). `=` the call reached the tool that was meant, "
        "`+` Truename answered, `-` the client refused the name, `X` the run ended."
    )
    rows = []
    for run in runs:
        trial = run.trial("searched", "through")
        if trial is not None:
            found = {probe.probe: probe for probe in trial.probes}
            shown = next((tool.shown for tool in trial.tools if tool.shown), None)
            signs = [_reaching(found.get(name)) for name in _SEARCHED]
            rows.append([run.title, "" if shown is None else code(shown), *signs, _refusal(found.get(_SEARCHED[-1]))])
    yield _table(["client", "the pinned tool", *_SEARCHED, "what the model reads then"], rows)


def _reaching(probe: Probe | None) -> str:
    if probe is None:
        return ""
    if probe.ended or probe.answer is None:
        return "`X`"
    if probe.reached is not None:
        return "`=`" if probe.reached[1] == UNLISTED else "`→`"
    return "`+`" if UNLISTED in probe.answer and probe.probe in _TOLD else "`-`"


def _errors(runs: Sequence[Run]) -> Iterator[str]:
    rows = []
    for run in runs:
        found = {probe.probe: probe for probe in _probes(run)}
        if found:
            rows.append([run.title, *(_wording(found.get(name), word) for name, word in _ERRORS.items())])
    yield _table(["client", "error of JSON-RPC", "result with `isError`"], rows)


def _wording(probe: Probe | None, word: str) -> str:
    if probe is None:
        return "not tried"
    if probe.ended or probe.answer is None:
        return "the run ended"
    return "the server's words" if word in probe.answer else f"other words: {_text(probe.answer)}"


def _handshakes(runs: Sequence[Run]) -> Iterator[str]:
    rows = []
    for run in runs:
        trial = next((one for one in run.trials if one.handshake is not None and one.scenario != "modern"), None)
        if trial is None or trial.handshake is None:
            continue
        said, about = trial.handshake, trial.handshake.client_info
        modern = run.trial("modern", "bare")
        speaks = modern is not None and any(tool.shown for tool in modern.tools)
        rows.append(
            [
                run.title,
                code(f"{about.get('name', '')}/{about.get('version', '')}"),
                said.protocol or "",
                brief(said.user_agent or "").replace("|", "\\|"),
                "yes" if said.discovers_first else "no",
                "yes" if speaks else "no",
                ", ".join(map(code, said.call_meta)),
            ]
        )
    head = ["client", "clientInfo", "protocol", "User-Agent", "asks `server/discover` first"]
    yield _table([*head, "speaks 2026-07-28", "`_meta` of a call"], rows)
