"""The figures of a run for a terminal, and as the generated part of docs/measurements/benchmarks.md with its plots.

`python -m bench.gateways.report [RESULTS]` makes the page anew from the newest results, or from those that are named.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.gateways import plots, tables
from bench.gateways.cases import HANDSHAKE, MODERN, Workload
from bench.gateways.figures import DIRECT, Case, Figures
from bench.gateways.peers import ALL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bench.gateways.tables import Scale, Table

__all__ = ["markdown", "table", "write_page"]

_ROOT: Final = Path(__file__).resolve().parents[2]
_BEGIN: Final = "<!-- figures: begin (make bench-gateways REPORT=1 writes what follows) -->"
_END: Final = "<!-- figures: end -->"
_TITLES: Final = {
    "base": "Three servers over HTTP, 10 tools each",
    "tls-servers": "The same, with TLS towards the servers",
    "tls": "The same, with TLS on both sides",
    "stdio": "One server over stdio, 10 tools",
    "stdio-3": "Three servers over stdio, 10 tools each",
}


def table(records: Iterable[Mapping[str, Any]]) -> str:
    """Return the figures for a terminal: all cases, then the summary."""
    figures = Figures.of(records)
    parts = [_heading(figures)]
    for setup in tables.setups(figures):
        parts += [_aligned(f"{setup}: ", one) for one in tables.of_setup(figures, setup)]
        parts += [f"not measured: {line}" for line in tables.missing(figures, [setup])]
    summary = tables.summary(figures)
    return "\n\n".join([*parts, *([_aligned("", summary)] if summary.rows else [])])


def _heading(figures: Figures) -> str:
    header = figures.header
    rounds = f"medians of {header['rounds']} rounds" if header["rounds"] > 1 else "one round"
    return f"{header['date']}; {header['machine']}; Python {header['python']}; {rounds} of {header['seconds']:g} s"


def _aligned(where: str, one: Table) -> str:
    widths = [max(10, len(column)) for column in one.columns]
    head = "".join(f"  {name:>{width}}" for name, width in zip(one.columns, widths, strict=True))
    lines = [f"{where}{one.title}", f"  {'':26}{head}"]
    for name, cells in one.rows:
        if len(cells) == 1 < len(widths):
            lines.append(f"  {name:26}  {cells[0]}")
        else:
            shown = "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
            lines.append(f"  {name:26}{shown}")
    return "\n".join(lines)


def markdown(records: Iterable[Mapping[str, Any]]) -> tuple[str, dict[str, str]]:
    """Return the generated part of the page, and the plots by the names of their files."""
    figures = Figures.of(records)
    drawings = dict(_plots(figures))
    parts = [f"Measured on {_heading(figures)}.", _piped(_versions(figures))]
    if (summary := tables.summary(figures)).rows:
        parts += ["### Summary", f"{summary.title}:", _piped(summary)]
    parts += [f"![{title}](benchmarks/{name}.svg)" for name, (title, _) in drawings.items()]
    for setup in tables.setups(figures):
        if setup in _TITLES:
            parts.append(f"### {_TITLES[setup]}")
            for one in tables.of_setup(figures, setup):
                parts += [f"{one.title[0].upper()}{one.title[1:]}:", _piped(one)]
            parts += _not_measured(figures, [setup])
    parts += _growing(figures)
    return "\n\n".join(parts), {f"{name}.svg": drawing for name, (_, drawing) in drawings.items()}


def _growing(figures: Figures) -> list[str]:
    parts = []
    by_name: dict[str, list[Scale]] = {}
    for scale in tables.scales(figures):
        by_name.setdefault(scale.name, []).append(scale)
    for name, grown in by_name.items():
        parts.append(f"### {grown[0].title}")
        shown = [tables.of_scale(figures, scale) for scale in grown]
        if name != "messages":
            shown.append(tables.of_growing_starts(figures, grown[0]))
        for one in shown:
            parts += [f"{one.title.partition(': ')[2]}:", _piped(one)]
        parts += _not_measured(figures, dict.fromkeys(setup for _, setup, _ in grown[0].steps))
    return parts


def _not_measured(figures: Figures, setups: Iterable[str]) -> list[str]:
    lines = tables.missing(figures, setups)
    return ["Not measured:\n\n" + "\n".join(f"- {_flat(line)}" for line in lines)] if lines else []


def _versions(figures: Figures) -> Table:
    rows = tuple(
        (ALL[name].title, (version or "not installed", ALL[name].about))
        for name, version in figures.header["versions"].items()
    )
    return tables.Table("versions", ("version", "how it is set up"), rows)


def _flat(text: str) -> str:
    """Return a text of a foreign program for one line of Markdown."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _piped(one: Table) -> str:
    lines = [f"| | {' | '.join(one.columns)} |", "|---" * (len(one.columns) + 1) + "|"]
    for name, cells in one.rows:
        filled = [_flat(cell) for cell in cells] + [""] * (len(one.columns) - len(cells))
        lines.append(f"| {' | '.join((name, *filled))} |")
    return "\n".join(lines)


def _plots(figures: Figures) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the name of each plot, its title and its SVG."""
    gateways = [name for name in figures.gateways() if name != DIRECT]
    for version in (HANDSHAKE, MODERN):
        found = {name: figures.value(Case(name, "base", Workload(version=version)), "cpu_us") for name in gateways}
        values = {tables.title_of(name): value for name, value in found.items() if value}
        if values:
            title = f"CPU of the gateway, us a call ({version}, 32 connections; logarithmic)"
            yield f"cpu-{version}", (title, plots.bars(title, values))
    for scale in tables.scales(figures):
        _, _, workload = scale.steps[0]
        if workload.version == HANDSHAKE:
            key, name = ("p50_us", "list") if workload.kind == "list" else ("cpu_us", "cpu")
            title = "Time of a whole list, us" if workload.kind == "list" else "CPU of the gateway, us a call"
            series = {}
            for gateway in gateways:
                steps = [(size, figures.value(Case(gateway, setup, asked), key)) for size, setup, asked in scale.steps]
                points = [(float(size), value) for size, value in steps if value]
                if len(points) > 1:
                    series[tables.title_of(gateway)] = points
            if series:
                yield f"{name}-{scale.name}", (f"{title}: {scale.title}", plots.lines(title, scale.title, series))


def write_page(records: Iterable[Mapping[str, Any]], docs: Path) -> None:
    """Replace the generated part of docs/measurements/benchmarks.md, and the plots beside it."""
    generated, drawings = markdown(records)
    page, folder = docs / "benchmarks.md", docs / "benchmarks"
    before, _, rest = page.read_text("utf-8").partition(_BEGIN)
    _, _, after = rest.partition(_END)
    page.write_text(f"{before}{_BEGIN}\n\n{generated}\n\n{_END}{after}", "utf-8")
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    for name, drawing in drawings.items():
        (folder / name).write_text(drawing, "utf-8")


def main() -> None:
    results = Path(__file__).with_name("results")
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else max(results.glob("*.jsonl"))
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    write_page(records, _ROOT / "docs" / "measurements")
    print(table(records))


if __name__ == "__main__":
    main()
