"""From an event to a step: what is taken of it, or why nothing is.

Policy decides by the tool and by how it ended. Of a prompt and of what an agent said the words
count; of a file that was read only which one; of one that was written what has changed in it; of a
command that went well that it did, and of one that failed what was wrong. What ctx itself gave to
an agent, or was asked by it, is nothing new.
"""

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ctx.capture import command_steps, injected, left_out, secret_files, steps, symbols, writes
from ctx.capture.policy import Rules
from ctx.capture.private import without_private
from ctx.capture.steps import SAID, Kind, Step
from ctx.hosts.events import Event
from ctx.hosts.tool_calls import (
    Call,
    CommandCall,
    Delegation,
    FileRead,
    FileWrite,
    ForeignTool,
    IgnoredTool,
    OwnTool,
    PlanCall,
    QuestionCall,
    Search,
    Skill,
    TaskCall,
    TodoList,
    UnknownTool,
)

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


class Dropped(NamedTuple):
    reason: str


class _Taking(NamedTuple):
    """One event, the rules that hold for it, and where its project is."""

    event: Event
    rules: Rules
    root: str

    def step(self, kind: Kind, text: str = "", path: str = "") -> Step:
        event = self.event
        return Step(
            *(event.id, event.session, event.at, kind, event.tool or "", event.tool_use or ""),
            agent=event.agent[:_LONGEST_ASKED],
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
    if event.call is not None:
        found = _tool(taking, event.call)
    else:
        take = _EVENTS.get(event.name)
        found = take(taking) if take else Dropped("nothing is made of such events")
    return steps.redacted(found) if isinstance(found, Step) else found


def _own_words(text: str) -> str:
    """What is left of a text when what ctx gave, and what is private, is out."""
    return injected.without_injected(without_private(text)).strip()


def _line(text: str) -> str:
    """A text in one line, without what ctx gave and what is private."""
    return " ".join(_own_words(text).split())[:_LONGEST_ASKED]


def _cut(text: str, most: int) -> str:
    """Of a long text the beginning, and the end, where conclusions are."""
    if len(text) <= most:
        return text
    first = most * 2 // 3
    return f"{text[:first].rstrip()}\n…\n{text[first - most + 3 :].lstrip()}"


def _prompt(taking: _Taking) -> Step | Dropped:
    without = without_private(taking.event.text or "")
    if not without.strip():
        return Dropped("it says nothing, or nothing that is not private")
    text = injected.without_injected(without).strip()
    if not text:
        return Dropped("ctx itself gave it")
    if taking.event.speaker != "user":
        return Dropped("the client wrote it")
    if taking.event.is_host_command:
        return Dropped("it is a command of the client")
    return taking.step("prompt", _cut(text, _LONGEST_PROMPT))


def _said(taking: _Taking) -> Step | Dropped:
    if taking.event.speaker == "host":
        return Dropped("the client wrote it")
    if taking.event.text is None:
        return Dropped("it says nothing")
    text = _own_words(taking.event.text)
    if not text:
        return Dropped("nothing of it is new")
    return taking.step("say", _cut(text, _LONGEST_SAID))


def _marking(text: str) -> Callable[[_Taking], Step]:
    return lambda taking: taking.step("mark", text)


def _start(taking: _Taking) -> Step:
    return taking.step("mark", WENT_ON if taking.event.continues else BEGAN)


_EVENTS: Mapping[str, Callable[[_Taking], Step | Dropped]] = {
    "UserPromptSubmit": _prompt,
    "Stop": _said,
    SAID: _said,
    "SubagentStop": _said,
    "SessionStart": _start,
    "PreCompact": _marking(COMPACTED),
    "SessionEnd": _marking(ENDED),
    "UserInterrupt": _marking(INTERRUPTED),
    "StopFailure": _marking(FAILED),
}


def _tool(taking: _Taking, call: Call) -> Step | Dropped:
    if isinstance(call, OwnTool):
        return Dropped("ctx itself was asked")
    if taking.rules.ignores_tool(taking.event.tool or "") or isinstance(call, IgnoredTool):
        return Dropped("the tool is left out")
    path = taking.event.path
    if path and taking.rules.is_own(*taking.placed(path)):
        return Dropped("it belongs to ctx itself")
    if path and taking.ignores(path):
        return Dropped("the path is left out")
    if isinstance(call, CommandCall):
        return _command(taking, call)
    if taking.event.name == "PostToolUseFailure":
        return Dropped("it was not done")
    match call:
        case FileRead():
            return _read(taking, call)
        case FileWrite():
            return _write(taking, call)
        case Search(text):
            text = _line(text)
            return taking.step("search", text) if text else Dropped("it says nothing")
        case ForeignTool(name, texts):
            text = _line(" ".join(texts[:5]))
            return taking.step("search", f"{name}: {text}" if text else name)
        case Delegation(description, prompt):
            text = "\n".join(filter(None, (_line(description), _own_words(prompt))))
            kept = _cut(text, _LONGEST_PLAN // 4)
            return taking.step("agent", kept) if text else Dropped("it says nothing")
        case UnknownTool():
            return Dropped("nothing is made of this tool")
        case _:
            return _plan(taking, call)


def _command(taking: _Taking, call: CommandCall) -> Step | Dropped:
    command, outcome = call
    place = command_steps.Place(taking.event.folder or taking.root, taking.root)
    found = command_steps.read(outcome, without_private(command), place, taking.rules.log_lines)
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


def _read(taking: _Taking, call: FileRead) -> Step | Dropped:
    if not taking.event.path:
        return Dropped("it names no file")
    first, count, total = call
    text = ""
    if first is not None and count is not None and (first > 1 or count != total):
        text = f"lines {first}-{first + count - 1}"
    return taking.step("read", text, taking.placed(taking.event.path)[0])


def _write(taking: _Taking, call: FileWrite) -> Step | Dropped:
    path, found = taking.event.path, call.written
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


def _plan(
    taking: _Taking, call: Skill | PlanCall | TodoList | TaskCall | QuestionCall
) -> Step | Dropped:
    match call:
        case Skill(name, arguments):
            name = _line(name)
            if name.removeprefix("/").partition(":")[0] == "ctx" or not name:
                return Dropped("ctx itself was asked")
            text = f"skill {name} {_line(arguments)}".strip()
        case PlanCall(text):
            text = _cut(_own_words(text), _LONGEST_PLAN)
        case TodoList(items):
            lines = [f"[{'x' if done else ' '}] {_line(subject)}" for subject, done in items]
            text = "\n".join(lines)
        case TaskCall():
            text = _task(call)
        case QuestionCall(answers):
            lines = [
                f"{question.strip()[:_LONGEST_ASKED]} {answer.strip()[:_LONGEST_ASKED]}"
                for question, answer in answers[:10]
            ]
            text = _own_words("\n".join(lines))
    return taking.step("plan", text) if text else Dropped("it says nothing")


def _task(call: TaskCall) -> str:
    subject, description, status, number = map(_line, call)
    done = {"completed": "[x] ", "": "[ ] "}.get(status, f"[{status}] ")
    if subject:
        told = f"{subject}: {description}" if description not in ("", subject) else subject
        return f"{done}{told}"
    return f"{done}task {number}" if status and number else ""
