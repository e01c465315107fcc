"""The slots of a llama.cpp server, with a server that has only slots."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctx.llm.http_client import HttpClient
from ctx.llm.llama_cpp import slots
from ctx.llm.llama_cpp.slots import Boundary, RecalledSlot, SlotFile, Slots, SlotUsage
from ctx.llm.retry import RetryPolicy
from tests import effort
from tests.llm import model_server

PACK = slots.boundaries([range(50), range(100, 200)])
QUESTION = slots.boundaries([range(50), range(100, 200), [7, 8, 9]])
ANOTHER = slots.boundaries([range(50), range(100, 200), [3, 2, 1, 0]])
MODEL = "model"


class SlotServer:
    """Slots with a number of tokens in each, and their files."""

    def __init__(self, server: model_server.Server, count: int = 1) -> None:
        self.server = server
        self.held: dict[int, dict[str, Any]] = {
            number: {"id": number, "is_processing": False} for number in range(count)
        }
        self.files: dict[str, int] = {}
        self.done: list[str] = []
        server.pages["GET /slots"] = lambda _asked: list(self.held.values())
        for number in range(count):
            for action in ("save", "restore"):
                path = f"POST /slots/{number}?action={action}"
                server.pages[path] = getattr(self, f"_{action}s")

    def reads(self, number: int, tokens: int) -> None:
        """Evaluate a prompt in a slot."""
        task = max((each.get("id_task", 0) for each in self.held.values()), default=0) + 1
        self.held[number] |= {"id_task": task, "n_prompt_tokens": tokens}

    def restarts(self) -> None:
        for each in self.held.values():
            each.pop("id_task", None)
            each.pop("n_prompt_tokens", None)

    def _saves(self, asked: model_server.ServerRequest) -> dict[str, int]:
        number = int(asked.path.split("/")[2].partition("?")[0])
        self.files[asked.body["filename"]] = self.held[number]["n_prompt_tokens"]
        self.done.append(f"save {number}")
        return {"n_saved": self.held[number]["n_prompt_tokens"]}

    def _restores(self, asked: model_server.ServerRequest) -> dict[str, int]:
        number = int(asked.path.split("/")[2].partition("?")[0])
        self.done.append(f"restore {number}")
        found = self.files.get(asked.body["filename"])
        if found is None:
            return {}
        self.held[number]["n_prompt_tokens"] = found
        return {"n_restored": found}


@pytest.fixture
def remote(server: model_server.Server) -> SlotServer:
    return SlotServer(server)


@pytest.fixture
def slots_state(server: model_server.Server, tmp_path: Path) -> Slots:
    return open_slots(server, tmp_path)


def open_slots(server: model_server.Server, folder: Path, model: str = MODEL) -> Slots:
    wire = HttpClient("The llama.cpp server", server.url, {}, RetryPolicy(5, 0))
    return Slots(wire, {}, str(folder / "states"), model)


def ask_in_slot(
    remote: SlotServer,
    slots_state: Slots,
    prompt: tuple[Boundary, ...],
    *,
    slot: int = 0,
    found: int = 0,
) -> bool:
    """Ask one question in a slot, as the backend does."""
    recalled = slots_state.recall(prompt)
    remote.reads(slot, prompt[-1].tokens + 5)
    return slots_state.keep(slot, prompt, recalled, SlotUsage(found, 6))


def test_a_saved_slot_is_restored_up_to_the_first_difference(
    remote: SlotServer, slots_state: Slots
) -> None:
    assert ask_in_slot(remote, slots_state, QUESTION)
    # From memory, as long as it is there.
    assert slots_state.recall(ANOTHER) == RecalledSlot(0, PACK[-1])
    assert remote.done == ["save 0"]
    remote.restarts()
    assert slots_state.recall(ANOTHER) == RecalledSlot(0, PACK[-1], is_restored=True)
    assert remote.done == ["save 0", "restore 0"]


def test_a_slot_used_by_another_process_is_restored(remote: SlotServer, slots_state: Slots) -> None:
    ask_in_slot(remote, slots_state, QUESTION)
    remote.reads(0, 158)
    assert slots_state.recall(ANOTHER).is_restored


def test_a_file_that_covers_a_prompt_is_not_written_again(
    remote: SlotServer, slots_state: Slots
) -> None:
    ask_in_slot(remote, slots_state, QUESTION)
    assert ask_in_slot(remote, slots_state, ANOTHER, found=150)
    assert remote.done == ["save 0"]
    longer = slots.boundaries([range(50), range(100, 200), range(300, 340)])
    assert ask_in_slot(remote, slots_state, longer, found=150)
    assert (remote.done, len(remote.files)) == (["save 0", "save 0"], 1)


def test_a_busy_slot_is_not_used(remote: SlotServer, slots_state: Slots) -> None:
    ask_in_slot(remote, slots_state, QUESTION)
    remote.restarts()
    remote.held[0]["is_processing"] = True
    assert slots_state.recall(ANOTHER) == RecalledSlot(None)
    assert remote.done == ["save 0"]


def test_the_least_recently_used_slot_is_taken(server: model_server.Server, tmp_path: Path) -> None:
    remote, slots_state = SlotServer(server, 3), open_slots(server, tmp_path)
    ask_in_slot(remote, slots_state, QUESTION, slot=1)
    for number in (1, 2, 0):
        remote.reads(number, 30)
    remote.held[1]["is_processing"] = True
    assert slots_state.recall(ANOTHER) == RecalledSlot(2, PACK[-1], is_restored=True)


def test_a_missing_file_is_tried_once(remote: SlotServer, slots_state: Slots) -> None:
    ask_in_slot(remote, slots_state, QUESTION)
    remote.restarts()
    remote.files.clear()
    assert [slots_state.recall(ANOTHER), slots_state.recall(ANOTHER)] == [RecalledSlot(None)] * 2
    assert remote.done == ["save 0", "restore 0"]


def test_a_state_of_another_model_is_ignored(
    server: model_server.Server, remote: SlotServer, slots_state: Slots, tmp_path: Path
) -> None:
    ask_in_slot(remote, slots_state, QUESTION)
    other = open_slots(server, tmp_path, "another model")
    assert other.recall(QUESTION) == RecalledSlot(None)
    assert ask_in_slot(remote, other, QUESTION)
    assert len(remote.files) == 1


def test_another_prompt_prefix_is_not_cached(remote: SlotServer, slots_state: Slots) -> None:
    ask_in_slot(remote, slots_state, QUESTION)
    assert slots_state.recall(slots.boundaries([range(1, 51), range(100, 200)])) == RecalledSlot(
        None
    )


def test_a_large_state_is_not_restored_for_a_small_part(
    remote: SlotServer, slots_state: Slots
) -> None:
    ask_in_slot(remote, slots_state, slots.boundaries([range(40), range(1_000)]))
    remote.restarts()
    assert slots_state.recall(slots.boundaries([range(40), range(5)])) == RecalledSlot(None)


def test_the_slot_of_another_process_does_not_count_as_saved(
    remote: SlotServer, slots_state: Slots
) -> None:
    remote.reads(0, 900)
    assert not slots_state.keep(0, QUESTION, RecalledSlot(None), SlotUsage(0, 6))
    assert slots_state.recall(QUESTION) == RecalledSlot(None)


def test_a_partly_written_file_is_not_used(
    server: model_server.Server, remote: SlotServer, slots_state: Slots
) -> None:
    """Restoring such a file can crash a server."""
    ask_in_slot(remote, slots_state, QUESTION)
    longer = slots.boundaries([range(50), range(100, 200), range(300, 340)])
    for answer in (model_server.Status(500, "gone"), {"n_saved": 195, "n_written": 0}):
        server.pages["POST /slots/0?action=save"] = answer
        assert not ask_in_slot(remote, slots_state, longer, found=150)
        remote.restarts()
        assert slots_state.recall(QUESTION) == RecalledSlot(None)


def test_a_short_prompt_is_not_saved(remote: SlotServer, slots_state: Slots) -> None:
    assert not ask_in_slot(remote, slots_state, slots.boundaries([range(31)]))
    assert remote.done == []


def test_four_files_are_kept_and_the_oldest_is_replaced(
    remote: SlotServer, slots_state: Slots
) -> None:
    prompts = [slots.boundaries([range(begin, begin + 60)]) for begin in range(6)]
    for prompt in prompts:
        assert ask_in_slot(remote, slots_state, prompt)
    assert len(remote.files) == 4
    remote.restarts()
    assert [slots_state.recall(prompt).is_restored for prompt in prompts] == [False] * 2 + [
        True
    ] * 4


def test_a_server_that_cannot_use_restored_states_is_not_asked_again(
    remote: SlotServer, slots_state: Slots, tmp_path: Path
) -> None:
    for _ in range(4):
        ask_in_slot(remote, slots_state, QUESTION, found=0)
        remote.restarts()
    assert remote.done == ["save 0", *["restore 0", "save 0"] * 2, "restore 0"]
    assert slots_state.recall(QUESTION) == RecalledSlot(None)
    assert not ask_in_slot(remote, slots_state, QUESTION)
    # After a day it is tried again.
    [path] = (tmp_path / "states").iterdir()
    *state, missed_ms = json.loads(path.read_text())
    path.write_text(json.dumps([*state, missed_ms - 24 * 60 * 60 * 1000]))
    assert ask_in_slot(remote, slots_state, QUESTION)


def test_a_server_without_slots_saves_nothing(
    server: model_server.Server, slots_state: Slots
) -> None:
    server.pages.clear()
    assert slots_state.recall(QUESTION) == RecalledSlot(None)
    assert not slots_state.keep(0, QUESTION, RecalledSlot(None), SlotUsage(0, 6))
    assert slots_state.recall(QUESTION) == RecalledSlot(None)


def test_a_server_that_hides_its_slots_can_be_restored(
    server: model_server.Server, remote: SlotServer, slots_state: Slots
) -> None:
    ask_in_slot(remote, slots_state, QUESTION)
    del server.pages["GET /slots"]
    assert slots_state.recall(ANOTHER) == RecalledSlot(0, PACK[-1], is_restored=True)


def test_two_processes_can_write_at_once(
    server: model_server.Server, remote: SlotServer, tmp_path: Path
) -> None:
    one, other = open_slots(server, tmp_path), open_slots(server, tmp_path)
    first = slots.boundaries([range(60)])
    began = one.recall(first)
    assert ask_in_slot(remote, other, QUESTION)
    remote.reads(0, 62)
    assert one.keep(0, first, began, SlotUsage(0, 6))
    remote.restarts()
    assert one.recall(first).is_restored
    assert other.recall(QUESTION).is_restored


def test_the_state_file_does_not_contain_the_prompt(
    server: model_server.Server, remote: SlotServer, slots_state: Slots, tmp_path: Path
) -> None:
    ask_in_slot(remote, slots_state, QUESTION)
    [path] = (tmp_path / "states").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    version, where, model, saved, misses, missed_ms = json.loads(path.read_text())
    assert (version, where, len(model)) == (2, server.url, 32)
    assert (len(saved), misses, missed_ms) == (1, 0, 0)
    [[file, ends, _, held]] = saved
    assert file == f"ctx-{path.stem.removeprefix('slots-')}-0.bin"
    assert ends == [list(each) for each in QUESTION]
    assert held == [0, 1, 158]


def test_a_removed_state_is_reported_and_not_restored(
    server: model_server.Server, remote: SlotServer, slots_state: Slots, tmp_path: Path
) -> None:
    ask_in_slot(remote, slots_state, QUESTION)
    folder = tmp_path / "states"
    [path] = folder.iterdir()
    (folder / "slots-damaged.json").write_text("[2]")
    name = f"ctx-{path.stem.removeprefix('slots-')}-0.bin"
    assert slots.forget(str(folder)) == [SlotFile(server.url, name)]
    assert list(folder.iterdir()) == []
    assert slots.forget(str(folder)) == []
    assert slots_state.recall(QUESTION) == RecalledSlot(None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "[2, 3]",
        '[2,"http://a","m",[["../../etc/passwd",[["a",99]],1,[]]],0,0]',
        '[2,"http://a","m",[["ctx-0123456789abcdef-0.bin",[],1,[]]],0,0]',
        '{"version": 1}',
        "[" * 100_000,
        "\x00\x01",
    ],
)
def test_an_invalid_state_file_is_replaced(
    text: str, remote: SlotServer, slots_state: Slots, tmp_path: Path
) -> None:
    ask_in_slot(remote, slots_state, QUESTION)
    [path] = (tmp_path / "states").iterdir()
    path.write_text(text)
    assert slots_state.recall(QUESTION) == RecalledSlot(None)
    assert ask_in_slot(remote, slots_state, QUESTION)
    remote.restarts()
    assert slots_state.recall(QUESTION).is_restored


@settings(
    max_examples=effort.times(25),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(
    value=st.recursive(
        st.none() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4),
        max_leaves=12,
    )
)
def test_any_state_file_is_accepted(value: Any, slots_state: Slots, tmp_path: Path) -> None:
    slots_state.keep(0, slots.boundaries([[1]]), RecalledSlot(None), SlotUsage(0, 0))
    [path] = (tmp_path / "states").iterdir()
    version, model, _, *misses = json.loads(path.read_text())
    file = f"ctx-{'0' * 16}-0.bin"
    for state in (
        value,
        [version, model, value, *misses],
        [version, model, [value], *misses],
        [version, model, [[file, value, value, value]], value, value],
    ):
        path.write_text(json.dumps(state))
        assert slots_state.recall(QUESTION).known is None


def test_a_file_in_place_of_the_folder_is_not_an_error(
    remote: SlotServer, slots_state: Slots, tmp_path: Path
) -> None:
    (tmp_path / "states").write_text("a file")
    assert not ask_in_slot(remote, slots_state, QUESTION)


@given(
    st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=5), max_size=5),
    st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=5), max_size=5),
)
def test_boundaries_are_equal_for_equal_parts(one: list[list[int]], other: list[list[int]]) -> None:
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    shared = set(slots.boundaries(one)) & set(slots.boundaries(other))
    assert shared == set(slots.boundaries(one[:same]))


def test_the_cached_part_is_measured_in_tokens() -> None:
    assert slots.known_part(QUESTION, 149) == QUESTION[0].digest
    assert slots.known_part(QUESTION, 152) == PACK[-1].digest
    assert slots.known_part(QUESTION, 3) == ""
