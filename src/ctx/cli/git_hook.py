"""`ctx install --git` and `ctx uninstall --git`: git's own hook, and nothing else.

What is put there is one block for each project store, right behind the first line, where no
`exit` of the script comes before it. It runs in a shell of its own and always ends well: whatever
becomes of memory, the commit goes on. No byte outside the block is ever touched, and taking it
out gives the file as it was; a file that was made for it goes with it.

    #!/bin/sh
    # >>> ctx . >>>
    …
    # <<< ctx . <<<
    the script of the user, whatever it is

A hook that is not a shell script, or that another program writes anew when it likes, is left alone:
what to add is said then, and where.
"""

import argparse
import os
import re
import shlex
import sys
from collections.abc import Mapping
from typing import Literal, NamedTuple

from ctx import checkouts, disk, git, interrupts, layout
from ctx.agents.host_setup import program_runs
from ctx.agents.host_setup.edited_file import FileChange
from ctx.agents.host_setup.host_setups import InstalledPart
from ctx.checkouts import Checkout
from ctx.cli import settings as surroundings
from ctx.cli.output import Output
from ctx.cli.settings import Settings
from ctx.errors import GitFailure, PathRefused, SettingsUnreadable
from ctx.layout import Project
from ctx.sqlite.connection import path_text

NAME = "pre-commit"

_LARGEST = 1024 * 1024
_SHELLS = {b"sh", b"bash", b"dash", b"ash", b"ksh", b"mksh", b"zsh"}
_NEW_SCRIPT_HEADER = b"#!/bin/sh\n# Made by `ctx install --git`.\n"
_BY_HAND = b"ctx commit --auto"
_BLOCK = """\
# >>> ctx {place} >>>
# Memory goes into the same commit as the code; `ctx uninstall --git` removes this.
(
    root={root} ctx=ctx
    store="$root/.ctx"
    unset GIT_GLOB_PATHSPECS GIT_NOGLOB_PATHSPECS GIT_ICASE_PATHSPECS
    failed() {{ echo "ctx: $1; the commit continues without memory." >&2; exit 0; }}
    [ "${{CTX_OFF:-0}}" = 0 ] || exit 0
    grep -q '^[[:space:]]*\\[*[[:space:]]*repo' "$store/config.toml" 2>/dev/null || exit 0
    # A rebase recreates old commits: the memory of today does not belong in them.
    git_dir=$(git rev-parse --git-dir) || exit 0
    [ ! -d "$git_dir/rebase-merge" ] && [ ! -d "$git_dir/rebase-apply" ] || exit 0
    command -v ctx >/dev/null 2>&1 || ctx={fallback}
    command -v "$ctx" >/dev/null 2>&1 || failed "it is not on the PATH"
    "$ctx" -q -C "$root" commit --auto </dev/null || failed '`ctx commit` failed'
    ! git check-ignore -q "$store" || exit 0
    git --literal-pathspecs add -A -- "$store" || failed '`git add` failed'
    # `git commit PATH` uses a temporary index; the regular one is beside it.
    case "${{GIT_INDEX_FILE-}}" in */next-index-*.lock)
        export GIT_INDEX_FILE="${{GIT_INDEX_FILE%/*}}/index.lock"
        [ ! -f "$GIT_INDEX_FILE" ] || git --literal-pathspecs add -A -- "$store" ;;
    esac
) || :
# <<< ctx {place} <<<
"""


class HookPlace(NamedTuple):
    """Where the hook of a project's repository lies, and whose it is."""

    path: str
    reach: Literal["repository", "working tree", "elsewhere"]
    """Whose file it is: this repository's on this machine, everybody's who works on the project,
    or that of whatever else `core.hooksPath` is set for."""


class HookPlan(NamedTuple):
    """The new content of the hook; None if there is none."""

    path: str
    state: Literal["written", "added", "updated", "there", "current", "removed", "missing"]
    before: bytes | None
    after: bytes | None


def install(
    options: argparse.Namespace, settings: Settings, output: Output
) -> tuple[InstalledPart, str]:
    """What happened to the hook, and the changes of its file."""
    project = layout.require_project(settings.folder, settings.user_store.home)
    plan = plan_hook(project, _program_path())
    _apply_plan(plan, options)
    for warning in _warnings(place(checkout_of(project))):
        output.warn(warning)
    return _part(plan), _diff(plan, options)


def uninstall(options: argparse.Namespace, settings: Settings) -> tuple[InstalledPart, str]:
    home = settings.user_store.home
    # The hook can be removed even if the store is gone.
    project = layout.find_project(settings.folder, home)
    checkout = checkouts.find_checkout(os.path.realpath(settings.folder))
    if checkout is None:
        checkout = checkout_of(layout.require_project(settings.folder, home))
    plan = planned_removal(checkout, project)
    _apply_plan(plan, options)
    return _part(plan), _diff(plan, options)


def _apply_plan(plan: HookPlan, options: argparse.Namespace) -> None:
    if not options.dry_run:
        mode = disk.shared_mode()
        apply_plan(plan, mode | (mode & 0o444) >> 2)


def _part(plan: HookPlan) -> InstalledPart:
    return InstalledPart("git hook", plan.path, plan.state)


def _diff(plan: HookPlan, options: argparse.Namespace) -> str:
    if not options.dry_run:
        return ""
    before, after = (
        None if data is None else data.decode("utf-8", "replace")
        for data in (plan.before, plan.after)
    )
    return FileChange(plan.path, before, after).diff


def _warnings(place: HookPlace) -> list[str]:
    warnings = []
    if place.reach == "elsewhere":
        warnings.append(
            f"core.hooksPath is outside of this repository: {place.path} runs in every"
            " repository that uses it. It does nothing in those without a project store at"
            " the same path."
        )
    if not _is_on_path(surroundings.variables()) and not _program_path():
        warnings.append("`ctx` is not on the PATH: the hook warns, and git commits without memory.")
    return warnings


def _is_on_path(variables: Mapping[str, str]) -> bool:
    return any(program_runs.programs("ctx", variables.get("PATH", "").split(os.pathsep)))


def _program_path() -> str:
    """The program of this installation, for a git that runs without the PATH of a shell."""
    program = os.path.join(os.path.dirname(sys.executable), "ctx")
    return program if os.access(program, os.X_OK) else ""


def checkout_of(project: Project) -> Checkout:
    if project.checkout is None:
        raise GitFailure(
            f"{path_text(project.root)} is not in a git repository.", hint="Run `git init` first."
        )
    return project.checkout


def place(checkout: Checkout) -> HookPlace:
    folder = git.hooks_folder(checkout)
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise SettingsUnreadable(
            f"git runs no hooks here: core.hooksPath is {path_text(folder)}.",
            hint="`git config --show-origin core.hooksPath` shows where it is set.",
        )
    path = os.path.join(folder, NAME)
    if _is_inside(folder, checkout.common_dir):
        return HookPlace(path, "repository")
    return HookPlace(path, "working tree" if _is_inside(folder, checkout.top) else "elsewhere")


def _is_inside(path: str, folder: str) -> bool:
    real, whole = os.path.realpath(path), os.path.realpath(folder)
    return os.path.commonpath([real, whole]) == whole


def plan_hook(project: Project, fallback: str) -> HookPlan:
    """What adding the block would do. `fallback` is the `ctx` where none is on the PATH.

    It is only for a file that stays on this machine.
    """
    checkout = checkout_of(project)
    path, reach = place(checkout)
    inside = _project_in_checkout(checkout, project)
    before = _read(path)
    block = block_of(inside, fallback if reach == "repository" else "")
    if before is None:
        _require_own_folder(path)
        return HookPlan(path, "written", None, _NEW_SCRIPT_HEADER + block)
    if found := _find(before, inside, path):
        after = before[: found.start()] + _match_line_end(found, block) + before[found.end() :]
        return HookPlan(path, "current" if after == before else "updated", before, after)
    if _BY_HAND in without_blocks(before, path):
        return HookPlan(path, "there", before, before)
    _require_plain_script(path, before)
    return HookPlan(path, "added", before, with_block(before, block))


def planned_removal(checkout: Checkout, project: Project | None) -> HookPlan:
    """What taking the block of a project out would do; without one, the blocks of all."""
    path = place(checkout).path
    with disk.explain_errors(f"reading {path_text(path)}"):
        before = disk.read_or_none(path) if os.path.isfile(path) else None
    if before is None:
        return HookPlan(path, "missing", None, None)
    after = without_blocks(
        before, path, _project_in_checkout(checkout, project) if project else None
    )
    if after == before:
        return HookPlan(path, "missing", before, before)
    if os.path.islink(path):
        raise SettingsUnreadable(
            f"{path_text(path)} is a symbolic link.", hint="Remove the block of ctx by hand."
        )
    return HookPlan(path, "removed", before, None if after == _NEW_SCRIPT_HEADER else after)


def apply_plan(plan: HookPlan, mode: int) -> None:
    """`mode` is for a file that is not there yet."""
    if plan.after == plan.before:
        return
    interrupts.defer()
    with disk.explain_errors(f"changing {path_text(plan.path)}"):
        if plan.after is None:
            disk.discard(plan.path)
            disk.sync_folder(os.path.dirname(plan.path))
        else:
            os.makedirs(os.path.dirname(plan.path), exist_ok=True)
            _replace(plan.path, plan.after, mode)


def _replace(path: str, data: bytes, mode: int) -> None:
    """Put a file in place whole, with the mode and the owner of the one that was there."""
    temporary = disk.write_like(path, data, mode)
    try:
        os.replace(temporary, path)
    finally:
        disk.discard(temporary)
    disk.sync_folder(os.path.dirname(path))


# The block


def _project_in_checkout(checkout: Checkout, project: Project) -> str:
    """The place of a project in its repository, as it is written into the block."""
    inside = os.path.relpath(project.root, checkout.top)
    if problem := layout.unfit_name(inside):
        raise PathRefused(f"{path_text(project.root)} cannot be named in a hook: {problem}.")
    return inside


def block_of(inside: str, fallback: str) -> bytes:
    root = inside if inside == os.curdir else os.path.join(os.curdir, inside)
    text = _BLOCK.format(
        place=shlex.quote(inside), root=shlex.quote(root), fallback=shlex.quote(fallback or "ctx")
    )
    return text.encode()


def with_block(before: bytes, block: bytes) -> bytes:
    """The script with the block after its first line."""
    if not before.startswith(b"#!"):
        return block + before
    first, end, rest = before.partition(b"\n")
    # A first line without an end gets one, which goes with the block.
    return first + b"\n" + (block if end else block.removesuffix(b"\n")) + rest


def _match_line_end(found: re.Match[bytes], block: bytes) -> bytes:
    """A block for the place of another one, with or without the line end behind it."""
    return block if found[0].endswith(b"\n") else b"\n" + block.removesuffix(b"\n")


def _find(text: bytes, inside: str | None, path: str) -> re.Match[bytes] | None:
    """The block of a project, or the first of all, with the line end that belongs to it."""
    place = b"[^\n]+" if inside is None else re.escape(shlex.quote(inside).encode())
    begin, end = rb"# >>> ctx (%b) >>>\n" % place, rb"# <<< ctx \1 <<<"
    whole = rb"(?ms)^%b.*?^%b" % (begin, end)
    found = re.search(whole + rb"\n", text) or re.search(rb"(?ms)\n%b.*?^%b\Z" % (begin, end), text)
    if found is None and re.search(rb"(?m)^" + begin, text):
        raise SettingsUnreadable(
            f"{path_text(path)} contains the start of the block of ctx, but not its end.",
            hint="Remove the rest of the block by hand.",
        )
    return found


def without_blocks(text: bytes, path: str, inside: str | None = None) -> bytes:
    """The script without the block of a project, or without all of them."""
    while found := _find(text, inside, path):
        text = text[: found.start()] + text[found.end() :]
    return text


# What is there already


def _read(path: str) -> bytes | None:
    """The content of the hook, or None if there is none. Raises if it is not a plain file."""
    if os.path.lexists(path) and (os.path.islink(path) or not os.path.isfile(path)):
        raise _unchanged_error(path, "is not a plain file", "the script that it refers to")
    with disk.explain_errors(f"reading {path_text(path)}"):
        return disk.read_or_none(path)


def _require_plain_script(path: str, text: bytes) -> None:
    """A shell script that its user has written, and that git runs."""
    if not os.access(path, os.X_OK):
        raise SettingsUnreadable(
            f"{path_text(path)} is not executable, so git does not run it.",
            hint=f"`chmod +x {shlex.quote(path_text(path))}` enables it; or move it away.",
        )
    _require_own_folder(path)
    name = path_text(path)
    writers = {
        b"File generated by pre-commit": ("pre-commit", f"an executable script {name}.legacy"),
        b"lefthook": ("lefthook", "the `pre-commit` of lefthook.yml"),
        b"# husky": ("husky", "the `pre-commit` of its configuration"),
        b"SIMPLE_GIT_HOOKS": ("simple-git-hooks", "the `pre-commit` of its configuration"),
    }
    for mark, (program, where) in writers.items():
        if mark in text:
            raise _unchanged_error(path, f"is written by {program}", where)
    if b"\0" in text or len(text) > _LARGEST or not _is_shell(text.partition(b"\n")[0]):
        raise _unchanged_error(path, "is not a shell script", "it, in its own language")


def _require_own_folder(path: str) -> None:
    """husky has one folder for its own files, and another one for those of its users."""
    folder = os.path.dirname(path)
    if folder.endswith(os.path.join("", ".husky", "_")):
        raise _unchanged_error(path, "is written by husky", os.path.join(folder[:-2], NAME))


def _is_shell(first: bytes) -> bool:
    """Whether a script's first line names a shell. git runs one without such a line by `sh`."""
    if not first.startswith(b"#!"):
        return True
    words = [os.path.basename(word) for word in first[2:].split()]
    while words and (words[0] in (b"env", b"busybox") or words[0].startswith(b"-")):
        words.pop(0)
    return bool(words) and words[0] in _SHELLS and not first.endswith(b"\r")


def _unchanged_error(path: str, why: str, where: str) -> SettingsUnreadable:
    return SettingsUnreadable(
        f"{path_text(path)} {why}, so it was not changed.",
        detail="  ctx commit --auto\n  git add .ctx",
        hint=f"Add these two lines to {where}.",
    )
