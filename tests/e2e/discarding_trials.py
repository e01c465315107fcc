"""Random git commands that throw work away, between commits of memory and git commits.

A trial commits facts to memory and lets git commands happen in between: they reset, restore, stash,
drop, clean, switch, and remove branches and working trees. In the end every fact that was
acknowledged and never was in a git commit must be visible, or named by `ctx status`; and on some
branch `ctx stage recover` must bring it back.
"""

import os
import random
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.e2e.merge_trials import Unsound, ctx


class Trial:
    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.top = folder / "project"
        self.side = folder / "side"
        self.log: list[str] = []
        self.acknowledged: set[str] = set()
        self.was_in_git: set[str] = set()
        self.number = 0

    def run(self) -> int:
        """Run the trial, and return the number of acknowledged facts."""
        self.top.mkdir()
        self.git("init", "-q", "-b", "main")
        self.ctx("init")
        (self.top / "code.py").write_text("x = 1\n")
        self.add_fact(self.top)
        self.commit_to_git()
        choices: Sequence[Callable[[], object]] = [
            *[lambda: self.add_fact(self.top)] * 9,
            *[self.commit_to_git] * 2,
            *[lambda: self.git("add", "-A")] * 3,
            self.add_some,
            *[lambda: self.git("reset", "-q", "--hard")] * 2,
            lambda: self.git("reset", "-q"),
            lambda: self.git("reset", "-q", "--hard", "HEAD~1"),
            lambda: self.git("restore", "--staged", "--worktree", "."),
            *[lambda: self.git("stash", "-qu")] * 2,
            lambda: self.git("stash", "-q"),
            lambda: self.git("stash", "drop", "-q"),
            lambda: self.git("stash", "pop", "-q"),
            lambda: self.git("rm", "-rq", "--cached", ".ctx"),
            lambda: self.git("checkout", "-qf"),
            *[self.switch] * 4,
            *[lambda: self.git("clean", self.random.choice(["-qfd", "-qfdx"]))] * 2,
            self.use_a_working_tree,
            self.delete_a_branch,
            self.collect_git_garbage,
            lambda: self.ctx("gc", "--aggressive"),
            *[self.read] * 2,
            lambda: self.ctx("stage", "recover"),
        ]
        for _ in range(self.random.randint(8, 22)):
            self.random.choice(choices)()
        self.check()
        return len(self.acknowledged)

    def add_fact(self, folder: Path) -> None:
        self.number += 1
        fact = f"Fact {self.number} of the trial."
        kind = self.random.choice(["fact", "fact", "decision"])
        if self.ctx("add", "--type", kind, fact, folder=folder) is None:
            return
        made = self.ctx("commit", "-m", fact, folder=folder)
        if made and made["commit"]:
            self.acknowledged.add(fact)

    def commit_to_git(self) -> None:
        self.git("add", "-A")
        if self.git("commit", "-qm", "Work.", "--allow-empty"):
            self.was_in_git |= self.visible()

    def add_some(self) -> None:
        files = sorted(path for path in (self.top / ".ctx").rglob("*") if path.is_file())
        some = self.random.sample(files, len(files) // 2)
        self.git("add", "-f", "--", *map(str, some))

    def switch(self) -> None:
        words = self.random.choice([["switch", "-q"], ["switch", "-qf"], ["checkout", "-qf"]])
        name = self.random.choice(["main", "one", "two"])
        if name not in self.branches() and self.random.random() < 0.7:
            words = ["switch", "-qc"]
        self.git(*words, name)

    def delete_a_branch(self) -> None:
        self.git("branch", "-qD", self.random.choice(["main", "one", "two"]))

    def collect_git_garbage(self) -> None:
        self.git("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
        self.git("gc", "-q", "--prune=now")

    def use_a_working_tree(self) -> None:
        if self.git("worktree", "add", "-q", "--detach", str(self.side)):
            if (self.side / ".ctx").exists():
                self.add_fact(self.side)
            self.git("worktree", "remove", "--force", str(self.side))

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

    def visible(self) -> set[str]:
        shown = self.ctx("list", "--limit", "0")
        return {node["content"] for node in shown["nodes"]} if shown else set()

    def branches(self) -> list[str]:
        listed = subprocess.run(
            ["git", "for-each-ref", "--format=%(refname:short)", "refs/heads"],
            cwd=self.top, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return listed.stdout.split()

    def check(self) -> None:
        wanted = self.acknowledged - self.was_in_git
        if (status := self.ctx("status")) is None:
            # Not even the settings of the store are in the working tree.
            self.git("stash", "-qu")
            self.git("checkout", "-qf", "HEAD")
            status = self.ctx("status")
        if status is None:
            raise self.unsound("there is no store any more")
        named = {each["message"] for each in status["untracked"]}
        missing = wanted - self.visible() - named
        if missing and not status["removed_worktrees"]:
            raise self.unsound(f"neither visible nor named: {sorted(missing)}")
        stashed = {each["message"] for each in status["untracked"] if each["state"] == "stashed"}
        found: set[str] = set()
        self.git("stash", "-qu")
        for branch in self.branches():
            self.git("checkout", "-qf", branch)
            self.ctx("stage", "recover")
            found |= self.visible()
            status = self.ctx("status") or {"untracked": []}
            stashed |= {e["message"] for e in status["untracked"] if e["state"] == "stashed"}
        if missing := wanted - found - stashed:
            raise self.unsound(f"cannot be brought back: {sorted(missing)}")

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
