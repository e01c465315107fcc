"""Random TOML documents; the writer records the line of every key."""

from typing import Any, NamedTuple

from hypothesis import strategies as st

Path = tuple[str, ...]

# Names that a careless scanner takes for something else.
KEYS = st.sampled_from(
    ["a", "b", "gc", "storage", "keep_days", "1", "a.b", "a b", "[a]", "#", "=", "é", "", '"', "'"]
)
SCALARS = st.sampled_from(
    [
        "1",
        "-1.5e3",
        "true",
        "1979-05-27T07:32:00Z",
        '"a = 1 # [b]"',
        "'[a]'",
        '""',
        '"""\n[storage]\nkeep_days = 1 # "quoted" \\"""\n"""',
        "'''\n[gc]\na = {'''",
        '""""two"""""',
        '[\n  "a", # ]\n  "[b]",\n]',
        "[{ a = 1, b = [2] }, { a = { b = 3 } }]",
        "[]",
        "[[1, 2], [3]]",
    ]
)
TABLES = st.recursive(
    st.dictionaries(KEYS, SCALARS, max_size=3),
    lambda inner: st.dictionaries(KEYS, SCALARS | inner, max_size=4),
    max_leaves=12,
)


class Document(NamedTuple):
    text: str
    lines: dict[Path, int]


@st.composite
def documents(draw: st.DrawFn, tables: st.SearchStrategy[dict[str, Any]] = TABLES) -> Document:
    writer = _Writer(draw)
    writer.table((), (), draw(tables))
    return Document(writer.text, writer.lines)


class _Writer:
    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self.text = ""
        self.lines: dict[Path, int] = {}

    def table(self, path: Path, prefix: Path, table: dict[str, Any]) -> None:
        """The body of a table: values first, for a header ends it."""
        below = []
        for key, value in table.items():
            here = (*path, *prefix, key)
            if not isinstance(value, dict):
                self._start_line()
                self._key(here, len(prefix) + 1)
                self.text += f" = {value}"
                self._end_line()
            else:
                form = self._draw(st.sampled_from(["header", "inline", "dotted"]))
                if form == "header" and not prefix:
                    below.append((here, value))
                elif form == "dotted" and value:
                    self.table(path, (*prefix, key), value)
                else:
                    self._start_line()
                    self._key(here, len(prefix) + 1)
                    self.text += " = "
                    self._inline(here, value)
                    self._end_line()
        for here, value in below:
            self._start_line()
            self.text += self._draw(st.sampled_from(["[", "[ "]))
            self._key(here, len(here))
            self.text += self._draw(st.sampled_from(["]", " ]"]))
            self._end_line()
            self.table(here, (), value)

    def _inline(self, path: Path, table: dict[str, Any]) -> None:
        self.text += "{"
        for number, (key, value) in enumerate(table.items()):
            self.text += ", " if number else " "
            self._key((*path, key), 1)
            self.text += "="
            if isinstance(value, dict):
                self._inline((*path, key), value)
            else:
                self.text += value
        self.text += "}"

    def _key(self, path: Path, length: int) -> None:
        """The last parts of a path, as a dotted key."""
        line = self.text.count("\n") + 1
        for end in range(len(path) - length + 1, len(path) + 1):
            self.lines.setdefault(path[:end], line)
        self.text += self._draw(st.sampled_from([".", " . "])).join(
            self._quoted(part) for part in path[-length:]
        )

    def _quoted(self, key: str) -> str:
        if key.isascii() and key.isalnum() and self._draw(st.booleans()):
            return key
        if "'" not in key and self._draw(st.booleans()):
            return f"'{key}'"
        escaped = key.replace("\\", "\\\\").replace('"', '\\"').replace("é", "\\u00e9")
        return f'"{escaped}"'

    def _start_line(self) -> None:
        self.text += self._draw(st.sampled_from(["", "\n", "# [gc] # keep_days = 1\n", "  "]))

    def _end_line(self) -> None:
        self.text += self._draw(st.sampled_from(["\n", " # a = 1\n", "\r\n"]))
