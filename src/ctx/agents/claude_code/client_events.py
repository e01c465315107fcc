"""Which hook events a client supports, by its version.

Clients before 2.1.101 ignore all hooks of a settings file that names an unknown event. Later
clients ignore only that event.
"""

import re

TOLERANT_SINCE = (2, 1, 101)

# Complete up to that version. For an older client, a newer event is an unknown event.
_SINCE = {
    "PreToolUse": (),
    "PostToolUse": (),
    "Notification": (),
    "UserPromptSubmit": (),
    "SessionStart": (),
    "SessionEnd": (),
    "Stop": (),
    "SubagentStop": (),
    "PreCompact": (),
    "SubagentStart": (2, 0, 43),
    "PermissionRequest": (2, 0, 45),
    "Setup": (2, 1, 10),
    "PostToolUseFailure": (2, 1, 15),
    "TeammateIdle": (2, 1, 33),
    "TaskCompleted": (2, 1, 33),
    "ConfigChange": (2, 1, 49),
    "WorktreeCreate": (2, 1, 50),
    "WorktreeRemove": (2, 1, 50),
    "InstructionsLoaded": (2, 1, 69),
    "Elicitation": (2, 1, 76),
    "ElicitationResult": (2, 1, 76),
    "PostCompact": (2, 1, 76),
    "StopFailure": (2, 1, 78),
    "CwdChanged": (2, 1, 83),
    "FileChanged": (2, 1, 83),
    "TaskCreated": (2, 1, 84),
    "PermissionDenied": (2, 1, 89),
}


def spoils_hooks(event: str, version: str) -> bool:
    """Whether a client of this version ignores all hooks of a file that contains this event."""
    numbers = tuple(map(int, re.findall(r"\d+", version, re.ASCII)[:3]))
    if numbers >= TOLERANT_SINCE:
        return False
    return event not in _SINCE or numbers < _SINCE[event]
