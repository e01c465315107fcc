"""A git repository that tries to run programs in every way that git supports.

Each way leaves a file of its own in the folder `ran`, so a test can name the way that worked.
"""

import os
import shutil
from pathlib import Path

from tests.conftest import git

BUILTINS_ALIASED = [
    *("add", "cat-file", "check-ignore", "config", "diff-index", "diff-tree", "hash-object"),
    *("log", "ls-files", "ls-tree", "rev-list", "rev-parse", "status", "var", "worktree"),
]
HOOKS = [
    *("applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-checkout", "post-commit"),
    *("post-index-change", "post-merge", "post-rewrite", "post-update", "pre-auto-gc"),
    *("pre-commit", "pre-push", "pre-rebase", "prepare-commit-msg", "reference-transaction"),
    *("query-watchman", "sendemail-validate", "update"),
]


class HostileRepository:
    def __init__(self, top: Path, ran: Path) -> None:
        self.top = top
        self.ran = ran
        self.config = top / ".git" / "config"
        self._lost = top
        ran.mkdir()

    def markers(self) -> set[str]:
        """The ways that ran a program since the last call."""
        found = set(os.listdir(self.ran))
        for name in found:
            (self.ran / name).unlink()
        return found

    def program(self, name: str) -> str:
        """A program that leaves its mark. A filter then copies its input."""
        path = self.ran.parent / "programs" / name
        path.parent.mkdir(exist_ok=True)
        then = "exec cat" if name.endswith((".clean", ".smudge", ".filter")) else "exit 1"
        path.write_text(f"#!/bin/sh\n: > '{self.ran}/{name}'\n{then}\n")
        path.chmod(0o755)
        return str(path)

    def spring(self) -> None:
        """Set every trap. The repository has commits and a project store by now."""
        self._sign_a_commit()
        self._add_submodules()
        attributes = "* filter=evil diff=evil merge=evil\n*.inc filter=included diff=included\n"
        attributes += "*.tree filter=worktree\n*.odd filter=a.b\n*.upper filter=UPPER\n"
        attributes += "*.long filter=long\n"
        for folder in (self.top, self.top / ".ctx"):
            (folder / ".gitattributes").write_text(attributes)
        (self.top / ".git" / "info" / "attributes").write_text(attributes)
        for name in ("x.inc", "x.tree", "x.odd", "x.upper", "z.long"):
            (self.top / ".ctx" / "narrative" / name).write_text("x\n")
            (self.top / name).write_text("x\n")
        git("add", "-f", ".", cwd=self.top)
        git("commit", "-qm", "Traps", cwd=self.top)
        lost = git("rev-parse", "HEAD:app.py", cwd=self.top).strip()
        self._lost = self.top / ".git" / "objects" / lost[:2] / lost[2:]
        self._write_hooks()
        self._write_settings()
        self.drop_an_object()
        self.touch()

    def touch(self) -> None:
        """Change the times of all files, so that git reads them again through their filters."""
        for folder, _, names in os.walk(self.top):
            if "/.git" not in folder:
                for name in names:
                    os.utime(os.path.join(folder, name), (1, 1))

    def _sign_a_commit(self) -> None:
        tree = git("rev-parse", "HEAD^{tree}", cwd=self.top).strip()
        head = git("rev-parse", "HEAD", cwd=self.top).strip()
        signed = (
            f"tree {tree}\nparent {head}\nauthor A <a@example.org> 1700000000 +0000\n"
            "committer A <a@example.org> 1700000000 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n"
            " \n iQ==\n -----END PGP SIGNATURE-----\n\nSigned\n"
        )
        file = self.ran.parent / "signed"
        file.write_text(signed)
        made = git("hash-object", "-t", "commit", "-w", str(file), cwd=self.top).strip()
        git("reset", "-q", "--soft", made, cwd=self.top)

    def _add_submodules(self) -> None:
        """Add repositories inside the repository, with their own settings."""
        for place in ("sub", ".ctx/sub"):
            inner = self.top / place
            inner.mkdir()
            git("init", "-q", cwd=inner)
            (inner / "a.txt").write_text("a\n")
            (inner / ".gitattributes").write_text("* filter=inner\n")
            git("add", ".", cwd=inner)
            git("commit", "-qm", "Inner", cwd=inner)
            name = place.replace("/", "_")
            with (inner / ".git" / "config").open("a") as file:
                file.write(
                    f'[filter "inner"]\n clean = {self.program(f"{name}.filter")}\n'
                    f"[core]\n fsmonitor = {self.program(f'{name}.fsmonitor')}\n"
                    f" hooksPath = {self.ran.parent}/elsewhere\n"
                )
        (self.top / ".gitmodules").write_text(
            '[submodule "sub"]\n path = sub\n url = ./sub\n ignore = none\n'
            '[submodule ".ctx/sub"]\n path = .ctx/sub\n url = ./sub\n ignore = none\n'
        )

    def _write_hooks(self) -> None:
        own, elsewhere = self.top / ".git" / "hooks", self.ran.parent / "elsewhere"
        elsewhere.mkdir()
        own.mkdir(exist_ok=True)
        for name in HOOKS:
            shutil.copy(self.program(f"hook.{name}"), own / name)
            shutil.copy(self.program(f"hooksPath.{name}"), elsewhere / name)

    def _write_settings(self) -> None:
        program = self.program
        git_dir = self.top / ".git"
        keys = ("fsmonitor", "pager", "editor", "sshCommand", "gitProxy", "askPass")
        lines = ["[core]", *(f" {key} = {program(f'core.{key}')}" for key in keys)]
        lines += [f" alternateRefsCommand = {program('core.alternateRefsCommand')}"]
        lines += [f" hooksPath = {self.ran.parent}/elsewhere", " untrackedCache = true"]
        for name in ("evil", "a.b", "UPPER"):
            lines += [f'[filter "{name}"]']
            for key in ("clean", "smudge"):
                lines.append(f" {key} = {program(f'filter.{name}.{key}')}")
        lines += ['[filter "long"]', f" process = {program('filter.long.process')}"]
        lines += ["[diff]", f" external = {program('diff.external')}", " submodule = diff"]
        lines += ['[diff "evil"]', f" command = {program('diff.evil.command')}"]
        lines += [f" textconv = {program('diff.evil.textconv')}"]
        lines += ['[merge "evil"]', f" driver = {program('merge.evil.driver')}"]
        lines += ["[gpg]", f" program = {program('gpg.program')}"]
        for name in ("ssh", "x509", "openpgp"):
            lines += [f'[gpg "{name}"]', f" program = {program(f'gpg.{name}')}"]
        lines += ["[log]", " showSignature = true", "[commit]", " gpgSign = true"]
        lines += ["[credential]", f" helper = {program('credential.helper')}"]
        lines += ["[sequence]", f" editor = {program('sequence.editor')}"]
        lines += ["[interactive]", f" diffFilter = {program('interactive.diffFilter')}"]
        lines += ["[uploadpack]", f" packObjectsHook = {program('uploadpack.packObjectsHook')}"]
        lines += ['[trailer "x"]', f" command = {program('trailer.x.command')}", " key = X"]
        lines += ['[hook "x"]', f" command = {program('hook.x.command')}"]
        lines += [f" event = {name}" for name in HOOKS]
        lines += ["[status]", " submoduleSummary = true", "[submodule]", " recurse = true"]
        lines += ["[protocol]", " allow = always", '[protocol "ext"]', " allow = always"]
        lines += ["[alias]"]
        lines += [f" {name} = !{program(f'alias.{name}')}" for name in BUILTINS_ALIASED]
        lines += ["[pager]"]
        lines += [f" {name} = {program(f'pager.{name}')}" for name in ("log", "status", "config")]
        # A partial clone asks its server for what is missing.
        lines += ['[remote "evil"]', " promisor = true", " partialclonefilter = blob:none"]
        lines += [f" url = ext::{program('remote.ext')} %S", " fetch = +refs/*:refs/evil/*"]
        lines += [f" uploadpack = {program('remote.uploadpack')}"]
        lines += ["[extensions]", " partialClone = evil", " worktreeConfig = true"]
        lines += ["[include]", " path = included"]
        lines += ['[includeIf "gitdir:/**"]', " path = conditionally"]
        (git_dir / "included").write_text(
            f'[filter "included"]\n clean = {program("filter.included.clean")}\n'
            f'[diff "included"]\n textconv = {program("diff.included.textconv")}\n'
        )
        (git_dir / "conditionally").write_text(
            f'[filter "evil"]\n clean = {program("filter.conditionally.clean")}\n'
        )
        (git_dir / "config.worktree").write_text(
            f'[filter "worktree"]\n clean = {program("filter.worktree.clean")}\n'
            f"[core]\n fsmonitor = {program('core.fsmonitor.worktree')}\n"
        )
        with self.config.open("a") as file:
            # A version that lets `extensions` count.
            file.write("\n".join(["[core]", " repositoryformatversion = 1", *lines, ""]))

    def drop_an_object(self) -> None:
        """Remove an object that git then requests from its server. `git add` writes it again."""
        self._lost.unlink(missing_ok=True)
