"""Codex as a host: the adapter that the registry loads."""

import os
from collections.abc import Mapping

from ctx.agents.claude_code import payloads as claude_payloads
from ctx.agents.codex import payloads
from ctx.agents.codex.transcripts import CodexTranscripts


class Codex:
    name = payloads.NAME
    transcripts = CodexTranscripts()
    read = staticmethod(payloads.read)
    restore = staticmethod(payloads.restore)
    outline = staticmethod(claude_payloads.outline)

    def folder(self, variables: Mapping[str, str], home: str) -> str:
        return variables.get("CODEX_HOME") or os.path.join(home, ".codex")


HOST = Codex()
