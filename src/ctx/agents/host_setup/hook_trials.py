"""Runs hooks as a host would, with a temporary store, before they are registered."""

import json
import os
from collections.abc import Callable, Mapping
from tempfile import TemporaryDirectory
from typing import Any

from ctx import clock, disk
from ctx.agents import known_hosts
from ctx.agents.host_setup import hook_commands, program_runs
from ctx.hook_files import anchored_files
from ctx.memory import user_store
from ctx.sqlite.connection import explain_errors

Payload = Callable[[str], Mapping[str, Any]]
"""What a host would send to a hook, for a made-up session in a folder."""

EDITED = "edited.txt"
"""A file in that folder, which memory mentions."""

_TRIAL_S = 10.0


def try_command(command: str, payload: Payload, environment: Mapping[str, str]) -> str:
    """Run a registered command with a temporary store, and return the problem, or an empty text.

    `environment` is the environment of the user's programs.
    """
    with (
        disk.explain_errors("trying the hooks"),
        TemporaryDirectory(prefix="ctx-trial-", ignore_cleanup_errors=True) as folder,
    ):
        return _trial(command, payload, environment, folder)


def _trial(command: str, payload: Payload, environment: Mapping[str, str], folder: str) -> str:
    """The problem with a command, or the error that the hook reported."""
    home, project = os.path.join(folder, "home"), os.path.join(folder, "project")
    for made in (home, project):
        os.mkdir(made, disk.FOLDER_MODE)
    database = os.path.join(home, "store.db")
    with explain_errors(database):
        user_store.open_for_writing(database).close()
    # Before an edit, a hook does something only for a file that memory mentions.
    listed = anchored_files.path_of(home, os.path.realpath(project))
    os.mkdir(os.path.dirname(listed), disk.FOLDER_MODE)
    disk.replace(listed, anchored_files.content({EDITED: ()}), durable_name=False)
    before = set(os.listdir(home))
    # Other variables would make a trial use the user's own store, keep it from running, or make it
    # look like a session of a host.
    of_hosts = tuple(name for hooks in known_hosts.all_hooks() for name in hooks.variables)
    inherited = {
        name: environment[name] for name in environment if not name.startswith(("CTX_", *of_hosts))
    }
    stdin = json.dumps(payload(project)).encode() + b"\n"
    words = ["/bin/sh", "-c", command]
    # The home is temporary, so no worker should start. On a busy machine the trial may take longer
    # than a hook may.
    variables = {**inherited, "CTX_HOME": home, "CTX_WORKER_AUTOSTART": "0", "CTX_PATIENCE": "99"}
    seconds = _TRIAL_S * clock.patience
    ended = program_runs.run(words, variables, project, seconds=seconds, stdin=stdin)
    if ended is None:
        return f"it takes longer than {seconds:.0f} s."
    is_gone = hook_commands.GONE.encode() in ended.out
    has_run = (bool(ended.out) and not is_gone) or set(os.listdir(home)) != before
    log = disk.read_or_none(os.path.join(home, "hook.log")) or b""
    lines = log.decode("utf-8", "replace").splitlines()
    return _problem(ended, has_run=has_run) or (lines[-1] if lines else "")


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
    # The command never fails, so a missing program looks like one that prints nothing. A hook of
    # ctx either prints something or creates a file in the folder of its store.
    return "" if has_run else f"it does nothing. {complaint}".rstrip()
