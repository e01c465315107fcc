"""Random git commands that throw work away, between memory commits, staged work and git commits.

A trial adds texts to memory and lets git commands happen in between: they reset, amend, rebase,
stash, drop, clean, switch, begin orphans, and remove branches and working trees. The oracle asks
one thing: is every text that ctx acknowledged given to a reader of some branch, listed by
`ctx status`, or offered by `ctx stage recover`? What is offered must be given after it was taken
up. What was in a git commit that `git gc` pruned since is left out: nobody promises to have that.
"""

import os
import random
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.trial_commands import Unsound, ctx

BRANCHES = ("main", "one", "two")


class Counts(NamedTuple):
    """What became of the texts. Each counts once, in the first of these that applies."""

    acknowledged: int = 0
    given: int = 0
    listed: int = 0
    offered: int = 0
    pruned: int = 0
    """git pruned the commits that had them."""
    lost: int = 0


class Trial:
    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.top = folder / "project"
        self.side = folder / "side"
        self.log: list[str] = []
        self.acknowledged: set[str] = set()
        self.counts = Counts()
        self.pruned: set[str] = set()
        self.in_git: dict[str, set[str]] = {}
        """The texts that each git commit has."""
        self.texts_of: dict[str, set[str]] = {}
        """The texts that each commit of memory added."""
        self.number = 0

    def run(self) -> None:
        self.top.mkdir()
        self.git("init", "-q", "-b", "main")
        self.ctx("init")
        (self.top / "code.py").write_text("x = 1\n")
        self.add()
        self.commit()
        self.commit_to_git()
        choices: Sequence[Callable[[], object]] = [
            *[self.add] * 9,
            *[self.commit] * 6,
            lambda: self.commit("--amend"),
            *[self.commit_to_git] * 4,
            lambda: self.commit_to_git("--amend"),
            *[lambda: self.git("add", "-A")] * 2,
            self.add_some,
            lambda: self.git("reset", "-q", "--hard"),
            lambda: self.git("reset", "-q", self.random.choice(["HEAD", "HEAD~1"])),
            *[lambda: self.git("reset", "-q", "--hard", "HEAD~1")] * 3,
            lambda: self.git("restore", "--staged", "--worktree", "."),
            lambda: self.git("stash", self.random.choice(["-q", "-qu"])),
            lambda: self.git("stash", self.random.choice(["drop", "pop"]), "-q"),
            lambda: self.git("rm", "-rq", "--cached", ".ctx"),
            lambda: self.git("checkout", "-qf"),
            lambda: self.git("checkout", "-q", "--detach"),
            *[self.switch] * 4,
            self.begin_an_orphan,
            *[self.rebase] * 2,
            lambda: self.git("clean", self.random.choice(["-qfd", "-qfdx"])),
            *[self.use_a_working_tree] * 2,
            lambda: self.git("branch", "-qD", self.random.choice(BRANCHES)),
            *[self.collect_git_garbage] * 2,
            *[lambda: self.ctx("gc", "--aggressive")] * 2,
            lambda: self.ctx("gc", "--keep-days", "0"),
            self.read,
            lambda: self.ctx("stage", "recover"),
        ]
        for _ in range(self.random.randint(8, 26)):
            self.random.choice(choices)()
        self.check()

    def add(self, folder: Path | None = None) -> None:
        self.number += 1
        text = f"Text {self.number} of the trial."
        words = ["add", "--type", self.random.choice(["fact", "decision"]), text]
        words += self.random.choice([[], [], ["--session", "other"]])
        if self.ctx(*words, folder=folder) is not None:
            self.acknowledged.add(text)

    def commit(self, *words: str, folder: Path | None = None) -> None:
        session = self.random.choice([[], [], ["--session", "other"]])
        before = self.nodes(folder)
        made = self.ctx("commit", "-m", f"Commit {self.number}", *session, *words, folder=folder)
        if made and made["commit"]:
            staged = {text for text, session in before.items() if session == made["session"]}
            amended = self.texts_of.get(made["amends"], set())
            self.texts_of[made["commit"]] = (staged | amended) & self.acknowledged

    def commit_to_git(self, *words: str, folder: Path | None = None) -> None:
        there = folder or self.top
        self.git("-C", str(there), "add", "-A")
        if self.git("-C", str(there), "commit", "-qm", "Work.", "--allow-empty", *words):
            committed = {text for text, session in self.nodes(folder).items() if session is None}
            self.in_git[self.ask("-C", str(there), "rev-parse", "HEAD")[0]] = committed

    def add_some(self) -> None:
        files = sorted(path for path in (self.top / ".ctx").rglob("*") if path.is_file())
        some = self.random.sample(files, len(files) // 2)
        self.git("add", "-f", "--", *map(str, some))

    def switch(self) -> None:
        words = self.random.choice([["switch", "-q"], ["switch", "-qf"], ["checkout", "-qf"]])
        name = self.random.choice(BRANCHES)
        if name not in self.branches() and self.random.random() < 0.7:
            words = ["switch", "-qc"]
        self.git(*words, name)

    def begin_an_orphan(self) -> None:
        words = self.random.choice([["switch", "-q"], ["checkout", "-q"]])
        self.git(*words, "--orphan", f"orphan-{self.number}")

    def rebase(self) -> None:
        words = self.random.choice([[name] for name in BRANCHES] + [["--onto", "HEAD~2", "HEAD~1"]])
        self.git("rebase", "-q", *words) or self.git("rebase", "--abort")

    def collect_git_garbage(self) -> None:
        self.git("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
        self.git("gc", "-q", "--prune=now")
        left = set(self.ask("cat-file", "--batch-all-objects", "--batch-check=%(objectname)"))
        gone = [texts for commit, texts in self.in_git.items() if commit not in left]
        self.pruned |= set().union(*gone)

    def use_a_working_tree(self) -> None:
        """Work in another working tree, and remove it."""
        start = self.random.choice([["--detach"], ["-B", "side"]])
        if not self.git("worktree", "add", "-q", *start, str(self.side)):
            return
        steps = (
            lambda: self.add(self.side),
            lambda: self.commit(folder=self.side),
            lambda: self.git("-C", str(self.side), "add", "-A"),
            lambda: self.commit_to_git(folder=self.side),
            lambda: self.commit_to_git(folder=self.side),
            lambda: self.ctx("gc", "--aggressive", folder=self.side),
        )
        for _ in range(self.random.randint(1, 6)):
            self.random.choice(steps)()
        self.git("worktree", "remove", "--force", str(self.side))
        if self.random.random() < 0.5:
            self.git("branch", "-qD", "side")

    def read(self) -> None:
        """Check that reading deletes no copy."""
        before = self.copies()
        for words in (["list"], ["search", "fact"], ["status"], ["log"]):
            self.ctx(*words)
        if self.copies() != before:
            raise self.unsound("a reading command changed what is staged")

    def copies(self) -> set[str]:
        found = (self.top / ".git/ctx").glob("*/stage/objects/*")
        return {str(path) for path in found if not path.name.endswith(".tmp")}

    def branches(self) -> list[str]:
        return self.ask("for-each-ref", "--format=%(refname:short)", "refs/heads")

    # The oracle

    def nodes(self, folder: Path | None = None) -> dict[str, str | None]:
        """The texts that a reader is given, each with the session that has staged it."""
        shown = self.ctx("list", "--limit", "0", folder=folder)
        return {node["content"]: node["staged"] for node in shown["nodes"]} if shown else {}

    def listed(self) -> set[str]:
        """What `ctx status` names, by its commit or as staged."""
        status = self.ctx("status") or {"untracked": [], "staged": []}
        return self.named([*status["untracked"], *status["staged"]])

    def offered(self) -> set[str]:
        found = self.ctx("stage", "recover", "--dry-run") or {}
        parts = [each for name in ("commits", "dropped", "parked") for each in found.get(name, ())]
        return self.named(parts).union(found.get("worktree_texts", ()))

    def named(self, parts: Sequence[Any]) -> set[str]:
        by_commit = (self.texts_of.get(each.get("commit"), set()) for each in parts)
        return set().union(*by_commit, *(each.get("texts", ()) for each in parts))

    def check(self) -> None:
        given: set[str] = set()
        listed, offered = set(given), set(given)
        places = [None, *self.branches()]
        for branch in places:
            self.check_out(branch)
            given |= self.nodes().keys()
            listed |= self.listed()
            offered |= self.offered()
        sorts = [given, listed, offered, self.pruned, self.acknowledged]
        known: set[str] = set()
        sizes = []
        for texts in sorts:
            sizes.append(len((texts & self.acknowledged) - known))
            known |= texts
        self.counts = Counts(len(self.acknowledged), *sizes)
        wanted = self.acknowledged - self.pruned
        if missing := wanted - given - listed - offered:
            raise self.unsound(f"neither given, listed nor offered: {sorted(missing)}")
        found: set[str] = set()
        for branch in places[1:] or places:
            self.check_out(branch)
            offered = self.offered()
            self.ctx("stage", "recover")
            now = self.nodes().keys()
            found |= now | self.listed()
            if missing := offered - now - self.offered():
                raise self.unsound(f"offered, and not given after that: {sorted(missing)}")
        if missing := wanted - found - self.offered():
            raise self.unsound(f"cannot be brought back: {sorted(missing)}")

    def check_out(self, branch: str | None) -> None:
        """Check out a branch, or use what is checked out."""
        if branch:
            self.git("stash", "-qu")
            self.git("checkout", "-qf", branch)
        if not (self.top / ".ctx/config.toml").exists():
            self.ctx("init")

    def ask(self, *words: str) -> list[str]:
        words = ("git", *words)
        asked = subprocess.run(words, cwd=self.top, capture_output=True, text=True, check=True)
        return asked.stdout.split()

    def git(self, *words: str) -> bool:
        """Run git, and ignore a refusal."""
        done = subprocess.run(["git", *words], cwd=self.top, capture_output=True, check=False)
        self.log.append(f"git {' '.join(words)[:100]} -> {done.returncode}")
        return done.returncode == 0

    def ctx(self, *words: str, folder: Path | None = None) -> Any:
        """The JSON of a command, or None if it fails: the store may be missing at this moment."""
        self.log.append(f"ctx {' '.join(words)}" + (" (side)" if folder == self.side else ""))
        if not os.path.exists((folder or self.top) / ".ctx/config.toml") and words != ("init",):
            return None
        try:
            return ctx(folder or self.top, *words)
        except Unsound as error:
            if "E000" in str(error) or "Traceback" in str(error):
                raise self.unsound(str(error)) from error
            self.log.append(f"  refused: {error}")
            return None

    def unsound(self, what: str) -> Unsound:
        return Unsound("\n".join([what, *self.log]))
