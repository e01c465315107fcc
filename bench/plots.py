"""Line plots as SVG files, written by hand so that they need no library.

Both axes are logarithmic. The colours are readable on a light and on a dark page.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 210, 40, 50
COLOURS = ("#2f81f7", "#d29922", "#3fb950", "#f85149", "#a371f7", "#e377c2", "#17a2b8", "#8a6d3b")
GREY = "#888888"


class Series(NamedTuple):
    """A line: pairs of a size and a figure."""

    name: str
    points: Sequence[tuple[float, float]]


class Plot(NamedTuple):
    """A figure by size. `name` is the name of the file, `limit` a horizontal line."""

    name: str
    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    limit: float | None = None


class Axis(NamedTuple):
    """Maps values between two powers of ten to pixels."""

    low: int
    high: int
    start: float
    end: float

    def place(self, value: float) -> float:
        part = (math.log10(max(value, 10.0**self.low)) - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    def decades(self) -> Iterator[float]:
        return (10.0**power for power in range(self.low, self.high + 1))


def write(plot: Plot, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{plot.name}.svg"
    path.write_text(svg(plot), encoding="utf-8")
    return path


def svg(plot: Plot) -> str:
    points = [point for series in plot.series for point in series.points]
    limits = [] if plot.limit is None else [plot.limit]
    x = _axis([size for size, _ in points], LEFT, WIDTH - RIGHT)
    y = _axis([*(value for _, value in points), *limits], HEIGHT - BOTTOM, TOP)
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} fill="{GREY}">',
        _text(LEFT, 20, plot.title, size=15),
        *_grid(plot, x, y),
        *_series(plot, x, y),
    ]
    return "\n".join([*lines, "</svg>", ""])


def _axis(values: Sequence[float], start: float, end: float) -> Axis:
    positive = [value for value in values if value > 0] or [1.0]
    low = math.floor(math.log10(min(positive)))
    return Axis(low, max(math.ceil(math.log10(max(positive))), low + 1), start, end)


def _grid(plot: Plot, x: Axis, y: Axis) -> Iterator[str]:
    for size in x.decades():
        at = x.place(size)
        yield _line([(at, y.start), (at, y.end)], GREY, 'stroke-opacity="0.25"')
        yield _text(at, HEIGHT - BOTTOM + 18, f"{size:,.0f}", 'text-anchor="middle"')
    for value in y.decades():
        at = y.place(value)
        yield _line([(x.start, at), (x.end, at)], GREY, 'stroke-opacity="0.25"')
        yield _text(LEFT - 8, at + 4, f"{value:,.10g}", 'text-anchor="end"')
    middle = (x.start + x.end) / 2
    yield _text(middle, HEIGHT - 12, plot.x_label, 'text-anchor="middle"')
    across = f'text-anchor="middle" transform="rotate(-90 14 {(TOP + HEIGHT - BOTTOM) / 2:.1f})"'
    yield _text(14, (TOP + HEIGHT - BOTTOM) / 2, plot.y_label, across)


def _series(plot: Plot, x: Axis, y: Axis) -> Iterator[str]:
    right = WIDTH - RIGHT + 14
    for number, series in enumerate(plot.series):
        colour = COLOURS[number % len(COLOURS)]
        places = [(x.place(size), y.place(value)) for size, value in series.points]
        yield _line(places, colour, 'stroke-width="2"')
        for across, down in places:
            yield f'<circle cx="{across:.1f}" cy="{down:.1f}" r="3" fill="{colour}"/>'
        below = TOP + 8 + 18 * number
        yield _line([(right, below), (right + 16, below)], colour, 'stroke-width="2"')
        yield _text(right + 22, below + 4, series.name)
    if plot.limit is not None:
        at = y.place(plot.limit)
        yield _line([(x.start, at), (x.end, at)], GREY, 'stroke-dasharray="6 4"')
        yield _text(x.end - 4, at - 4, "limit", 'text-anchor="end"')


def _line(places: Iterable[tuple[float, float]], colour: str, more: str) -> str:
    pairs = " ".join(f"{across:.1f},{down:.1f}" for across, down in places)
    return f'<polyline points="{pairs}" fill="none" stroke="{colour}" {more}/>'


def _text(across: float, down: float, text: str, more: str = "", size: int = 12) -> str:
    place = f'x="{across:.1f}" y="{down:.1f}" font-size="{size}"'
    return f"<text {place} {more}>{escape(text)}</text>".replace(" >", ">")
