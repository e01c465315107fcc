"""Turns an event into a step, or drops it with a reason.

The tool and its outcome decide what is stored. For a prompt or a message of the agent: the text.
For a file that was read: its path. For a file that was written: what changed. For a command that
succeeded: the success; for one that failed: the errors. Text that ctx gave to the agent, and calls
of ctx itself, are dropped.
"""

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ctx.capture import (
    command_steps,
    excluded_text,
    injected_text,
    prompt_authors,
    steps,
    symbol_changes,
    written_lines,
)
from ctx.capture.capture_rules import CaptureRules
from ctx.capture.command_steps import commit_message
from ctx.capture.private_text import without_private
from ctx.capture.steps import ASSISTANT_MESSAGE, RECAP, TITLE, Kind, Step
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
CONTINUED = "went on"
COMPACTED = "compacted"
ENDED = "ended"
INTERRUPTED = "interrupted"
FAILED = "failed"
"""The texts of marks."""

_LONGEST_PROMPT = 4_000
_LONGEST_MESSAGE = 8_000
_LONGEST_PLAN = 4_000
_LONGEST_RECAP = 16_000
_LONGEST_LINE = 300
_LONGEST_TITLE = 120


class DroppedEvent(NamedTuple):
    reason: str


class _EventReader(NamedTuple):
    """One event, the rules that apply to it, and the root of its project."""

    event: Event
    rules: CaptureRules
    root: str

    def step(self, kind: Kind, text: str = "", path: str = "") -> Step:
        event = self.event
        return Step(
            *(event.id, event.session, event.at, kind, event.tool or "", event.tool_use or ""),
            agent=event.agent[:_LONGEST_LINE],
            text=text,
            path=path,
        )

    def placed(self, path: str) -> tuple[str, str]:
        return excluded_text.locate(path, self.event.folder, self.root)

    def ignores(self, path: str) -> bool:
        return excluded_text.is_excluded(self.rules, path, self.event.folder, self.root)

    def keeps(self, finding: steps.StepFinding) -> bool:
        """Whether a finding names no excluded file. Its path is relative to the root."""
        told = f"{finding.path}\n{finding.message}\n{finding.test}"
        return excluded_text.without_excluded(self.rules, told, self.root, self.root) == told

    def without_excluded(self, output: str) -> str:
        return excluded_text.without_excluded(
            self.rules, output, self.event.folder or self.root, self.root
        )


def step_of(event: Event, rules: CaptureRules, root: str) -> Step | DroppedEvent:
    """The step of an event whose project is at `root`, or why it is dropped."""
    if rules.closed:
        return DroppedEvent(rules.closed)
    taking = _EventReader(event, rules, root)
    if event.call is not None:
        found = _tool(taking, event.call)
    else:
        take = _EVENTS.get(event.name)
        found = take(taking) if take else DroppedEvent("events of this kind are not captured")
    if not isinstance(found, Step):
        return found
    return steps.limited(steps.redacted(found), rules.files, rules.step_bytes)


def _own_words(text: str) -> str:
    """A text without injected and private parts."""
    return injected_text.without_injected(without_private(text)).strip()


def _line(text: str) -> str:
    """A text as one line, without injected and private parts."""
    return " ".join(_own_words(text).split())[:_LONGEST_LINE]


def _shorten_middle(text: str, most: int) -> str:
    """The beginning of a long text, and its end, where conclusions are."""
    if len(text) <= most:
        return text
    first = most * 2 // 3
    return f"{text[:first].rstrip()}\n…\n{text[first - most + 3 :].lstrip()}"


def _prompt(taking: _EventReader) -> Step | DroppedEvent:
    without = without_private(taking.event.text or "")
    if not without.strip():
        return DroppedEvent("it is empty or private")
    text = injected_text.without_injected(without).strip()
    if not text:
        return DroppedEvent("ctx injected it")
    if taking.event.speaker != "user":
        return DroppedEvent("the client wrote it")
    if taking.event.is_host_command:
        return DroppedEvent("it is a command of the client")
    step = taking.step("prompt", _shorten_middle(text, _LONGEST_PROMPT))
    return step._replace(author=prompt_authors.of_event(taking.event))


def _agent_message(taking: _EventReader) -> Step | DroppedEvent:
    if taking.event.speaker == "host":
        return DroppedEvent("the client wrote it")
    if taking.event.text is None:
        return DroppedEvent("it is empty")
    text = _own_words(taking.event.text)
    if not text:
        return DroppedEvent("it contains only injected or private text")
    return taking.step("say", _shorten_middle(text, _LONGEST_MESSAGE))


def _recap(taking: _EventReader) -> Step | DroppedEvent:
    text = _own_words(taking.event.text or "")
    return (
        taking.step("recap", _shorten_middle(text, _LONGEST_RECAP))
        if text
        else DroppedEvent("it says nothing")
    )


def _title(taking: _EventReader) -> Step | DroppedEvent:
    text = _line(taking.event.text or "")[:_LONGEST_TITLE].rstrip()
    kind: Kind = "name" if taking.event.speaker == "user" else "title"
    return taking.step(kind, text) if text else DroppedEvent("it is empty or private")


def _mark_reader(text: str) -> Callable[[_EventReader], Step]:
    return lambda taking: taking.step("mark", text)


def _start(taking: _EventReader) -> Step:
    return taking.step("mark", CONTINUED if taking.event.continues else BEGAN)


_EVENTS: Mapping[str, Callable[[_EventReader], Step | DroppedEvent]] = {
    "UserPromptSubmit": _prompt,
    "Stop": _agent_message,
    ASSISTANT_MESSAGE: _agent_message,
    RECAP: _recap,
    TITLE: _title,
    "SubagentStop": _agent_message,
    "SessionStart": _start,
    "PreCompact": _mark_reader(COMPACTED),
    "SessionEnd": _mark_reader(ENDED),
    "UserInterrupt": _mark_reader(INTERRUPTED),
    "StopFailure": _mark_reader(FAILED),
}


def _tool(taking: _EventReader, call: Call) -> Step | DroppedEvent:
    if isinstance(call, OwnTool):
        return DroppedEvent("it calls ctx itself")
    if taking.rules.ignores_tool(taking.event.tool or "") or isinstance(call, IgnoredTool):
        return DroppedEvent("the tool is excluded")
    path = taking.event.path
    if path and taking.rules.is_own(*taking.placed(path)):
        return DroppedEvent("it belongs to ctx itself")
    if path and taking.ignores(path):
        return DroppedEvent("the path is excluded")
    if isinstance(call, CommandCall):
        return _command(taking, call)
    if taking.event.name == "PostToolUseFailure":
        return DroppedEvent("the call failed")
    match call:
        case FileRead():
            return _read(taking, call)
        case FileWrite():
            return _write(taking, call)
        case Search(text):
            text = _line(text)
            return taking.step("search", text) if text else DroppedEvent("it is empty")
        case ForeignTool(name, texts):
            text = _line(" ".join(texts[:5]))
            return taking.step("search", f"{name}: {text}" if text else name)
        case Delegation(description, prompt):
            text = "\n".join(filter(None, (_line(description), _own_words(prompt))))
            kept = _shorten_middle(text, _LONGEST_PLAN // 4)
            return taking.step("agent", kept) if text else DroppedEvent("it is empty")
        case UnknownTool():
            return DroppedEvent("calls of this tool are not captured")
        case _:
            return _plan(taking, call)


def _command(taking: _EventReader, call: CommandCall) -> Step | DroppedEvent:
    command, outcome = call
    place = command_steps.CommandPlace(taking.event.folder or taking.root, taking.root)
    found = command_steps.read(outcome, without_private(command), place, taking.rules.log_lines)
    if isinstance(found, str):
        return DroppedEvent(found)
    folders = list(dict.fromkeys((place.folder, os.path.join(place.folder, found.line.folder))))
    if excluded_text.names_excluded(taking.rules, command, folders, taking.root):
        return DroppedEvent("the path is excluded")
    is_secret = any(map(written_lines.is_secret_file, found.line.words))
    text = _own_words(found.line.text)
    if not text:
        return DroppedEvent("it calls ctx itself")
    if is_secret:
        text = text.partition("\n")[0]
    return taking.step("command", text)._replace(
        ok=found.ok,
        exit_code=found.exit_code,
        output="" if is_secret else _own_words(taking.without_excluded(found.output)),
        findings=() if is_secret else tuple(each for each in found.findings if taking.keeps(each)),
        passed=found.passed,
        message=_commit_message(command) if found.ok and not is_secret else "",
    )


def _commit_message(command: str) -> str:
    return _own_words(commit_message(without_private(command)))


def _read(taking: _EventReader, call: FileRead) -> Step | DroppedEvent:
    if not taking.event.path:
        return DroppedEvent("it names no file")
    first, count, total = call
    text = ""
    if first is not None and count is not None and (first > 1 or count != total):
        text = f"lines {first}-{first + count - 1}"
    return taking.step("read", text, taking.placed(taking.event.path)[0])


def _write(taking: _EventReader, call: FileWrite) -> Step | DroppedEvent:
    path, found = taking.event.path, call.written
    if not path or found is None:
        return DroppedEvent("it does not contain what was written")
    inside, _ = taking.placed(path)
    step = taking.step("write", "", inside)
    if written_lines.is_secret_file(path):
        return step
    clean = found._replace(
        before=without_private(found.before) if found.before is not None else None,
        after=without_private(found.after),
    )
    if clean.before == clean.after:
        return DroppedEvent("it changes nothing")
    lines = written_lines.lines(clean)
    return step._replace(
        changes=symbol_changes.changes(inside, clean, taking.rules.symbols),
        added=lines.added,
        removed=lines.removed,
        excerpt=injected_text.without_injected(command_steps.STEERING.sub("", lines.excerpt)),
    )


def _plan(
    taking: _EventReader, call: Skill | PlanCall | TodoList | TaskCall | QuestionCall
) -> Step | DroppedEvent:
    match call:
        case Skill(name, arguments):
            name = _line(name)
            if name.removeprefix("/").partition(":")[0] == "ctx" or not name:
                return DroppedEvent("it calls ctx itself")
            text = f"skill {name} {_line(arguments)}".strip()
        case PlanCall(text):
            text = _shorten_middle(_own_words(text), _LONGEST_PLAN)
        case TodoList(items):
            lines = [f"[{'x' if done else ' '}] {_line(subject)}" for subject, done in items]
            text = "\n".join(lines)
        case TaskCall():
            text = _task(call)
        case QuestionCall(answers):
            lines = [
                f"{question.strip()[:_LONGEST_LINE]} {answer.strip()[:_LONGEST_LINE]}"
                for question, answer in answers[:10]
            ]
            text = _own_words("\n".join(lines))
    if not text:
        return DroppedEvent("it is empty")
    is_agreed = isinstance(call, PlanCall | QuestionCall)
    author = prompt_authors.of_event(taking.event) if is_agreed else ""
    return taking.step("plan", text)._replace(author=author)


def _task(call: TaskCall) -> str:
    subject, description, status, number = map(_line, call)
    done = {"completed": "[x] ", "": "[ ] "}.get(status, f"[{status}] ")
    if subject:
        told = f"{subject}: {description}" if description not in ("", subject) else subject
        return f"{done}{told}"
    return f"{done}task {number}" if status and number else ""
