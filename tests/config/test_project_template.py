"""The file that `ctx init` writes."""

import tomllib
from pathlib import Path

import pytest

from ctx.config import schema
from ctx.config.project_template import project_template
from ctx.config.resolve import load
from ctx.layout import is_project_store


def test_the_template_sets_only_the_project(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(project_template("my-project", "1.2.3"))
    config = load("", str(path), {}, ())
    assert config.warnings == ()
    assert {name: config.values[name] for name in config.mentions} == {
        "repo.id": "my-project",
        "repo.ctx_version": "1.2.3",
    }
    assert is_project_store(str(tmp_path), "")


def test_the_template_shows_the_defaults() -> None:
    lines = project_template("x", "1").splitlines()
    # Descriptions end in a full stop; lines that are commented out do not.
    text = "\n".join(line if line.endswith(".") else line.removeprefix("# ") for line in lines)
    tables = tomllib.loads(text)
    assert tables.pop("repo") == {"id": "x", "ctx_version": "1"}
    shown = {
        f"{section}.{key}": tuple(value) if isinstance(value, list) else value
        for section, table in tables.items()
        for key, value in table.items()
    }
    assert shown == {
        name: known.default
        for name, known in schema.SETTINGS.items()
        if known.section in schema.PROJECT_SECTIONS - {"repo"} and not known.is_fixed
    }


@pytest.mark.parametrize("name", ['a "b"', "a\\b", "a\nb", "a\x00", "a\udc80", "ü", "a" * 5000, ""])
def test_a_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(project_template(name, "1"))
    assert load("", str(path), {}, ()).text("repo.id")[:2] in (name[:2], "a-")
