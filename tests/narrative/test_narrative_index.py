"""Search in the sections of the narrative."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx import terms
from ctx.narrative import narrative_index
from ctx.narrative.narrative_index import LONGEST_SECTION, Section, sections
from ctx.narrative.narrative_scan import GivenNarrative


@pytest.fixture
def narrative(tmp_path: Path) -> Path:
    folder = tmp_path / "narrative"
    for path, text in {
        "README.md": "# Shop\n\nSells tea.\n\n## Payment\n\nBy card, retried three times.\n",
        "log/2026-01-20-1005-ab12.md": "# Retry\n\nPayment is retried now.\n",
        "tasks/task_0001-pay-ab12.md": "# Pay\n\nPayment by invoice.\n",
        "decisions/0001-card-ab12.md": "# Cards\n\nPayment by card.\n",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def search(database: Path, narrative: Path, words: str) -> list[tuple[str, str, int]]:
    given = GivenNarrative(str(narrative), set)
    found = narrative_index.search(str(database), given, terms.query(words), 10)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    return [(each.path, each.title, each.first_line) for each in found]


def test_sections_are_found_by_words(tmp_path: Path, narrative: Path) -> None:
    database = tmp_path / "index" / "narrative.db"
    assert sorted(search(database, narrative, "retrying payments")) == [
        ("README.md", "Shop › Payment", 5),
        ("log/2026-01-20-1005-ab12.md", "Retry", 1),
    ]
    assert search(database, narrative, "invoice") == []
    assert search(database, narrative, '") OR (') == []
    assert os.stat(database).st_mode & 0o777 == 0o600


def test_a_secret_is_not_indexed() -> None:
    token = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    text = f"# Shop\n\nBy {token}.\n\n## Use {token}\n\nIt works.\n"
    assert token not in str([*sections(text)])


def test_the_index_follows_the_files(tmp_path: Path, narrative: Path) -> None:
    database = tmp_path / "narrative.db"
    assert len(search(database, narrative, "card")) == 1
    (narrative / "README.md").unlink()
    (narrative / "feature").mkdir()
    (narrative / "feature" / "cards.md").write_bytes(b"# Cards \xff\r\n\r\nA card is cheap.\r\n")
    assert search(database, narrative, "card") == [("feature/cards.md", "Cards \ufffd", 1)]


def test_a_damaged_index_is_rebuilt(tmp_path: Path, narrative: Path) -> None:
    database = tmp_path / "narrative.db"
    for damage in (b"", b"no database", b"SQLite format 3\0" + b"x" * 5000):
        database.write_bytes(damage)
        assert len(search(database, narrative, "tea")) == 1
        assert len(search(database, narrative, "tea")) == 1


def test_a_partly_damaged_index_is_rebuilt(tmp_path: Path, narrative: Path) -> None:
    database = tmp_path / "narrative.db"
    assert len(search(database, narrative, "tea")) == 1
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript("DELETE FROM sections; DELETE FROM documents;")
    assert len(search(database, narrative, "tea")) == 1, "it was inconsistent"
    whole = database.read_bytes()
    pages = len(whole) // 4096
    assert pages > 5
    noise = bytes(range(255, -1, -1)) * 16
    # What only writing would meet is met by writing.
    for word, text in (("tea", ""), ("green", "# Shop\n\nSells green tea.\n")):
        if text:
            (narrative / "README.md").write_text(text)
        for damaged in (range(2, pages), *([page] for page in range(pages))):
            data = bytearray(whole)
            for page in damaged:
                data[4096 * page : 4096 * (page + 1)] = noise
            database.write_bytes(data)
            assert len(search(database, narrative, word)) == 1


def test_search_works_without_a_writable_place(tmp_path: Path, narrative: Path) -> None:
    (tmp_path / "narrative.db").mkdir()
    assert len(search(tmp_path / "narrative.db", narrative, "tea")) == 1
    (tmp_path / "file").write_text("")
    assert len(search(tmp_path / "file" / "narrative.db", narrative, "tea")) == 1
    assert search(tmp_path / "none.db", tmp_path / "nowhere", "tea") == []


def test_search_works_while_another_process_writes(tmp_path: Path, narrative: Path) -> None:
    database = tmp_path / "narrative.db"
    assert len(search(database, narrative, "tea")) == 1
    (narrative / "more.md").write_text("# More tea\n\nGreen tea.\n")
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert len(search(database, narrative, "tea")) == 1
        other.execute("ROLLBACK")
    assert len(search(database, narrative, "tea")) == 2


DOCUMENT = """\
Before all of it.

# The shop

<!-- metadata:
created: 2026-01-20T10:00:00Z
-->

What it sells.

## Retries ##

Three times.
<!-- nobody's
text -->
Then it gives up.

```
# no heading
```

## Empty

### Last
at once"""


def test_sections() -> None:
    assert list(sections(DOCUMENT)) == [
        Section("The shop", "Before all of it.", 1, 1),
        Section("The shop", "What it sells.", 3, 9),
        Section(
            "The shop › Retries",
            "Three times.\n\nThen it gives up.\n\n```\n# no heading\n```",
            11,
            20,
        ),
        Section("The shop › Last", "at once", 24, 25),
    ]
    assert list(sections("")) == []
    assert list(sections("# Only a title")) == []
    (long,) = sections("x" * 50_000)
    assert len(long.text) == LONGEST_SECTION


@given(st.text(alphabet="# `~a\n\r<!->", max_size=200))
def test_lines_are_those_of_the_text(text: str) -> None:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    last = 0
    for section in sections(text):
        assert last < section.first_line <= section.last_line <= len(lines)
        last = section.last_line
