"""Make a project store.

The configuration file is what makes a folder a project store, so it is written last: a crash
before it leaves nothing that any command would take for one, and running it again completes
what is there. Everything but the first commit is the same bytes each time, so that two branches
which both make a store merge without a conflict.
"""

import os
import shutil
from enum import StrEnum
from typing import NamedTuple

from ctx import __version__, disk, git, layout
from ctx.config import template
from ctx.errors import GitFailure, PathRefused
from ctx.ids import CLI_SESSION, ObjectId
from ctx.layout import Project
from ctx.narrative import snapshots
from ctx.objects.repository import Repository
from ctx.sessions import compaction

_GITIGNORE = """\
# What ctx keeps here but git should not.
*.tmp
/local/
/narrative/decisions.md
"""
_GITATTRIBUTES = """\
# Objects are bytes: no line endings, no textual merge.
objects/** -text -diff -merge linguist-generated
heads/** -text
narrative/** text eol=lf
"""
_README = """\
# {name}

## Summary

What this project is, for whoever works on it next: a person or an agent.

## Content

## References
"""
_REVIEW = """\
# How memory is reviewed here

## Summary

Memory under `.ctx/` travels with the code and is reviewed with it.

## Content

- A pull request that changes `.ctx/narrative/` is read like any other prose.
- Files under `.ctx/objects/` and `.ctx/heads/` need no reading: they merge without conflicts,
  and `ctx debug verify` proves that they are whole.
- Run `ctx commit` before `git commit`, so that memory and code arrive together.

## References
"""
_DECISIONS = """\
# Decisions

## Summary

One decision, one file in this folder.

## Content

## References
"""
_TASKS = """\
# Tasks

## Summary

One task, one file in this folder.

## Content

## References
"""


class Template(StrEnum):
    MINIMAL = "minimal"
    TEAM = "team"
    PRIVATE = "private"


class Contents(NamedTuple):
    """What a project store holds, and would lose if it were made anew."""

    objects: int
    heads: int
    documents: int
    sessions: int

    @property
    def is_empty(self) -> bool:
        return not any(self)


class Initialised(NamedTuple):
    root: str
    store: str
    name: str
    template: str
    created: bool
    """False where there was a store already, and nothing was changed."""
    commit: ObjectId | None
    git: str
    """`added`, `excluded`, `left alone`, `refused` or `none`."""
    git_message: str | None = None


class Options(NamedTuple):
    template: Template = Template.MINIMAL
    force: bool = False
    use_git: bool = True
    home: str = ""


def contents(project: Project) -> Contents:
    repository = Repository(project)
    return Contents(
        objects=sum(1 for _ in repository.objects.ids()) + sum(1 for _ in repository.staged.ids()),
        heads=len(disk.names(project.heads)),
        documents=len(snapshots.documents(project.narrative)),
        sessions=sum(1 for _ in repository.refs.names()),
    )


def init(project: Project, options: Options) -> Initialised:
    """Make the store, or say that there is one. `force` destroys what is there first: the
    caller has shown `contents` and asked."""
    if os.path.realpath(project.store) == os.path.realpath(options.home):
        raise PathRefused(
            f"{project.store} is your user store, not a project's.",
            hint="Run `ctx init` in the folder of a project.",
        )
    name = os.path.basename(project.root) or "project"
    repository = Repository(project)
    there = layout.is_project_store(project.store, os.path.realpath(options.home))
    if there and not options.force:
        return Initialised(
            project.root, project.store, name, options.template, False, None, "left alone"
        )
    with disk.explained("making the project store"):
        if options.force:
            _clear(project)
        disk.make_folder(project.store)
        with repository.locked("ctx init"):
            _scaffold(project, name, options.template)
            wish = compaction.Wish(CLI_SESSION, "Initial commit", git.identity(project.checkout))
            made = None if repository.heads.named() else compaction.commit(repository, wish)
            text = template.project_template(name, __version__)
            disk.replace(project.config_file, text.encode())
    known, message = _tell_git(project, options)
    return Initialised(
        project.root, project.store, name, options.template, True,
        made.id if made else None, known, message,
    )  # fmt: skip


def _scaffold(project: Project, name: str, kind: Template) -> None:
    files = {
        ".gitignore": _GITIGNORE,
        ".gitattributes": _GITATTRIBUTES,
        "narrative/README.md": _README.format(name=name),
    }
    if kind is Template.TEAM:
        files["narrative/REVIEW.md"] = _REVIEW
        files["narrative/decisions/README.md"] = _DECISIONS
        files["narrative/tasks/README.md"] = _TASKS
    for folder in (project.objects, project.heads):
        disk.make_folder(folder)
    for path, text in files.items():
        full = os.path.join(project.store, path)
        if not os.path.exists(full):
            disk.make_folder(os.path.dirname(full))
            disk.replace(full, text.encode())


def _clear(project: Project) -> None:
    """Remove a store. The configuration goes first: what is left is then no store."""
    disk.discard(project.config_file)
    for folder in (project.store, project.local):
        if os.path.isdir(folder):
            shutil.rmtree(folder)


def _tell_git(project: Project, options: Options) -> tuple[str, str | None]:
    checkout = project.checkout
    if checkout is None:
        return "none", None
    inside = os.path.relpath(project.store, checkout.top)
    if options.template is Template.PRIVATE:
        git.exclude(checkout, f"/{inside}/")
        return "excluded", None
    if not options.use_git:
        return "left alone", None
    try:
        git.add(checkout, project.store)
    except GitFailure as error:
        return "refused", error.message
    return "added", None
