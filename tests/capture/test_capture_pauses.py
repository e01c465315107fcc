"""Where and when capture is paused."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.capture import capture_pauses
from tests import effort


def test_a_pause_holds_in_a_folder_and_below_it(tmp_path: Path) -> None:
    home, shop = str(tmp_path / "ctx"), tmp_path / "shop"
    (shop / "sub").mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(shop)
    assert not capture_pauses.is_paused(home, str(shop), 100)
    assert capture_pauses.pause(home, [str(shop)], 100, 0)
    assert not capture_pauses.pause(home, [str(shop)], 150, 0)
    here = [shop, shop / "sub", link, link / "sub"]
    assert [capture_pauses.is_paused(home, str(each), 200) for each in here] == [True] * 4
    elsewhere = [tmp_path, tmp_path / "shop-2", tmp_path / "shop-2" / "sub"]
    assert [capture_pauses.is_paused(home, str(each), 200) for each in elsewhere] == [False] * 3
    assert not capture_pauses.is_paused(home, "", 200)
    assert not capture_pauses.is_paused(home, str(shop), 99)
    assert capture_pauses.resume(home, ["/other"], 250) == []
    assert capture_pauses.resume(home, [str(shop)], 300) == [(100, 0, str(shop))]
    times = (99, 100, 299, 300)
    assert [capture_pauses.is_paused(home, str(shop), at) for at in times] == [
        False,
        True,
        True,
        False,
    ]
    assert os.listdir(home) == ["pauses"]
    assert os.stat(f"{home}/pauses").st_mode & 0o777 == 0o600


def test_a_pause_ends_at_its_time(tmp_path: Path) -> None:
    home = str(tmp_path)
    capture_pauses.pause(home, ["*"], 100, 200)
    assert capture_pauses.is_paused(home, "/anywhere", 199)
    assert capture_pauses.is_paused(home, "", 199)
    assert not capture_pauses.is_paused(home, "/anywhere", 200)
    assert capture_pauses.current(home, 250) == []
    # Another time later: what was is not forgotten.
    assert capture_pauses.pause(home, ["*"], 300, 0)
    assert [capture_pauses.is_paused(home, "/x", at) for at in (150, 250, 350)] == [
        True,
        False,
        True,
    ]


def test_lines_that_cannot_be_read_are_ignored(tmp_path: Path) -> None:
    home = str(tmp_path)
    for text in (b"", b"\xff\n\n0\n0 0\nx y z\n-1 0 *\n", b"0 0 \n", b"9" * 40 + b" 0 *\n"):
        (tmp_path / "paused").write_bytes(text)
        assert not capture_pauses.is_paused(home, "/x", 5)
    (tmp_path / "paused").write_bytes(b"nonsense\n1 0 /x y\n")
    assert capture_pauses.is_paused(home, "/x y/z", 5)
    (tmp_path / "paused").unlink()
    (tmp_path / "paused").mkdir()
    assert not capture_pauses.is_paused(home, "/x", 5)


WORDS = st.lists(st.tuples(st.sampled_from(("pause", "resume")), st.integers(1, 9)), max_size=8)


@settings(max_examples=effort.times(25), deadline=None, derandomize=True)
@given(WORDS)
def test_past_pauses_are_remembered(words: list[tuple[str, int]]) -> None:
    with TemporaryDirectory() as home:
        now = 1
        told: dict[int, bool] = {}
        for word, wait in words:
            if word == "pause":
                capture_pauses.pause(home, ["*"], now, 0)
            else:
                capture_pauses.resume(home, None, now)
            told |= dict.fromkeys(range(now, now + wait), word == "pause")
            now += wait
        assert {at: capture_pauses.is_paused(home, "/x", at) for at in told} == told
