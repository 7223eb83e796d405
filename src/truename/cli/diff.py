"""`truename diff`: what has changed between two lists of tools, and whether it breaks somebody."""

import sys
from typing import Annotated

from cyclopts import Parameter

from truename.cli._changes import plain, show_changes
from truename.cli._declared_tools import tools_at
from truename.cli._errors import EXIT_FINDINGS, UsageError
from truename.cli._options import JsonOutput
from truename.cli._rendering import print_json
from truename.migration import diff as compare
from truename.migration import renames_table

__all__ = ["diff"]

SCHEMA = "truename.diff/1"

Old = Annotated[str, Parameter(help="The tools as they were.")]
New = Annotated[str, Parameter(help="The tools as they are.")]
Strict = Annotated[bool, Parameter(name="--strict", show_default=False, help="Any change is exit status 1.")]
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
    """Classify every change of tools between OLD and NEW: names, schemas, texts. Nothing is changed."""
    if as_map and as_json:
        raise UsageError(fact="--map and --json both want stdout", advice="Give one of them.")
    changes = compare(tools_at(old), tools_at(new))
    if as_json:
        print_json({"schema": SCHEMA, "old": old, "new": new, **plain(changes)})
    elif as_map:
        sys.stdout.write(renames_table(changes))
    else:
        show_changes(changes, everything=everything)
    return EXIT_FINDINGS if (changes if strict else changes.breaking) else 0
