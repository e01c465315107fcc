"""An untrusted store is not shown to agents: nothing of it is written to a pipe.

The untrusted store contains one word wherever a text can be. Every command runs in it, and none
prints the word. Output on a terminal is tested separately.
"""

import json
import shutil
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from ctx.errors import StoreNotTrusted
from ctx.layout import project_at
from ctx.library import open_project
from tests import effort
from tests.agents.claude_code.hook_processes import Hooks
from tests.conftest import Ctx, git, use_home
from tests.e2e import trial_commands
from tests.e2e.command_examples import OTHER_WRITES, READS, STORE_WRITES, filled, lines
from tests.e2e.terminals import on_a_terminal

WORD = "canary9x"
MINE = "Mine is deployed on Fridays."
REASON = "This project has a store that is not trusted."
SENTENCE = f"{REASON} Nothing of it is shown. To review and trust it: `ctx trust`"


class Stranger(NamedTuple):
    """The project of another person, cloned or unpacked here."""

    folder: Path
    node: str
    """The id of one of its nodes."""
    commit: str
    mine: str
    """A node in one's own store."""
    way: int
    """How it came here, of `WAYS`."""


def fill(folder: Path) -> tuple[str, str]:
    """Create a store with the word in every place, and return a node and a commit."""
    done = partial(trial_commands.ctx, folder)
    done("init")
    tags = (f"--tag={WORD}:{WORD}", "--tag=tier:pinned", f"--tag=task:{WORD}")
    node = done(
        "add", "--type=fact", *tags, f"--summary={WORD}", f"--meta={WORD}={WORD}",
        f"Whoever deploys runs {WORD}.",
    )["node"]["id"]  # fmt: skip
    other = done("add", "--type=decision", f"Deploys are {WORD}.")
    done("link", node, other["node"]["id"], f"--reason={WORD}")
    gone = done("add", "--type=fact", f"Gone is {WORD}.")["node"]["id"]
    done("delete", gone, "--yes")
    done("view", "create", WORD, f"--query=tag:{WORD}:*")
    done("add", "decision", f"{WORD} is decided", "--body", f"Because of {WORD}.")
    done("add", "task", f"{WORD} is to do", "--body", f"Do {WORD}.")
    done("add", "note", f"{WORD} is noted", "--stream", WORD)
    done("add", "command", "--name", f"make {WORD}", "--body", f"error: {WORD}", "--exit-code=1")
    done("learnings", "add", f"Always run {WORD}.", "--category=gotcha")
    (folder / f"{WORD}.py").write_text(f"def {WORD}(): pass\n")
    done("add", "file", f"{WORD}.py")
    done("ingest", str(folder / f"{WORD}.py"))
    narrative = folder / ".ctx" / "narrative"
    (narrative / "README.md").write_text(f"# {WORD}\n\n## Summary\n\nDeploys are {WORD}.\n")
    commit = done("commit", "-m", f"Deploys by {WORD}")["commit"]
    done("stage", "start", f"{WORD} staged", "--session", WORD)
    done("add", "--type=fact", "--session", WORD, f"Staged by {WORD}.")
    (folder / f"{WORD}.py").unlink()
    config = folder / ".ctx" / "config.toml"
    config.write_text(f'[repo]\nid = "{WORD}"\n{WORD} = "{WORD}"\n[index]\n{WORD} = 1\n')
    (narrative / f"{WORD}.md").write_text(f"# {WORD}\n\nDeploys: token = 'ghp_{WORD * 5}'\n")
    return node, commit


WAYS = ("clone", "archive", "no git")
FORMS: list[list[str]] = [[], ["--format=json"], ["--format=markdown"]]


def only(*ways: str) -> pytest.MarkDecorator:
    """How the project came here makes no difference to what is tested."""
    return pytest.mark.parametrize("original", ways, indirect=True)


class Original(NamedTuple):
    """The project where it was made."""

    folder: Path
    node: str
    commit: str
    way: str


@pytest.fixture(scope="module", params=WAYS)
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Original:
    home = tmp_path_factory.mktemp("theirs")
    folder = home / "app"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        use_home(home, patch)
        patch.setenv("GIT_AUTHOR_NAME", f"{WORD} {WORD}")
        patch.setenv("GIT_AUTHOR_EMAIL", f"{WORD}@example.org")
        if request.param != "no git":
            git("init", "-q", "-b", "main", cwd=folder)
        node, commit = fill(folder)
        (folder / "main.py").write_text("def deploy(): pass\n")
        if request.param == "clone":
            git("add", "-A", cwd=folder)
            git("commit", "-qm", "A store", cwd=folder)
    return Original(folder, node, commit, request.param)


@pytest.fixture
def stranger(
    original: Original, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Stranger:
    """The same store from `git clone`, and from an archive of the whole folder."""
    here = tmp_path / "here" / "app"
    if original.way == "clone":
        git("clone", "-q", str(original.folder), str(here))
    else:
        shutil.copytree(original.folder, here, symlinks=True)
    monkeypatch.chdir(here)
    mine = ctx("add", "--user", "--type=fact", "--tag=tier:pinned", MINE, "--format=json").json
    node, commit, way = original.node, original.commit, WAYS.index(original.way)
    return Stranger(here, node, commit, mine["node"]["id"], way)


def test_no_command_prints_an_untrusted_store(
    stranger: Stranger, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a pipe, as text and as JSON."""
    assert WORD not in str(stranger.folder)
    monkeypatch.setenv("EDITOR", "true")
    told = []
    everything = effort.share(lines(READS, OTHER_WRITES, STORE_WRITES), 2, stranger.way)
    for number, line in enumerate(everything):
        words = filled(line, stranger.node, stranger.mine, commit=stranger.commit)
        for form in effort.some(FORMS, number + stranger.way):
            ran = ctx(*words, *form)
            assert "Unexpected" not in ran.err, (words, ran.err)
            told += [(*words, *form, ran)] if WORD in f"{ran.out}{ran.err}".lower() else []
    assert told == []


@only("archive")
def test_shell_completion_offers_nothing_of_an_untrusted_store(
    stranger: Stranger, ctx: Ctx
) -> None:
    for words in (
        ["show", ""],
        ["list", "--tag", ""],
        ["view", "render", ""],
        ["task", "start", ""],
    ):
        ran = ctx("__complete", "zsh", "ctx", *words)
        assert WORD not in ran.out
        assert ran.err == ""


@only("clone", "no git")
def test_hooks_return_nothing_of_an_untrusted_store(
    stranger: Stranger, surroundings: Path, ctx: Ctx
) -> None:
    """Also after other processes have read the project."""
    hooks = Hooks(surroundings / ".ctx", stranger.folder)
    try:
        for word in ("session-start", "prompt-submit", "stop", "pre-compact", "session-end"):
            event = hooks.event(
                word,
                prompt="how do we deploy?",
                last_assistant_message="<ctx:recall query='deploys'/><ctx:status/>",
            )
            ran = hooks.run(word, event)
            assert ran.code == 0
            assert WORD.encode() not in ran.out + ran.err
            assert ctx("hook", "apply").code == 0
    finally:
        hooks.close()


@only("no git")
def test_the_library_returns_nothing_of_an_untrusted_store(
    stranger: Stranger, surroundings: Path
) -> None:
    environment = {"CTX_HOME": str(surroundings / ".ctx"), "HOME": str(surroundings)}
    with open_project(stranger.folder, environment=environment) as project:
        assert not project.is_trusted
        pack = project.query("deploys")
        assert pack.withheld
        assert WORD not in repr(pack)
        project.observe_note("Own words")
        assert WORD not in repr(project.flush_step())
        with pytest.raises(StoreNotTrusted):
            project.observe_file_read("main.py")
        with pytest.raises(StoreNotTrusted):
            project.compact_session()


@only("archive")
def test_a_warning_is_shown_instead(stranger: Stranger, ctx: Ctx) -> None:
    for words in (["list"], ["search", "deployed"], ["recall", "deployed"], ["compose"]):
        ran = ctx(*words)
        assert (ran.code, ran.err) == (0, f"warning: {SENTENCE}\n")
        assert MINE in ran.out
        ran = ctx(*words, "--format=json")
        assert ran.json["withheld"] is True
        assert json.loads(ran.err) == {"warning": SENTENCE}
    for words in (["log"], ["diff"], ["stage", "status"], ["debug", "history"]):
        ran = ctx(*words)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith(f"error E032: {REASON}\n")
        assert "--untrusted" in ran.err
    ran = ctx("show", stranger.node)
    assert (ran.code, ran.out) == (1, "")
    assert "error E020" in ran.err
    assert ran.err.endswith(f"  {SENTENCE}\n")


@only("clone", "no git")
def test_nothing_is_added_where_nobody_could_read_it(stranger: Stranger, ctx: Ctx) -> None:
    before = files_in(stranger.folder)
    for words in (
        ["add", "--type=fact", "Own words"],
        ["add", "decision", "Own words", "--commit"],
        ["add", "command", "--name=make", "--body=Own words"],
        ["add", "task", "Own words"],
        ["learnings", "add", "Own words"],
        ["commit", "-m", "Own words"],
        ["move", stranger.mine, "--project"],
    ):
        ran = ctx(*words)
        assert (words, ran.code, ran.out) == (words, 1, "")
        assert "E032" in ran.err
        assert "`ctx trust`" in ran.err
    assert files_in(stranger.folder) == before
    assert ctx("add", "--user", "--type=fact", "Own words are kept").code == 0
    assert ctx("trust", "--yes").code == 0
    assert ctx("add", "--type=fact", "Own words later").code == 0
    assert "Own words later" in ctx("list", "--limit=0").out
    assert f"Whoever deploys runs {WORD}" in ctx("show", stranger.node).out


def files_in(folder: Path) -> dict[Path, bytes]:
    store = folder / ".ctx"
    return {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}


@only("clone")
def test_nothing_of_a_damaged_untrusted_store_is_printed(stranger: Stranger, ctx: Ctx) -> None:
    (stranger.folder / ".ctx" / "heads" / WORD).touch()
    for words in (["list"], ["status"], ["doctor"], ["debug", "verify"], ["trust"], ["log"]):
        ran = ctx(*words)
        assert WORD not in f"{ran.out}{ran.err}", (words, ran)
    for words in (["add", "--type=fact", "Own"], ["commit", "-m", "Own"], ["add", "task", "Own"]):
        ran = ctx(*words)
        assert WORD not in f"{ran.out}{ran.err}", (words, ran)


@only("archive")
def test_an_untrusted_store_is_shown_only_on_a_terminal(stranger: Stranger, ctx: Ctx) -> None:
    before = indexes(stranger.folder)
    ran = ctx("list", "--untrusted")
    assert (ran.code, ran.out) == (2, "")
    assert "error E011: --untrusted shows a store on a terminal only" in ran.err
    assert "`ctx trust`" in ran.err
    assert ctx("--untrusted", "show", stranger.node).code == 2

    for words in (["list"], ["show", stranger.node], ["search", "deploys"], ["log"], ["tags"]):
        shown = on_a_terminal([*words, "--untrusted"], stranger.folder)
        assert WORD in shown, words
        assert SENTENCE not in shown
    for words in (["llm", "--query=deploys"], ["export", "--output=x.json"]):
        refused = on_a_terminal([*words, "--untrusted"], stranger.folder)
        assert "--untrusted cannot be used with" in refused
        assert WORD not in refused
    assert WORD not in on_a_terminal(["list"], stranger.folder)
    # No index was left for a hook to find, but what an archive brought.
    made = [path for path in indexes(stranger.folder) if path not in before]
    assert made == []
    # It was shown once, and is not trusted.
    assert WORD not in ctx("list").out


def indexes(folder: Path) -> list[Path]:
    return sorted(Path(project_at(str(folder)).indexes).glob("*/store.db"))
