"""Changing one value keeps the rest of a file, and concurrent changes are not lost."""

import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.config import edit_file, schema
from ctx.config.config_files import ConfigPlace
from ctx.config.project_template import project_template
from ctx.config.resolve import load
from ctx.errors import ConfigInvalid, DiskFailure
from tests import effort
from tests.config.documents import KEYS, SCALARS, Document, documents
from tests.config.values import values_of

LEVEL = schema.SETTINGS["storage.compression_level"]
DEPTH = schema.SETTINGS["retrieval.default_depth"]
GLOBS = schema.SETTINGS["ingestion.ignore_globs"]


@pytest.fixture
def place(tmp_path: Path) -> ConfigPlace:
    return ConfigPlace("user", str(tmp_path / "new" / "config.toml"))


def after(place: ConfigPlace, before: str | bytes) -> str:
    """The text after setting the compression level to 9."""
    path = Path(place.path)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(before.encode() if isinstance(before, str) else before)
    edit_file.set_value(place, LEVEL, 9)
    return path.read_bytes().decode()


def test_the_first_setting_creates_a_private_file(place: ConfigPlace) -> None:
    assert edit_file.set_value(place, LEVEL, 9) == edit_file.SettingChange(
        LEVEL.name, None, 9, place.path, True
    )
    assert Path(place.path).read_text() == "[storage]\ncompression_level = 9\n"
    assert stat.S_IMODE(os.stat(place.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(place.path)).st_mode) == 0o700


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("# top\n\n[gc] # a\n", "# top\n\n[gc] # a\n\n[storage]\ncompression_level = 9\n"),
        ("[storage]\ncompression_level = 3 # why\n", "[storage]\ncompression_level = 9 # why\n"),
        ("storage = {compression_level = 3}\n", "storage = {compression_level = 9}\n"),
        ("storage.compression_level = 3 # why\n", "storage.compression_level = 9 # why\n"),
        ("[storage]\ncompression_level='x'", "[storage]\ncompression_level=9"),
        ("[storage]\r\ncompression_level=3\r\n", "[storage]\r\ncompression_level=9\r\n"),
        ("\ufeff[storage]\ncompression_level = 3\n", "[storage]\ncompression_level = 9\n"),
        # A line that is commented out is taken into use, in the right section.
        (
            "[gc]\n# compression_level = 3\n[storage]\n# Level.\n# compression_level = 3\n\n# x\n",
            "[gc]\n# compression_level = 3\n[storage]\n# Level.\ncompression_level = 9\n\n# x\n",
        ),
    ],
)
def test_only_the_value_changes(place: ConfigPlace, before: str, expected: str) -> None:
    assert after(place, before) == expected


def test_setting_twice_changes_nothing(place: ConfigPlace) -> None:
    edit_file.set_value(place, LEVEL, 9)
    before = os.stat(place.path)
    change = edit_file.set_value(place, LEVEL, 9)
    assert change == edit_file.SettingChange(LEVEL.name, 9, 9, place.path, False)
    assert os.stat(place.path).st_ino == before.st_ino


def test_unset_leaves_the_section(place: ConfigPlace) -> None:
    after(place, "[storage] # a\n# b\ncompression_level = 3\n# c\n")
    assert edit_file.unset(place, LEVEL) == edit_file.SettingChange(
        LEVEL.name, 9, None, place.path, True
    )
    assert Path(place.path).read_text() == "[storage] # a\n# b\n# c\n"
    assert edit_file.unset(place, LEVEL) == edit_file.SettingChange(
        LEVEL.name, None, None, place.path, False
    )


def test_unset_creates_no_file(place: ConfigPlace) -> None:
    assert edit_file.unset(place, LEVEL).changed is False
    assert not os.path.exists(os.path.dirname(place.path))


def test_setting_and_unsetting_a_value_keeps_the_template(place: ConfigPlace) -> None:
    template = project_template("x", "1.0")
    Path(place.path).parent.mkdir()
    for known in schema.SETTINGS.values():
        if known.section in schema.PROJECT_SECTIONS - {"repo"} and not known.is_fixed:
            Path(place.path).write_text(template)
            edit_file.set_value(place, known, known.default)
            changed = Path(place.path).read_text()
            [line] = set(changed.splitlines()) - set(template.splitlines())
            assert line.startswith(f"{known.key} = ")
            edit_file.unset(place, known)
            assert Path(place.path).read_text() == template


def test_an_older_name_is_replaced(place: ConfigPlace) -> None:
    after(place, "[retrieval]\nmax_depth = 3 # a\n")
    assert edit_file.set_value(place, DEPTH, 4).old == 3
    tables = tomllib.loads(Path(place.path).read_text())
    assert tables["retrieval"] == {"default_depth": 4}
    after(place, "[retrieval]\nmax_depth = 3\ndefault_depth = 5\n")
    assert edit_file.unset(place, DEPTH).old == 5
    assert tomllib.loads(Path(place.path).read_text())["retrieval"] == {}


def test_a_wrong_value_can_be_replaced(place: ConfigPlace) -> None:
    after(place, "[storage]\ncompression_level = { a = 1 }\n")
    assert edit_file.set_value(place, LEVEL, 3).old == 9
    Path(place.path).write_text("[storage]\ncompression_level = 1979-05-27\n")
    assert edit_file.set_value(place, LEVEL, 3).old == "1979-05-27"


def test_a_long_list_gets_a_line_for_each_item(place: ConfigPlace) -> None:
    edit_file.set_value(place, GLOBS, tuple(f"folder-number-{n}/**" for n in range(9)))
    assert len(Path(place.path).read_text().splitlines()) == 12


def test_a_broken_file_is_left_alone(place: ConfigPlace) -> None:
    for broken in ("[storage\n", "storage = 3\n"):
        with pytest.raises(ConfigInvalid):
            after(place, broken)
        assert Path(place.path).read_text() == broken


def test_the_users_link_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "ctx.toml"
    real.parent.mkdir()
    real.write_text("# mine\n")
    real.chmod(0o640)
    link = tmp_path / "config.toml"
    link.symlink_to(real)
    edit_file.set_value(ConfigPlace("user", str(link)), LEVEL, 9)
    assert link.is_symlink()
    assert "compression_level = 9" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_link_in_a_project_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.toml"
    target.write_text("")
    (tmp_path / "config.toml").symlink_to(target)
    with pytest.raises(ConfigInvalid, match="is a link"):
        edit_file.set_value(ConfigPlace("project", str(tmp_path / "config.toml")), LEVEL, 9)
    assert target.read_text() == ""


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DiskFailure):
        edit_file.set_value(ConfigPlace("user", str(tmp_path / "file" / "config.toml")), LEVEL, 9)


@pytest.mark.slow
def test_concurrent_changes_are_all_kept(place: ConfigPlace) -> None:
    """Eight processes change one setting each."""
    program = (
        "import sys; from ctx.config import edit_file, schema\n"
        "from ctx.config.config_files import ConfigPlace\n"
        "edit_file.set_value(ConfigPlace('user', sys.argv[1]), schema.SETTINGS[sys.argv[2]], 500)"
    )
    names = [name for name, known in schema.SETTINGS.items() if known.high >= 10_000_000][:8]
    running = [
        subprocess.Popen([sys.executable, "-c", program, place.path, name]) for name in names
    ]
    assert [process.wait() for process in running] == [0] * len(names)
    config = load(place.path, None, {}, ())
    assert [config.integer(name) for name in names] == [500] * len(names)


SECTIONS = st.sampled_from(["storage", "retrieval", "x"])
INSIDE = st.dictionaries(
    st.sampled_from(["compression_level", "default_depth", "max_depth"]) | KEYS, SCALARS, max_size=3
)


@settings(deadline=None, max_examples=effort.times(60))
@given(documents(st.dictionaries(SECTIONS, INSIDE, max_size=3)), st.booleans())
def test_an_edit_keeps_everything_else_in_the_file(
    tmp_path_factory: pytest.TempPathFactory, document: Document, removing: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "edited.toml"
    path.write_bytes(document.text.encode())
    place = ConfigPlace("user", str(path))
    wanted = tomllib.loads(document.text)
    change = edit_file.unset(place, DEPTH) if removing else edit_file.set_value(place, DEPTH, 4)
    written = path.read_bytes().decode()
    section = wanted.setdefault("retrieval", {})
    for key in ("default_depth", "max_depth"):
        section.pop(key, None)
    if change.new is not None:
        section["default_depth"] = 4
    found = tomllib.loads(written)
    found.setdefault("retrieval", {})
    assert found == wanted
    assert written.count("# [gc] # keep_days = 1") == document.text.count("# [gc] # keep_days = 1")


@settings(deadline=None, max_examples=effort.times(40))
@given(st.data())
def test_a_value_that_was_set_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    known = data.draw(st.sampled_from([s for s in schema.SETTINGS.values() if s.section != "repo"]))
    value = data.draw(values_of(known))
    path = tmp_path_factory.getbasetemp() / "set.toml"
    place = ConfigPlace("user", str(path))
    path.write_text(project_template("x", "1.0").replace("[repo]", "[x]"))
    assert edit_file.set_value(place, known, value).new == value
    config = load(str(path), None, {}, ())
    assert config.values[known.name] == value
    assert type(config.values[known.name]) is type(value)
    assert edit_file.set_value(place, known, value).changed is False
    edit_file.unset(place, known)
    assert load(str(path), None, {}, ()).mentions == {}
