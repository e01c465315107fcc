"""Gemini CLI as a host: the adapter that the registry loads."""

import os
from collections.abc import Mapping

from ctx.agents.claude_code import payloads as claude_payloads
from ctx.agents.gemini import payloads
from ctx.agents.gemini.transcripts import GeminiTranscripts


class Gemini:
    name = payloads.NAME
    transcripts = GeminiTranscripts()
    read = staticmethod(payloads.read)
    restore = staticmethod(payloads.restore)
    outline = staticmethod(claude_payloads.outline)

    def folder(self, variables: Mapping[str, str], home: str) -> str:
        return os.path.join(variables.get("GEMINI_CLI_HOME") or home, ".gemini")


HOST = Gemini()
