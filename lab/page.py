"""The public pages, made from the results: `docs/compatibility/index.md` and `docs/compatibility/behaviour.md`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from lab import clients, compare, places, results
from lab.behaviour import behaviour
from lab.verdicts import KINDS, QUESTIONS, code, trials, verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from lab.results import Run, Trial
    from lab.verdicts import Question, Verdict

__all__ = ["FOLDER", "main", "pages", "remaining"]

FOLDER: Final = places.ROOT / "docs" / "compatibility"
_MADE: Final = "<!-- made by `python -m lab page` from lab/results; do not edit -->"
_MODES: Final = {
    "bare": "without Truename",
    "through": "through Truename, one entry for all servers",
    "only": "through Truename, one entry for each server",
}
_FINE: Final = {"right", "copy"}
_NAMED: Final = 2


def pages() -> Mapping[str, str]:
    """Return file name -> text of all pages."""
    runs = sorted(results.load_all(), key=lambda run: run.title.lower())
    return {"index.md": _results(runs), "behaviour.md": behaviour(runs, _MADE)}


def main() -> int:
    """Write the pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        sys.stdout.write(f"docs/compatibility/{name}: {len(text.encode()):,} bytes\n")
    return 0


def _results(runs: Sequence[Run]) -> str:
    parts = [_MADE, "# Can I use this tool name?", *_introduction(runs), "## All at a glance", *_matrix(runs)]
    parts += ["## What Truename cannot fix", *_rest(runs), "## Question by question"]
    for question in QUESTIONS:
        parts += _section(runs, question)
    parts += ["## Real catalogues", *_drawn()]
    parts += ["## Not run", "\n".join(f"- **{one.title}**: {one.reason}." for one in clients.unavailable())]
    return "\n\n".join(parts) + "\n"


def _introduction(runs: Sequence[Run]) -> Iterator[str]:
    dates = sorted({run.date for run in runs})
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    calls = sum(tool.shown is not None for run in runs for trial in run.trials for tool in trial.tools)
    yield (
        f"Measured, not read: {len(runs)} configurations of clients and frameworks were run without a network against "
        f"a scripted model and servers with awkward names ({span}; {sum(len(run.trials) for run in runs):,} trials, "
        f"{calls:,} tools shown to the model and called). One version of each, in the form that needs no screen. "
        "[How the lab works, and how to add a client](../measurements/lab.md). "
        "[What clients do with wrong names, renames and errors](behaviour.md)."
    )
    yield "Each answer is the worst that happens to any name of the question:"
    yield "\n".join(f"- `{sign}` {text}" for sign, text in KINDS.values())


def _matrix(runs: Sequence[Run]) -> Iterator[str]:
    yield (
        "Columns are the questions below, in their order, without Truename; the last one counts the questions that are "
        "answered right through Truename, with one entry for all servers."
    )
    yield "; ".join(f"`{question.label}` {question.title}" for question in QUESTIONS) + "."
    labels = [f"`{question.label}`" for question in QUESTIONS]
    lines = [
        f"| client | version | {' | '.join(labels)} | through Truename |",
        "|---|---|" + ":-:|" * len(QUESTIONS) + "---|",
    ]
    for run in runs:
        found = [verdict(run, question, "bare") for question in QUESTIONS]
        signs = " | ".join(f"`{one.sign}`" if one else "" for one in found)
        lines.append(f"| {run.title} | {run.version} | {signs} | {_score(run)} |")
    yield "\n".join(lines)


def _score(run: Run) -> str:
    found = [verdict(run, question, "through") for question in QUESTIONS]
    answers = [one for one in found if one is not None]
    kept = sum(one.kind in {"kept", "changed"} or _all_right(one) for one in answers)
    return f"{kept} of {len(answers)} right"


def _all_right(found: Verdict) -> bool:
    right, _, all_of_them = found.text.partition(" of ")
    return f"{right} right" == all_of_them


def remaining(runs: Iterable[Run]) -> Iterator[tuple[str, str, str]]:
    """Yield (mode, client, what) for everything that goes wrong in spite of Truename, a line for each client."""
    for mode in ("through", "only"):
        for run in runs:
            trials = [trial for trial in run.trials if trial.mode == mode and trial.scenario != "probes"]
            said = [text for trial in trials if (text := _wrong(trial))]
            if said:
                yield mode, run.title, "; ".join(said)


def _wrong(trial: Trial) -> str:
    bad = [tool for tool in trial.tools if tool.outcome not in _FINE]
    if not bad:
        return ""
    names = ", ".join(code(f"{tool.server}: {tool.upstream}") for tool in bad) if len(bad) <= _NAMED else ""
    why = f", {code(trial.failure)}" if trial.failure and bad[0].outcome == "uncalled" else ""
    return f"{trial.scenario}: {len(bad)} of {len(trial.tools)} {bad[0].outcome}{f' ({names})' if names else ''}{why}"


def _rest(runs: Sequence[Run]) -> Iterator[str]:
    found = list(remaining(runs))
    for mode in ("through", "only"):
        total = sum(len(trial.tools) for run in runs for trial in run.trials if trial.mode == mode)
        yield f"**{_MODES[mode][0].upper()}{_MODES[mode][1:]}** ({total:,} tools in {len(runs)} configurations):"
        lines = [f"| {client} | {what} |" for way, client, what in found if way == mode]
        yield "\n".join(["| client | what |", "|---|---|", *lines]) if lines else "Nothing went wrong."
        if mode == "only":
            yield (
                "Clients that put no server's name in front of a tool's cannot tell two servers with one tool's name "
                "apart: they need the one entry for all servers, where Truename puts it there."
            )


def _drawn() -> Iterator[str]:
    notes = compare.noted()
    yield (
        "Clients were also shown real catalogues, drawn anew from a collection of 815 servers: each draw has up to "
        "seven of them with up to 15 tools each, and a name that two have, one with an odd character and a long one. "
        "Each tool was called, and what happened was compared with what `truename doctor` predicts "
        "([how to do it again](../measurements/lab.md#predictions))."
    )
    head = ("seed", "servers", "configurations of clients", "tools compared", "predicted otherwise")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for seed in sorted({note.seed for note in notes}):
        rows = [note for note in notes if note.seed == seed]
        tools, differ = sum(note.tools for note in rows), sum(note.differ for note in rows)
        lines.append(f"| {seed} | {rows[0].servers} | {len(rows)} | {tools:,} | {differ} |")
    yield "\n".join(lines)


def _section(runs: Sequence[Run], question: Question) -> Iterator[str]:
    yield f"### {question.title[0].upper()}{question.title[1:]}"
    if question.names:
        yield ", ".join(map(code, question.names))
    lines = ["| without Truename | clients |", "|---|---|"]
    lines += [f"| {text} | {'; '.join(who)} |" for text, who in _grouped(runs, question, "bare")]
    yield "\n".join(lines)
    yield f"Through Truename{_listed(runs, question)}: {_together(runs, question)}"


def _grouped(runs: Sequence[Run], question: Question, mode: str) -> list[tuple[str, list[str]]]:
    groups: dict[tuple[int, str], list[str]] = {}
    order = tuple(KINDS)
    for run in runs:
        found = verdict(run, question, mode)
        if found is not None:
            groups.setdefault((order.index(found.kind), found.text), []).append(run.title)
    return [(f"`{tuple(KINDS.values())[kind][0]}` {text}", groups[kind, text]) for kind, text in sorted(groups)]


def _listed(runs: Sequence[Run], question: Question) -> str:
    """Return the names that Truename gave, if they are few and the same for all."""
    given = {
        tuple(tool.listed for tool in trial.tools if tool.upstream in question.names and tool.listed)
        for run in runs
        if (trial := trials(run, question, "through"))
    }
    return f" ({', '.join(map(code, given.pop()))})" if question.names and len(given) == 1 else ""


def _together(runs: Sequence[Run], question: Question) -> str:
    said = []
    for mode in ("through", "only"):
        found = {run.title: verdict(run, question, mode) for run in runs}
        answers = {title: one for title, one in found.items() if one is not None}
        bad = {title: one for title, one in answers.items() if one.kind not in {"kept", "changed"}}
        bad = {title: one for title, one in bad.items() if not _all_right(one)}
        where = "one entry for all servers" if mode == "through" else "one entry for each server"
        rest = "; ".join(f"{title}: {one.text.partition('; ')[0]}" for title, one in bad.items())
        said.append(f"{where}: right in {len(answers) - len(bad)} of {len(answers)}{f' ({rest})' if rest else ''}")
    return "; ".join(said) + "."


if __name__ == "__main__":
    sys.exit(main())
