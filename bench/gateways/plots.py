"""Plots as SVG: bars by gateway, and lines over a size, both on logarithmic scales. They need no library."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["bars", "lines"]

_WIDTH: Final = 760
_LEFT: Final = 190
_RIGHT: Final = 80
_ROW: Final = 26
_TOP: Final = 48
_HEIGHT: Final = 360
_COLOURS: Final = (
    *("#1b6ca8", "#d1495b", "#2e933c", "#8f6bb3", "#e08e0b", "#3aa6a0", "#7a5c3e", "#c25fa3"),
    *("#5c6b73", "#9aa51b", "#444444"),
)


def bars(title: str, values: Mapping[str, float]) -> str:
    """Return a bar for each name, on a logarithmic scale, with its value behind it."""
    low, high = _decades(values.values())
    bottom = _TOP + _ROW * len(values)

    def across(value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * _share(value, low, high)

    shapes = [_text(across(mark), bottom + 16, _short(mark), "middle") for mark in _marks(low, high)]
    shapes += [_line(across(mark), _TOP - 4, across(mark), bottom, "#dddddd") for mark in _marks(low, high)]
    for row, (name, value) in enumerate(values.items()):
        middle = _TOP + _ROW * row + _ROW / 2
        width = max(1.0, across(value) - _LEFT)
        shapes += [
            _text(_LEFT - 8, middle + 4, name, "end"),
            f'<rect x="{_LEFT}" y="{middle - 8:.1f}" width="{width:.1f}" height="16" fill="{_COLOURS[0]}"/>',
            _text(_LEFT + width + 6, middle + 4, _short(value), "start"),
        ]
    return _drawing(title, bottom + 30, shapes)


def lines(title: str, across_title: str, series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Return a line for each name through its points, on logarithmic scales, with a legend at the right."""
    points = [point for line in series.values() for point in line]
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    low, high = _decades(y for _, y in points)
    start, end, top, bottom = 70, _WIDTH - 210, _TOP, _HEIGHT - 50

    def place(x: float, y: float) -> tuple[float, float]:
        return start + (end - start) * _share(x, left, right), bottom - (bottom - top) * _share(y, low, high)

    shapes = []
    for mark in _marks(low, high):
        _, y = place(left, mark)
        shapes += [_line(start, y, end, y, "#dddddd"), _text(start - 8, y + 4, _short(mark), "end")]
    for x in sorted({x for x, _ in points}):
        shapes.append(_text(place(x, low)[0], bottom + 18, _short(x), "middle"))
    shapes.append(_text((start + end) / 2, bottom + 38, across_title, "middle"))
    for number, (name, line) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        places = [place(x, y) for x, y in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        shapes.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        shapes += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        y = top + 8 + 20 * number
        shapes += [_line(end + 16, y, end + 36, y, colour), _text(end + 42, y + 4, name, "start")]
    return _drawing(title, _HEIGHT, shapes)


def _decades(values: Iterable[float]) -> tuple[float, float]:
    found = [value for value in values if value > 0]
    low = 10.0 ** math.floor(math.log10(min(found)))
    return low, max(10.0 ** math.ceil(math.log10(max(found))), 10 * low)


def _marks(low: float, high: float) -> list[float]:
    return [low * 10.0**step for step in range(round(math.log10(high / low)) + 1)]


def _share(value: float, low: float, high: float) -> float:
    return math.log(max(value, low) / low) / math.log(high / low) if high > low else 0.5


def _short(value: float) -> str:
    """Return a value as it stands at a mark.

    >>> _short(1_000_000.0), _short(2_500.0), _short(14.2), _short(0.1)
    ('1,000,000', '2,500', '14', '0.1')
    """
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="1.5"/>'


def _drawing(title: str, height: int, shapes: Iterable[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'height="{height}" font-family="sans-serif" font-size="12" role="img">'
    )
    ground = f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>'
    heading = f'<text x="12" y="24" font-size="15" font-weight="bold">{escape(title)}</text>'
    return "\n".join((head, f"<title>{escape(title)}</title>", ground, heading, *shapes, "</svg>")) + "\n"
