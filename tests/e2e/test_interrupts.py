"""Ctrl-C at any point of a command: no traceback, and the exit code says what was stored."""

import random
from pathlib import Path

from ctx.interrupts import NOTHING_STORED
from tests import effort
from tests.e2e.forked_commands import By, Done, Forker
from tests.e2e.test_memory_crash import UsedStore, copy_of, state, used_store
from tests.e2e.test_project_crash import SCENARIO, Stage, begin, stage, visible_lines

__all__ = ["stage", "used_store"]

OPERATIONS, CALLS = effort.times(2), effort.times(2)
"""For each command, besides those around a commit; `bench/interrupts.py` does more."""


def check(ran: Done, is_stored: bool, where: str) -> None:
    """Check that the exit code fits to what is stored, and that one line reports it."""
    assert ran.code in (0, 130), f"{where}: {ran.code} {ran.err}"
    assert is_stored is (ran.code == 0), f"{where}: {ran.code}, stored: {is_stored}\n{ran.err}"
    assert "Traceback" not in ran.err, f"{where}: {ran.err}"
    assert "Exception" not in ran.err, f"{where}: {ran.err}"
    if ran.code == 130:
        assert ran.err.splitlines()[-1] == NOTHING_STORED, f"{where}: {ran.err}"


def around_commits(log: list[str]) -> set[int]:
    """The operations that make a change durable, and those after them."""
    durable = {at for at, each in enumerate(log) if each == "SQL COMMIT" or "replace" in each}
    return {at for each in durable for at in (each, each + 1) if at < len(log)}


def interrupt_user_store(
    used_store: UsedStore,
    forked: Forker,
    folder: Path,
    counts: tuple[int, int],
    chance: random.Random,
    step: int = 1,
) -> tuple[int, int]:
    """Interrupt each command at some of its operations, and at some of its calls; how often
    nothing and how often everything was stored."""
    undone = done = 0
    for name, command in list(used_store.commands().items())[::step]:
        path = copy_of(used_store, folder)
        before = state(path)
        words = [*command, "--db", str(path)]
        whole = forked.run(words, folder, by="operation")
        assert whole.code == 0, f"{name}: {whole.err}"
        after = state(path)
        path = copy_of(used_store, folder)
        most = forked.run(words, folder, by="call").points
        operations, calls = (
            min(wanted, n) for wanted, n in zip(counts, (whole.points, most), strict=True)
        )
        chosen = {*chance.sample(range(whole.points), operations), *around_commits(whole.log)}
        points: list[tuple[By, int]] = [("operation", at) for at in sorted(chosen)]
        points += [("call", at) for at in chance.sample(range(most), calls)]
        for by, at in points:
            path = copy_of(used_store, folder)
            ran = forked.run(words, folder, at=at, by=by)
            what = f": {whole.log[at]}" if by == "operation" else ""
            where = f"{name}, interrupted at {by} {at} of {whole.points}{what}"
            found = state(path)
            assert found in (before, after), where
            if before == after:
                assert ran.code in (0, 130), where
                assert "Traceback" not in ran.err, where
            else:
                check(ran, found == after, where)
            undone += ran.code == 130
            done += ran.code == 0
    return undone, done


def test_an_interrupted_command_is_done_or_not_done(
    used_store: UsedStore, tmp_path: Path, forked: Forker
) -> None:
    counts = OPERATIONS, CALLS
    undone, done = interrupt_user_store(
        used_store, forked, tmp_path / "copy", counts, random.Random(3), effort.every(2)
    )
    assert min(undone, done) > 10


def interrupt_project(stage: Stage, forked: Forker, every: int) -> int:
    begin(stage)
    runs = 0
    for place, step in enumerate(SCENARIO):
        words = stage.words(step)
        before = visible_lines(stage.folder), files(stage.folder)
        stage.save()
        whole = forked.run(words, stage.folder, by="operation")
        assert whole.code == 0, f"{words}: {whole.err}"
        after = visible_lines(stage.folder)
        # What a model had said by then is kept, which its own test looks at.
        points = [] if step[0] == "llm" else range(place % every, whole.points, every)
        for at in points:
            stage.reset()
            ran = forked.run(words, stage.folder, at=at, by="operation")
            where = f"{' '.join(words)} interrupted at {at}: {whole.log[at]}"
            found = visible_lines(stage.folder), files(stage.folder)
            if before[0] == after:
                assert ran.code in (0, 130), f"{where}: {ran.err}"
            else:
                check(ran, found != before, where)
                assert found == before or found[0] == after, where
            runs += 1
        stage.reset()
        assert forked.run(words, stage.folder, by="operation").code == 0, words
    return runs


def files(folder: Path) -> set[str]:
    """The documents in the working tree."""
    narrative = folder / ".ctx" / "narrative"
    return {str(path) for path in narrative.rglob("*") if path.is_file()}


def test_interrupted_staging_is_done_or_not_done(stage: Stage, forked: Forker) -> None:
    assert interrupt_project(stage, forked, every=effort.every(97)) > 15
