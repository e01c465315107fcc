"""Our plugin in OpenCode: what it reports, what it adds, and that it never fails a turn.

Node runs it in place of OpenCode, with a command that records its input and prints an answer.
"""

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from ctx.agents.opencode import hooks
from tests import installed

PLUGIN = Path(hooks.__file__).with_name("ctx.js")
COMMAND = 'const COMMAND = ["ctx", "hook", "opencode"]'

RECORDER = """
import json, sys
payload = json.load(sys.stdin)
with open({log!r}, "a") as file:
    file.write(json.dumps([sys.argv[1], payload]) + "\\n")
if sys.argv[1] in ("session-start", "prompt-submit"):
    print(json.dumps({{"additionalContext": f"{{sys.argv[1]}} {{payload.get('source', '')}}"}}))
"""

# What every scenario begins with. `message` is what OpenCode passes to `chat.message`.
PRELUDE = """
import { Ctx } from "./ctx.mjs"
const hooks = await Ctx({ directory: "/work/shop" })
const event = (type, properties) => hooks.event({ event: { type, properties } })
const created = (id, parentID) => event("session.created", { info: { id, parentID } })
const message = async (sessionID, ...texts) => {
  const parts = texts.map((text) => ({ type: "text", text }))
  const output = { message: { id: "msg_1" }, parts }
  await hooks["chat.message"]({ sessionID }, output)
  return output.parts
}
const show = (value) => console.log(JSON.stringify(value))
"""


class PluginRun:
    def __init__(self, folder: Path) -> None:
        self._node = installed.program("node")
        self._folder = folder
        self._log = folder / "log"
        recorder = folder / "recorder.py"
        recorder.write_text(RECORDER.format(log=str(self._log)))
        self.command = [sys.executable, str(recorder)]

    def run(self, scenario: str) -> list[Any]:
        """What a scenario prints."""
        text = PLUGIN.read_text()
        assert COMMAND in text
        replaced = text.replace(COMMAND, f"const COMMAND = {json.dumps(self.command)}")
        (self._folder / "ctx.mjs").write_text(replaced)
        script = self._folder / "scenario.mjs"
        script.write_text(PRELUDE + textwrap.dedent(scenario))
        done = subprocess.run(
            [self._node, script],
            cwd=self._folder,
            env={"HOME": "/home/dev", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def reported(self) -> list[tuple[str, dict[str, Any]]]:
        """The words and payloads that the command got, without what all have."""
        if not self._log.exists():
            return []
        found = []
        for line in self._log.read_text().splitlines():
            word, payload = json.loads(line)
            assert payload.pop("folder") == "/work/shop"
            assert payload.pop("database") == "/home/dev/.local/share/opencode/opencode.db"
            found.append((word, payload))
        return found


@pytest.fixture
def plugin(tmp_path: Path) -> PluginRun:
    return PluginRun(tmp_path)


def test_a_session_from_its_first_message_to_its_end(plugin: PluginRun) -> None:
    (first, second) = plugin.run("""
        await created("ses_1")
        show(await message("ses_1", "Go on.", "And on."))
        await hooks["tool.execute.after"](
          { tool: "bash", sessionID: "ses_1", callID: "c1", args: { command: "make" } },
          { title: "t", output: "no rule", metadata: { exit: 2, output: "no rule" } },
        )
        await hooks["tool.execute.after"](
          { tool: "ctx_recall", sessionID: "ses_1", callID: "c2", args: {} },
          { content: [{ type: "text", text: "found" }] },
        )
        const failed = {
          type: "tool", tool: "read", callID: "c3", sessionID: "ses_1",
          state: { status: "error", input: { filePath: "/x" }, error: "File not found" },
        }
        await event("message.part.updated", { part: failed })
        await event("message.part.updated", { part: failed })
        const said = { sessionID: "ses_1", messageID: "msg_2" }
        await hooks["experimental.text.complete"]({ ...said, partID: "p1" }, { text: "One." })
        await hooks["experimental.text.complete"]({ ...said, partID: "p2" }, { text: "Two." })
        await event("session.idle", { sessionID: "ses_1" })
        show(await message("ses_1", "More."))
        await hooks.dispose()
    """)
    place = {"session": "ses_1", "agent": ""}
    bash = {"tool": "bash", "call": "c1", "args": {"command": "make"}}
    recall = {"tool": "ctx_recall", "call": "c2", "args": {}}
    assert plugin.reported() == [
        ("session-start", {**place, "source": "startup"}),
        ("prompt-submit", {**place, "prompt": "Go on.\nAnd on."}),
        ("post-tool-use", {**place, **bash, "output": "no rule", "metadata": {"exit": 2}}),
        ("post-tool-use", {**place, **recall, "output": "found", "metadata": {}}),
        (
            "post-tool-use-failure",
            {
                **place,
                "tool": "read",
                "call": "c3",
                "args": {"filePath": "/x"},
                "error": "File not found",
            },
        ),
        ("stop", {**place, "messages": [{"id": "msg_2", "text": "One.\n\nTwo."}]}),
        ("prompt-submit", {**place, "prompt": "More."}),
        ("session-end", place),
    ]
    added = [part for part in first if part.get("synthetic")]
    assert [part["text"] for part in added] == ["session-start startup", "prompt-submit "]
    assert {(part["sessionID"], part["messageID"]) for part in added} == {("ses_1", "msg_1")}
    assert len({part["id"] for part in added}) == 2
    assert [part["text"] for part in second] == ["More.", "prompt-submit "]


def test_a_subagent_works_for_its_session(plugin: PluginRun) -> None:
    (parts,) = plugin.run("""
        await created("ses_1")
        await created("ses_2", "ses_1")
        await created("ses_3", "ses_2")
        show(await message("ses_3", "Look for it."))
        await hooks["tool.execute.after"](
          { tool: "bash", sessionID: "ses_3", callID: "c1", args: {} }, { output: "" })
        await event("session.idle", { sessionID: "ses_3" })
        await hooks.dispose()
    """)
    assert [part["text"] for part in parts] == ["Look for it."]
    ((word, payload),) = plugin.reported()
    assert (word, payload["session"], payload["agent"]) == ("post-tool-use", "ses_1", "ses_3")


def test_a_compacted_session_gets_its_context_again(plugin: PluginRun) -> None:
    before, by_itself, parts, after = plugin.run("""
        await message("ses_1", "Go on.")
        const system = async () => {
          const output = { system: ["Be good."] }
          await hooks["experimental.chat.system.transform"]({ sessionID: "ses_1" }, output)
          return output.system
        }
        show(await system())
        await hooks["experimental.session.compacting"]({ sessionID: "ses_1" }, { context: [] })
        await event("session.compacted", { sessionID: "ses_1" })
        show(await system())
        show(await message("ses_1", "More."))
        show(await system())
    """)
    assert plugin.reported()[0][1]["source"] == "resume", "it began elsewhere"
    assert before == after == ["Be good."]
    assert by_itself == ["Be good.", "session-start compact"]
    assert [part["text"] for part in parts] == ["More.", "session-start compact", "prompt-submit "]
    assert [word for word, _ in plugin.reported()][2:4] == ["pre-compact", "session-start"]


@pytest.mark.parametrize(
    "command",
    [
        ["/nowhere/python"],
        ["/bin/sh", "-c", "echo '[1]'; exit 3"],
        ["/bin/sh", "-c", "exec <&-; exit 1"],
    ],
)
def test_a_command_that_fails_is_only_reported_at_the_start(
    plugin: PluginRun, command: list[str]
) -> None:
    plugin.command = command
    parts, last = plugin.run("""
        show(await message("ses_1", "Go on. " + "x".repeat(300000)))
        await event("session.idle", { sessionID: "ses_1" })
        await hooks.dispose()
        show("done")
    """)
    assert [part["text"].partition(".")[0] for part in parts] == [
        "Go on",
        "ctx cannot run, so nothing is remembered",
    ]
    assert last == "done"


def test_odd_input_does_not_throw(plugin: PluginRun) -> None:
    plugin.command = ["/bin/true"]
    assert plugin.run("""
        for (const name of Object.keys(hooks)) {
          if (name === "event" || name === "dispose") continue
          for (const input of [undefined, null, {}, 3]) {
            for (const output of [undefined, null, {}, { parts: [null], system: 3 }]) {
              await hooks[name](input, output)
            }
          }
        }
        const types = ["session.created", "message.part.updated", "session.idle",
          "session.compacted", "toString", "constructor"]
        for (const type of types) {
          for (const properties of [undefined, null, {}, { part: {}, info: 3 }]) {
            await event(type, properties)
          }
        }
        await hooks.event(undefined)
        await hooks.dispose()
        show("done")
    """) == ["done"]


def test_a_command_that_hangs_is_ended(plugin: PluginRun) -> None:
    plugin.command = ["/bin/sh", "-c", "exec sleep 100"]
    (seconds,) = plugin.run("""
        process.env.CTX_PATIENCE = "0.02"
        const began = Date.now()
        await message("ses_1", "Go on.")
        show((Date.now() - began) / 1000)
    """)
    assert 0.3 < seconds < 30
