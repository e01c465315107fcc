import subprocess
from collections.abc import Container
from contextlib import closing
from pathlib import Path

import pytest

from ctx import checkouts
from ctx.code import build, file_words, index_file, postings
from ctx.code.history import commit_meanings
from ctx.code.history import history_refresh as history
from ctx.code.index_check import SourceTree
from ctx.code.postings import FILES
from ctx.layout import Project
from ctx.packs import file_ranking
from ctx.packs.file_ranking import RankedFile
from ctx.search import embedders, question
from ctx.sqlite.connection import snapshot
from tests.code.histories import Made, make

CLIENT = "class Client:\n    def connect(self):\n        '''Open a socket.'''\n"
RETRY = "class Backoff:\n    def next_delay(self):\n        return 1\n"
PAGE = "def render(page):\n    return page\n"
TEST = "from net.client import Client\n\ndef test_connect():\n    Client().connect()  # socket\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make(
        tmp_path_factory.mktemp("ranked") / "app",
        Made(
            "Begin",
            {
                "net/client.py": CLIENT,
                "net/retry.py": RETRY,
                "web/page.py": PAGE,
                "web/settings.yaml": "socket: 1\n",
                "tests/test_net.py": TEST,
                "setup.py": "socket = connect = None\n",
            },
        ),
        Made("Make the templates faster", {"web/page.py": PAGE + "\n"}),
        Made("Merge nothing", {}),
    )
    subprocess.run(["git", "reset", "-q", "--hard"], cwd=folder, check=True)
    return folder


def ranked(
    root: Path,
    task: str,
    *mentioned: str,
    named: Container[str] = (),
    without: Container[str] = (),
) -> list[RankedFile]:
    """The files for a task that names some paths, and all items with these names."""
    database = str(root.parent / "code.db")
    checkout = checkouts.find_checkout(str(root))
    build.refresh(SourceTree(str(root), checkout, database))
    with closing(index_file.open_for_writing(database)) as connection:
        history.refresh(connection, Project(str(root), checkout))
        missing = commit_meanings.without_fingerprint(connection)
        vectors = [(id, embedders.default().embed_one(subject)) for id, subject in missing]
        fingerprints = [(id, commit_meanings.fingerprint(vector)) for id, vector in vectors]
        commit_meanings.add(connection, fingerprints)
        rows = connection.execute("SELECT id, name FROM items").fetchall()
        items = {id: 1.0 for id, name in rows if name in named}
        paths = dict.fromkeys(mentioned, 1.0)
        return file_ranking.rank(connection, question.read(task), paths, items, without=without)


def paths(found: list[RankedFile]) -> list[str]:
    return [each.path for each in found]


def test_files_are_ranked_by_text_path_and_names(root: Path) -> None:
    found = ranked(root, "Client.connect leaves the socket open")
    expected = ["net/client.py", "setup.py", "web/settings.yaml", "tests/test_net.py"]
    assert paths(found) == expected
    names = {signal.name for signal in found[0].signals}
    assert names == {"text", "path", "names", "meaning", "recent"}
    assert sum(signal.value for signal in found[0].signals) == pytest.approx(found[0].score)


def test_files_of_similar_past_commits_are_found(root: Path) -> None:
    (page, *_) = ranked(root, "faster templates")
    assert (page.path, [signal.name for signal in page.signals]) == (
        "web/page.py",
        ["history", "meaning", "recent"],
    )
    assert ranked(root, "faster templates", without={"history"}) == []


def test_files_of_commits_with_a_similar_meaning_rank_higher(tmp_path: Path) -> None:
    login = "def start():\n    return 'session'\n"
    folder = make(
        tmp_path / "app",
        Made("Draw the chart", {"a.py": login}),
        Made("Repair the login of users", {"b.py": login}),
    )
    subprocess.run(["git", "reset", "-q", "--hard"], cwd=folder, check=True)
    task = "session: fix user authentication"
    (first, second) = ranked(folder, task, without={"history", "recent"})
    assert (first.path, second.path) == ("b.py", "a.py")
    assert first.score > second.score
    tied = ranked(folder, task, without={"history", "recent", "meaning"})
    assert tied[0].score == tied[1].score


def test_files_of_items_that_the_task_names_rank_higher(root: Path) -> None:
    found = {each.path: each for each in ranked(root, "socket", named={"Backoff"})}
    assert [signal.name for signal in found["net/retry.py"].signals] == ["named", "recent"]
    assert "net/retry.py" not in paths(ranked(root, "socket"))


def test_files_that_the_task_names_are_found(root: Path) -> None:
    found = ranked(root, "the socket of the client", "net/retry.py", "net/gone.py")
    assert "net/retry.py" in paths(found)
    without = ranked(root, "the socket of the client", "net/retry.py", without={"mentioned"})
    assert "net/retry.py" not in paths(without)


def test_test_files_come_first_only_for_tasks_about_tests(root: Path) -> None:
    assert paths(ranked(root, "connect the client"))[-1] == "tests/test_net.py"
    assert paths(ranked(root, "Fix the test of connect in test_net"))[0] == "tests/test_net.py"
    assert paths(ranked(root, "connect the client", without={"roles"}))[-1] != "tests/test_net.py"


def test_a_changed_file_is_found_by_its_current_text(root: Path) -> None:
    for task in ("", "of and", "zebra", "令牌", '"AND ( NEAR *', "\x00"):
        assert ranked(root, task) == [], task
    page = root / "web" / "page.py"
    try:
        page.write_text("def render(zebra):\n    return zebra\n")
        assert paths(ranked(root, "zebra")) == ["web/page.py"]
        page.unlink()
        assert ranked(root, "zebra") == []
    finally:
        page.write_text(PAGE + "\n")


def test_a_commit_from_the_future_does_not_age_the_others(tmp_path: Path) -> None:
    folder = make(
        tmp_path / "app",
        Made("Zebra stripes", {"gone.py": "def zebra(): pass"}, time=99_999_999_999),
        Made("Zebra stripes again", {"gone.py": None, "new.py": "def zebra(): pass"}, time=1),
    )
    subprocess.run(["git", "reset", "-q", "--hard"], cwd=folder, check=True)
    (found,) = ranked(folder, "zebra stripes")
    assert found.path == "new.py"
    assert {"history", "recent"} <= {signal.name for signal in found.signals}


def test_one_question_reads_one_snapshot(root: Path) -> None:
    database = str(root.parent / "code.db")
    ranked(root, "connect")
    asked = question.read("connect the socket")
    with (
        closing(index_file.open_for_writing(database)) as reader,
        closing(index_file.open_for_writing(database)) as writer,
    ):
        with snapshot(reader):
            before = file_ranking.rank(reader, asked)
            words = file_words.of_file("connect.py", "connect socket", ())
            postings.put(writer, FILES, 1, 0, words)
            assert file_ranking.rank(reader, asked) == before
        assert file_ranking.rank(reader, asked) != before
    Path(database).unlink()
