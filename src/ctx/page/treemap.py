"""A heat map of files: one rectangle for each, as large as the file, and warmer with trouble."""

import posixpath
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup

from ctx import markdown
from ctx.operations.code_folder import FileArea

_WIDTH, _HEIGHT = 1000.0, 300.0
_HEADING = 15.0
_CHARACTER = 6.6
"""The width of a character of a label."""
_LEVELS = (0.0, 0.25, 0.5, 0.75)
"""A file with more than this share of the most heat has the next colour."""
_LEAST_HEAT = 4.0
"""Less than this is not the warmest colour, even if no file has more."""
_SHORTEST = 8
"""Characters of a name that is shortened."""


class _Rectangle(NamedTuple):
    x: float
    y: float
    width: float
    height: float

    def inner(self, heading: float) -> "_Rectangle":
        top = heading if self.height > 3 * heading and self.width > 50 else 0.0
        room = self.width - 2, self.height - top - 2
        return _Rectangle(self.x + 1, self.y + top + 1, max(0.0, room[0]), max(0.0, room[1]))


def _level(heat: float, most: float) -> int:
    """The colour of a file, from 0 to 4."""
    return sum(heat / max(most, _LEAST_HEAT) > least for least in _LEVELS)


def heat_map(areas: Sequence[FileArea], folder: str, address: Callable[[str], str]) -> Markup:
    """An SVG picture. The folders in the folder are framed; their files are inside."""
    groups: dict[str, list[FileArea]] = {}
    start = len(folder) + 1 if folder else 0
    for area in areas:
        name, slash, _ = area.path[start:].partition("/")
        groups.setdefault(name if slash else "", []).append(area)
    ordered = sorted(groups.items(), key=lambda each: -sum(map(_weight, each[1])))
    sizes = [sum(map(_weight, files)) for _, files in ordered]
    most = max((area.trouble.heat for area in areas), default=0.0)
    whole = _Rectangle(0.0, 0.0, _WIDTH, _HEIGHT)
    parts = [
        Markup(
            '<svg class="heat-map" viewBox="0 0 {0} {1}" role="group"'
            ' aria-label="Files by size; the warmer, the more remembered trouble">'
        ).format(int(_WIDTH), int(_HEIGHT))
    ]
    for (name, files), place in zip(ordered, _squarified(sizes, whole), strict=True):
        parts += _group(name, files, place, lambda area: _level(area.trouble.heat, most), address)
    return Markup("").join([*parts, Markup("</svg>")])


def _group(
    name: str,
    files: list[FileArea],
    place: _Rectangle,
    level: Callable[[FileArea], int],
    address: Callable[[str], str],
) -> Iterator[Markup]:
    inner = place.inner(_HEADING if name else 0.0)
    if name and inner.y > place.y + 1:
        yield _text(f"{name}/", place.x + 4, place.y + 11.5, place.width - 8, "heat-folder")
    files = sorted(files, key=lambda each: (-_weight(each), each.path))
    for area, spot in zip(files, _squarified([*map(_weight, files)], inner), strict=True):
        trouble = area.trouble
        about = (
            f"{area.path}: {area.lines:,} lines, {trouble.failures} failures and fixes,"
            f" {trouble.rules} rules"
        )
        yield Markup(
            '<a href="{}" aria-label="{}"><title>{}</title><rect class="heat-{}" x="{}" y="{}"'
            ' width="{}" height="{}"/>'
        ).format(
            address(area.path),
            markdown.visible(about),
            markdown.visible(about),
            level(area),
            round(spot.x, 1),
            round(spot.y, 1),
            round(max(0.0, spot.width - 1), 1),
            round(max(0.0, spot.height - 1), 1),
        )
        if spot.height > 14:
            yield _text(
                posixpath.basename(area.path),
                spot.x + 3,
                spot.y + 11.5,
                spot.width - 6,
                "heat-file",
            )
        yield Markup("</a>")


def _text(text: str, x: float, y: float, width: float, name: str) -> Markup:
    """A label, shortened to its width; nothing if it has no room."""
    text = markdown.visible(text)
    room = int(width / _CHARACTER)
    if room < min(_SHORTEST, len(text)):
        return Markup("")
    shown = text if len(text) <= room else f"{text[: room - 1]}…"
    return Markup('<text class="{}" x="{}" y="{}">{}</text>').format(
        name, round(x, 1), round(y, 1), shown
    )


def _weight(area: FileArea) -> float:
    return float(area.lines + 20)


def _squarified(sizes: Sequence[float], place: _Rectangle) -> list[_Rectangle]:
    """Divide a rectangle into parts of these sizes, the largest first, as square as possible."""
    total = sum(sizes)
    scale = place.width * place.height / total if total else 0.0
    x, y, width, height = place
    made: list[_Rectangle] = []
    at = 0
    while at < len(sizes):
        side = min(width, height)
        count, worst = 1, _worst(sizes[at : at + 1], scale, side)
        while at + count < len(sizes):
            following = _worst(sizes[at : at + count + 1], scale, side)
            if following > worst:
                break
            count, worst = count + 1, following
        row = [size * scale for size in sizes[at : at + count]]
        depth = sum(row) / side if side else 0.0
        offset = 0.0
        for area in row:
            length = area / depth if depth else 0.0
            if width >= height:
                made.append(_Rectangle(x, y + offset, depth, length))
            else:
                made.append(_Rectangle(x + offset, y, length, depth))
            offset += length
        if width >= height:
            x, width = x + depth, max(0.0, width - depth)
        else:
            y, height = y + depth, max(0.0, height - depth)
        at += count
    return made


def _worst(sizes: Sequence[float], scale: float, side: float) -> float:
    """How far the thinnest rectangle of a row is from a square."""
    total = sum(sizes) * scale
    if not total or not side:
        return 0.0
    largest, least = max(sizes) * scale, min(sizes) * scale
    return max(side**2 * largest / total**2, total**2 / (side**2 * least))
