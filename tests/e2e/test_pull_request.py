"""The memory of a pull request that is checked out is not given to agents."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.agents.claude_code.hook_processes import Hooks, additional
from tests.conftest import Ctx, git
from tests.e2e import trial_commands
from tests.e2e.terminals import on_a_terminal
from tests.page.form_visitor import FormVisitor
from tests.page.served import Served

WORD = "canary9x"
OURS = "Ours is deployed on Fridays."
THEIRS = f"Theirs is deployed by {WORD}."


class Repositories(NamedTuple):
    """The repository of a team on a server, a trusted clone of it, and a fork."""

    server: Path
    clone: Path
    fork: Path


def done(folder: Path, *words: str) -> Any:
    return trial_commands.ctx(folder, *words)


def commit_all(folder: Path, message: str) -> None:
    git("add", "-A", cwd=folder)
    git("commit", "-qm", message, cwd=folder)


@pytest.fixture
def team(tmp_path: Path, surroundings: Path) -> Repositories:
    server, clone, fork = (tmp_path / name for name in ("server", "clone", "fork"))
    git("init", "-q", "--bare", "-b", "main", str(server), cwd=tmp_path)
    git("clone", "-q", str(server), str(clone), cwd=tmp_path)
    git("checkout", "-q", "-b", "main", cwd=clone)
    done(clone, "init")
    done(clone, "add", "--type=fact", "--tag=tier:pinned", OURS)
    done(clone, "commit", "-m", "Ours")
    commit_all(clone, "Ours")
    git("push", "-q", "-u", "origin", "main", cwd=clone)
    git("clone", "-q", str(server), str(fork), cwd=tmp_path)
    done(fork, "trust", "--yes")
    return Repositories(server, clone, fork)


def fill(folder: Path) -> None:
    """Put a word into every place of a store, and commit it."""
    done(folder, "add", "--type=fact", "--tag=tier:pinned", THEIRS)
    done(folder, "add", "decision", f"{WORD} is decided", "--body", f"Because of {WORD}.")
    done(folder, "add", "note", f"{WORD} is noted")
    readme = folder / ".ctx" / "narrative" / "README.md"
    readme.write_text(f"# Shop\n\n## Summary\n\nAlways run {WORD}.\n")
    done(folder, "commit", "-m", f"Deploys by {WORD}")
    commit_all(folder, "Theirs")


def request_pull(team: Repositories) -> None:
    """Fill the fork, and check it out as a pull request."""
    fill(team.fork)
    git("push", "-q", "origin", "HEAD:refs/pull/1/head", cwd=team.fork)
    git("fetch", "-q", "origin", "pull/1/head:pr-1", cwd=team.clone)
    git("checkout", "-q", "pr-1", cwd=team.clone)


@pytest.fixture
def hooks(team: Repositories, surroundings: Path) -> Iterator[Hooks]:
    with closing(Hooks(surroundings / ".ctx", team.clone)) as opened:
        yield opened


def start(hooks: Hooks, session: str = "first") -> str:
    """The context that a new session in the clone gets."""
    return additional(hooks.run("session-start", hooks.event("session-start", session_id=session)))


def answers(folder: Path, ctx: Ctx) -> str:
    """What the commands that agents run print."""
    commands = (
        ["list"], ["search", WORD], ["recall", WORD], ["query", WORD], ["compose"], ["context"],
        ["log"], ["diff", "HEAD~1", "HEAD"], ["tags"], ["status"], ["review"], ["export"],
        ["stage", "status"], ["debug", "history"],
    )  # fmt: skip
    ran = [ctx("-C", str(folder), *words) for words in commands]
    assert not [each.err for each in ran if "Traceback" in each.err or "E000" in each.err]
    # A pack repeats the question.
    return "".join(each.out + each.err for each in ran).replace(f'"{WORD}"', "")


def given_here(team: Repositories, ctx: Ctx) -> bool:
    """Whether agents get what the fork says: all of it or nothing."""
    said = ctx("-C", str(team.clone), "search", "deployed").out
    section = ctx("-C", str(team.clone), "recall", "Always run").out
    has = {THEIRS in said, f"Always run {WORD}" in section}
    assert len(has) == 1
    return has == {True}


def test_a_pull_request_gives_agents_nothing_until_it_is_accepted(
    team: Repositories, ctx: Ctx, hooks: Hooks
) -> None:
    request_pull(team)
    said = answers(team.clone, ctx)
    given = start(hooks)
    for text in (said, given):
        assert OURS in text
        assert WORD not in text
    assert " 4 items from this branch are not given to agents: `ctx review`." in given
    shown = on_a_terminal(["review"], team.clone)
    for part in (
        f"Deploys by {WORD}",
        THEIRS,
        f"{WORD} is decided",
        "(tier:pinned)",
        "= README.md",
    ):
        assert part in shown
    (proposal,) = ctx("-C", str(team.clone), "review", "--format=json").json["branch"]
    assert (proposal["kind"], proposal["title"], proposal["changes"]) == ("commit", "", [])
    accepted = ctx("-C", str(team.clone), "review", "accept", proposal["short_id"])
    assert accepted.out == f"Given to agents: commit {proposal['short_id']}\n"
    assert given_here(team, ctx)
    done(team.clone, "context")
    given = start(hooks, "second")
    assert THEIRS in given
    assert "not given to agents" not in given
    # It stays given, whatever happens to the index.
    done(team.clone, "rebuild")
    assert given_here(team, ctx)


def test_a_rejected_pull_request_is_not_mentioned_again(
    team: Repositories, ctx: Ctx, hooks: Hooks
) -> None:
    request_pull(team)
    done(team.clone, "review", "reject", "--all")
    assert not given_here(team, ctx)
    assert "not given to agents" not in start(hooks)
    assert ctx("-C", str(team.clone), "review").out == "Nothing to review.\n"
    git("checkout", "-q", "main", cwd=team.clone)
    git("checkout", "-q", "pr-1", cwd=team.clone)
    assert ctx("-C", str(team.clone), "review").out == "Nothing to review.\n"


def test_the_page_shows_it_to_a_person_and_not_to_programs(team: Repositories, ctx: Ctx) -> None:
    request_pull(team)
    with Served(team.clone) as served, FormVisitor(served) as visitor, served.program() as program:
        assert THEIRS in visitor.text("/review")
        told = program.get("/api/v1/review")
        [proposal] = told.json()["branch"]
        assert WORD not in told.text
        visitor.follow("/review", do=f"accept-branch {proposal['id']}")
        assert "From this branch" not in visitor.text("/review")
    assert given_here(team, ctx)


def test_a_merged_pull_request_is_given(team: Repositories, ctx: Ctx) -> None:
    request_pull(team)
    assert not given_here(team, ctx)
    # Somebody of the team merges it on the server.
    git("push", "-q", "origin", "HEAD:main", cwd=team.fork)
    git("fetch", "-q", "origin", cwd=team.clone)
    assert given_here(team, ctx)
    # What was given once stays given: also if the server forgets it.
    git("push", "-q", "-f", "origin", "HEAD~1:main", cwd=team.fork)
    git("fetch", "-q", "origin", cwd=team.clone)
    git("reflog", "expire", "--expire=now", "--all", cwd=team.clone)
    git("gc", "-q", "--prune=now", cwd=team.clone)
    done(team.clone, "rebuild")
    assert given_here(team, ctx)


def test_a_branch_of_the_team_is_given(team: Repositories, ctx: Ctx) -> None:
    fill(team.fork)
    git("push", "-q", "origin", "HEAD:refs/heads/feature/deploys", cwd=team.fork)
    git("fetch", "-q", "origin", cwd=team.clone)
    git("checkout", "-q", "feature/deploys", cwd=team.clone)
    assert given_here(team, ctx)


@pytest.mark.parametrize("way", ["squash", "rebase"])
def test_history_that_is_rewritten_on_the_server_is_given(
    team: Repositories, ctx: Ctx, tmp_path: Path, way: str
) -> None:
    request_pull(team)
    # Nobody has looked at it here.
    git("checkout", "-q", "main", cwd=team.clone)
    helper = tmp_path / "helper"
    git("clone", "-q", str(team.server), str(helper), cwd=tmp_path)
    git("fetch", "-q", "origin", "pull/1/head:pr", cwd=helper)
    if way == "squash":
        git("merge", "-q", "--squash", "pr", cwd=helper)
    else:
        (helper / "a.txt").write_text("a\n")
        commit_all(helper, "Something else")
        git("cherry-pick", "main..pr", cwd=helper)
    if way == "squash":
        git("commit", "-qm", "Squashed", cwd=helper)
    git("push", "-q", "origin", "main", cwd=helper)
    git("pull", "-q", "--no-edit", "origin", "main", cwd=team.clone)
    assert given_here(team, ctx)


def test_refs_of_pull_requests_are_no_branches(team: Repositories, ctx: Ctx) -> None:
    config = "+refs/pull/*/head:refs/remotes/origin/pr/*"
    git("config", "--add", "remote.origin.fetch", config, cwd=team.clone)
    # Any change of the configuration is checked once more.
    assert done(team.clone, "status")["project_store"] == "trusted"
    request_pull(team)
    git("fetch", "-q", "origin", cwd=team.clone)
    assert "refs/remotes/origin/pr/1" in git("for-each-ref", cwd=team.clone)
    assert not given_here(team, ctx)


def test_branches_of_another_remote_are_not_given(team: Repositories, ctx: Ctx) -> None:
    fill(team.fork)
    git("remote", "add", "fork", str(team.fork), cwd=team.clone)
    git("fetch", "-q", "fork", cwd=team.clone)
    git("checkout", "-q", "--no-track", "-b", "theirs", "fork/main", cwd=team.clone)
    assert not given_here(team, ctx)
    assert ctx("-C", str(team.clone), "trust", "--yes", "--remote=nowhere").code == 2
    told = ctx("-C", str(team.clone), "trust", "--yes", "--remote=origin", "--remote=fork")
    assert f"Branches of fork ({team.fork}) and origin ({team.server})" in told.out
    assert given_here(team, ctx)


def test_trust_asks_which_remotes_are_meant(team: Repositories, tmp_path: Path, ctx: Ctx) -> None:
    mine = tmp_path / "mine"
    git("clone", "-q", str(team.fork), str(mine), cwd=tmp_path)
    git("remote", "add", "upstream", str(team.server), cwd=mine)
    shown = on_a_terminal(["trust"], mine, answer="y\nnowhere\norigin upstream\n")
    assert "Which remotes' branches are given to agents? [origin]" in shown
    assert "There is no remote 'nowhere'." in shown
    [project] = [
        each for each in ctx("trust", "--list", "--json").json["projects"]
        if each["root"] == str(mine)
    ]  # fmt: skip
    assert project["remotes"] == {"origin": str(team.fork), "upstream": str(team.server)}


def test_a_clone_is_given_what_it_was_trusted_with(
    team: Repositories, ctx: Ctx, tmp_path: Path
) -> None:
    fill(team.fork)
    shallow = tmp_path / "shallow"
    git("clone", "-q", "--depth=1", f"file://{team.fork}", str(shallow), cwd=tmp_path)
    # CI never ran `ctx trust`.
    team = team._replace(clone=shallow)
    assert WORD not in answers(shallow, ctx)
    done(shallow, "trust", "--yes")
    assert given_here(team, ctx)
    done(team.fork, "add", "--type=fact", "Later")
    done(team.fork, "commit", "-m", "Later")
    commit_all(team.fork, "Later")
    git("fetch", "-q", "--depth=1", cwd=shallow)
    git("reset", "-q", "--hard", "origin/main", cwd=shallow)
    assert "Later" in ctx("-C", str(shallow), "list").out


def test_own_work_on_a_pull_request_is_given_alone(team: Repositories, ctx: Ctx) -> None:
    request_pull(team)
    mine = "Mine is deployed on Mondays."
    node = done(team.clone, "add", "--type=fact", "--tag=tier:pinned", mine)["node"]["id"]
    readme = team.clone / ".ctx" / "narrative" / "notes.md"
    readme.write_text("# Notes\n\nBy hand.\n")
    done(team.clone, "commit", "-m", "Mine")
    commit_all(team.clone, "Mine")
    done(team.clone, "rebuild")
    assert mine in ctx("-C", str(team.clone), "list").out
    assert "By hand" in ctx("-C", str(team.clone), "recall", "notes by hand").out
    assert not given_here(team, ctx)
    log = ctx("-C", str(team.clone), "log").out
    assert "Mine" in log
    assert "(not given to agents: `ctx review`)" in log
    assert WORD not in log
    assert done(team.clone, "show", node)["node"]["content"] == mine


def test_a_change_to_own_memory_is_not_applied(team: Repositories, ctx: Ctx) -> None:
    [node] = [each["id"] for each in done(team.fork, "list")["nodes"] if each["content"] == OURS]
    done(team.fork, "update", node, "--content", THEIRS)
    done(team.fork, "commit", "-m", "Change it")
    commit_all(team.fork, "Theirs")
    git("push", "-q", "origin", "HEAD:refs/pull/1/head", cwd=team.fork)
    git("fetch", "-q", "origin", "pull/1/head:pr-1", cwd=team.clone)
    git("checkout", "-q", "pr-1", cwd=team.clone)
    assert OURS in ctx("-C", str(team.clone), "list").out
    # Who changes it here has not read theirs: it is a conflict once that is accepted.
    done(team.clone, "update", node, "--content", "Mine.")
    done(team.clone, "commit", "-m", "Mine")
    assert done(team.clone, "review")["open"] == []
    done(team.clone, "review", "accept", "--all")
    (field,) = done(team.clone, "review")["open"]
    assert {each["value"] for each in field["versions"]} == {"Mine.", THEIRS}


def test_a_replaced_object_is_not_given(team: Repositories, ctx: Ctx) -> None:
    done(team.fork, "scrub", "Fridays", "--yes")
    commit_all(team.fork, "Scrubbed by somebody else")
    git("push", "-q", "origin", "HEAD:refs/pull/1/head", cwd=team.fork)
    git("fetch", "-q", "origin", "pull/1/head:pr-1", cwd=team.clone)
    git("checkout", "-q", "pr-1", cwd=team.clone)
    assert "[scrubbed]" not in ctx("-C", str(team.clone), "list").out
    git("push", "-q", "origin", "HEAD:main", cwd=team.fork)
    git("fetch", "-q", "origin", cwd=team.clone)
    assert "[scrubbed]" in ctx("-C", str(team.clone), "list").out


def test_documents_written_by_hand_are_given(team: Repositories, ctx: Ctx) -> None:
    readme = team.clone / ".ctx" / "narrative" / "README.md"
    readme.write_text("# Shop\n\nTea is sold by hand.\n")
    assert "Tea is sold" in ctx("-C", str(team.clone), "recall", "tea sold").out
    commit_all(team.clone, "By hand")
    done(team.clone, "rebuild")
    assert "Tea is sold" in ctx("-C", str(team.clone), "recall", "tea sold").out
    # Also if git has it before ctx sees it: only a commit that was made here contains it.
    readme.write_text("# Shop\n\nCoffee is sold too.\n")
    commit_all(team.clone, "By hand again")
    git("checkout", "-q", "-b", "other", "HEAD~1", cwd=team.clone)
    (team.clone / "a.txt").write_text("a\n")
    commit_all(team.clone, "Something else")
    git("merge", "-q", "--no-edit", "main", cwd=team.clone)
    assert "Coffee is sold" in ctx("-C", str(team.clone), "recall", "coffee sold").out


def test_a_commit_of_ones_own_does_not_vouch_for_a_pull_request(
    team: Repositories, ctx: Ctx
) -> None:
    request_pull(team)
    git("commit", "-q", "--amend", "-m", "Mine", cwd=team.clone)
    assert not given_here(team, ctx)
    git("checkout", "-q", "main", cwd=team.clone)
    for words in (
        ("merge", "-q", "--squash", "pr-1"),
        ("checkout", "-q", "pr-1", "--", ".ctx"),
        ("cherry-pick", "-n", "main..pr-1"),
    ):
        git(*words, cwd=team.clone)
        git("commit", "-qm", "Mine", cwd=team.clone)
        assert not given_here(team, ctx)
        git("reset", "-q", "--hard", "HEAD~1", cwd=team.clone)


def test_a_damaged_list_gives_what_is_pushed_and_asks_about_the_rest(
    team: Repositories, ctx: Ctx, surroundings: Path
) -> None:
    given = surroundings / ".ctx" / "given.db"
    done(team.clone, "add", "--type=fact", "Not pushed.")
    done(team.clone, "commit", "-m", "Not pushed")
    given.write_bytes(b"nonsense" * 1000)
    shutil.rmtree(team.clone / ".git" / "ctx" / "main" / "index")
    listed = ctx("-C", str(team.clone), "list")
    assert OURS in listed.out
    assert "Not pushed." not in listed.out
    assert "given.db.broken" in ctx("-C", str(team.clone), "doctor").out
    done(team.clone, "review", "accept", "--all")
    assert "Not pushed." in ctx("-C", str(team.clone), "list").out


def test_a_hook_gives_nothing_of_a_pull_request_that_nobody_has_read(
    team: Repositories, hooks: Hooks
) -> None:
    done(team.clone, "list")
    request_pull(team)
    given = start(hooks)
    assert OURS in given
    assert WORD not in given
