"""The page with all decisions."""

from pathlib import Path

import pytest

from ctx.narrative import decisions_page, document_format

PAGE = """\
<!-- Made by ctx from the files in decisions/: what is changed here is lost. -->

# Decisions

## 0010 Epoll

[feature/net/decisions/0010-epoll-cccc.md](<feature/net/decisions/0010-epoll-cccc.md>) · 2026-01-21

## 0002 Later

[decisions/0002-later-bbbb.md](<decisions/0002-later-bbbb.md>)

```
never closed
```

## 0002 Use jitter

[decisions/0002-jitter-aaaa.md](<decisions/0002-jitter-aaaa.md>) · 2026-01-20 · net, retry

### Summary

Storms.

## by-hand.md

[decisions/by-hand.md](<decisions/by-hand.md>)

Without a title.
"""


@pytest.fixture
def narrative(tmp_path: Path) -> Path:
    folder = tmp_path / "narrative"
    jitter = document_format.render(
        "Use jitter", "## Summary\n\nStorms.", created="2026-01-20T10:00:00Z", tags=["net", "retry"]
    )
    for path, text in {
        "decisions/README.md": "# About\n",
        "decisions/0002-jitter-aaaa.md": jitter,
        "decisions/0002-later-bbbb.md": "# Later\n```\nnever closed\n",
        "decisions/by-hand.md": "Without a title.\n",
        "feature/net/decisions/0010-epoll-cccc.md": document_format.render(
            "Epoll", "", created="2026-01-21T10:00:00Z"
        ),
        "tasks/task_0001-x-dddd.md": "# Task\n",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def test_the_page_contains_all_decisions(narrative: Path) -> None:
    newer, older = "## 0002 Later", "## 0002 Use jitter"
    page = decisions_page.decisions(str(narrative))
    assert sorted(page.split("\n\n")) == sorted(PAGE.split("\n\n"))
    assert page.index("## 0010") < min(page.index(newer), page.index(older))


def test_the_page_is_written_only_if_it_differs(narrative: Path) -> None:
    assert decisions_page.write_decisions(str(narrative))
    page = narrative / "decisions.md"
    assert page.read_text() == decisions_page.decisions(str(narrative))
    assert not decisions_page.write_decisions(str(narrative))
    assert not decisions_page.write_decisions(str(narrative / "nowhere"))
    assert not (narrative / "nowhere").exists()
    page.write_text(page.read_text() + "An edit\n")
    assert decisions_page.write_decisions(str(narrative))
    assert "An edit" not in page.read_text()
    for path in narrative.rglob("decisions/*.md"):
        path.unlink()
    assert decisions_page.write_decisions(str(narrative))
    assert page.read_text().endswith("# Decisions\n\nNone yet.\n")


def test_a_page_that_ctx_did_not_write_is_left_alone(narrative: Path, tmp_path: Path) -> None:
    page = narrative / "decisions.md"
    page.write_text("# Decisions\n\nBy hand.\n")
    assert not decisions_page.write_decisions(str(narrative))
    assert page.read_text() == "# Decisions\n\nBy hand.\n"
    page.unlink()
    outside = tmp_path / "outside.md"
    outside.write_text(decisions_page.decisions(str(narrative)) + "x")
    page.symlink_to(outside)
    assert not decisions_page.write_decisions(str(narrative))
    assert outside.read_text().endswith("x")
    page.unlink()
    page.mkdir()
    assert not decisions_page.write_decisions(str(narrative))
