"""Print an export, and its comparison with the list of a running gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.cli._rendering import Cell, count, print_table, show, styled
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from truename.clients.exporters import ApiPlan, Export, ExportedTool, ExportKind, ListComparison, RestorePlan

__all__ = [
    "applied_document",
    "comparison_document",
    "export_document",
    "show_applied",
    "show_comparison",
    "show_export",
    "show_restored",
]

_MOST: Final = 200


def show_export(export: Export, kind: ExportKind) -> None:
    """Print the names that the gateway will list, those that differ from the table's, and what is left out."""
    rows: list[list[Cell]] = [
        [one.id.short, styled(one.listed, "bold cyan"), one.written] for one in export.tools[:_MOST]
    ]
    if rows:
        print_table(["tool", f"listed by {kind.title}", "written as"], rows, whole=1)
        _more(len(export.tools))
        show("")
    second = list(export.second())
    if second:
        show(styled(f"Another name than in Truename's table ({len(second):,}), because the prefix stays:", "bold"))
        print_table(
            ["name in the table", f"listed by {kind.title}"], [[one.name, one.listed] for one in second[:_MOST]]
        )
        _more(len(second))
        show("")
    if export.left:
        show(styled(f"Not expressible ({len(export.left):,}):", "bold"))
        left: list[list[Cell]] = [[one.server, one.tool or "all tools", one.reason] for one in export.left[:_MOST]]
        print_table(["server", "tool", "reason"], left)
        _more(len(export.left))
        show("")
    for note in export.notes:
        show(styled("note: ", "yellow"), note)
    servers = len({one.server for one in export.tools})
    show(
        styled(
            f"{count(len(export.tools), 'tool')} of {count(servers, 'server')} for {kind.title}, by the rules of "
            f"version {kind.version} ({kind.evidence}); "
            f"{count(len(second), 'name differs', 'names differ')} from the table's.",
            "bold",
        )
    )


def _more(number: int) -> None:
    if number > _MOST:
        show(f"... and {number - _MOST:,} more; --json lists all.")


def export_document(
    export: Export, kind: ExportKind, written: Sequence[Path], failed: Sequence[str]
) -> dict[str, object]:
    """Return an export as JSON."""
    return {
        "gateway": export.gateway,
        "version": kind.version,
        "evidence": kind.evidence,
        "tools": [_plain(one) for one in export.tools],
        "left": [{"server": one.server, "tool": one.tool, "reason": one.reason} for one in export.left],
        "keys": dict(export.keys),
        "notes": list(export.notes),
        "documents": {name: dict(document) for name, document in export.documents.items()},
        "written": [str(path) for path in written],
        "failed": list(failed),
    }


def _plain(tool: ExportedTool) -> dict[str, object]:
    return {
        "id": str(tool.id),
        "server": tool.server,
        "tool": tool.tool,
        "name": tool.name,
        "listed": tool.listed,
        "written": tool.written,
    }


def show_applied(export: Export, plan: ApiPlan, undo: Path | None, *, is_sent: bool) -> None:
    """Print the names that the API has set or would set, and those that somebody else set there before."""
    if plan.replaced:
        show("")
        show(styled(f"Replaces {count(len(plan.replaced), 'name')} that somebody set there:", "bold"))
        rows: list[list[Cell]] = [
            [f"{one.server}/{one.tool}", one.former, one.written or "(none)"] for one in plan.replaced[:_MOST]
        ]
        print_table(["tool", "name there now", "new name"], rows)
        _more(len(plan.replaced))
        show("")
    requests = count(len(plan.requests), "request")
    if plan.requests and is_sent:
        show(f"Sent {requests}. Former names: {undo} (--undo {undo} restores them).")
    elif plan.requests:
        show(f"{requests} would set the names: add --apply.")
    else:
        show("The gateway has these names already." if export.tools else "There is nothing to set.")


def show_restored(plan: RestorePlan) -> None:
    """Print how much was restored, and each name that stays, with the reason."""
    sent = f"Restored the former names with {count(len(plan.requests), 'request')}."
    show(sent if plan.requests else "Nothing to restore.")
    for one in plan.kept[:_MOST]:
        show(styled("note: ", "yellow"), one)
    _more(len(plan.kept))


def applied_document(
    export: Export, kind: ExportKind, plan: ApiPlan, undo: Path | None, *, is_sent: bool
) -> dict[str, object]:
    """Return an export with its requests as JSON."""
    return export_document(export, kind, (), ()) | {
        "requests": [{"method": one.method, "path": one.path, "body": dict(one.body)} for one in plan.requests],
        "replaced": [
            {"server": one.server, "tool": one.tool, "former": one.former, "written": one.written}
            for one in plan.replaced
        ],
        "sent": is_sent,
        "undo": None if undo is None else str(undo),
    }


def show_comparison(export: Export, compared: ListComparison, url: str) -> None:
    """Print the differences between an export and the list of a running gateway."""
    rows = list(_differences(compared))
    if rows:
        print_table(["difference", "name", "tool"], rows[:_MOST], whole=1)
        _more(len(rows))
        show("")
    what = f"{compared.matching:,} of {count(len(export.tools), 'exported tool')}"
    verb = "are listed as exported" if compared.is_equal else "are listed as exported; the list differs"
    show(styled(f"{what} {verb} at {_without_query(url)}.", "bold"))


def _differences(compared: ListComparison) -> Iterator[list[Cell]]:
    for one in compared.missing:
        yield ["missing", styled(one.listed, "bold cyan"), one.id.short]
    for other in compared.other:
        yield ["other", styled(other.tool.listed, "bold cyan"), f"described as {other.described.id.short}"]
    for unknown in compared.unknown:
        what = f"neither the description nor the parameters of {unknown.id.short}"
        yield ["unknown", styled(unknown.listed, "bold cyan"), what]
    for name in compared.twice:
        yield ["twice", styled(name, "bold cyan"), ""]
    for name, tool in compared.extra:
        yield ["extra", styled(name, "bold cyan"), _unrenamed(tool)]


def _without_query(url: str) -> str:
    # A query may have a key.
    return excerpt(url.partition("?")[0])[1:-1]


def _unrenamed(tool: ExportedTool | None) -> str:
    return "not in the export" if tool is None else f"{tool.id.short}, without its new name"


def comparison_document(export: Export, compared: ListComparison, url: str) -> Mapping[str, object]:
    """Return a comparison as JSON."""
    return {
        "gateway": export.gateway,
        "url": _without_query(url),
        "equal": compared.is_equal,
        "exported": len(export.tools),
        "matching": compared.matching,
        "missing": [_plain(one) for one in compared.missing],
        "other": [{"tool": _plain(one.tool), "described": _plain(one.described)} for one in compared.other],
        "unknown": [_plain(one) for one in compared.unknown],
        "extra": [{"name": name, "tool": None if tool is None else _plain(tool)} for name, tool in compared.extra],
        "twice": list(compared.twice),
    }
