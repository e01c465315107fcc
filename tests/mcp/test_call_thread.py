"""Calls run one after the other, report progress, and can be cancelled."""

import sqlite3
import threading

import anyio
import pytest

from ctx.mcp.call_thread import CallThread, RunningCall

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


async def unheard(_seconds: float) -> None:
    """Nobody asked for progress."""


def test_long_work_reports_its_progress() -> None:
    reported: list[float] = []
    enough = threading.Event()

    async def report(seconds: float) -> None:
        reported.append(seconds)
        enough.set()

    def work(_call: RunningCall) -> str:
        assert enough.wait(60)
        return "done"

    thread = CallThread()
    assert anyio.run(thread.run, work, report) == "done"
    assert reported[0] == 1.0


def test_a_cancelled_search_stops() -> None:
    thread = CallThread()
    problems: list[Exception] = []
    began = threading.Event()

    def search(call: RunningCall) -> None:
        connection = sqlite3.connect(":memory:")
        call.may_interrupt(connection)
        began.set()
        try:
            connection.execute(ENDLESS)
        except sqlite3.OperationalError as error:
            problems.append(error)
        finally:
            connection.close()

    async def give_up() -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(thread.run, search, unheard)
            await anyio.to_thread.run_sync(began.wait)
            group.cancel_scope.cancel()
        return await thread.run(lambda _call: "next", unheard)

    assert anyio.run(give_up) == "next"
    assert [str(error) for error in problems] == ["interrupted"]


def test_a_call_that_has_not_begun_never_begins() -> None:
    thread = CallThread()
    done: list[str] = []
    may_end = threading.Event()

    def first(_call: RunningCall) -> None:
        assert may_end.wait(60)
        done.append("first")

    async def give_up() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(thread.run, first, unheard)
            await anyio.lowlevel.checkpoint()
            with anyio.move_on_after(0.05):
                await thread.run(lambda _call: done.append("second"), unheard)
            may_end.set()

    anyio.run(give_up)
    thread.finish(60)
    assert done == ["first"]


def test_errors_reach_the_caller() -> None:
    def work(_call: RunningCall) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        anyio.run(CallThread().run, work, unheard)
