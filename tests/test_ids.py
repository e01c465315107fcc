import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx import clock, ids
from ctx.errors import UsageError


def test_ulids_increase_within_a_process() -> None:
    made = [ids.new_ulid() for _ in range(20_000)]
    assert made == sorted(set(made))
    assert all(ids.is_ulid(ulid) for ulid in made)


def test_ulids_carry_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now_ms", lambda: 4_000_000_000_000)
    assert ids.ulid_ms(ids.new_ulid()) == 4_000_000_000_000
    ids._source.forget()


def test_ulids_do_not_go_back_with_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ids.UlidSource()
    monkeypatch.setattr(clock, "now_ms", lambda: 2000)
    late = source.next()
    monkeypatch.setattr(clock, "now_ms", lambda: 1000)
    assert source.next() > late


def test_ulids_are_unique_over_threads() -> None:
    made: list[ids.Ulid] = []
    threads = [
        threading.Thread(target=lambda: made.extend(ids.new_ulid() for _ in range(2000)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 16_000


def test_a_forked_child_does_not_repeat_its_parents_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now_ms", lambda: 3_000_000_000_000)
    ids.new_ulid()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, ids.new_ulid().encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 26).decode() != ids.new_ulid()
    os.close(read)
    os.close(write)
    ids._source.forget()


@given(st.text(max_size=70))
def test_object_ids_are_64_hexadecimal_characters(text: str) -> None:
    right = len(text) == 64 and all(character in "0123456789abcdef" for character in text)
    assert ids.is_object_id(text) == right
    if not right:
        with pytest.raises(UsageError):
            ids.object_id(text)


@given(st.text(max_size=140))
def test_a_session_id_is_a_safe_file_name(text: str) -> None:
    try:
        name = ids.session_id(text)
    except UsageError:
        return
    assert name == text
    assert os.path.basename(name) == name
    assert name not in (".", "..")
    assert not name.startswith(("-", "."))


@pytest.mark.parametrize("prefix", ["", "abc", "xyz1", "g" * 10, "a" * 65, "../.."])
def test_invalid_prefixes_are_refused(prefix: str) -> None:
    with pytest.raises(UsageError):
        ids.object_prefix(prefix)


def test_prefixes_are_read_in_any_case() -> None:
    assert ids.object_prefix("AbC1") == "abc1"


def test_many_ulids_at_once_are_in_order_and_follow_the_last_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = ids.UlidSource()
    made = [source.next(), *source.next_many(1_500), source.next(), *source.next_many(2)]
    # The clock goes back.
    monkeypatch.setattr(clock, "now_ms", lambda: 5)
    made += [*source.next_many(1_100), source.next()]
    assert made == sorted(set(made))
    assert all(map(ids.is_ulid, made))
    # They can be told apart by what is shown of them.
    assert len({ids.short(ulid) for ulid in made}) == len(made)
    monkeypatch.setattr(clock, "now_ms", lambda: 4_000_000_000_000)
    assert {ids.ulid_ms(ulid) for ulid in ids.UlidSource().next_many(10)} <= {
        4_000_000_000_000,
        4_000_000_000_001,
    }


@pytest.mark.parametrize("other", ["", "0" * 25, "8" + "0" * 25, "0" * 25 + "U", "0" * 25 + "a"])
def test_other_texts_are_no_ulids(other: str) -> None:
    assert not ids.is_ulid(other)
    assert ids.is_ulid("7" + "Z" * 25)
