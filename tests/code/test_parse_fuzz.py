"""Parsing any bytes ends without an error, and the result is consistent."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.code import file_reader, index_check, language_detection
from ctx.code.file_reader import FileRecord, FileToRead
from ctx.code.grammars import GRAMMARS
from ctx.code.source_model import CALL, REFERENCE, TYPE, ParsedFile
from ctx.code.source_parser import parse
from ctx.code.vocabulary import KINDS, VISIBILITIES
from tests import effort

GOLDEN = Path(__file__).parent.parent / "golden" / "code"


def _sources() -> list[tuple[str, str, bytes]]:
    found = []
    for path in sorted(GOLDEN.glob("*/**/*")):
        if path.is_file():
            content = path.read_bytes()
            name = language_detection.language_of(path.name, content)
            if name in GRAMMARS:
                found.append((path.name, name, content))
    return found


SOURCES = _sources()


def assert_consistent(parsed: ParsedFile, size: int) -> None:
    """Items are inside the file and properly nested, in order; every part belongs to an item."""
    items, last_line = parsed.items, max(1, parsed.lines)
    assert (items[0].kind, items[0].parent, items[0].start, items[0].end) == ("module", -1, 0, size)
    for place, item in enumerate(items[1:], 1):
        around = items[item.parent]
        assert 0 <= item.parent < place
        assert around.start <= item.start <= item.end <= around.end
        assert items[place - 1].start <= item.start
        assert 1 <= item.line <= item.end_line <= last_line
        assert item.name
        assert item.kind in KINDS
        assert item.visibility in VISIBILITIES
    parts: list[Any] = [*parsed.imports, *parsed.bindings, *parsed.mentions]
    assert all(0 <= part.scope < len(items) for part in parts)
    parts = [*parsed.imports, *parsed.mentions, *parsed.problems]
    assert all(1 <= part.line <= last_line for part in parts)
    for mention in parsed.mentions:
        assert mention.kind in (CALL, TYPE, REFERENCE)
        assert mention.expression
        assert mention.times > 0


MARKS = b"()[]{}<>\"'`;:,.=\n #/*\\&|!@$%-\r\t"


def mutated(content: bytes, how: str, at: int, to: int, written: bytes) -> bytes:
    size = len(content) + 1
    first, last = sorted((at % size, to % size))
    match how:
        case "cut off":
            return content[:first]
        case "cut out":
            return content[:first] + content[last:]
        case "said twice":
            return content[:last] + content[first:]
        case "written over":
            return content[:first] + written + content[first + len(written) :]
        case "written into":
            return content[:first] + written + content[first:]
        case "line ends":
            return content.replace(b"\n", (b"\r\n", b"\r", b"\n\r", b"\x0b", b"")[at % 5])
        case _:
            return b"\xef\xbb\xbf" + content


mutations = st.tuples(
    st.sampled_from(
        ("cut off", "cut out", "said twice", "written over", "written into", "line ends", "mark")
    ),
    st.integers(0, 10_000),
    st.integers(0, 10_000),
    st.one_of(
        st.binary(min_size=1, max_size=20),
        st.lists(st.sampled_from(MARKS), min_size=1, max_size=20).map(bytes),
    ),
)


def test_a_missing_name_is_not_a_mention() -> None:
    assert parse("Broken.java", b"([\x00", "java").mentions == ()


@settings(max_examples=effort.times(120), deadline=None)
@given(st.sampled_from(SOURCES), st.lists(mutations, min_size=1, max_size=4))
def test_any_bytes_can_be_parsed(
    source: tuple[str, str, bytes], changes: list[tuple[str, int, int, bytes]]
) -> None:
    path, name, content = source
    for change in changes:
        content = mutated(content, *change)
    assert_consistent(parse(path, content, name), len(content))


DEEP = 2_000
HURTFUL = {
    "nothing": b"",
    "a line end": b"\n",
    "a carriage return": b"\r",
    "a zero": b"\0",
    "a mark": b"\xef\xbb\xbf",
    "only comments": b"# a\n// b\n/* c */\n-- d\n",
    "opened brackets": b"(" * 2_000,
    "opened braces": b"{" * 2_000,
    "closed brackets": b"x = " + b"(" * DEEP + b"1" + b")" * DEEP + b";\n",
    "closed braces": b"{" * DEEP + b"}" * DEEP,
    "lists": b"x = " + b"[" * DEEP + b"]" * DEEP + b"\n",
    "types": b"a<" * 1_000,
    "members": b"x = a" + b".b" * 20_000 + b";\n",
    "calls": b"x = a" + b".b()" * 500 + b";\n",
    "operators": b"x = a" + b" + a" * DEEP + b";\n",
    "classes": b"class A { " * 1_000,
    "functions": b"function f() { " * 1_000,
    "comments": b"// a\n# a\n" * 200 + b"class A {}\n",
    "a long name": b"class " + b"A" * 200_000 + b" {}\n",
    "quotes": b'"' * 999,
    "attributes": b"#[a]\n@b\n" * 500,
}


@pytest.mark.parametrize("name", sorted(GRAMMARS))
def test_hostile_files_can_be_parsed(name: str) -> None:
    for hurtful in HURTFUL.values():
        content = (b"<?php\n" if name == "php" else b"") + hurtful
        assert_consistent(parse("a", content, name), len(content))


def test_the_depth_and_the_number_of_items_are_limited() -> None:
    lines = [f"{' ' * depth}def f{depth}():\n" for depth in range(300)]
    lines += [f"{' ' * depth}class C{depth}:\n" for depth in range(300, 450)]
    content = "".join([*lines, " " * 450, "pass\n"]).encode()
    parsed = parse("a.py", content, "python")
    assert_consistent(parsed, len(content))
    assert len(parsed.items) > 300
    content = b"".join(b"def f%d(): f%d()\n" % (number, number + 1) for number in range(21_000))
    parsed = parse("a.py", content, "python")
    assert_consistent(parsed, len(content))
    assert len(parsed.items) == 20_001


def read_file(root: Path) -> FileRecord:
    limits = index_check.limits(str(root), 1 << 20)
    return file_reader.read(str(root), FileToRead(1, "a.py"), limits)


@pytest.mark.parametrize(
    ("encoding", "line_end"),
    [
        ("utf-8", "\r\n"),
        ("utf-8-sig", "\n"),
        ("utf-16", "\r\n"),
        ("utf-32", "\n"),
        ("latin-1", "\n"),
    ],
)
def test_encodings_are_parsed(tmp_path: Path, encoding: str, line_end: str) -> None:
    text = "# Größe\nclass Größe:\n    def fährt(self): ...\n\n\ndef Ċ(): fährt()\n"
    if encoding == "latin-1":
        text = text.replace("Ċ", "ö")
    (tmp_path / "a.py").write_bytes(text.replace("\n", line_end).encode(encoding))
    found = read_file(tmp_path)
    assert (found.state, found.skipped, found.lines) == ("read", None, 6)
    rows = [(row[1], row[6], row[7]) for row in found.rows]
    last = "ö" if encoding == "latin-1" else "Ċ"
    assert rows == [("a", 1, 6), ("Größe", 2, 3), ("fährt", 3, 3), (last, 6, 6)]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"x = 1;" * 900_000, "larger than 1,048,576 bytes"),
        (b"x = 1;" * 90_000, "minified"),
        (b"\x7fELF\0\0\0\0", "binary"),
        (bytes(range(1, 32)) * 10, "not text"),
    ],
)
def test_skipped_files_have_a_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "a.py").write_bytes(content)
    found = read_file(tmp_path)
    assert (found.state, found.skipped) == ("skipped", reason)
