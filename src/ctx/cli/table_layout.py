"""How a table fits the screen. One rule for all tables:

1. If it fits as it is, nothing changes.
2. Columns whose cells are all equal are left out, and a line below the table says what they are.
3. Tags are shortened, then prose; tags are left out if prose needs their place.
4. A last column of plain text goes on below itself.
5. Long values, such as paths, lose their middle.
6. If that is not enough, and the screen is narrow, the cells of a row are printed below each other.

In a pipe there is no screen, and a table is printed as it is.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ctx.cli.settings import Screen
from ctx.cli.terminal import colour_text, shortened, shortened_in_the_middle, width, wrapped

# Minimum columns of tags and prose in a table: `tier:pinned`, and half a sentence.
_SHORTEST_TAGS = 11
_ENOUGH_PROSE = 40
_SHORTEST_PROSE = 16
# Minimum columns of values that lose their middle: a file name, and an id as a whole.
_SHORTEST_VALUES = {"": 24, "dim": 16, "id": 26}
_NARROWEST = 24
"""The columns in which a last column of plain text can be read."""
_WIDE = 100
"""From this width on, rows stay rows."""
_NEVER_CONSTANT = ("id", "text", "field", "state")
"""Kinds of columns that are the answer itself, also if all cells are equal."""


class _Cells(NamedTuple):
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    kinds: Sequence[str]

    @property
    def is_headed(self) -> bool:
        """One column needs no heading, and fields name what stands beside them."""
        return len(self.headings) > 1 and any(self.headings) and "field" not in self.kinds

    def widths(self, *, headed: bool) -> list[int]:
        columns = zip(self.headings, *self.rows, strict=True)
        return [max(map(width, cells[0 if headed else 1 :])) for cells in columns]


def table_text(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    kinds: Sequence[str],
    screen: Screen | None,
) -> str:
    """A table with at least one row as text; `screen` is None in a pipe."""
    cells = _Cells(headings, rows, kinds)
    if screen is None:
        return _side_by_side(cells, cells.widths(headed=False), None)
    constants = ""
    widths = cells.widths(headed=cells.is_headed)
    if _total(widths) > screen.columns:
        cells, constants = _without_constants(cells)
        widths = _fitting_widths(cells.widths(headed=cells.is_headed), cells.kinds, screen.columns)
    if _total(widths) > screen.columns and screen.columns < _WIDE:
        text = _stacked(cells, screen)
    else:
        text = _side_by_side(cells, widths, screen)
    if constants:
        line = wrapped(f"  All: {constants}", screen.columns)
        text += f"{colour_text(line, 'dim') if screen.colours else line}\n"
    return text


def _without_constants(cells: _Cells) -> tuple[_Cells, str]:
    """The columns that differ, and the others in words: `project:shop, status:completed`.

    The first column is what the table is about, so it stays.
    """
    if len(cells.rows) < 2:
        return cells, ""
    kept, named = [], []
    for number, (heading, kind) in enumerate(zip(cells.headings, cells.kinds, strict=True)):
        values = {row[number] for row in cells.rows}
        if number == 0 or len(values) > 1 or kind in _NEVER_CONSTANT or not heading:
            kept.append(number)
        elif value := values.pop():
            named.append(value if ":" in value else f"{heading}:{value}")
    if len(kept) < 2:
        return cells, ""
    return _Cells(
        [cells.headings[number] for number in kept],
        [[row[number] for number in kept] for row in cells.rows],
        [cells.kinds[number] for number in kept],
    ), ", ".join(named)


def _fitting_widths(widths: Sequence[int], kinds: Sequence[str], most: int) -> list[int]:
    """The widths of columns side by side, with two spaces before each. Left out: 0."""
    fitted = _narrowed(widths, kinds, {"tags": _SHORTEST_TAGS}, most)
    fitted = _narrowed(fitted, kinds, {"text": _ENOUGH_PROSE}, most)
    if "text" in kinds and _total(fitted) > most:
        without = [0 if kind == "tags" else w for w, kind in zip(widths, kinds, strict=True)]
        fitted = _narrowed(without, kinds, {"text": _SHORTEST_PROSE}, most)
    if not kinds[-1] and fitted[-1] > _NARROWEST:
        room = most - _total(fitted[:-1]) - 2
        fitted[-1] = min(fitted[-1], max(room, _NARROWEST))
    return _narrowed(fitted, kinds, _SHORTEST_VALUES, most)


def _narrowed(
    widths: Sequence[int], kinds: Sequence[str], least: dict[str, int], most: int
) -> list[int]:
    """The widths with those of some kinds made narrower, the widest first, as far as needed."""
    giving = [number for number, kind in enumerate(kinds) if kind in least]
    limits = {number: least[kinds[number]] for number in giving}
    narrowed = [min(w, max(most, limits[n])) if n in limits else w for n, w in enumerate(widths)]
    while _total(narrowed) > most:
        wide = [number for number in giving if narrowed[number] > limits[number]]
        if not wide:
            break
        narrowed[max(wide, key=lambda number: narrowed[number])] -= 1
    return narrowed


def _total(widths: Sequence[int]) -> int:
    return sum(w + 2 for w in widths if w)


def _side_by_side(cells: _Cells, widths: Sequence[int], screen: Screen | None) -> str:
    colours = screen is not None and screen.colours
    last = len(widths) - 1
    before_last = _total(widths[:-1]) + 2

    def line(row: Sequence[str], kinds: Sequence[str]) -> str:
        shown: list[str] = []
        for number, (cell, kind, most) in enumerate(zip(row, kinds, widths, strict=True)):
            if screen and not most:
                continue
            text = cell
            if screen and number == last and not kind:
                text = _below_itself(cell, most, before_last)
            elif screen and kind in _SHORTEST_VALUES:
                text = shortened_in_the_middle(cell, most)
            elif screen:
                text = shortened(cell, most)
            padding = " " * (most - width(text))
            inked = colour_text(text, kind) if colours else text
            to_the_right = screen is not None and kind == "number"
            shown.append(padding + inked if to_the_right else inked + padding)
        return f"  {'  '.join(shown)}".rstrip() + "\n"

    is_headed = screen is not None and cells.is_headed
    heading = line(cells.headings, ["dim"] * len(widths)) if is_headed else ""
    return heading + "".join(line(row, cells.kinds) for row in cells.rows)


def _below_itself(cell: str, most: int, indent: int) -> str:
    """Prose in lines that fit. Commands stay whole, so that they can be copied."""
    lines = [
        line if "`" in line else shortened_in_the_middle(line, most)
        for line in wrapped(cell, most).split("\n")
    ]
    return f"\n{'':{indent}}".join(lines)


def _stacked(cells: _Cells, screen: Screen) -> str:
    """The cells of a row below each other. Words that are too long are left to the terminal."""
    lines = []
    for row in cells.rows:
        for number, (heading, cell, kind) in enumerate(
            zip(cells.headings, row, cells.kinds, strict=True)
        ):
            # A row without a first cell goes on with the row before it.
            label = f"{heading}: " if number and heading and cells.is_headed and row[0] else ""
            if cell:
                indent = "    " if number else "  "
                text = wrapped(f"{indent}{label}{cell}", screen.columns)
                lines.append(colour_text(text, kind) if screen.colours and not label else text)
    return "".join(f"{line}\n" for line in lines)
