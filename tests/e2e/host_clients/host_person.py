"""A user of another host than Claude Code: a home, a project, and sessions with the real program.

The program runs in its own environment without network; its model is the script of the test.
"""

import subprocess
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from tests.e2e.claude_code.client import Client, Person
from tests.e2e.host_clients.chat_api import (
    Answer,
    ChatRequest,
    ChatScript,
    Subagent,
    serving_chat,
)

SECONDS = 240
"""The longest that one session may take."""

REMEMBER = (
    '<ctx:remember type="fact" tags="tier:reference">Deploys happen on Fridays.</ctx:remember>'
)
FACT = "Deploys happen on Fridays."

NOWHERE = "http://127.0.0.1:9/"
"""An address at which nothing answers."""


class HostPerson(Person):
    def __init__(self, home: Path, project: Path, command: tuple[str, ...], version: str) -> None:
        super().__init__(home, project, Client(command, version))

    def play(
        self,
        words: Sequence[str],
        variables: dict[str, str],
        *replies: Answer,
        serving: Callable[[ChatScript], AbstractContextManager[str]] = serving_chat,
        subagent: Subagent | None = None,
        on_the_side: str = "A title",
    ) -> list[ChatRequest]:
        """Run the program once; what reached its model. `{api}` in a variable or an argument is its
        address."""
        script = ChatScript(replies, subagent, on_the_side)
        with serving(script) as address:
            words = [word.replace("{api}", address) for word in words]
            environment = self.environment | {
                name: value.replace("{api}", address) for name, value in variables.items()
            }
            process = subprocess.Popen(
                [*self.client.command, *words],
                cwd=self.project,
                env=environment | {"NO_PROXY": "127.0.0.1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            self._started.append(process)
            out, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, f"{words}: {out[-2000:]}{err[-2000:]}"
        assert not script.unplayed, f"the model was not asked for {script.unplayed}"
        return script.requests

    def steps(self, session: str) -> list[tuple[str, str]]:
        """What happened in a session, without marks such as its end."""
        replay = self.ctx("sessions", "replay", session)["steps"]
        found = [(step["kind"], step["path"] or step["text"]) for step in replay]
        return sorted(step for step in found if step[0] != "mark")
