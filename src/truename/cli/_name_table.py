"""Print a table of names, and the sentences that several commands show below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.cli._comparison import collapses, in_words
from truename.cli._rendering import Cell, count, output, print_table, show, styled

if TYPE_CHECKING:
    from truename.catalog import Catalog
    from truename.cli._comparison import Compared
    from truename.naming import NameTable
    from truename.policy import Policy

__all__ = ["default_sentence", "show_names", "summary"]

_BESIDE: Final = 120
_WITHOUT: Final = "without Truename"
_DITTO: Final = "as above"


def show_names(table: NameTable, compared: Compared | None, *, error: bool = False) -> None:
    """Print a table of names; with ``compared``, also the outcome for each tool without Truename."""
    scope = "" if table.ledger is None else table.ledger.scope
    heading = "name" if table.dialect.name == "universal" else f"name for {table.dialect.title}"
    headings = ["tool", f"name at /mcp/{scope}" if scope else heading]
    rows: list[list[Cell]] = [[id.short, styled(name, "bold cyan")] for id, name in table.items()]
    told = {id: in_words(several) for id, several in (compared or {}).items()}
    beside = compared is not None and output(error=error).width >= _BESIDE
    if beside:
        headings.append(_WITHOUT)
        rows = [[*row, cell] for row, cell in zip(rows, _dittoed([told.get(id, "") for id in table]), strict=True)]
    if rows:
        print_table(headings, rows, whole=1, error=error)
    if compared and not beside:
        show("", error=error)
        print_table(["tool", _WITHOUT], [[id.short, told[id]] for id in table if told.get(id)], error=error)
    if compared:
        show("", error=error)
        for sentence in collapses(compared):
            show(styled(f"Without Truename, {sentence}.", "yellow"), error=error)
        note = "* from its code or documentation; the others were run. `truename names --compare --json` shows all."
        show(styled(note, "dim"), error=error)


def _dittoed(texts: list[str]) -> list[Cell]:
    """Return the cells of a column, with "as above" for repeated texts."""
    return [
        styled("-", "dim") if not text else styled(_DITTO, "dim") if text == above else text
        for above, text in zip(["", *texts], texts, strict=False)
    ]


def summary(catalog: Catalog, table: NameTable) -> str:
    """Return the last line: the numbers of tools, servers, shortened names and conflicts."""
    servers = len({tool.origin.server_id for tool in catalog.values()})
    shortened = sum(table.explain(id).shortened for id in table)
    conflicts = len(catalog.conflicts())
    return (
        f"{count(len(catalog), 'tool')} of {count(servers, 'server')}; style {table.style.name}; "
        f"{count(shortened, 'name')} shortened; {count(conflicts, 'name')} used by more than one server."
    )


def default_sentence(policy: Policy | None) -> str:
    """Return a sentence on the policy's default for calls that no rule matches; "" without a policy."""
    if policy is None:
        return ""
    outcome = {"allow": "are allowed", "ask": "need approval", "deny": "are denied"}[policy.default]
    return f"Policy: {count(len(tuple(policy.rules)), 'rule')}; calls that no rule matches {outcome} (policy.default)."
