"""Search in the code without an index."""

import os
from pathlib import Path

import pytest

from ctx import checkouts, terms
from ctx.code import file_listing, unindexed_search
from ctx.code.bm25 import Bm25Collection
from ctx.code.file_words import BODY, NAMES, PATH
from ctx.code.index_check import SourceTree
from ctx.code.postings import FILES
from tests.conftest import git
from tests.files import write

FILES_OF_A_SHOP = {
    "src/payments.py": (
        "from src.backoff import delay\n\n\n"
        "def charge(amount):\n    return retry(amount, delay(1))\n\n\n"
        "def retry(amount, pause):\n    return amount\n"
    ),
    "src/backoff.py": "def delay(attempt):\n    return 2**attempt\n",
    "src/mail.py": "def send(text):\n    return text\n",
    "tests/test_payments.py": "from src.payments import charge\n\n\ndef test_it():\n    charge()\n",
    "docs/payments.md": "# Payments\n\nPayments are charged once, without a retry.\n",
    "data/payments.json": '{"payments": ["retry", "retry", "retry"]}\n',
    "node_modules/pay/index.js": "function retry() { return 'payments' }\n",
}


@pytest.fixture
def shop(folder: Path) -> SourceTree:
    write(folder, FILES_OF_A_SHOP)
    return SourceTree(str(folder), None, str(folder / "never" / "code.db"))


def scored_files(
    place: SourceTree, weights: dict[str, float], field: str = BODY
) -> dict[str, float]:
    """The files that contain the words with their scores, the best first."""
    code = unindexed_search.search(place, weights, 60)
    assert code is not None
    with code:
        paths = dict(code.connection.execute("SELECT id, path FROM files"))
        scored = Bm25Collection(code.connection, FILES).scores({field: 1.0}, weights)
        scores = {
            paths[id]: round(score, 3)
            for segment, totals, _ in scored
            for id, score in zip(segment.ids, totals, strict=True)
            if score
        }
    return dict(sorted(scores.items(), key=lambda each: -each[1]))


def test_files_are_found_by_text_path_and_defined_names(shop: SourceTree) -> None:
    asked = {"retry": 1.0, "payment": 2.0}
    # Data and what others have written is not looked into, whatever it says.
    everywhere = ["docs/payments.md", "src/payments.py", "tests/test_payments.py"]
    assert sorted(scored_files(shop, asked)) == everywhere
    assert sorted(scored_files(shop, asked, PATH)) == everywhere
    assert list(scored_files(shop, asked, NAMES)) == ["src/payments.py"]


def test_the_best_files_are_parsed_as_for_the_index(shop: SourceTree) -> None:
    code = unindexed_search.search(shop, {"retry": 1.0, "delay": 1.0}, 60)
    assert code is not None
    with code:
        [charge] = code.named("charge")
        assert (charge.path, charge.line, charge.signature) == (
            "src/payments.py",
            4,
            "def charge(amount)",
        )
        edges = code.edges_from([charge.id])
        called = {each.name for each in code.located([edge.target for edge in edges])}
        assert called == {"payments.retry", "backoff.delay"}
        # What nobody asked about is known by its name, and waits.
        assert code.named("send") == []
        mail = code.file("src/mail.py")
        assert mail is not None
        assert mail.skipped == "not read yet"


def test_the_result_is_the_same_inside_git(shop: SourceTree, folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    outside = scored_files(shop, {"retry": 1.0, "payment": 2.0})
    assert sorted(folder.rglob("*")) == before, "nothing is written"
    git("init", "-q")
    git("add", "src", "docs", "data")
    (folder / ".git" / "info" / "exclude").write_text("node_modules/\n")
    inside = shop._replace(checkout=checkouts.find_checkout(shop.root))
    assert scored_files(inside, {"retry": 1.0, "payment": 2.0}) == outside


def test_at_the_time_limit_the_partial_result_is_returned(shop: SourceTree) -> None:
    code = unindexed_search.search(shop, {"retry": 1.0}, 0)
    # Not even the files could be listed.
    assert code is None
    # Long before the end of the second that it takes to list them, and to read some.
    code = unindexed_search.search(shop, {"retry": 1.0}, 1)
    assert code is not None
    code.connection.close()


def test_any_question_and_any_bytes_are_accepted(folder: Path) -> None:
    place = SourceTree(str(folder), None, "")
    assert unindexed_search.search(place, {"retry": 1.0}) is None
    (folder / "empty.py").write_bytes(b"")
    (folder / "binary.py").write_bytes(b"\0retry\0")
    (folder / "latin.py").write_bytes(b"# caf\xe9 retry\n")
    (folder / "broken.py").write_bytes(b"def (((( retry \xff\xfe" * 50)
    (folder / "cjk.py").write_text("# 更新令牌\nretry = 1\n")
    (folder / os.fsdecode(b"bad\xff.py")).write_bytes(b"retry = 1\n")
    os.symlink("/etc/passwd", folder / "link.py")
    os.mkfifo(folder / "pipe.py")
    (folder / "folder.py").mkdir()
    assert scored_files(place, {}) == {}
    assert list(scored_files(place, {"更新": 1.0})) == ["cjk.py"]
    assert set(scored_files(place, {"retry": 1.0})) == {"latin.py", "cjk.py", "broken.py"}
    many = {f"word{number}": 1.0 for number in range(1000)} | {"retry": 0.5}
    assert set(scored_files(place, many)) <= {"latin.py", "cjk.py", "broken.py"}


def test_rare_words_are_searched_first(folder: Path) -> None:
    common = [f"common{letter}" for letter in "abcdefghijklmnopqrst"]
    for number in range(30):
        (folder / f"file{number}.py").write_text(" ".join(common) + "\n")
    (folder / "file7.py").write_text("needle\n")
    weights = dict.fromkeys([*common, *terms.extract("needle")], 1.0)
    assert next(iter(scored_files(SourceTree(str(folder), None, ""), weights))) == "file7.py"


def test_files_that_are_listed_already_are_not_listed_again(shop: SourceTree) -> None:
    every = file_listing.list_files(shop.root, None, ()).files
    only = [each for each in every if each[0] == "src/mail.py"]
    code = unindexed_search.search(shop, {"retry": 1.0, "send": 1.0}, 60, only)
    assert code is not None
    with code:
        assert [each.path for each in code.named("send")] == ["src/mail.py"]
        assert code.file("src/payments.py") is None


def test_only_paths_that_may_contain_a_word_are_split(
    shop: SourceTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    split: list[str] = []
    extract = terms.extract

    def counted(text: str) -> list[str]:
        split.append(text)
        return extract(text)

    monkeypatch.setattr(terms, "extract", counted)
    scores = scored_files(shop, {"payment": 1.0}, PATH)
    assert set(scores) == {"src/payments.py", "tests/test_payments.py", "docs/payments.md"}
    assert set(split) == {"src/payments", "tests/test_payments", "docs/payments"}


@pytest.mark.parametrize("path", ["src/back_off.py", "src/BackOff.py", "src/back-offs.py"])
def test_a_word_is_found_in_every_spelling_of_a_path(folder: Path, path: str) -> None:
    (folder / "src").mkdir()
    (folder / path).write_text("pass\n")
    place = SourceTree(str(folder), None, str(folder / "never" / "code.db"))
    for word in ("backoff", "backOff", "back_offs"):
        weights = dict.fromkeys(terms.query(word), 1.0)
        assert set(scored_files(place, weights, PATH)) == {path}, word
