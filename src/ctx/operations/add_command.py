"""Store the output of a command and how it ended.

Diagnostics of compilers and tests are parsed and become part of the project's memory. Without an
exit code, they show how the command ended.
"""

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ctx.code.diagnostics.diagnostic_model import Outcome, TestCounts, ToolDiagnostic, ToolReport
from ctx.errors import UsageError
from ctx.ids import NodeId, ObjectId
from ctx.memory import model, sources
from ctx.memory.changes import Change
from ctx.memory.graph import USER
from ctx.memory.model import Node, Redaction
from ctx.objects import object_store
from ctx.operations.add_document import of_task_and_project
from ctx.project import command_output as output
from ctx.project import tool_snapshots
from ctx.project.command_output import CommandOutput
from ctx.redaction import redact
from ctx.workspace import Memory

if TYPE_CHECKING:
    from ctx.project import command_diagnostics

TAG = "command"
LONGEST_NAME = 500

_LAST_LINES = 10
_MOST_ERRORS = 10
_FOR_PROGRAMS = ('{"', '[{"')
_LONGEST_HEADLINE = 300
_LONGEST_FIRST = 100


class CapturedCommand(NamedTuple):
    """A command that a hook reported. It gets no tier, so that it is not part of each context."""

    node_id: NodeId
    at: str
    report: ToolReport
    """What was read from the whole output."""


class Options(NamedTuple):
    name: str
    """What was run: `cargo test`."""
    output: Iterable[bytes]
    """What it printed, as it comes."""
    exit_code: int | None = None
    tags: Sequence[str] = ()
    everywhere: bool = False
    """Whether it belongs to no project, whatever the folder."""
    captured: CapturedCommand | None = None
    """If a hook reported it."""


class AddCommandResult(NamedTuple):
    """The answer of `ctx add command`."""

    node: Node
    short_id: str
    command: str
    exit_code: int | None
    """None: it is not known how it ended."""
    lines: int
    """How many lines were printed."""
    cut: int
    """How many of them were not kept."""
    blob: ObjectId | None
    """The object that holds the output, in a project."""
    given: tuple[str, ...]
    redacted: tuple[Redaction, ...]
    outcome: Outcome | None
    """What the exit code says, else the last words of the tools; None where nothing does."""
    tests: TestCounts | None
    diagnostics: tuple[ToolDiagnostic, ...]
    """What the tools reported, as far as they were understood."""
    snapshot: ObjectId | None
    """The object that holds these, in a project."""


def add_command(memory: Memory, options: Options) -> AddCommandResult:
    """Add an observation: the command, how it ended, its output and its diagnostics."""
    name = " ".join(options.name.split())
    if not name or len(name) > LONGEST_NAME:
        problem = "has no name" if not name else f"has a name of {len(name):,} characters"
        raise UsageError(
            f"The command {problem}.", hint='Name the command that ran: --name "cargo test".'
        )
    tags = model.tags([TAG, *options.tags])
    printed = output.read(options.output, memory.config.integer("ingestion.max_log_lines"))
    project = None if options.everywhere else _project(memory)
    captured = options.captured
    report = _report(printed, captured.report if captured else None, name, project)
    if project:
        name, printed = project.shared(name), printed.with_lines(project.shared)
    clean = redact(printed.text)
    ended = _CommandResult(name, options.exit_code, report, printed.lines)
    blob = snapshot = None
    metadata = ended.metadata
    with memory.transaction("add command", USER if options.everywhere else None) as change:
        given = [] if captured else of_task_and_project(memory, tags, everywhere=options.everywhere)
        content = ended.headline
        if project:
            if clean.text:
                kept = object_store.blob(f"{clean.text}\n".encode())
                change.objects.append(kept)
                metadata["blob"] = blob = kept.id
            if report.tool:
                metadata[tool_snapshots.NAMED_BY] = snapshot = _keep(change, report, project)
            content = "\n".join([content, *_key_lines(printed, ended)])
        elif clean.text:
            content = f"{content}\n\n{clean.text}"
        node_id = change.add_node(
            "observation",
            content,
            metadata=metadata,
            node_id=captured.node_id if captured else None,
            times=(captured.at, captured.at) if captured else None,
        )
        for tag in (*tags, *given):
            change.tag(node_id, tag)
        if project and ended.errors:
            from ctx.project import command_diagnostics

            command_diagnostics.relate(change, node_id, ended.errors, project)
    graph = memory.graph
    found = [Redaction("output", each.rule, each.line) for each in clean.findings]
    others = [each for each in change.redacted if each.where != "content"]
    return AddCommandResult(
        graph.node(node_id),
        graph.shown([node_id])[node_id],
        redact(name).text,
        options.exit_code,
        printed.lines,
        printed.cut,
        blob,
        tuple(given),
        (*found, *others),
        ended.outcome,
        report.tests,
        report.diagnostics,
        snapshot,
    )


def _project(memory: Memory) -> "command_diagnostics.DiagnosedProject | None":
    if memory.project_memory is None:
        return None
    from ctx.project import command_diagnostics

    root = memory.project_memory.project.root
    return command_diagnostics.DiagnosedProject(
        root,
        memory.folder,
        memory.config.text("repo.id") or os.path.basename(root),
        memory.environment.variables.get("HOME", ""),
    )


def _report(
    printed: CommandOutput,
    known: ToolReport | None,
    name: str,
    project: "command_diagnostics.DiagnosedProject | None",
) -> ToolReport:
    """The diagnostics, with paths relative to the project, if there is one."""
    from ctx.code.diagnostics import tool_output as diagnostics

    # Nothing secret goes any further, in whatever part of a message it stands.
    report = known or diagnostics.read(redact("\n".join(printed.uncut)).text, name)
    if project is None:
        return report
    from ctx.project import command_diagnostics

    return command_diagnostics.relative_report(report, project)


def _keep(
    change: Change, report: ToolReport, project: "command_diagnostics.DiagnosedProject"
) -> ObjectId:
    """Put a report beside the records of a change."""
    from ctx.project import command_diagnostics

    kept = command_diagnostics.snapshot(report, project)
    change.objects += [*kept.blobs, kept.snapshot]
    return kept.snapshot.id


class _CommandResult(NamedTuple):
    """How a command ended, and the text for it."""

    name: str
    exit_code: int | None
    report: ToolReport
    lines: int

    @property
    def outcome(self) -> Outcome | None:
        if self.exit_code is not None:
            return "passed" if self.exit_code == 0 else "failed"
        return self.report.outcome

    @property
    def errors(self) -> list[ToolDiagnostic]:
        return [each for each in self.report.diagnostics if each.severity == "error"]

    @property
    def metadata(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "command": self.name,
            "lines": self.lines,
            sources.KEY: sources.TOOL_OUTPUT,
        }
        if self.exit_code is not None:
            found["exit_code"] = self.exit_code
        if self.outcome:
            found["outcome"] = self.outcome
        if self.report.tool:
            found["tool"] = self.report.tool
        if self.report.tests:
            found["tests"] = self.report.tests._asdict()
        for noun, count in self._severities:
            found[f"{noun}s"] = count
        return found

    @property
    def headline(self) -> str:
        """`cargo test failed: 1 error (E0433 src/lib.rs:3), 4 lines of output`."""
        code = f" with exit code {self.exit_code}" if self.exit_code else ""
        ended = f"{self.name} {self.outcome or 'ended'}{code}"
        lines = "1 line" if self.lines == 1 else f"{self.lines:,} lines"
        if counted := self._counts_text:
            return f"{ended}: {counted}, {lines} of output"
        return f"{ended} ({lines} of output)"

    @property
    def _counts_text(self) -> str:
        tests = self.report.tests
        if tests and any(tests):
            errors = "error" if tests.errors == 1 else "errors"
            every = (tests.failed, "failed"), (tests.errors, errors), (tests.passed, "passed")
            skipped = tests.skipped, "skipped"
            parts = [f"{count:,} {word}" for count, word in (*every, skipped) if count]
        else:
            told = self._severities
            parts = [f"{count:,} {noun}{'s' if count > 1 else ''}" for noun, count in told]
        first = self._first_error if self.outcome != "passed" else ""
        return ", ".join(parts) + (f" ({first})" if parts and first else "")

    @property
    def _severities(self) -> list[tuple[str, int]]:
        every = [each.severity for each in self.report.diagnostics]
        return [(noun, every.count(noun)) for noun in ("error", "warning") if noun in every]

    @property
    def _first_error(self) -> str:
        """The error that came first, in few words."""
        if not self.errors:
            return ""
        first = self.errors[0]
        place = first.spans[0].place if first.spans else ""
        what = first.test or first.code
        text = " ".join(part for part in (what, place) if part)
        return text if len(text) <= _LONGEST_FIRST else f"{text[: _LONGEST_FIRST - 1].rstrip()}…"


def _key_lines(printed: CommandOutput, ended: _CommandResult) -> list[str]:
    """The lines that tell most: the first errors, unless all went well, and how it ended."""
    every = [line for line in (*printed.head, *printed.tail) if line.strip()]
    readable = [line for line in every if not line.startswith(_FOR_PROGRAMS)]
    last = readable[-_LAST_LINES:]
    telling: list[str] = []
    if ended.outcome != "passed":
        shown = [line for line in printed.telling if not line.startswith(_FOR_PROGRAMS)]
        if len(readable) < len(every):
            # Text that tools print only for programs is made readable.
            shown += [each.line for each in ended.errors[:_MOST_ERRORS]]
        telling = [line for line in shown if line not in last]
    chosen = [*telling, "…", *last] if telling else last
    return [
        line if len(line) <= _LONGEST_HEADLINE else f"{line[:_LONGEST_HEADLINE].rstrip()}…"
        for line in chosen
    ]
