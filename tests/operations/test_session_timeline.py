"""Sessions a page at a time, by project, host, text and day."""

import pytest

from ctx.errors import UsageError
from ctx.operations.session_timeline import Options, SessionPage, list_page
from ctx.sqlite.connection import transaction
from ctx.synthesis.session_writer import synthesise
from ctx.workspace import Memory
from tests.synthesis.test_session_writer import add_steps

WORK = """
prompt: Add a "write" of `,"ok":false` to the queue. Always use msgspec for JSON.
write: src/queue.py +9 -0
write: src/queue.py +1 -1
write: src/log.py +1 -0
run: make test
  failed 2
run: make test
  passed
say: Done.
prompt: Thanks.
"""


def add_sessions(memory: Memory, number: int, *, project: str | None, host: str = "codex") -> None:
    with transaction(memory.local):
        for each in range(number):
            at = f"2026-11-{1 + each // 4:02}T{each % 4:02}:00:00Z"
            memory.local.execute(
                "INSERT INTO sessions (id, project, folder, client, branch, request, started_at,"
                " last_at) VALUES (?, ?, '/', ?, ?, ?, ?, ?)",
                (f"{host}-{project}-{each:04}", project, host, f"b{each}", f"Do {each}%", at, at),
            )


def names(page: SessionPage) -> list[str]:
    return [each.id for each in page.sessions]


def test_what_a_session_did_in_numbers(memory: Memory) -> None:
    add_steps(memory, WORK)
    synthesise(memory, "s1", is_over=True)
    (entry,) = list_page(memory, Options(memory.project)).sessions
    assert entry.counts == (8, 2, 2, 1)
    assert sum(entry.memory.values()) > 0
    assert "summary" not in entry.memory
    assert entry.title
    with transaction(memory.local):
        memory.local.execute("UPDATE sessions SET request = ''")
    # Its summary is searched.
    for text, total in (("QUEUE", 1), ("nothing of it", 0)):
        assert list_page(memory, Options(memory.project, text=text)).total == total


def test_pages_go_down_and_up_again(memory: Memory) -> None:
    add_sessions(memory, 10, project="shop")
    options = Options("shop", limit=4)
    first = list_page(memory, options)
    assert (first.total, first.newer) == (10, "")
    assert names(first) == [f"codex-shop-{each:04}" for each in (9, 8, 7, 6)]
    second = list_page(memory, options._replace(before=first.older))
    third = list_page(memory, options._replace(before=second.older))
    assert names(third) == ["codex-shop-0001", "codex-shop-0000"]
    assert third.older == ""
    assert list_page(memory, options._replace(after=third.newer)) == second
    assert names(list_page(memory, options._replace(after=second.newer))) == names(first)
    assert list_page(memory, options._replace(after=second.newer)).newer == ""


def test_filters(memory: Memory) -> None:
    add_sessions(memory, 8, project="shop")
    add_sessions(memory, 3, project="other", host="gemini")

    def total(**wanted: str) -> int:
        return list_page(memory, Options("shop", **wanted)).total  # type: ignore[arg-type]

    assert list_page(memory, Options(None)).total == 11
    assert list_page(memory, Options(None)).hosts == {"codex": 8, "gemini": 3}
    assert list_page(memory, Options(None, host="gemini")).total == 3
    assert (total(), total(host="codex"), total(host="gemini")) == (8, 8, 0)
    assert (total(until="2026-11-01"), total(until="2026-10-31")) == (4, 0)
    assert (total(text="do 3%"), total(text="B5"), total(text="codex-shop")) == (1, 1, 8)
    assert (total(text="%"), total(text="_"), total(text="' OR 1")) == (8, 0, 0)


@pytest.mark.parametrize("wrong", [{"until": "yesterday"}, {"before": "x"}, {"after": "x"}])
def test_a_wrong_day_or_position_is_refused(memory: Memory, wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        list_page(memory, Options(None, **wrong))  # type: ignore[arg-type]
