"""The symbols that a write changes: parsing the edited part gives what parsing the file gives."""

import random
from pathlib import Path

import pytest

from ctx.capture import symbol_changes
from ctx.capture.steps import SymbolChange
from ctx.code import item_changes, language_detection, source_parser
from ctx.code.grammars import GRAMMARS
from ctx.hosts.tool_calls import FileContents

GOLDEN = Path(__file__).parent.parent / "golden" / "code"
FILES = [
    path
    for path in sorted(GOLDEN.rglob("*"))
    if path.is_file() and language_detection.language_of(path.name) in GRAMMARS
]


def expected(path: str, before: str, after: str) -> list[tuple[str, str, str, int]]:
    """The changes, by parsing both files completely."""
    name = language_detection.language_of(path, before.encode()[: language_detection.HEAD]) or ""
    old, new = (source_parser.parse(path, text.encode(), name) for text in (before, after))
    if new.problems and not old.problems:
        return []
    return [
        (each.change, each.kind, each.name, each.line)
        for each in item_changes.compare_files(old, new)
        if each.name and each.kind != "impl"
    ]


def edited(text: str, chance: random.Random) -> str:
    """The text after a random edit: lines are added, removed or changed."""
    lines = text.split("\n")
    at = chance.randrange(len(lines))
    match chance.randrange(6):
        case 0:
            del lines[at : at + chance.randrange(1, 4)]
        case 1:
            lines[at:at] = lines[at : at + chance.randrange(1, 4)]
        case 2:
            other = chance.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        case _:
            words = lines[at].split(" ")
            word = chance.randrange(len(words))
            words[word] = f"{words[word]}x" if words[word].isalpha() else words[word]
            lines[at] = " ".join(words).replace("1", "2")
    return "\n".join(lines)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_changes_are_those_of_parsing_the_whole_file(path: Path) -> None:
    symbol_changes.forget()
    chance = random.Random(path.name)
    text, name = path.read_text(), str(path.relative_to(GOLDEN))
    for _ in range(4):
        after = edited(text, chance)
        found = symbol_changes.changes(name, FileContents(text, after, True), 10_000)
        told = [(each.change, each.kind, each.name, each.line) for each in found]
        assert told == expected(name, text, after)
        # Mostly one goes on from what is whole.
        text = after if chance.random() < 0.7 else text


def test_files_that_are_not_parsed_have_no_changes() -> None:
    assert symbol_changes.changes("a.txt", FileContents("a", "b", True)) == ()
    assert symbol_changes.changes("a.py", FileContents("def a(): 1", "def a(): 2", False)) == ()
    assert symbol_changes.changes("a.py", FileContents(None, "def a(): 1\n" * 40_000, True)) == ()
    assert symbol_changes.changes("a.min.js", FileContents(None, "function a() {}", True)) == ()


def test_the_number_of_changes_is_limited() -> None:
    text = "".join(f"def a{number}():\n    pass\n" for number in range(99))
    found = symbol_changes.changes("a.py", FileContents(None, text, True))
    assert len(found) == symbol_changes.MOST
    assert found[0] == SymbolChange("new", "function", "a0", "def a0()", 1)
