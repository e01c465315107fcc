"""File names of documents: short for people, and unique over branches."""

import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx.narrative import document_names

NOON = 1_768_910_700_000  # 2026-01-20T12:05:00Z


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Retry with jitter!", "retry-with-jitter"),
        ("  --  ", "untitled"),
        ("", "untitled"),
        ("../../etc/passwd\0", "etc-passwd"),
        ("Use `Vec<u8>`, not Box", "use-vec-u8-not-box"),
        ("RÉSUMÉ", "résumé"),
        ("re\u0301sume\u0301", "résumé"),
        ("更新トークン", "更新トークン"),
        ("हिन्दी में", "हिन्दी-में"),
        ("\u0301", "untitled"),
        ("😀", "untitled"),
        ("Why the worker must not wait for everybody", "why-the-worker-must-not-wait-for"),
        ("x" * 60, "x" * 40),
        ("Wörterbücherverzeichnisänderungsantrag an", "wörterbücherverzeichnisänderungsantrag"),
        ("😀 𐍈" + "𐍈" * 60, "𐍈" * 30),
    ],
)
def test_titles_become_slugs(title: str, slug: str) -> None:
    assert document_names.slug(title) == slug


@given(st.text(max_size=80))
def test_a_slug_is_a_valid_file_name(title: str) -> None:
    slug = document_names.slug(title)
    assert 0 < len(slug) <= 40
    assert len(slug.encode()) <= 120
    assert slug == slug.lower() == unicodedata.normalize("NFC", slug)
    assert document_names.slug(slug) == slug
    assert not re.search(r"[/\\\s.\0]|^-|-$|--", slug)
    path = document_names.task_path(7, title)
    assert document_names.number_of(path) == "task_0007"
    assert (
        document_names.number_of(document_names.decision_path(12345, title, "feature/x")) == "12345"
    )


def test_paths_have_a_number_a_slug_and_a_suffix() -> None:
    end = "[0-9a-hjkmnp-tv-z]{4}"
    assert re.fullmatch(f"tasks/task_0043-retry-{end}.md", document_names.task_path(43, "Retry"))
    assert re.fullmatch(
        f"feature/net/decisions/0007-retry-{end}.md",
        document_names.decision_path(7, "Retry", "feature/net"),
    )
    assert re.fullmatch(f"log/2026-01-20-1205-{end}.md", document_names.log_path(NOON))
    assert (
        document_names.log_path(NOON, "ab12", "feature/net")
        == "feature/net/log/2026-01-20-1205-ab12.md"
    )
    assert document_names.log_path(-(10**20), "ab12") == "log/1970-01-01-0000-ab12.md"
    assert document_names.log_path(10**20, "ab12") == "log/9999-12-31-2359-ab12.md"
    assert len({document_names.task_path(1, "x") for _ in range(50)}) > 45
    assert document_names.token("a") == document_names.token("a") != document_names.token("b")
    assert re.fullmatch(end, document_names.token("a"))


NUMBERS = {
    "tasks/task_0043-x-ab12.md": "task_0043",
    "tasks/task_43.md": "task_0043",
    "tasks/done/task_12345-x.md": "task_12345",
    "feature/x/tasks/task_0001-x-ab12.md": "task_0001",
    "decisions/0007-x-ab12.md": "0007",
    "decisions/7.md": "0007",
}
NO_NUMBERS = (
    *("decisions/README.md", "decisions/2026-01-20-x.md", "decisions/99999999999-x.md"),
    *("tasks/0007-x.md", "task_0001-x.md", "work/s/tasks/task_0001-x.md", "log/0001-x.md"),
    "tasks/task_٣-x.md",
)


def test_numbers_are_read_from_names() -> None:
    for path, number in {**NUMBERS, **dict.fromkeys(NO_NUMBERS)}.items():
        assert document_names.number_of(path) == number, path


@pytest.fixture
def narrative(tmp_path: Path) -> Path:
    folder = tmp_path / "narrative"
    for path in (
        "README.md",
        "decisions.md",
        "tasks/task_0001-retry-with-jitter-aaaa.md",
        "tasks/task_0002-cache-bbbb.md",
        "tasks/done/task_0003-ünï-cccc.md",
        "feature/net/tasks/task_0002-sockets-dddd.md",
        "decisions/README.md",
        "decisions/0001-use-jitter-eeee.md",
        "feature/net/decisions/0004-epoll-ffff.md",
        "log/2026-01-20-1005-gggg.md",
        "feature/net/log/2026-01-20-1006-gggg.md",
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("# X\n")
    (folder / "tasks" / "task_0090-folder.md").mkdir()
    (folder / "tasks" / "task_0091-link.md").symlink_to("task_0002-cache-bbbb.md")
    (folder / "tasks" / "out").symlink_to(tmp_path)
    return folder


def test_the_next_number_considers_all_streams(narrative: Path, tmp_path: Path) -> None:
    assert document_names.next_number(str(narrative), "task") == 4
    assert document_names.next_number(str(narrative), "decision") == 5
    assert document_names.next_number(str(tmp_path / "nowhere"), "task") == 1


RETRY, CACHE = "tasks/task_0001-retry-with-jitter-aaaa.md", "tasks/task_0002-cache-bbbb.md"
DECIDED, DONE = "decisions/0001-use-jitter-eeee.md", "tasks/done/task_0003-ünï-cccc.md"
EPOLL, LOG = "feature/net/decisions/0004-epoll-ffff.md", "log/2026-01-20-1005-gggg.md"
FOUND = {
    RETRY: [
        *("task_0001", "TASK_1", "task_0001-retry", "task_0001-aaaa"),
        *("task_0001-retry-with-jitter-aaaa", "task_0001-retry-with-jitter-aaaa.md"),
    ],
    CACHE: ["task_0002-bbbb", ".ctx/narrative/tasks/task_0002-cache-bbbb"],
    DONE: ["task_0003-U\u0308nI\u0308"],
    DECIDED: ["decision_0001", "decision_1"],
    EPOLL: ["0004", "0004-epoll-ffff"],
    LOG: [LOG],
    "README.md": ["README", "./README.md"],
    None: [
        *("task_0001-cache", "4", "task_0099", "task_0091", "tasks/task_0091-link.md", "", "\0"),
        *("tasks/task_0090-folder.md", "tasks/out/narrative/README.md", "../narrative/README.md"),
        *("/etc/hosts", "x" * 5000),
    ],
}


def test_documents_are_found_by_name_number_or_path(narrative: Path) -> None:
    for path, texts in FOUND.items():
        for text in texts:
            assert document_names.find(str(narrative), text) == ([path] if path else []), text
    both = ["feature/net/tasks/task_0002-sockets-dddd.md", CACHE]
    assert document_names.find(str(narrative), "task_0002") == both
