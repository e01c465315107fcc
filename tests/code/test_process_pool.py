"""Worker processes: one answer per file, also if some files end a worker."""

import sys
from pathlib import Path

import pytest

from ctx.code.file_reader import FileToRead
from ctx.code.process_pool import READ_BATCH, ProcessPool
from ctx.code.vocabulary import LARGEST_FILE
from ctx.errors import ProgramFailure
from tests.thread_locks import waits

DIES = """
import os, sys
from ctx.code import file_reader, process_pool
read = file_reader.read
def read_or_die(root, wanted, limits):
    if wanted.path in sys.argv[1:]:
        os._exit(1)
    return read(root, wanted, limits)
file_reader.read = read_or_die
process_pool.serve()
"""
"""A worker that ends at the files in its arguments."""


class DyingPool(ProcessPool):
    def __init__(self, deadly: list[str]) -> None:
        super().__init__(workers=1)
        self.deadly = deadly
        self.starts = 0

    def _command(self) -> list[str]:
        self.starts += 1
        return [sys.executable, "-c", DIES, *self.deadly]


@pytest.mark.parametrize(
    ("deadly", "starts"),
    [([], 1), ([0], 3), ([READ_BATCH - 1, READ_BATCH], 6)],
)
def test_only_the_files_that_end_a_worker_are_lost(
    tmp_path: Path, deadly: list[int], starts: int
) -> None:
    paths = [f"m{number}.py" for number in range(READ_BATCH + 3)]
    for path in paths:
        (tmp_path / path).write_text("def f() -> int:\n    return 1\n")
    wanted = [FileToRead(number, path) for number, path in enumerate(paths)]
    pool = DyingPool([paths[number] for number in deadly])
    with pool:
        records = list(pool.read(str(tmp_path), LARGEST_FILE, wanted))
    assert [record.file_id for record in records] == list(range(len(paths)))
    assert [record.file_id for record in records if record.state != "read"] == deadly
    assert pool.starts <= starts


def test_a_pool_that_is_left_early_leaves_no_thread_and_no_process(tmp_path: Path) -> None:
    """Also no worker that was just started, and no thread whose answers nobody takes."""
    wanted = [FileToRead(number, f"m{number}.py") for number in range(16 * READ_BATCH)]
    for file in wanted:
        (tmp_path / file.path).write_text("def f() -> int:\n    return 1\n")
    with ProcessPool(workers=4) as pool:
        next(pool.read(str(tmp_path), LARGEST_FILE, wanted))
    assert len(pool._threads) == 4
    assert not any(thread.is_alive() for thread in pool._threads)
    assert all(process.returncode is not None for process in pool._alive)


def test_workers_that_do_not_start_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "false")
    with ProcessPool() as pool, pytest.raises(ProgramFailure):
        list(pool.read("", LARGEST_FILE, [FileToRead(0, "m.py")]))


def test_workers_are_started_and_ended_under_the_lock(tmp_path: Path) -> None:
    """The end of the pool, in another thread, would forget to kill one."""
    with ProcessPool(workers=1) as pool:
        assert waits(pool, pool._start_worker)
        (process,) = pool._alive
        assert waits(pool, lambda: pool._end(process))
        assert pool._alive == []
