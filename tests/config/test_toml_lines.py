"""The line of each key: the scanner is compared with generated documents."""

import tomllib
from typing import Any

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.config.toml_lines import Path, key_lines
from tests.config.documents import Document, documents


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("[a]\nb = 1\n", {("a",): 1, ("a", "b"): 2}),
        ("a.b = 1\na.c = 2\n", {("a",): 1, ("a", "b"): 1, ("a", "c"): 2}),
        ("\na = { b = 1, c = { d = 2 } }\n[e]", {
            ("a",): 2, ("a", "b"): 2, ("a", "c"): 2, ("a", "c", "d"): 2, ("e",): 3,
        }),
        ('"a b".\'c.d\' = 1', {("a b",): 1, ("a b", "c.d"): 1}),
        ('x = """\n[a]\nb = 1\n"""\ny = 2', {("x",): 1, ("y",): 5}),
        ("x = '''\n[a]\n'''''\ny = 2", {("x",): 1, ("y",): 4}),
        ("x = [\n  1, # ]\n  [2],\n]\ny = 2", {("x",): 1, ("y",): 5}),
        ("x = [{ a = 1 }, { a = 2 }]\ny = 2", {("x",): 1, ("y",): 2}),
        ("[[a]]\nb = 1\n[[a]]\nb = 2\n[c]", {("a",): 1, ("a", "b"): 2, ("c",): 5}),
        ("[a.b]\n[a]\nc = 1", {("a",): 1, ("a", "b"): 1, ("a", "c"): 3}),
        ("a = {}\r\nb = 1\r\n", {("a",): 1, ("b",): 2}),
        ('"\\u0061" = 1 # b = 2', {("a",): 1}),
    ],
)  # fmt: skip
def test_the_lines_of_keys_are_found(text: str, expected: dict[Path, int]) -> None:
    assert key_lines(text) == expected


@settings(deadline=None)
@given(documents())
def test_every_key_is_found_on_its_line(document: Document) -> None:
    assert set(_paths(tomllib.loads(document.text))) <= document.lines.keys()
    assert key_lines(document.text) == document.lines


_NAMES = st.text("ab.[]#= \"'\\é", max_size=4)
_VALUES = st.recursive(
    st.integers(-5, 5) | st.text('[]\n"= #', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=10,
)


@settings(deadline=None)
@given(st.dictionaries(_NAMES, _VALUES, max_size=4))
def test_agrees_with_tomlkit_and_tomllib(tables: dict[str, Any]) -> None:
    text = tomlkit.dumps(tables)
    lines = text.split("\n")
    found = key_lines(text)
    for path in _paths(tomllib.loads(text)):
        assert tomlkit.key(path[-1]).as_string() in lines[found[path] - 1]


@settings(deadline=None)
@given(st.text("ab.[]{}=,#\"'\\ 1\n\r", max_size=40))
def test_every_document_that_tomllib_reads_has_lines(text: str) -> None:
    try:
        tables = tomllib.loads(text)
    except ValueError:
        return
    assert set(_paths(tables)) <= key_lines(text).keys()


def _paths(table: dict[str, Any], above: Path = ()) -> list[Path]:
    paths = []
    for key, value in table.items():
        paths.append((*above, key))
        if isinstance(value, dict):
            paths += _paths(value, (*above, key))
    return paths
