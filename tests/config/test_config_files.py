"""Configuration files that are missing, broken or not plain files."""

import errno
import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.config import config_files
from ctx.config.config_files import LARGEST_FILE, ConfigPlace
from ctx.config.resolve import load
from ctx.errors import ConfigInvalid


@pytest.fixture
def place(tmp_path: Path) -> ConfigPlace:
    (tmp_path / ".ctx").mkdir()
    return ConfigPlace("project", str(tmp_path / ".ctx" / "config.toml"))


def refused(place: ConfigPlace) -> str:
    with pytest.raises(ConfigInvalid) as raised:
        config_files.read(place)
    return raised.value.message


def test_a_missing_file_is_not_an_error(place: ConfigPlace) -> None:
    assert config_files.read(place) is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[gc]\nkeep_days 7\n", ":2:11: expected '=' after a key in a key/value pair."),
        (b"[gc]\nkeep_days = ", ":2:13: invalid value."),
        (b"[gc\n", ":1:4: expected ']' at the end of a table declaration."),
        (b"a = 1\na = 2\n", ":2:6: cannot overwrite a value."),
        (b"\n\xff = 1\n", ":2: this is not UTF-8 text."),
        (b"\x00", ":1:1: invalid statement."),
        (b"a = " + b"9" * 5000, ": exceeds the limit"),
        (b"a = " + b"[" * 50_000, ": brackets are nested too deep."),
        (b"#" * (LARGEST_FILE + 1), " has more than 256 KiB: too large for settings."),
        (b"\n" + b"a." * 30_000 + b"a = 1", ":2: this key has too many parts."),
        (b"[" + b"a." * 30_000 + b"a]", ":1: this key has too many parts."),
        (b"x = { " + b"a." * 30_000 + b"a = 1 }", ":1: this key has too many parts."),
    ],
)
def test_a_syntax_error_has_its_line_and_column(
    place: ConfigPlace, data: bytes, message: str
) -> None:
    Path(place.path).write_bytes(data)
    before = time.process_time()
    assert refused(place).startswith(f".ctx/config.toml{message}")
    assert time.process_time() - before < 1


def test_control_characters_are_not_printed(place: ConfigPlace) -> None:
    Path(place.path).write_bytes(b'a = "\x1b[2J"')
    assert "\x1b" not in refused(place)


def test_a_folder_is_refused(place: ConfigPlace) -> None:
    os.mkdir(place.path)
    assert refused(place) == ".ctx/config.toml is a folder."


def test_a_pipe_is_not_waited_for(place: ConfigPlace) -> None:
    os.mkfifo(place.path)
    assert refused(place) == ".ctx/config.toml is not a plain file."


def test_an_endless_device_is_refused(place: ConfigPlace) -> None:
    os.symlink("/dev/zero", place.path)
    assert refused(place) == ".ctx/config.toml is not a plain file."


def test_a_broken_link_is_refused(place: ConfigPlace) -> None:
    os.symlink("missing", place.path)
    assert refused(place) == ".ctx/config.toml is a broken link."


def test_a_file_without_permission_is_refused(
    place: ConfigPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may read everything, so the refusal is simulated."""

    def refuse(path: str, flags: int) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    Path(place.path).touch()
    monkeypatch.setattr(os, "open", refuse)
    assert refused(place) == ".ctx/config.toml cannot be read: Permission denied."


def test_a_byte_order_mark_is_skipped(place: ConfigPlace) -> None:
    Path(place.path).write_bytes(b"\xef\xbb\xbf[gc]\nkeep_days = 3\n")
    file = config_files.read(place)
    assert file is not None
    assert file.tables == {"gc": {"keep_days": 3}}
    assert file.at("gc", "keep_days") == ".ctx/config.toml:2"


def test_a_user_file_is_named_with_its_full_path(tmp_path: Path) -> None:
    assert ConfigPlace("user", str(tmp_path / "config.toml")).label == str(tmp_path / "config.toml")


@settings(deadline=None)
@given(
    data=st.binary(max_size=60)
    | st.text("[]{}=,#.\"'\\\n\r 1gckeep_days", max_size=60).map(str.encode)
    | st.sampled_from(["storage", "gc", "retrieval", "llm", "x"]).flatmap(
        lambda section: st.text('=.,"[]{}1\nabcmax_depth', max_size=40).map(
            lambda rest: f"[{section}]\n{rest}".encode()
        )
    )
)
def test_any_bytes_are_loaded_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.toml"
    path.write_bytes(data)
    for user, project in ((str(path), None), ("", str(path))):
        try:
            config = load(user, project, {}, ())
        except ConfigInvalid:
            continue
        assert all(warning.isprintable() for warning in config.warnings)
