"""A model for `bench/tasks.py` that is a script. It knows only what is in its prompt.

It searches the prompt for what the first session said. If that is not there, it searches memory
once, if it can. Then it writes the right file, or without that knowledge the usual one. So its
success shows whether the knowledge was given to it, and nothing about any real model.
"""

import re

from bench.task_agent import RECALL_ACTION
from bench.two_session_tasks import Task
from ctx import tokens
from ctx.llm.protocol import Answer, BackendName, Capabilities, Meter, OnToken, Request, Usage


class ScriptedModel:
    name: BackendName = "scripted"
    where = "a script"
    model = "scripted"
    is_free = True

    def __init__(self, task: Task) -> None:
        self._task = task

    def ask(self, request: Request, meter: Meter, on_token: OnToken) -> Answer:
        text = self._answer(request)
        read, written = tokens.estimate(request.system + request.prompt), tokens.estimate(text)
        meter.reserve(read + request.max_tokens, read).settle(Usage(read, written), self.model)
        on_token(text)
        return Answer(text, self.model, Usage(read, written), "end")

    def _answer(self, request: Request) -> str:
        script = self._task.scripted
        if re.search(r"^\S+ is written\.$", request.prompt, re.MULTILINE):
            return "DONE"
        if re.search(script.needs, " ".join(request.prompt.split())):
            return f"WRITE {script.path}\n{script.right}"
        if RECALL_ACTION in request.system and "\nRECALL " not in request.prompt:
            return f"RECALL {self._task.prompt}"
        return f"WRITE {script.wrong_path}\n{script.wrong}"

    def probe(self) -> Capabilities:
        return Capabilities(self.model)

    def close(self) -> None:
        pass
