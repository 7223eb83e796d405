"""`truename disconnect`: revert `truename connect` in a client's configuration."""

import os
from typing import Annotated

from cyclopts import Parameter

from truename.cli import _completion
from truename.cli._connections import (
    ChangeFiles,
    PreviewFiles,
    confirm,
    find_client,
    plain_notes,
    reload_advice,
    show_notes,
)
from truename.cli._options import JsonOutput
from truename.cli._rendering import print_json, show, show_diff, styled
from truename.clients import config_files
from truename.clients.apply import Disconnection, plan_disconnection
from truename.clients.apply import disconnect as apply

__all__ = ["disconnect"]

Client = Annotated[
    str, Parameter(completer=_completion.configured_clients, help="The client whose configuration is restored.")
]


def disconnect(
    client: Client, /, *, dry_run: PreviewFiles = False, yes: ChangeFiles = False, as_json: JsonOutput = False
) -> int:
    """Restore a client's configuration; changes that were made since then are kept.

    Files that are unchanged since `truename connect` are restored byte for byte; in others only the edits of `truename
    connect` are reverted.
    """
    client = find_client(client)
    undoing = plan_disconnection(client, os.environ)
    if not as_json:
        _show(undoing, dry_run=dry_run)
    count = len(undoing.steps)
    done = not dry_run and (not count or confirm(yes=yes, files=count, as_json=as_json))
    if done:
        apply(undoing)
    problems = (*undoing.problems, *undoing.unread)
    if as_json and not problems:
        files = [
            {"path": str(step.path), "exact": step.path in undoing.exact, "removed": step.after is None}
            for step in undoing.steps
        ]
        changed = done and bool(undoing.steps)
        print_json({"client": client, "changed": changed, "files": files, "notes": plain_notes(undoing.notes)})
    elif not as_json and undoing.steps:
        title, reload = config_files(client)[0].title, config_files(client)[0].reload
        show(
            styled(f"Disconnected {title}.", "bold green") if done else "Nothing was changed.",
            reload_advice(reload) if done else "",
        )
    if problems:
        message = f"{'1 file was' if len(problems) == 1 else f'{len(problems)} files were'} left unchanged"
        raise ExceptionGroup(message, problems)
    return 0


def _show(undoing: Disconnection, *, dry_run: bool) -> None:
    for step in undoing.steps:
        if dry_run:
            show_diff(step.path, step.raw, step.after, undoing.secrets)
            continue
        what = "restored" if step.path in undoing.exact else "only the edits of `truename connect` are reverted"
        show(styled(str(step.path), "bold"), f": {'deleted, since it was new' if step.after is None else what}")
    if not undoing.steps and not undoing.problems and not undoing.unread:
        show(f"{config_files(undoing.client)[0].title} is not connected; there is nothing to undo.")
    show_notes(undoing.notes)
