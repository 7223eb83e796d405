"""`truename replay`: show which tools recorded calls would reach now or, with --run, run them again."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from truename.cli import _completion
from truename.cli._errors import EXIT_FINDINGS, EXIT_UPSTREAM, UsageError
from truename.cli._options import JsonOutput, NamingOptions, Source
from truename.cli._rendering import Cell, print_json, print_table, say, show, styled
from truename.cli._sources import configuration
from truename.cli._workspace import gateway_needed, open_workspace, with_options
from truename.config import Settings
from truename.errors import ConfigError
from truename.migration.recordings import BrokenLine, RecordedCall, ReplayedCall, read_recording, rehearse
from truename.policy import Context, Policy

__all__ = ["replay"]

Recording = Annotated[Path, Parameter(name="RECORDING", help="A recording of calls.")]
Again = Annotated[
    bool, Parameter(name="--run", show_default=False, help="Run the calls instead of only resolving them.")
]
GoOn = Annotated[bool, Parameter(name="--go-on", show_default=False, help="With --run: continue after a failure.")]
Where = Annotated[
    str | None,
    Parameter(
        name="--context",
        metavar="CONTEXT",
        completer=_completion.contexts,
        help="The context of the calls: a name, or platform=ios, app=x; default: as recorded.",
    ),
]
_AS_IT_IS = NamingOptions()
_UNIVERSAL = "universal"
_COLOURS = {"ready": "green", "done": "green", "unknown": "red", "broken": "red", "refused": "yellow", "failed": "red"}
_GOOD = ("ready", "done")


def replay(
    recording: Recording,
    /,
    *sources: Source,
    again: Again = False,
    go_on: GoOn = False,
    where: Where = None,
    making: NamingOptions = _AS_IT_IS,
    as_json: JsonOutput = False,
) -> int:
    """Show which tool each recorded call would reach now; nothing is called without --run."""
    entries = list(read_recording(recording))
    if again:
        found, failed = _rerun(entries, sources, making, where, go_on=go_on)
    else:
        workspace = open_workspace(sources, making)
        settings, failed = workspace.settings, workspace.failed
        names = workspace.table(_UNIVERSAL)
        found = list(rehearse(entries, names, policy=_policy(settings), context=_context(where, settings)))
    missing = len(entries) - len(found)
    if as_json:
        print_json({"ran": again, "calls": [_plain(one) for one in found], "left": missing, "failed": list(failed)})
    else:
        _show(found, missing)
    if failed:
        say(f"Without the servers that failed: {', '.join(failed)}.")
    is_good = all(one.state in _GOOD for one in found)
    return EXIT_UPSTREAM if failed else 0 if is_good else EXIT_FINDINGS


def _rerun(
    entries: Sequence[RecordedCall | BrokenLine],
    sources: tuple[str, ...],
    making: NamingOptions,
    where: str | None,
    *,
    go_on: bool,
) -> tuple[list[ReplayedCall], tuple[str, ...]]:
    if len(sources) > 1:
        raise UsageError(fact="--run needs the servers of exactly one configuration", advice="Give one SOURCE.")
    config = configuration(sources[0] if sources else None)
    settings = with_options(config.settings, making)
    settings = replace(settings, state=making.state or settings.state)
    with gateway_needed():
        from truename.cli._rerun import run_again  # noqa: PLC0415 - starts the gateway's half of the package
    context = _context(where, settings)
    return run_again(
        replace(config, settings=settings), entries, policy=_policy(settings), context=context, go_on=go_on
    )


def _policy(settings: Settings) -> Policy:
    return replace(settings.policy or Policy(default="allow"), exposure=settings.exposure)


def _context(where: str | None, settings: Settings) -> Context | None:
    if where is None or where in settings.contexts:
        return settings.contexts[where] if where else None
    try:
        return Context.parse(where)
    except ConfigError as error:
        known = f" Contexts of the configuration: {', '.join(settings.contexts)}." if settings.contexts else ""
        raise UsageError(fact=f"--context: {error.key} {error.problem}", advice=f"{error.remedy}{known}") from error


def _show(found: list[ReplayedCall], missing: int) -> None:
    if not found:
        show("The recording holds no calls.")
        return
    rows: list[list[Cell]] = [
        [
            str(one.line),
            styled(one.state, _COLOURS[one.state]),
            one.recorded.id.short if one.recorded else "",
            _now(one),
        ]
        for one in found
    ]
    print_table(["line", "outcome", "recorded", "now"], rows)
    if missing:
        show("")
        show(f"{missing:,} more {'was' if missing == 1 else 'were'} not run after the failure. --go-on runs them too.")


def _now(one: ReplayedCall) -> str:
    if one.state not in _GOOD or one.call is None:
        return one.problem
    if one.is_moved:
        return one.call.id.short
    return "the same tool, with another definition" if one.is_changed else "the same tool"


def _plain(one: ReplayedCall) -> dict[str, object]:
    return {
        "line": one.line,
        "state": one.state,
        "recorded": one.recorded and str(one.recorded.id),
        "name": one.recorded and one.recorded.name,
        "now": one.call and str(one.call.id),
        "moved": one.is_moved,
        "changed": one.is_changed,
        "result": one.result,
        "problem": one.problem,
    }
