"""`truename diff`: classify the changes between two lists of tools as breaking or not."""

import sys
from typing import Annotated

from cyclopts import Parameter

from truename.cli._changes import plain, show_changes
from truename.cli._declared_tools import tools_at
from truename.cli._errors import EXIT_FINDINGS, UsageError
from truename.cli._options import JsonOutput
from truename.cli._progress import busy
from truename.cli._rendering import print_json
from truename.migration import diff as compare
from truename.migration import renames_table

__all__ = ["diff"]

SCHEMA = "truename.diff/1"

Old = Annotated[str, Parameter(help="The old list of tools.")]
New = Annotated[str, Parameter(help="The new list of tools.")]
Strict = Annotated[bool, Parameter(name="--strict", show_default=False, help="Exit with status 1 for any change.")]
AsMap = Annotated[
    bool, Parameter(name="--map", show_default=False, help="Print the renames as a file for `truename rename --map`.")
]
Everything = Annotated[bool, Parameter(name="--all", show_default=False, help="Show every change.")]


def diff(
    old: Old,
    new: New,
    /,
    *,
    strict: Strict = False,
    as_map: AsMap = False,
    as_json: JsonOutput = False,
    everything: Everything = False,
) -> int:
    """Classify every change between OLD and NEW: names, schemas, descriptions."""
    if as_map and as_json:
        raise UsageError(fact="--map and --json both write to stdout", advice="Give one of them.")
    before, after = tools_at(old), tools_at(new)
    with busy("Comparing the tools"):
        changes = compare(before, after)
    if as_json:
        print_json({"schema": SCHEMA, "old": old, "new": new, **plain(changes)})
    elif as_map:
        sys.stdout.write(renames_table(changes))
    else:
        show_changes(changes, everything=everything)
    return EXIT_FINDINGS if (changes if strict else changes.breaking) else 0
