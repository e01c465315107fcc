"""What a hook process knows about the scripted host.

    {"chat": "c1", "dir": "/home/dev/shop", "log": "/…/c1.log", "by": "user", "words": "Do it"}
    {"chat": "c1", "dir": …, "did": "shell", "ref": "r1", "what": "make", "came": "…", "code": 2}

An answer is two lines of JSON: the text for the agent, and the text for the user.
"""

import json
from collections.abc import Mapping
from typing import Any

from ctx.agents.runtime.host_hooks import HostHooks
from ctx.hosts.hook_events import HookAnswer, HookEvent

NAME = "scripted"


class ScriptedHooks(HostHooks):
    spool_name = NAME
    largest_answer = 4_000
    session_key = "chat"
    folder_key = "dir"
    transcript_key = "log"
    by_agent = (b'"by": "agent"',)

    def event(self, fields: Mapping[str, Any], payload: bytes) -> HookEvent:
        found = super().event(fields, payload)
        return found._replace(source=fields.get("began"), prompt=fields.get("words", ""))

    def remembers(self, event: HookEvent) -> bool:  # noqa: ARG002
        return True

    def write(self, name: str, answer: HookAnswer) -> bytes:  # noqa: ARG002
        return "".join(f"{json.dumps(each)}\n" for each in answer).encode() if any(answer) else b""


HOOKS = ScriptedHooks()
