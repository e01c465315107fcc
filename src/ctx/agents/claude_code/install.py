"""Installs ctx for Claude Code, and uninstalls it.

It needs three things: the store, the skill, and the hooks in the client's settings. The order
ensures that nothing is left half done: the settings are read and the hooks are tried first, as the
client would run them, and nothing is written if either fails.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import blake2s
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import ctx
from ctx import __version__, clock, disk
from ctx.agents.claude_code import registration
from ctx.agents.claude_code.registration import Group
from ctx.agents.host_setup import edited_file, program_runs, settings_file, skill
from ctx.agents.host_setup.edited_file import FileChange
from ctx.errors import HookFailed, PathRefused
from ctx.hook_files.spool import EVENTS
from ctx.memory import user_store
from ctx.sqlite.connection import explain_errors, path_text

State = Literal[
    "made", "there", "written", "updated", "current", "added", "removed", "kept", "missing"
]

_SHOWN_LINE = 200
_TRIAL_S = 10.0
_COMPILING_S = 120.0
_VERSION_S = 5.0
_VERSION = re.compile(r"ctx \d+\.\d+\.\d+\S*")
_ADD_BY_HAND = "add the hooks by hand: `ctx install --print` shows them"
_REMOVE_BY_HAND = (
    "remove the hooks by hand: their commands contain `ctx hook` or `claude_code/entry.py`"
)
# Variables that would make a trial use the user's own store, keep it from running, or make it look
# like a session of the client.
_NOT_FOR_A_TRIAL = ("CTX_", "CLAUDE")


class InstallTarget(NamedTuple):
    """Whose settings are changed: the user's, or a project's."""

    level: Literal["user", "project"]
    folder: str
    """`…/.claude`, or the value of `CLAUDE_CONFIG_DIR`."""
    backup: str
    """The path of the settings' backup, without the time."""

    @property
    def settings(self) -> str:
        return os.path.join(self.folder, "settings.json")

    @property
    def skill(self) -> str:
        return os.path.join(self.folder, "skills", "ctx")

    @property
    def mode(self) -> int:
        """The mode of new files. Everybody who works on a project can read those of the project."""
        return edited_file.shared_mode() if self.level == "project" else disk.FILE_MODE


class InstalledPart(NamedTuple):
    """A part of ctx that was installed or removed."""

    what: Literal["store", "skill", "hooks", "plugin", "projection", "git hook"]
    path: str
    state: State


def user_place(claude_folder: str, ctx_home: str) -> InstallTarget:
    name = os.path.basename(claude_folder)
    # There may be several, each with its own settings.
    backup = "settings.json" if name == ".claude" else _backup_of(claude_folder, name)
    return InstallTarget("user", claude_folder, os.path.join(ctx_home, "backups", backup))


def project_place(root: str, ctx_home: str) -> InstallTarget:
    """The settings of a project. A symbolic link in a clone is not followed, because it may point
    anywhere."""
    folder = os.path.join(root, ".claude")
    backup = _backup_of(root, os.path.basename(root))
    place = InstallTarget("project", folder, os.path.join(ctx_home, "backups", backup))
    for path in (place.settings, place.skill):
        real = os.path.realpath(path)
        if os.path.commonpath([real, os.path.realpath(root)]) != os.path.realpath(root):
            raise PathRefused(
                f"{path_text(path)} is a link to a place outside the project: {path_text(real)}.",
                hint="Replace the link by a plain file or folder.",
            )
    return place


def _backup_of(folder: str, name: str) -> str:
    """The path of a backup. Folders of the same name in different places have separate backups."""
    number = blake2s(os.fsencode(os.path.realpath(folder)), digest_size=4).hexdigest()
    return f"settings.json-of-{name}-{number}"


# Installing


def planned_skill(place: InstallTarget) -> InstalledPart:
    return InstalledPart("skill", place.skill, skill.planned_state(place.skill))


def write_skill(place: InstallTarget) -> InstalledPart:
    return InstalledPart("skill", place.skill, skill.write(place.skill, mode=place.mode))


def planned_hooks(place: InstallTarget, entries: Mapping[str, Group]) -> FileChange:
    """The change that registers these hooks; SettingsUnreadable if it is not possible."""
    return edited_file.plan_change(place.settings, _add_hooks(entries), by_hand=_ADD_BY_HAND)


def register(place: InstallTarget, entries: Mapping[str, Group]) -> FileChange:
    return edited_file.change(
        place.settings, _add_hooks(entries), place.backup, by_hand=_ADD_BY_HAND, mode=place.mode
    )


def _add_hooks(entries: Mapping[str, Group]) -> edited_file.Edit:
    return lambda text: settings_file.with_hooks(text, entries, registration.is_ours)


def hooks_part(change: FileChange) -> InstalledPart:
    """One word for what registering did to the settings."""
    if not change.is_one:
        return InstalledPart("hooks", change.path, "current")
    known = settings_file.registered_hooks(change.before or "", registration.is_ours)
    return InstalledPart("hooks", change.path, "updated" if known else "added")


def matcher_warnings(change: FileChange) -> Iterator[str]:
    """Warnings about hooks of ctx to which the user added a matcher."""
    for hook in settings_file.registered_hooks(change.after or "", registration.is_ours):
        if hook.is_narrowed:
            yield (
                f"{path_text(change.path)} runs {hook.event} only for `{hook.matcher}`, as you set"
                ' it: ctx does not see other calls. The matcher "" matches all.'
            )


def unmanaged_hook_warnings(change: FileChange, advice: str) -> Iterator[str]:
    """Warnings about hooks that run ctx but were not written by it. They are not changed."""
    others = settings_file.unmanaged_hooks(
        change.after or "", registration.is_ours, registration.mentions
    )
    for hook in others:
        line = hook.line if len(hook.line) <= _SHOWN_LINE else f"{hook.line[:_SHOWN_LINE]}…"
        yield (
            f"{path_text(change.path)}, {hook.place}: this hook for {hook.event} runs ctx, differs"
            f" from what `ctx install` writes, and was not changed. {advice} It is: {line}"
        )


# Uninstalling


def planned_removal_of_skill(place: InstallTarget, *, force: bool) -> InstalledPart:
    if not os.path.lexists(os.path.join(place.skill, "SKILL.md")):
        return InstalledPart("skill", place.skill, "missing")
    kept = skill.edited_pages(place.skill) and not force
    return InstalledPart("skill", place.skill, "kept" if kept else "removed")


def remove_skill(place: InstallTarget, *, force: bool) -> InstalledPart:
    return InstalledPart("skill", place.skill, skill.remove(place.skill, force=force))


def planned_removal_of_hooks(place: InstallTarget) -> FileChange:
    return edited_file.plan_change(place.settings, _remove_hooks, by_hand=_REMOVE_BY_HAND)


def unregister(place: InstallTarget) -> FileChange:
    """Remove our hooks from the settings. A file that was created for them is deleted."""
    return edited_file.change(place.settings, _remove_hooks, place.backup, by_hand=_REMOVE_BY_HAND)


def remove_folder(place: InstallTarget) -> None:
    """Remove the client's folder if it is empty."""
    with suppress(OSError):
        os.rmdir(place.folder)


def _remove_hooks(text: str | None) -> str | None:
    return None if text is None else settings_file.without_hooks(text, registration.is_ours)


# The program


class Program(NamedTuple):
    """The `ctx` that a shell finds. Hooks of projects and plugins run it, and so does Claude."""

    summary: str
    advice: str
    """What to do; empty if it is this ctx, or one of the same version."""


def program_on_path(variables: Mapping[str, str]) -> Program:
    ours = os.path.dirname(registration.interpreter())
    first = next(program_runs.programs("ctx", variables.get("PATH", "").split(os.pathsep)), None)
    if first is None:
        return Program("`ctx` is not on the PATH.", f"Put {path_text(ours)} on it.")
    if os.path.dirname(os.path.realpath(first)) == os.path.realpath(ours):
        return Program(f"`ctx` is {path_text(first)}, this one", "")
    version = _version_of(first, variables)
    if version == f"ctx {__version__}":
        return Program(f"`ctx` is {path_text(first)}, of the same version as this one", "")
    is_older = _VERSION.fullmatch(version) is not None
    other = f"{version}; this is {__version__}." if is_older else "another program."
    advice = f"Put {path_text(ours)} before everything else on the PATH."
    return Program(f"`ctx` is {path_text(first)}, and that is {other}", advice)


def _version_of(program: str, variables: Mapping[str, str]) -> str:
    try:
        ended = program_runs.run([program, "--version"], variables, os.sep, seconds=_VERSION_S)
    except OSError:
        return ""
    return ended.out.decode("utf-8", "replace").strip() if ended else ""


_UV = re.compile(r"/(?:archive|builds|environments)-v\d+/")
_PIPX = re.compile(r"/(?:pipx/\.cache|(?:\.cache|Caches)/pipx)/(?!venvs/)")


def refuse_temporary_environment() -> None:
    """Raise HookFailed if ctx runs from the cache of `uvx` or `pipx run`, which gets deleted."""
    for path in (registration.interpreter(), registration.ENTRY):
        for tool, cache, command in (
            ("uv", _UV, "uv tool install ctx-memory"),
            ("pipx", _PIPX, "pipx install ctx-memory"),
        ):
            if cache.search(path):
                raise HookFailed(
                    f"ctx runs from a temporary environment, which {tool} deletes:"
                    f" {path_text(path)}. Hooks would stop working.",
                    hint=f"Install ctx with `{command}`, then run `ctx install` again.",
                )


# Trying hooks


def compile_bytecode() -> None:
    """Compile the modules that hooks import.

    Otherwise a hook compiles its imports each time, which takes several times as long. It still
    works if the bytecode cannot be written.
    """
    package = os.path.dirname(os.path.abspath(ctx.__file__))
    words = [registration.interpreter(), "-I", "-S", "-m", "compileall", "-q", package]
    with suppress(OSError):
        program_runs.run(words, {}, os.sep, seconds=_COMPILING_S)


def try_hooks(entries: Mapping[str, Group], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Run every command as the client would. Raises HookFailed if one of them fails."""
    commands = [hook["command"] for group in entries.values() for hook in group["hooks"]]
    words = {command: registration.word_of(command) or "" for command in commands}
    for command, word in words.items():
        problem = try_command(command, word, environment)
        if problem:
            raise HookFailed(f"The hook {word} does not work: {problem}", detail=f"  {command}")
    return tuple(dict.fromkeys(words.values()))


def try_command(command: str, word: str, environment: Mapping[str, str]) -> str:
    """Run a registered command with a temporary store, and return the problem, or an empty text.

    `environment` is the environment of the user's programs.
    """
    with (
        disk.explain_errors("trying the hooks"),
        TemporaryDirectory(prefix="ctx-trial-", ignore_cleanup_errors=True) as folder,
    ):
        return _trial(command, word, environment, folder)


def _trial(command: str, word: str, environment: Mapping[str, str], folder: str) -> str:
    """The problem with a command, or the error that the hook reported."""
    home, project = os.path.join(folder, "home"), os.path.join(folder, "project")
    for made in (home, project):
        os.mkdir(made, disk.FOLDER_MODE)
    database = os.path.join(home, "store.db")
    with explain_errors(database):
        user_store.open_for_writing(database).close()
    before = set(os.listdir(home))
    inherited = {
        name: value for name, value in environment.items() if not name.startswith(_NOT_FOR_A_TRIAL)
    }
    stdin = json.dumps(_event(word, project)).encode() + b"\n"
    words = ["/bin/sh", "-c", command]
    # The home is temporary, so no worker should start. On a busy machine the trial may take longer
    # than a hook may.
    variables = {**inherited, "CTX_HOME": home, "CTX_WORKER_AUTOSTART": "0", "CTX_PATIENCE": "99"}
    seconds = _TRIAL_S * clock.patience
    ended = program_runs.run(words, variables, project, seconds=seconds, stdin=stdin)
    if ended is None:
        return f"it takes longer than {seconds:.0f} s."
    has_run = bool(ended.out) or set(os.listdir(home)) != before
    log = disk.read_or_none(os.path.join(home, "hook.log")) or b""
    lines = log.decode("utf-8", "replace").splitlines()
    return _problem(ended, has_run=has_run) or (lines[-1] if lines else "")


def _event(word: str, folder: str) -> dict[str, Any]:
    """The input that the client would send, for a made-up session."""
    session = "ctx-install-check"
    return {
        "session_id": session,
        "transcript_path": os.path.join(folder, f"{session}.jsonl"),
        "cwd": folder,
        "hook_event_name": EVENTS.get(word, ""),
        "source": "startup",
        "reason": "other",
        "trigger": "manual",
        "prompt": "",
        "stop_hook_active": False,
    }


def _problem(ended: program_runs.ProcessResult, *, has_run: bool) -> str:
    complaint = " ".join(ended.err.decode("utf-8", "replace").split())[-300:]
    if ended.code:
        return f"it ends with exit code {ended.code}. {complaint}".rstrip()
    if ended.out.strip():
        try:
            answer = json.loads(ended.out)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            start = " ".join(ended.out.decode("utf-8", "replace").split())[:100]
            return f"what it prints is not a JSON object: {start}"
    # The command ends in `|| true`, so a missing program looks like one that prints nothing. A hook
    # of ctx either prints something or creates a file in the folder of its store.
    return "" if has_run else f"it does nothing. {complaint}".rstrip()
