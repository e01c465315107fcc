"""The spool: events are complete and in order, and attempts are limited."""

import os
import stat
from pathlib import Path

import pytest

from ctx.hook_files import spool
from tests.faults import NO_SPACE, Disk, Stopped

AT = 1_768_906_800_123


def names(home: Path) -> list[str]:
    return spool.pending_names(str(home))


def all_files(home: Path) -> list[str]:
    """Everything in the folder, including temporary files."""
    return sorted(os.listdir(home / "spool"))


def test_a_missing_folder_is_an_empty_spool(tmp_path: Path) -> None:
    assert names(tmp_path / "none") == []
    (tmp_path / "spool").write_text("A file at its place.")
    assert names(tmp_path) == []
    assert spool.failed_names(str(tmp_path)) == []


def test_events_are_listed_oldest_first(tmp_path: Path) -> None:
    made = [spool.new_id(now) for now in (AT + 2, AT, 99, AT + 1)]
    for event_id in made:
        spool.put(str(tmp_path), event_id, "stop", b"{}")
    # One that is retried keeps its place.
    spool.attempt(str(tmp_path), names(tmp_path)[1])
    found = [spool.id_of(name) for name in names(tmp_path)]
    assert found == [made[2], made[1], made[3], made[0]]
    assert [spool.made_ms(event_id) for event_id in found] == [99, AT, AT + 1, AT + 2]


def test_ids_are_unique_and_contain_their_time(tmp_path: Path) -> None:
    foreign = {"": 0, "x": 0, "-1-2": 0, "9" * 16: 0, "12-x": 12}
    assert {name: spool.made_ms(name) for name in foreign} == foreign
    made = {spool.new_id(AT) for _ in range(1000)}
    assert len(made) == 1000
    for event_id in made:
        assert event_id.startswith(f"{AT}-{os.getpid()}-")
        assert "." not in event_id
        assert spool.made_ms(event_id) == AT


@pytest.mark.parametrize(
    ("name", "kind", "has_commands", "span"),
    [
        ("1-2-3.stop", "stop", False, (None, None)),
        ("1-2-3.stop.1024-20480", "stop", True, (1024, 20480)),
        ("1-2-3.stop.0-5", "stop", True, (0, 5)),
        ("1-2-3.stop.-20480", "stop", True, (None, 20480)),
        ("1-2-3.stop.1024-", "stop", True, (1024, None)),
        ("1-2-3.stop.-", "stop", True, (None, None)),
        ("1-2-3.stop.x-y", "stop", True, (None, None)),
        ("1-2-3.receipt", "receipt", False, (None, None)),
        ("1-2-3.post-tool-use", "post-tool-use", False, (None, None)),
        ("1-2-3.post-tool-use.4-5", "post-tool-use", False, (None, None)),
    ],
)
def test_a_file_name_is_parsed(
    name: str, kind: str, has_commands: bool, span: tuple[int | None, int | None]
) -> None:
    for tried in (name, f"{name}~1", f"{name}~3"):
        assert spool.id_of(tried) == "1-2-3"
        assert spool.kind_of(tried) == kind
        assert spool.has_commands(tried) is has_commands
        assert spool.span_of(tried) == span
        assert spool.without_attempt_mark(tried) == name


def test_events_with_commands_are_listed_for_their_store(tmp_path: Path) -> None:
    home = str(tmp_path)
    for event_id, kind in (
        ("3-0-0", "stop.-"),
        ("1-0-0", "codex:stop.4-5"),
        ("2-0-0", "stop"),
        ("4-0-0", "post-tool-use"),
        ("5-0-0", "stop.6-7@1f2e3d4c"),
    ):
        spool.put(home, event_id, kind, b"{}")
    spool.attempt(home, "3-0-0.stop.-")
    assert spool.pending_commands(home) == ["1-0-0.codex:stop.4-5", "3-0-0.stop.-~1"]
    assert spool.pending_commands(home, "@1f2e3d4c") == ["5-0-0.stop.6-7@1f2e3d4c"]
    assert spool.pending_commands(home, "@00000000") == []
    assert spool.pending_commands(f"{home}/missing") == []


def test_an_event_is_set_aside_after_three_attempts(tmp_path: Path) -> None:
    home = str(tmp_path)
    spool.put(home, "1-2-3", "stop.5-6", b"It ends whoever reads it.")
    assert not spool.is_hopeless(names(tmp_path)[0])
    for tries in (1, 2, 3, 4):
        tried = spool.attempt(home, names(tmp_path)[0])
        assert tried == f"1-2-3.stop.5-6~{tries}"
        assert names(tmp_path) == [tried]
        assert spool.is_hopeless(tried) is (tries == 4)
    spool.give_up(home, tried)
    assert names(tmp_path) == []
    assert spool.failed_names(home) == ["1-2-3.stop.5-6"]
    aside = tmp_path / "spool" / "failed"
    assert (aside / "1-2-3.stop.5-6").read_bytes() == b"It ends whoever reads it."
    assert stat.S_IMODE(aside.stat().st_mode) == 0o700


def test_a_folder_in_the_spool_can_be_set_aside(tmp_path: Path) -> None:
    home = str(tmp_path)
    (tmp_path / "spool" / "1-2-3.stop").mkdir(parents=True)
    tried = spool.attempt(home, names(tmp_path)[0])
    assert tried == "1-2-3.stop~1"
    spool.give_up(home, tried)
    assert names(tmp_path) == []
    assert spool.failed_names(home) == ["1-2-3.stop"]


@pytest.mark.parametrize("name", ["1-2-3.stop", "1-2-3.stop~", "1-2-3.stop~x", "1-2-3.stop~²"])
def test_an_unknown_suffix_does_not_count_as_attempts(name: str) -> None:
    assert not spool.is_hopeless(name)


def test_an_attempt_that_is_taken_back_does_not_count(tmp_path: Path) -> None:
    home = str(tmp_path)
    spool.put(home, "1-2-3", "receipt", b"{}")
    for _ in range(9):
        tried = spool.attempt(home, names(tmp_path)[0])
        assert tried == "1-2-3.receipt~1"
        spool.leave(home, tried)
        assert names(tmp_path) == ["1-2-3.receipt"]


def test_a_partly_written_event_is_not_listed(tmp_path: Path) -> None:
    """A hook that is killed at any point leaves the complete event or none."""
    step = 0
    while True:
        home = tmp_path / str(step)
        disk = Disk(step)
        try:
            with disk.installed():
                spool.put(str(home), "1-2-3", "stop.5-6", b"x" * 1000, durable=True)
            break
        except Stopped:
            found = [Path(spool.path_of(str(home), name)).read_bytes() for name in names(home)]
            assert found in ([], [b"x" * 1000])
        step += 1
    assert step > 4
    assert names(home) == ["1-2-3.stop.5-6"]


def test_a_durable_event_survives_a_power_loss(tmp_path: Path) -> None:
    home = tmp_path / "ctx"
    (home / "spool").mkdir(parents=True)
    disk = Disk(power_loss=True)
    with disk.installed():
        spool.put(str(home), "1-2-3", "stop.5-6", b"Do it.", durable=True)
    disk.lose_power()
    assert names(home) == ["1-2-3.stop.5-6"]
    assert Path(spool.path_of(str(home), "1-2-3.stop.5-6")).read_bytes() == b"Do it."


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    for step in range(3):
        disk = Disk(step, refuse_with=NO_SPACE)
        with disk.installed(), pytest.raises(OSError, match="No space"):
            spool.put(str(tmp_path), "1-2-3", "stop", b"x" * 100, durable=True)
        assert all_files(tmp_path) == []


def test_other_files_in_the_folder_are_not_events(tmp_path: Path) -> None:
    spool.put(str(tmp_path), "1-2-3", "stop", b"{}")
    folder = tmp_path / "spool"
    (folder / "LOCK").touch()
    (folder / "tmp-1-2-4").touch()
    (folder / "tmp-1-2-4.old").touch()
    (folder / "failed").mkdir()
    assert names(tmp_path) == ["1-2-3.stop"]
