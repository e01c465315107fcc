"""Teams of agents: which session leads the team of another one.

An agent of a team may run as a session of its own. Each line of its transcript has the name of the
team and its own name there, but not the session of the lead. That is in the file of the team, as
long as the team exists:

    teams/<team>/config.json    {"leadSessionId": "0c1fb4a8-…", "members": […]}

Newer clients name the team after the lead: `session-0c1fb4a8`.
"""

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from ctx import disk
from ctx.agents.claude_code import transcript_files
from ctx.hook_files import live
from ctx.hosts.transcripts import storable

_LEAD = "team-lead"
_LARGEST = 1024 * 1024
_NAME = re.compile(r"[\w-]{1,200}", re.ASCII)
_OF_SESSION = re.compile(r"session-([0-9a-f]{8})")
_STARTS_TEAM = ("TeamCreate", "Agent", "Task")


class TeamReader:
    """Reads the teams that the lines of one transcript name."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._leads: dict[str, str] = {}

    def keys(self, line: Mapping[str, Any]) -> dict[str, str]:
        """The team of a line, the name of its session there, and the lead, as far as known."""
        team, name = line.get("teamName"), line.get("agentName")
        if not isinstance(team, str) or not team:
            return {}
        if not isinstance(name, str) or name == _LEAD:
            return {"team_name": storable(team)}
        if team not in self._leads:
            self._leads[team] = lead_of(self._path, team)
        lead = self._leads[team]
        return {"team_name": storable(team), "agent_name": storable(name), "lead_session": lead}


def lead_of(path: str, team: str) -> str:
    """The session that leads a team, by the transcript of one of its agents; empty if unknown."""
    if not _NAME.fullmatch(team):
        return ""
    folder = os.path.dirname(path)
    host_folder = os.path.dirname(os.path.dirname(folder))
    try:
        data = disk.read_plain(os.path.join(host_folder, "teams", team, "config.json"), _LARGEST)
        found = json.loads(data)
    except (OSError, ValueError, RecursionError):
        found = None
    lead = found.get("leadSessionId") if isinstance(found, dict) else None
    if isinstance(lead, str) and live.is_session(lead):
        return lead
    named = _OF_SESSION.fullmatch(team)
    return _session_beginning(named[1], folder) if named else ""


def team_started_by(tool: str | None, payload: Mapping[str, Any]) -> str:
    """The team that a call of the lead created or added an agent to; empty if it did not."""
    response = payload.get("tool_response")
    if tool not in _STARTS_TEAM or not isinstance(response, Mapping):
        return ""
    team = response.get("team_name")
    return storable(team) if isinstance(team, str) else ""


def _session_beginning(start: str, folder: str) -> str:
    try:
        names = [name for name in os.listdir(folder) if name.startswith(start)]
    except OSError:
        return ""
    found = [session for name in names if (session := transcript_files.session_of(name))]
    return found[0] if len(found) == 1 else ""
