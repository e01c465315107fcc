"""Make a project store.

The configuration file is written last: a crash before it leaves nothing, or a store that lacks only
this file, and running it again completes what is there. Everything but the first commit is the same
bytes each time, so that two branches which both make a store merge without a conflict.
"""

import os
import shutil
from contextlib import suppress
from enum import StrEnum
from typing import NamedTuple

from ctx import __version__, clock, disk, git, interrupts, layout, redaction
from ctx.config import config_files, edit_file, project_template, schema
from ctx.config.config_files import ConfigPlace
from ctx.config.setting import as_one_line
from ctx.errors import ConfigInvalid, DiskFailure, GitFailure, LockConflict, PathRefused
from ctx.ids import CLI_SESSION, ObjectId
from ctx.layout import Project
from ctx.objects import refs
from ctx.objects.repository import Repository
from ctx.objects.untracked_survey import discarded_by_git
from ctx.project import compaction, trust_check
from ctx.project.given import GivenObjects
from ctx.project.project_repository import ProjectRepository

# Names that may be in an incomplete store; anything else belongs to another program.
_OURS = frozenset(
    {
        ".gitattributes", ".gitignore", "config.toml", "heads", "local", "narrative", "objects",
        "replaced",
    }
)  # fmt: skip
_GITIGNORE = """\
# Memory is tracked whatever the project ignores, except for the local files of ctx.
!*
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


class StoreContents(NamedTuple):
    """What a project store holds, and would lose if it were made anew."""

    objects: int
    heads: int
    documents: int
    """All files under `narrative/`."""
    sessions: int
    """With staged work."""

    @property
    def is_empty(self) -> bool:
        return not any(self)


class InitResult(NamedTuple):
    root: str
    store: str
    name: str
    template: str
    created: bool
    """False where there was a store already, and nothing was changed."""
    commit: ObjectId | None
    git: str
    """`added`, `excluded`, `tracked`, `left alone`, `refused` or `none`."""
    git_message: str | None = None
    outer: str | None = None
    """The project that contains this one, if there is one."""
    trusted: bool = False
    """Whether agents get its content. An existing store came from somebody else."""


class Options(NamedTuple):
    home: str
    """The user store, which is no place for a project store."""
    template: Template = Template.MINIMAL
    force: bool = False
    use_git: bool = True


def contents(project: Project) -> StoreContents:
    repository = Repository(project)
    stores = (repository.objects, repository.staged)
    return StoreContents(
        objects=sum(1 for store in stores for _ in store.ids()),
        heads=len(disk.names(project.heads)),
        documents=sum(len(names) for _, _, names in os.walk(project.narrative)),
        sessions=sum(1 for name in repository.refs.names() if refs.session_of(name)),
    )


def init(project: Project, options: Options) -> InitResult:
    """Make the store, or say that there is one. `force` destroys what is there first: the
    caller has shown `contents` and asked."""
    _refuse_place(project, options)
    name = os.path.basename(project.root) or "project"
    above = layout.find_project(os.path.dirname(project.root), options.home)
    answer = InitResult(
        project.root, project.store, name, options.template, False, None, "left alone",
        outer=above.root if above else None,
    )  # fmt: skip
    if layout.names_repo(project.config_file) and not options.force:
        return answer._replace(trusted=trust_check.verify(options.home, project).is_trusted)
    # An existing store came with a clone, or was left by a crash: ctx cannot tell.
    is_all_ours = options.force or not disk.names(project.store)
    repository = ProjectRepository(project, GivenObjects(options.home, project))
    with disk.explain_errors("making the project store"):
        if project.checkout and options.template is Template.PRIVATE:
            git.exclude(project.checkout, project.store)
        disk.make_folder(project.store)
        with repository.locked("ctx init"):
            interrupts.defer()
            if options.force:
                _clear(project)
            author = redaction.redact(git.identity(project.checkout)).text
            if is_all_ours:
                _trust(project, options.home, author)
            _scaffold(project, name, options.template)
            wish = compaction.CompactionOptions(CLI_SESSION, "Initial commit", author)
            # Where git threw commits away, the first one can come back with them.
            is_begun = repository.named_heads() or discarded_by_git(repository)
            made = None if is_begun else compaction.commit(repository, wish)
            _write_config(project, options.home, name)
            if is_all_ours:
                repository.given.add_tree()
    known, message = _configure_git(project, options)
    return answer._replace(
        created=True,
        commit=made.id if made else None,
        git=known,
        git_message=message,
        trusted=trust_check.verify(options.home, project).is_trusted,
    )


def _trust(project: Project, home: str, author: str) -> None:
    """Trust a store while it is still empty: a crash in the midst of making it changes nothing."""
    # If the user store cannot be written, the project store is still created.
    with suppress(DiskFailure, LockConflict):
        trust_check.trust_project(home, project, author, clock.iso(clock.now_ms()))


def _refuse_place(project: Project, options: Options) -> None:
    """Say no to places where a project store would do harm, or be none."""
    store, home = project.store, options.home
    if os.path.realpath(store) == os.path.realpath(home):
        raise PathRefused(
            f"{store} is your user store, not a project's.",
            hint="Run `ctx init` in the folder of a project.",
        )
    if {".git", layout.STORE_NAME}.intersection(project.root.split("/")):
        raise PathRefused(f"{project.root} belongs to git or ctx itself.")
    if all(os.path.exists(os.path.join(project.root, n)) for n in ("HEAD", "objects", "refs")):
        raise PathRefused(f"{project.root} is a bare git repository.")
    layout.refuse_links(project)
    if os.path.exists(store) and not os.path.isdir(store):
        raise PathRefused(f"{store} is not a folder.", hint="Move it away first.")
    is_store = layout.is_project_store(store, home)
    if is_store and not options.force:
        return
    is_other = os.path.exists(project.config_file) and not is_store
    if is_other or not all(map(_is_ours, disk.names(store))):
        raise PathRefused(
            f"{store} is not a project store; something else keeps its files there.",
            hint="Move it away first.",
        )


def _is_ours(name: str) -> bool:
    """Whether a name may be in an incomplete store, including files of a killed writer."""
    half_written = name.endswith(disk.TEMPORARY_SUFFIX)
    return name in _OURS or (half_written and name.rpartition(".")[0].rpartition(".")[0] in _OURS)


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


def _write_config(project: Project, home: str, name: str) -> None:
    """Write the configuration file; if it exists and only lacks `[repo]`, add that."""
    place = ConfigPlace("project", project.config_file)
    try:
        file = config_files.read(place)
        if file and file.text.strip():
            edit_file.set_value(place, schema.SETTINGS["repo.id"], as_one_line(name))
            return
    except ConfigInvalid as error:
        # The message may quote the file.
        if trust_check.verify(home, project).is_trusted:
            raise
        raise error.unquoted() from error
    text = project_template.project_template(name, __version__)
    disk.replace(project.config_file, text.encode())


def _clear(project: Project) -> None:
    """Empty a store, all but the lock that is held. The configuration and the heads go first:
    what is left after a crash is a store that was begun."""
    disk.discard(project.config_file)
    for path in (project.heads, project.refs, project.store, project.local):
        for name in disk.names(path):
            full = os.path.join(path, name)
            if full in (project.lock, project.local):
                continue
            if os.path.isdir(full) and not os.path.islink(full):
                shutil.rmtree(full)
            else:
                disk.discard(full)


def _configure_git(project: Project, options: Options) -> tuple[str, str | None]:
    checkout = project.checkout
    if checkout is None:
        return "none", None
    if options.template is Template.PRIVATE:
        return ("tracked" if git.tracked_files(checkout, project.store) else "excluded"), None
    if not options.use_git:
        return "left alone", None
    try:
        git.add(checkout, project.store)
    except GitFailure as error:
        return "refused", error.message
    return "added", None
