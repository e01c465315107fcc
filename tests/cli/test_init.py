import io
import shutil
import stat
import sys
from pathlib import Path

import pytest

from ctx.cli import settings
from ctx.cli.output import Output
from tests.conftest import Ctx, git


def test_makes_a_store_and_adds_it_to_git(repo: Path, ctx: Ctx) -> None:
    made = ctx("init", "--format", "json").json
    assert made["created"] is True
    assert made["name"] == "app"
    assert made["git"] == "added"
    tracked = git("ls-files", ".ctx").split()
    assert {".ctx/config.toml", ".ctx/.gitignore", ".ctx/.gitattributes"} <= set(tracked)
    assert f".ctx/heads/{made['commit']}" in tracked
    assert (repo / ".ctx" / "heads" / made["commit"]).stat().st_size == 0
    assert (repo / ".git" / "ctx" / "main" / "refs" / "main").read_text() == f"{made['commit']}\n"
    [first] = ctx("debug", "history", "--format", "json").json["commits"]
    assert first["author"] == "A Person <person@example.org>"
    config = repo / ".ctx" / "config.toml"
    assert 'id = "app"' in config.read_text()
    for path in [repo / ".ctx", *(repo / ".ctx").rglob("*")]:
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path
    before = {path: path.stat().st_mtime_ns for path in (repo / ".ctx").rglob("*")}
    again = ctx("init")
    assert again.code == 0
    assert "already" in again.out
    assert {path: path.stat().st_mtime_ns for path in (repo / ".ctx").rglob("*")} == before
    # An invalid configuration is not replaced.
    config.write_text("a = 1\na = 2\n")
    ran = ctx("init")
    assert (ran.code, ran.err[:11]) == (1, "error E013:")
    assert config.read_text() == "a = 1\na = 2\n"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (None, "is missing, so the defaults apply."),
        ("[storage]\ncompression_level = 5\n", "has no section [repo], so its defaults apply."),
    ],
    ids=["missing", "other section"],
)
def test_a_store_without_its_configuration_is_still_used(
    folder: Path, ctx: Ctx, text: str | None, what: str
) -> None:
    ctx("init")
    ctx("add", "Deploys run on Mondays")
    file = folder / ".ctx" / "config.toml"
    file.unlink() if text is None else file.write_text(text)
    # Git, and a file of another program, change nothing about it.
    git("init", "-q")
    (folder / ".ctx" / "other-tool.db").write_text("x")
    ctx("add", "Releases are signed")
    scopes = {each["content"]: each["scope"] for each in ctx("list", "--json").json["nodes"]}
    assert scopes == {"Deploys run on Mondays": "project", "Releases are signed": "project"}

    def doctor() -> list[dict[str, str]]:
        checks = ctx("-C", str(folder / "sub"), "doctor", "--json").json["checks"]
        return [each for each in checks if each["name"] == "project store"]

    (folder / "sub").mkdir()
    warning, trust = doctor()
    assert warning["state"] == "warning"
    assert warning["seen"].endswith(f"/.ctx/config.toml {what}")
    assert warning["advice"] == (
        "If git has it, `git checkout -- ../.ctx/config.toml` restores it."
        " Otherwise `ctx init ..` completes it."
    )
    assert trust["state"] == "ok"

    ran = ctx("-C", str(folder / "sub"), "init", "..")
    assert ran.code == 0
    assert ran.out.startswith(f"Completed the project store in {folder}/.ctx.\n")
    assert "not trusted" not in ran.err
    assert 'id = "app"' in file.read_text()
    assert (text or "") in file.read_text()
    assert doctor() == [trust]
    again = ctx("init", "--json").json
    assert (again["created"], again["trusted"]) == (False, True)
    assert len(ctx("list", "--project", "--json").json["nodes"]) == 2


def test_no_git_leaves_the_index_alone(repo: Path, ctx: Ctx) -> None:
    assert ctx("init", "missing").code == 1
    (repo / "api").mkdir()
    assert ctx("init", "api", "--no-git").code == 0
    assert (repo / "api" / ".ctx" / "config.toml").exists()
    assert git("ls-files") == ""


def test_private_stays_out_of_git(repo: Path, ctx: Ctx) -> None:
    assert ctx("init", "--template", "private").code == 0
    assert git("status", "--porcelain") == ""
    assert "/.ctx/" in (repo / ".git" / "info" / "exclude").read_text().splitlines()
    assert ctx("init", "--force", "--yes", "--template", "private").code == 0
    assert (repo / ".git" / "info" / "exclude").read_text().count("/.ctx/") == 1


def test_team_brings_scaffolds(repo: Path, ctx: Ctx) -> None:
    assert ctx("init", "--template", "team").code == 0
    narrative = repo / ".ctx" / "narrative"
    names = {str(path.relative_to(narrative)) for path in narrative.rglob("*.md")}
    assert names == {"README.md", "REVIEW.md", "decisions/README.md", "tasks/README.md"}
    assert ctx("commit", "-m", "Nothing new").out.startswith("Nothing to commit")


def test_force_names_the_loss_and_needs_confirmation(
    folder: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx("init")
    (folder / "a.txt").write_text("a")
    ctx("add", "file", "a.txt", "-m", "A")
    before = sorted(str(path) for path in (folder / ".ctx").rglob("*"))
    refused = ctx("init", "--force")
    assert refused.code == 1
    assert "error E017" in refused.err
    assert "would be lost" in refused.err
    assert "1 head" in refused.err
    monkeypatch.setattr(settings, "stdin_is_terminal", lambda: True)
    for answer in ("n\n", ""):
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        assert ctx("init", "--force").code == 1
    assert sorted(str(path) for path in (folder / ".ctx").rglob("*")) == before
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert ctx("init", "--force").code == 0
    history = ctx("debug", "history", "--format", "json").json
    assert [commit["message"] for commit in history["commits"]] == ["Initial commit"]
    monkeypatch.setattr(settings, "stdin_is_terminal", lambda: False)
    assert ctx("init", "--force", "--yes").code == 0


def test_the_user_store_is_no_project(
    surroundings: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(surroundings)
    refused = ctx("init")
    assert refused.code == 1
    assert "user store" in refused.err
    assert not (surroundings / ".ctx").exists()


def test_on_a_terminal_what_was_noted_before_can_be_moved(
    repo: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Output, "is_interactive", property(lambda _: True))
    assert "[y/N]" not in ctx("init").err
    for answer, moved in (("\n", False), ("n\n", False), ("y\n", True)):
        shutil.rmtree(repo / ".ctx")
        shutil.rmtree(repo / ".git" / "ctx")
        if answer == "\n":
            ctx("add", "Deploys run on Mondays")
            ctx("add", "I prefer small commits", "--user")
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        ran = ctx("init")
        assert ran.code == 0
        assert "Deploys run on Mondays" in ran.err
        assert "small commits" not in ran.err
        assert "Move 1 node to the project store, which is in git? [y/N]" in ran.err
        assert ("Moved 1 node to the project:" in ran.out) == moved
        scopes = {each["content"]: each["scope"] for each in ctx("list", "--json").json["nodes"]}
        assert scopes == {
            "Deploys run on Mondays": "project" if moved else "user",
            "I prefer small commits": "user",
        }
