"""Excerpts of files: what is left out, and where they are cut."""

import shutil
from contextlib import closing
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ctx import tokens
from ctx.code import build, index_check, index_file
from ctx.packs import file_excerpts
from ctx.packs.file_excerpts import FileText, FileTexts
from tests import effort

FUNCTION = """\
def connect(address, tries):
    first = address.split(":")
    host = first[0]

    for number in range(tries):
        if number:
            wait(number)
        if send(host):
            return True

    report(host)
    raise TimeoutError(host)
"""


def text(content: str) -> FileText:
    return FileText("a.py", "", content, is_indexed=True)


def excerpt(content: str, most: int, *matter: int) -> str:
    file = text(content)
    every = range(1, len(file.lines) + 1)
    kept = file_excerpts.fit_lines(file, every, dict.fromkeys(matter, 1.0), most)
    return file_excerpts.join_lines(file, kept)


def test_relevant_lines_are_kept_with_their_statement() -> None:
    assert excerpt(FUNCTION, 50, 8) == (
        "def connect(address, tries):\n"
        "    … line 5\n"
        "    for number in range(tries):\n"
        "        if number:\n"
        "            wait(number)\n"
        "        if send(host):\n"
        "            return True"
    )


def test_without_a_hint_the_beginning_is_kept_or_all_if_it_fits() -> None:
    begin = 'def connect(address, tries):\n    first = address.split(":")\n    host = first[0]'
    assert excerpt(FUNCTION, 30) == begin
    assert excerpt(FUNCTION, 200) == FUNCTION.removesuffix("\n")


def test_a_long_block_is_cut_around_the_relevant_lines() -> None:
    table = "TABLE = {\n" + "".join(f'    "name {n}": {n},\n' for n in range(100)) + "}\n"
    shown = excerpt(table, 60, 51)
    assert shown.startswith("TABLE = {\n    … line ")
    assert '"name 49": 49' in shown
    assert tokens.estimate(shown) <= 65


def test_a_very_long_line_is_shortened() -> None:
    shown = excerpt("x = '" + "a" * 10_000 + "'\ny = 1\n", 200)
    assert shown == "x = '" + "a" * 295 + "…\ny = 1"


def test_comments_above_belong_to_an_item() -> None:
    file = text("import os\n\n# About it,\n# in two lines.\n@once\ndef run():\n    pass\n")
    assert file_excerpts.first_line_with_comments(file, 6) == 3
    assert file_excerpts.first_line_with_comments(file, 6, lowest=5) == 5


@settings(max_examples=effort.times(60), deadline=None)
@given(
    st.lists(st.text(alphabet="ab {}():\t日", max_size=40), max_size=60),
    st.dictionaries(st.integers(1, 60), st.floats(0, 5), max_size=5),
    st.integers(10, 300),
)
def test_any_text_is_cut_at_whole_lines(
    lines: list[str], matters: dict[int, float], most: int
) -> None:
    file = text("\n".join(lines) + "\n")
    every = range(1, len(file.lines) + 1)
    kept = file_excerpts.fit_lines(file, every, matters, most)
    assert set(kept) <= set(every)
    assert kept == sorted(kept)
    # The first line may be longer than all the room there is; nothing else may.
    assert file_excerpts.cost(file, kept[1:]) <= most
    shown = file_excerpts.join_lines(file, kept).split("\n") if kept else []
    own = {line.rstrip() for line in file.lines} | {""}
    assert all(line in own or line.strip().startswith(file_excerpts.GAP) for line in shown)


def test_a_folder_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "project", tmp_path / "private"
    for folder in (root / "src", elsewhere):
        folder.mkdir(parents=True)
        (folder / "a.py").write_text("def f(): pass\n")
    database = str(tmp_path / "code.db")
    build.refresh(index_check.SourceTree(str(root), None, database))
    with closing(index_file.open_for_writing(database)) as connection:
        (file_id,) = connection.execute("SELECT id FROM files").fetchone()
        assert FileTexts(connection, str(root)).file_text(file_id) is not None
        shutil.rmtree(root / "src")
        (root / "src").symlink_to(elsewhere)
        assert FileTexts(connection, str(root)).file_text(file_id) is None
