"""The public pages of `docs/compatibility`, made from the results: a table, one page a client, one a construct."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from lab import clients, compare, drift, places, results
from lab.behaviour import behaviour
from lab.drift.page import drift_page
from lab.verdicts import KINDS, QUESTIONS, code, trials, verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from lab.results import Run, Trial
    from lab.verdicts import Question, Verdict

__all__ = ["DRIFT", "FOLDER", "main", "pages", "remaining", "write_drift"]

FOLDER: Final = places.ROOT / "docs" / "compatibility"
DRIFT: Final = "drift.md"
_MADE: Final = "<!-- made by `python -m lab page` from lab/results; do not edit -->"
_MODES: Final = {
    "bare": "without Truename",
    "through": "through Truename, one entry for all servers",
    "only": "through Truename, one entry for each server",
}
_FINE: Final = {"right", "copy"}
_NAMED: Final = 2
_UNIVERSAL: Final = " names of the [universal](../../glossary.md#universal) dialect"


def pages() -> Mapping[str, str]:
    """Return file name -> text of all pages."""
    runs = sorted(results.load_all(), key=lambda run: run.title.lower())
    made = {"index.md": _results(runs), "behaviour.md": behaviour(runs, _MADE), "data.md": _data(runs)}
    for client in dict.fromkeys(run.client for run in runs):
        made[f"clients/{client}.md"] = _client([run for run in runs if run.client == client])
    for question in QUESTIONS:
        made[f"constructs/{question.name}.md"] = _construct(runs, question)
    made[DRIFT] = drift_page(drift.load_all(), results.load_versions())
    return made


def write_drift() -> None:
    """Write the page about versions alone, after clients were watched."""
    text = drift_page(drift.load_all(), results.load_versions())
    (FOLDER / DRIFT).write_text(text, encoding="utf-8")


def main() -> int:
    """Write the pages."""
    made = pages()
    for old in [path for folder in ("clients", "constructs") for path in (FOLDER / folder).glob("*.md")]:
        if old.relative_to(FOLDER).as_posix() not in made:
            old.unlink()
    for name, text in made.items():
        (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_text(text, encoding="utf-8")
    sys.stdout.write(f"docs/compatibility: {len(made)} pages, {sum(map(len, made.values())):,} characters\n")
    return 0


def _results(runs: Sequence[Run]) -> str:
    parts = ["# Can I use this tool name?", _MADE, *_introduction(runs), "## All at a glance", *_matrix(runs)]
    parts += ["## Names", _questions()]
    parts += ["## What goes wrong through Truename", *_rest(runs)]
    parts += ["## Real catalogues", *_drawn()]
    parts += ["## Not run", "\n".join(f"- **{one.title}**: {one.reason}." for one in clients.unavailable())]
    return "\n\n".join(parts) + "\n"


def _introduction(runs: Sequence[Run]) -> Iterator[str]:
    dates = sorted({run.date for run in runs})
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    calls = sum(tool.shown is not None for run in runs for trial in run.trials for tool in trial.tools)
    yield (
        f"The [lab](../measurements/lab.md) ran {len(runs)} configurations of clients and frameworks against servers "
        f"with awkward tool names, from {span}: {sum(len(run.trials) for run in runs):,} trials, {calls:,} tools shown "
        "to a scripted model and called. A configuration is one client with one choice of its settings, for example "
        "with all tools in the prompt instead of a search for tools. The lab has no network, and runs one version of "
        "each client without a screen."
    )
    yield (
        "Each client and each name has a page. [Behaviour](behaviour.md) shows the reactions to wrong names, renames "
        "and errors. [Open data](data.md) has the raw results."
    )
    yield "Each answer is the worst that happens to any name of the column:"
    yield _legend()


def _legend() -> str:
    return "\n".join(f"- `{sign}` {text}" for sign, text in KINDS.values())


def _matrix(runs: Sequence[Run]) -> Iterator[str]:
    yield (
        "The columns show each client without Truename. The last column counts the answers that are right through "
        "Truename, with one entry for all servers. An empty cell was not tried with that client."
    )
    labels = [f"[`{question.label}`](constructs/{question.name}.md)" for question in QUESTIONS]
    lines = [
        f"| client | version | date | {' | '.join(labels)} | through Truename |",
        "|---|" + ":-:|" * (len(QUESTIONS) + 2) + "---|",
    ]
    for run in runs:
        found = [verdict(run, question, "bare") for question in QUESTIONS]
        signs = " | ".join(f"`{one.sign}`" if one else "" for one in found)
        lines.append(f"| {_link(run)} | {run.version} | {run.date} | {signs} | {_score(run)} |")
    yield "\n".join(lines)


def _link(run: Run, up: str = "") -> str:
    return f"[{run.title}]({up}clients/{run.client}.md)"


def _questions() -> str:
    rows = (
        f"| `{question.label}` | [{question.title}](constructs/{question.name}.md) "
        f"| {', '.join(map(code, question.names[:_NAMED])) or 'servers of a whole scenario'} |"
        for question in QUESTIONS
    )
    return "\n".join(("| column | name | examples |", "|---|---|---|", *rows))


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


def _construct(runs: Sequence[Run], question: Question) -> str:
    parts = [f"# {question.title[0].upper()}{question.title[1:]}", _MADE]
    parts.append("[All names and clients](../index.md). The signs:")
    parts.append(_legend())
    if question.names:
        parts.append(f"The names: {', '.join(map(code, question.names))}.")
    lines = ["| without Truename | clients |", "|---|---|"]
    lines += [f"| {text} | {'; '.join(who)} |" for text, who in _grouped(runs, question, "bare")]
    parts += ["## Without Truename", "\n".join(lines)]
    parts += [
        "## Through Truename",
        f"Truename lists{_listed(runs, question) or _UNIVERSAL}: {_together(runs, question)}",
    ]
    parts += ["## Versions", _versions(runs, question)]
    return "\n\n".join(parts) + "\n"


def _versions(runs: Sequence[Run], question: Question) -> str:
    lines = ["| client | version | date | without | through |", "|---|:-:|:-:|:-:|:-:|"]
    for run in runs:
        found = [verdict(run, question, mode) for mode in ("bare", "through")]
        if any(found):
            signs = " | ".join(f"`{one.sign}`" if one else "" for one in found)
            lines.append(f"| {_link(run, '../')} | {run.version} | {run.date} | {signs} |")
    return "\n".join(lines)


def _client(runs: Sequence[Run]) -> str:
    """Return the page of one client, a section for each version that was run."""
    parts = [f"# {runs[0].title}", _MADE, "[All clients and names](../index.md). The signs:", _legend()]
    for run in runs:
        parts += [f"## Version {run.version}", *_facts(run), *_answers(run)]
    return "\n\n".join(parts) + "\n"


def _facts(run: Run) -> Iterator[str]:
    path = results.path_of(run.client, run.version)
    hands = next((trial.handshake for trial in run.trials if trial.handshake), None)
    said = {} if hands is None else dict(hands.client_info)
    rows = {
        "run on": run.date,
        "packages": ", ".join(map(code, run.packages)),
        "through Truename": f"{_score(run)} (Truename {run.truename})",
        "[dialect](../../glossary.md#dialect)": f"[{run.dialect}](../../reference/dialects.md#{run.dialect})",
        "`clientInfo`": code(f"{said.get('name', '')}/{said.get('version', '')}") if said else "",
        "protocol": "" if hands is None else hands.protocol or "",
        "raw results": f"[{path.name}](../../../lab/results/{path.name}) ([fields](../data.md))",
    }
    yield "\n".join(("| | |", "|---|---|", *(f"| {label} | {text} |" for label, text in rows.items() if text)))


def _answers(run: Run) -> Iterator[str]:
    lines = ["| name | without Truename | through Truename | one entry for each server |", "|---|---|---|---|"]
    for question in QUESTIONS:
        found = [verdict(run, question, mode) for mode in _MODES]
        if any(found):
            texts = (f"`{one.sign}` {one.text}" if one else "" for one in found)
            lines.append(f"| [{question.title}](../constructs/{question.name}.md) | {' | '.join(texts)} |")
    yield "\n".join(lines)
    if bad := [f"- {_MODES[mode]}: {text}" for mode, _, text in remaining([run])]:
        yield "Wrong through Truename:"
        yield "\n".join(bad)


_FIELDS: Final = {
    "A file": (
        ("`schema`", f"version of this format: {results.SCHEMA}"),
        ("`client`, `title`, `version`", "the configuration of a client, and its version"),
        ("`packages`", "the packages that were installed, with versions"),
        ("`dialect`", "its row in the [table](../reference/dialects.md) of [dialects](../glossary.md#dialect)"),
        ("`date`, `truename`", "the day of the run, and the version of Truename"),
        ("`walls`", "the means that kept the run from the network"),
        ("`trials`", "the trials"),
    ),
    "A trial": (
        ("`scenario`", "the servers and tools of the trial"),
        ("`mode`", "`bare`, `through` (one entry for all servers) or `only` (one entry for each server)"),
        ("`api`", "the model API that the scripted model stood in for"),
        ("`tools`", "the tools"),
        ("`probes`", "calls by wrong names, and calls that fail"),
        ("`followed`", "after `tools/list_changed` the model saw the new tool"),
        ("`ordered`", "the model saw the tools in the server's order"),
        ("`failure`", "why the client did not come to the end"),
        ("`handshake`", "the client's name, protocol, user agent, capabilities and first methods"),
        ("`seconds`", "the duration"),
    ),
    "A tool": (
        ("`server`, `upstream`", "the server's key, `lab` if left out, and the tool's own name"),
        ("`listed`", "the name that Truename gave it"),
        ("`shown`", "the name that the model saw"),
        ("`reached`", "the server and tool that a call of the shown name reached, if not this one"),
        (
            "`outcome`",
            (
                "`right` if left out; `copy` (a second entry of a right name), `missing` (not shown), `misrouted` (a "
                "call reached another tool), `unreachable` (a call reached none), `uncalled` (the client did not come "
                "so far), `failed` (the whole run failed)"
            ),
        ),
    ),
    "A probe": (
        ("`probe`, `name`", "the kind of the call, and its name"),
        ("`reached`", "the server and tool that it reached"),
        ("`answer`", "the text that the model read"),
        ("`history`", "the name in the client's history, if it is another"),
        ("`ended`", "the run ended"),
    ),
}


def _data(runs: Sequence[Run]) -> str:
    parts = ["# Open data", _MADE]
    parts.append(
        "Every answer of the [table](index.md) comes from these files, one JSON file for each configuration of a "
        "client. They are free to use under the licence of the project, Apache 2.0. `python -m lab run CLIENT` makes "
        "them anew ([lab](../measurements/lab.md)). A field that has its default value is left out."
    )
    lines = ["| client | version | date | trials | file |", "|---|---|---|---|---|"]
    for run in runs:
        name = results.path_of(run.client, run.version).name
        link = f"[{name}](../../lab/results/{name})"
        lines.append(f"| {_link(run)} | {run.version} | {run.date} | {len(run.trials)} | {link} |")
    parts += ["## Files", "\n".join(lines)]
    for title, fields in _FIELDS.items():
        rows = (f"| {field} | {text} |" for field, text in fields)
        parts += [f"## {title}", "\n".join(("| field | meaning |", "|---|---|", *rows))]
    return "\n\n".join(parts) + "\n"


def _grouped(runs: Sequence[Run], question: Question, mode: str) -> list[tuple[str, list[str]]]:
    groups: dict[tuple[int, str], list[str]] = {}
    order = tuple(KINDS)
    for run in runs:
        found = verdict(run, question, mode)
        if found is not None:
            groups.setdefault((order.index(found.kind), found.text), []).append(_link(run, "../"))
    return [(f"`{tuple(KINDS.values())[kind][0]}` {text}", groups[kind, text]) for kind, text in sorted(groups)]


def _listed(runs: Sequence[Run], question: Question) -> str:
    """Return the names that Truename gave, if they are few and the same for all."""
    given = {
        tuple(tool.listed for tool in trial.tools if tool.upstream in question.names and tool.listed)
        for run in runs
        if (trial := trials(run, question, "through"))
    }
    return f" {', '.join(map(code, given.pop()))}" if question.names and len(given) == 1 else ""


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
