"""A model for claude-mem: it writes one observation for each command that it is shown.

It costs no time but the delay it is told, so all figures are those of claude-mem's own code.
"""

import json
import re
import time
from typing import Any

COMMAND = re.compile(r"make part-\d+")
_OBSERVATION = """<observation><type>change</type><title>Ran {0}</title>
<subtitle>The command {0} passed</subtitle><facts><fact>{0} passed</fact></facts>
<narrative>The agent ran {0} and all tests passed.</narrative>
<concepts><concept>how-it-works</concept></concepts>
<files_read></files_read><files_modified></files_modified></observation>"""
_SUMMARY = """<summary><request>Now the docs, please.</request>
<investigated>The tests.</investigated><learned>The tests pass now.</learned>
<completed>All parts were made.</completed><next_steps>The docs.</next_steps></summary>"""


class ScriptedModel:
    def __init__(self) -> None:
        self.delay_s = 0.0
        self.requests = 0

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """An answer in the way of OpenAI's chat completions."""
        self.requests += 1
        time.sleep(self.delay_s)
        content = request["messages"][-1]["content"]
        prompt = content if isinstance(content, str) else json.dumps(content)
        message = {"role": "assistant", "content": reply(prompt)}
        usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return {"id": "scripted", "choices": [choice], "usage": usage}


def reply(prompt: str) -> str:
    if "<summary>" in prompt:
        return _SUMMARY
    commands = dict.fromkeys(COMMAND.findall(prompt))
    return "\n".join(map(_OBSERVATION.format, commands)) or "Nothing to record."
