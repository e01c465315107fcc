"""The session that commands join by default: the one that the file STAGE names.

Only `ctx stage start` writes it.
"""

import os
from typing import NamedTuple

from ctx import disk, interrupts
from ctx.errors import UsageError
from ctx.ids import SessionId, session_id
from ctx.layout import Project
from ctx.project import trust_check

_LARGEST = 1024


class CurrentSession(NamedTuple):
    session: SessionId | None
    problem: str = ""
    """Why the file names no session, if it exists."""


def read(project: Project) -> CurrentSession:
    try:
        content = disk.read_plain(project.stage, _LARGEST)
    except FileNotFoundError:
        return CurrentSession(None)
    except OSError as error:
        return CurrentSession(None, f"{project.stage} cannot be read: {error.strerror}.")
    try:
        return CurrentSession(session_id(content.decode("utf-8", "replace").removesuffix("\n")))
    except UsageError:
        return CurrentSession(None, f"{project.stage} does not name a session.")


def joined(home: str, project: Project) -> CurrentSession:
    """The session that commands in a project join. One that is not trusted names none."""
    # The file may come from an untrusted archive.
    if not os.path.lexists(project.stage) or not trust_check.verify(home, project).is_trusted:
        return CurrentSession(None)
    return read(project)


def join(project: Project, session: SessionId) -> None:
    """Make a session the current one."""
    with disk.explain_errors("writing which session commands join"):
        disk.make_folder(os.path.dirname(project.stage))
        interrupts.defer()
        disk.replace(project.stage, f"{session}\n".encode())


def leave(project: Project, session: SessionId | None) -> bool:
    """End a current session, or any if it is None; whether there was one."""
    current = read(project)
    is_meant = current.session == session if session else bool(current.session or current.problem)
    if is_meant:
        with disk.explain_errors("no longer joining the session"):
            interrupts.defer()
            disk.discard(project.stage)
            disk.sync_folder(os.path.dirname(project.stage))
    return is_meant
