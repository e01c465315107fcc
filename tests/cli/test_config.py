"""`ctx config`, through the command line."""

import json
from pathlib import Path

import pytest

from ctx.config import schema
from ctx.config.project_template import project_template
from tests.conftest import Ctx


@pytest.fixture(autouse=True)
def nothing_is_set(surroundings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests keep hooks from starting a worker; here nothing does so by itself."""
    monkeypatch.delenv("CTX_WORKER_AUTOSTART")


@pytest.fixture
def project(folder: Path, ctx: Ctx, surroundings: Path) -> Path:
    """The project file of the folder that commands run in, which is trusted."""
    path = folder / ".ctx" / "config.toml"
    path.parent.mkdir()
    path.write_text(project_template("app", "1.0"))
    assert ctx("trust", "--yes").code == 0
    return path


@pytest.fixture
def user(surroundings: Path) -> Path:
    """The user file, which is not there yet."""
    return surroundings / ".ctx" / "config.toml"


def test_get_prints_the_bare_value(ctx: Ctx, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ctx("config", "get", "gc.keep_days") == (0, "7\n", "")
    assert ctx("config", "get", "llm.synthesis") == (0, "true\n", "")
    assert ctx("config", "get", "ingestion.ignore_globs").out == (
        "target/**\n.git/**\nnode_modules/**\n"
    )
    assert ctx("config", "get", "gc.keep_days", "--set", "gc.keep_days=9").out == "9\n"
    monkeypatch.setenv("CTX_GC_KEEP_DAYS", "3")
    assert ctx("config", "get", "gc.keep_days", "--format", "json").json == {
        "key": "gc.keep_days",
        "value": 3,
        "layer": "environment",
        "place": "CTX_GC_KEEP_DAYS",
    }
    # A wrong one fails every command.
    monkeypatch.setenv("CTX_GC_KEEP_DAYS", "soon")
    ran = ctx("config", "get", "llm.model", "--format", "json")
    assert ran.code == 1
    assert json.loads(ran.err)["error"]["message"] == (
        'CTX_GC_KEEP_DAYS: gc.keep_days must be a whole number from 0 to 36500, not "soon".'
    )


def test_an_unknown_setting(ctx: Ctx, folder: Path) -> None:
    for words in (["get"], ["explain"], ["unset"], ["set", "1"]):
        ran = ctx("config", words[0], "gc.keepdays", *words[1:])
        assert ran.code == 2
        assert ran.err == (
            "error E011: There is no setting `gc.keepdays`.\n  Did you mean `gc.keep_days`?\n"
        )


def test_set_chooses_the_file(
    ctx: Ctx, project: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = ctx("config", "set", "storage.compression_level", "9")
    assert ran == (0, f"storage.compression_level: not set → 9 in {project}\n", "")
    assert "\ncompression_level = 9\n" in project.read_text()
    assert not user.exists()

    ran = ctx("config", "set", "gc.keep_days", "30")
    assert ran == (0, f"gc.keep_days: not set → 30 in {user}\n", "")
    assert user.read_text() == "[gc]\nkeep_days = 30\n"

    ran = ctx("config", "set", "storage.compression_level", "5", "--user")
    assert ran.out == f"storage.compression_level: not set → 5 in {user}\n"
    assert ran.err == (".ctx/config.toml:13 overrides it: storage.compression_level is 9 here.\n")
    assert ctx("config", "set", "gc.keep_days", "30").out == (
        f"gc.keep_days is 30 already in {user}.\n"
    )
    assert ctx("config", "unset", "storage.compression_level", "--project").out == (
        f"storage.compression_level: 9 → not set in {project}\n"
    )
    assert ctx("config", "get", "storage.compression_level").out == "5\n"
    assert ctx("config", "unset", "storage.compression_level").out == (
        f"storage.compression_level is not set in {project}.\n"
    )

    globs = ("config", "set", "ingestion.ignore_globs", "a/**, b", "--format", "json")
    expected = {
        "key": "ingestion.ignore_globs",
        "old": None,
        "new": ["a/**", "b"],
        "file": str(project),
        "changed": True,
    }
    assert ctx(*globs).json == expected
    assert ctx(*globs).json == expected | {"old": ["a/**", "b"], "changed": False}

    monkeypatch.setenv("CTX_DEFAULT_BUDGET", "777")
    assert ctx("config", "set", "view.default_budget", "999").err == (
        "CTX_DEFAULT_BUDGET overrides it: view.default_budget is 777 here.\n"
    )
    monkeypatch.chdir("/")
    elsewhere = ("-C", str(project.parent.parent))
    assert ctx(*elsewhere, "config", "set", "--project", "repo.id", "other").code == 0
    assert ctx("config", "get", "repo.id", *elsewhere).out == "other\n"


def test_what_may_not_live_in_a_file(ctx: Ctx, project: Path, folder: Path) -> None:
    ran = ctx("config", "set", "llm.backend", "auto", "--project")
    assert ran.code == 2
    assert ran.err == (
        "error E011: A project cannot set llm.backend: it would affect everybody who clones it.\n"
        "  Set it for yourself with --user.\n"
    )
    assert ctx("config", "set", "repo.id", "x", "--user").code == 2
    assert ctx("config", "set", "repo.id", "x", "--user", "--project").code == 2
    project.unlink()
    assert ctx("config", "set", "repo.id", "x").code == 2
    assert "E012" in ctx("config", "set", "storage.compression_level", "1", "--project").err


def test_set_refuses_before_it_writes(ctx: Ctx, project: Path, user: Path) -> None:
    before = project.read_text()
    ran = ctx("config", "set", "storage.compression_level", "fast")
    assert ran.code == 2
    assert ran.err == (
        "error E011: storage.compression_level must be a whole number from 0 to 22, "
        'not "fast".\n  See `ctx config explain storage.compression_level`.\n'
    )
    assert "SQLite is used instead" in ctx("config", "set", "index.backend", "redb").err
    assert project.read_text() == before
    token = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    said = ctx("config", "set", "llm.server_url", f"https://bob:{token}@example.com", "--user")
    assert said.code != 0
    assert "contains a secret" in said.err
    assert token not in said.err
    assert not user.exists()
    ctx("config", "set", "llm.api_key_env", "MY_API_KEY", "--user")
    assert "MY_API_KEY" in user.read_text()


def test_a_broken_configuration_can_be_explained_and_mended(ctx: Ctx, project: Path) -> None:
    broken = '[storage]\ncompression_level = "fast"\n[llm]\nmodel = "m"\n'
    project.write_text(f'[repo]\nid = "x"\n\n{broken}')
    problem = (
        ".ctx/config.toml:5: storage.compression_level must be a whole number from 0 to 22, "
        'not "fast".'
    )
    ignored = (
        "warning: .ctx/config.toml:6: "
        "[llm] is ignored: a project may not set it; your own file may.\n"
    )
    ran = ctx("config", "list")
    assert ran.code == 1
    assert f"error E013: {problem}\n" in ran.err
    ran = ctx("config", "explain", "storage.compression_level")
    assert ran.code == 0
    assert f"warning: {problem}\n" in ran.err
    ran = ctx("config", "set", "storage.compression_level", "4")
    assert (ran.code, ran.out) == (
        0,
        f'storage.compression_level: "fast" → 4 in {project}\n',
    )
    assert ctx("config", "get", "llm.model") == (0, "default\n", ignored)


def test_list(ctx: Ctx, project: Path, user: Path) -> None:
    everything = ctx("config", "list", "--format", "json").json["settings"]
    assert [each["key"] for each in everything] == list(schema.SETTINGS)
    ctx("config", "set", "gc.keep_days", "30")
    assert ctx("config", "list", "--changed").out == (
        '  repo.id           "app"  .ctx/config.toml:6\n'
        '  repo.ctx_version  "1.0"  .ctx/config.toml:9\n'
        f"  gc.keep_days      30     {user}:2\n"
    )
    project.unlink()
    user.unlink()
    assert ctx("config", "list", "--changed").out == (
        "All settings have their defaults. `ctx config list` shows them.\n"
    )
    assert ctx("config", "list", "--changed", "--format", "json").json == {"settings": []}


def test_explain(ctx: Ctx, project: Path, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ctx("config", "set", "view.default_budget", "40000")
    monkeypatch.setenv("CTX_DEFAULT_BUDGET", "30000")
    assert ctx("config", "explain", "view.default_budget").out == (
        "view.default_budget = 30000\n"
        "Token budget of the view `default`.\n"
        "It must be a whole number from 100 to 10000000.\n"
        "Set it in the user file, or by CTX_VIEW_DEFAULT_BUDGET or CTX_DEFAULT_BUDGET.\n"
        f"  {'default':<{len(str(user)) + 2}}  50000\n"
        f"  {user}:2  40000\n"
        f"  {'CTX_DEFAULT_BUDGET':<{len(str(user)) + 2}}  30000  wins\n"
    )
    explained = ctx("config", "explain", "storage.compression_level", "--format", "json").json
    assert (explained["default"], explained["value"]) == (3, 3)
    assert explained["takes"] == "a whole number from 0 to 22"
    assert explained["variables"] == ["CTX_STORAGE_COMPRESSION_LEVEL"]
    assert explained["files"] == ["user", "project"]
    default = {"layer": "default", "place": "default", "value": 3, "wins": True}
    assert explained["layers"] == [default]
