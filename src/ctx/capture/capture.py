"""From an event to a step: what is taken of it, or why nothing is.

Policy decides by the tool and by how it ended. Of a prompt and of what an agent said the words
count; of a file that was read only which one; of one that was written what has changed in it; of a
command that went well that it did, and of one that failed what was wrong. What ctx itself gave to
an agent, or was asked by it, is nothing new.
"""

import os
import posixpath
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ctx.capture import command_steps, injected, left_out, secret_files, steps, symbols, writes
from ctx.capture.events import Event
from ctx.capture.policy import Rules
from ctx.capture.private import without_private
from ctx.capture.steps import SAID, Kind, Step

BEGAN = "began"
WENT_ON = "went on"
COMPACTED = "compacted"
ENDED = "ended"
INTERRUPTED = "interrupted"
FAILED = "failed"
"""What a mark says."""

_LONGEST_PROMPT = 4_000
_LONGEST_SAID = 8_000
_LONGEST_PLAN = 4_000
_LONGEST_ASKED = 300
# What the client itself writes where a person would.
_NOTICES = (
    *("<task-notification>", "<local-command-", "<command-name>", "<command-message>", "<bash-"),
    *("Stop hook feedback:", "Caveat: The messages below", "[Request interrupted"),
    "This session is being continued from a previous conversation",
)
_CLIENT_COMMANDS = frozenset(
    "add-dir agents bug clear compact config context copy cost doctor exit export fast feedback"
    " help hooks ide keybindings login logout mcp memory model output-style permissions plugin"
    " plugins privacy-settings quit release-notes rename resume rewind status statusline stats"
    " tasks terminal-setup theme todos upgrade usage vim".split()
)
_BORING = frozenset(
    "AgentOutputTool BashOutput CronList EnterPlanMode KillBash KillShell ListAgents"
    " ReadMcpResourceTool ScheduleWakeup TaskGet TaskList TaskOutput TaskStop ToolSearch"
    " EnterWorktree ExitWorktree SendMessage Workflow".split()
)
_OWN_TOOLS = ("mcp__ctx__", "mcp__plugin_ctx_")


class Dropped(NamedTuple):
    reason: str


class _Taking(NamedTuple):
    """One event, the rules that hold for it, and where its project is."""

    event: Event
    rules: Rules
    root: str

    @property
    def said(self) -> Mapping[str, Any]:
        return self.event.said

    @property
    def given(self) -> Mapping[str, Any]:
        """What a tool was asked."""
        found = self.said.get("tool_input")
        return found if isinstance(found, Mapping) else {}

    def asked(self, *names: str) -> str:
        """The first of these that a tool was told, in one line."""
        for name in names:
            if isinstance(found := self.given.get(name), str) and found.strip():
                return " ".join(_own_words(found).split())[:_LONGEST_ASKED]
        return ""

    def step(self, kind: Kind, text: str = "", path: str = "") -> Step:
        event, agent = self.event, self.said.get("agent_id")
        return Step(
            *(event.id, event.session, event.at, kind, event.tool or "", event.tool_use or ""),
            agent=agent[:_LONGEST_ASKED] if isinstance(agent, str) else "",
            text=text,
            path=path,
        )

    def placed(self, path: str) -> tuple[str, str]:
        return left_out.placed(path, self.event.folder, self.root)

    def ignores(self, path: str) -> bool:
        return left_out.is_left_out(self.rules, path, self.event.folder, self.root)

    def keeps(self, finding: steps.Finding) -> bool:
        """Whether a finding is about something that may be kept. Its path is from the root."""
        told = f"{finding.path}\n{finding.message}\n{finding.test}"
        return left_out.without(self.rules, told, self.root, self.root) == told

    def without_left_out(self, output: str) -> str:
        return left_out.without(self.rules, output, self.event.folder or self.root, self.root)


def step_of(event: Event, rules: Rules, root: str) -> Step | Dropped:
    """What is taken of an event whose project lies at `root`."""
    if rules.closed:
        return Dropped(rules.closed)
    taking = _Taking(event, rules, root)
    if event.tool is not None or event.name in ("PostToolUse", "PostToolUseFailure"):
        found = _tool(taking)
    else:
        take = _EVENTS.get(event.name)
        found = take(taking) if take else Dropped("nothing is made of such events")
    return steps.redacted(found) if isinstance(found, Step) else found


def _own_words(text: str) -> str:
    """What is left of a text when what ctx gave, and what is private, is out."""
    return injected.without_injected(without_private(text)).strip()


def _cut(text: str, most: int) -> str:
    """Of a long text the beginning, and the end, where conclusions are."""
    if len(text) <= most:
        return text
    first = most * 2 // 3
    return f"{text[:first].rstrip()}\n…\n{text[first - most + 3 :].lstrip()}"


def _prompt(taking: _Taking) -> Step | Dropped:
    prompt = taking.said.get("prompt")
    without = without_private(prompt) if isinstance(prompt, str) else ""
    if not without.strip():
        return Dropped("it says nothing, or nothing that is not private")
    text = injected.without_injected(without).strip()
    if not text:
        return Dropped("ctx itself gave it")
    if text.startswith(_NOTICES):
        return Dropped("the client wrote it")
    command = text[1:].split(None, 1)[0] if text[0] == "/" and text[1:].strip() else ""
    if command in _CLIENT_COMMANDS:
        return Dropped("it is a command of the client")
    return taking.step("prompt", _cut(text, _LONGEST_PROMPT))


def _said(taking: _Taking) -> Step | Dropped:
    told = taking.said.get("text", taking.said.get("last_assistant_message"))
    if not isinstance(told, str):
        return Dropped("it says nothing")
    text = _own_words(told)
    if not text:
        return Dropped("nothing of it is new")
    return taking.step("say", _cut(text, _LONGEST_SAID))


def _subagent(taking: _Taking) -> Step | Dropped:
    # Without a type it is the client itself, which summarises a conversation.
    return _said(taking) if taking.said.get("agent_type") != "" else Dropped("the client wrote it")


def _marking(text: str) -> Callable[[_Taking], Step]:
    return lambda taking: taking.step("mark", text)


def _start(taking: _Taking) -> Step:
    is_same = taking.said.get("source") in ("resume", "compact")
    return taking.step("mark", WENT_ON if is_same else BEGAN)


_EVENTS: Mapping[str, Callable[[_Taking], Step | Dropped]] = {
    "UserPromptSubmit": _prompt,
    "Stop": _said,
    SAID: _said,
    "SubagentStop": _subagent,
    "SessionStart": _start,
    "PreCompact": _marking(COMPACTED),
    "SessionEnd": _marking(ENDED),
    "UserInterrupt": _marking(INTERRUPTED),
    "StopFailure": _marking(FAILED),
}


def _tool(taking: _Taking) -> Step | Dropped:
    name = taking.event.tool or ""
    if name.startswith(_OWN_TOOLS):
        return Dropped("ctx itself was asked")
    if taking.rules.ignores_tool(name) or name in _BORING:
        return Dropped("the tool is left out")
    path = writes.path_of(taking.said)
    if path and taking.rules.is_own(*taking.placed(path)):
        return Dropped("it belongs to ctx itself")
    if path and taking.ignores(path):
        return Dropped("the path is left out")
    command = taking.given.get("command")
    if isinstance(command, str) and (name == "Bash" or name not in _TOOLS):
        return _command(taking, command)
    if taking.event.name == "PostToolUseFailure":
        return Dropped("it was not done")
    if name.startswith("mcp__"):
        return _elsewhere(taking)
    take = _TOOLS.get(name)
    return take(taking) if take else Dropped("nothing is made of this tool")


def _command(taking: _Taking, command: str) -> Step | Dropped:
    place = command_steps.Place(taking.event.folder or taking.root, taking.root)
    found = command_steps.read(taking.said, without_private(command), place, taking.rules.log_lines)
    if isinstance(found, str):
        return Dropped(found)
    folders = list(dict.fromkeys((place.folder, os.path.join(place.folder, found.line.folder))))
    if left_out.is_spoken_of(taking.rules, command, folders, taking.root):
        return Dropped("the path is left out")
    is_secret = any(map(secret_files.is_one, found.line.words))
    text = _own_words(found.line.told)
    if not text:
        return Dropped("ctx itself was asked")
    if is_secret:
        text = text.partition("\n")[0]
    return taking.step("command", text)._replace(
        ok=found.ok,
        exit_code=found.exit_code,
        output="" if is_secret else _own_words(taking.without_left_out(found.output)),
        findings=() if is_secret else tuple(each for each in found.findings if taking.keeps(each)),
        passed=found.passed,
    )


def _read(taking: _Taking) -> Step | Dropped:
    path = writes.path_of(taking.said)
    if not path:
        return Dropped("it names no file")
    response = writes.response_of(taking.said)
    file = response.get("file") if isinstance(response, Mapping) else None
    told = file if isinstance(file, Mapping) else {}
    first, count, whole = (told.get(name) for name in ("startLine", "numLines", "totalLines"))
    text = ""
    if isinstance(first, int) and isinstance(count, int) and (first > 1 or count != whole):
        text = f"lines {first}-{first + count - 1}"
    return taking.step("read", text, taking.placed(path)[0])


def _write(taking: _Taking) -> Step | Dropped:
    path = writes.path_of(taking.said)
    found = writes.written(taking.said)
    if not path or found is None:
        return Dropped("it does not say what was written")
    inside, _ = taking.placed(path)
    step = taking.step("write", "", inside)
    if secret_files.is_one(path):
        return step
    clean = found._replace(
        before=without_private(found.before) if found.before is not None else None,
        after=without_private(found.after),
    )
    if clean.before == clean.after:
        return Dropped("nothing has changed")
    lines = writes.lines(clean)
    return step._replace(
        changes=symbols.changes(inside, clean, taking.rules.symbols),
        added=lines.added,
        removed=lines.removed,
        excerpt=injected.without_injected(command_steps.STEERING.sub("", lines.excerpt)),
    )


def _agent(taking: _Taking) -> Step | Dropped:
    asked, described = taking.given.get("prompt"), taking.asked("description")
    words = _own_words(asked) if isinstance(asked, str) else ""
    text = "\n".join(filter(None, (described, words)))
    if not text:
        return Dropped("it says nothing")
    return taking.step("agent", _cut(text, _LONGEST_PLAN // 4))


def _skill(taking: _Taking) -> Step | Dropped:
    name = taking.asked("skill", "command", "name")
    if name.removeprefix("/").partition(":")[0] == "ctx" or not name:
        return Dropped("ctx itself was asked")
    return taking.step("plan", f"skill {name} {taking.asked('args')}".strip())


def _plan(taking: _Taking) -> Step | Dropped:
    plan = taking.given.get("plan")
    if isinstance(plan, str) and (text := _own_words(plan)):
        return taking.step("plan", _cut(text, _LONGEST_PLAN))
    todos = taking.given.get("todos")
    lines = []
    for each in todos[:50] if isinstance(todos, list) else ():
        told = each if isinstance(each, Mapping) else {}
        if isinstance(subject := told.get("content"), str) and subject.strip():
            done = "x" if told.get("status") == "completed" else " "
            lines.append(f"[{done}] {' '.join(_own_words(subject).split())[:_LONGEST_ASKED]}")
    return taking.step("plan", "\n".join(lines)) if lines else Dropped("it says nothing")


def _task(taking: _Taking) -> Step | Dropped:
    subject, description = taking.asked("subject"), taking.asked("description")
    status = taking.asked("status")
    done = {"completed": "[x] ", "": "[ ] "}.get(status, f"[{status}] ")
    if subject:
        told = f"{subject}: {description}" if description not in ("", subject) else subject
    elif status and (number := taking.asked("taskId")):
        told = f"task {number}"
    else:
        return Dropped("it says nothing")
    return taking.step("plan", f"{done}{told}")


def _question(taking: _Taking) -> Step | Dropped:
    """What a person chose where the agent asked them."""
    response = writes.response_of(taking.said)
    answers = response.get("answers") if isinstance(response, Mapping) else None
    answers = answers if isinstance(answers, Mapping) else taking.given.get("answers")
    lines = [
        f"{question.strip()[:_LONGEST_ASKED]} {answer.strip()[:_LONGEST_ASKED]}"
        for question, answer in (answers.items() if isinstance(answers, Mapping) else ())
        if isinstance(question, str) and isinstance(answer, str)
    ]
    text = _own_words("\n".join(lines[:10]))
    return taking.step("plan", text) if text else Dropped("it says nothing")


def _search(taking: _Taking) -> Step | Dropped:
    text = taking.asked("query", "url", "pattern", "path")
    return taking.step("search", text) if text else Dropped("it says nothing")


def _elsewhere(taking: _Taking) -> Step | Dropped:
    """A tool of somebody else's server: what it was asked."""
    words = [value for value in taking.given.values() if isinstance(value, str) and value.strip()]
    text = _own_words(" ".join(" ".join(words[:5]).split()))[:_LONGEST_ASKED]
    name = posixpath.basename((taking.event.tool or "").replace("__", "/"))
    return taking.step("search", f"{name}: {text}" if text else name)


_TOOLS: Mapping[str, Callable[[_Taking], Step | Dropped]] = {
    **dict.fromkeys(writes.TOOLS, _write),
    **dict.fromkeys(("Read", "NotebookRead"), _read),
    **dict.fromkeys(("Task", "Agent"), _agent),
    **dict.fromkeys(("TodoWrite", "ExitPlanMode"), _plan),
    **dict.fromkeys(("TaskCreate", "TaskUpdate"), _task),
    **dict.fromkeys(("WebFetch", "WebSearch", "Grep", "Glob", "LS"), _search),
    "Skill": _skill,
    "SlashCommand": _skill,
    "AskUserQuestion": _question,
}
