"""Stage what a captured session did in its project: files and the results of checks.

The files that it wrote are staged as they are now, with what they define, import and call. Commands
that ran tests, compilers or linters are stored with their diagnostics. Other steps stay in the user
store.

It can be repeated: a file is staged only if its content differs, and the node of a command has an
id derived from its event.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ctx import ids
from ctx.capture import shell_line
from ctx.capture import steps as session_steps
from ctx.capture.session_state import Session
from ctx.capture.steps import Step, StepFinding
from ctx.code import file_selection
from ctx.code.diagnostics import tool_output
from ctx.code.diagnostics.diagnostic_model import ToolDiagnostic, ToolReport, ToolSpan
from ctx.errors import PathRefused
from ctx.hook_files import spool
from ctx.ids import NodeId
from ctx.layout import Project
from ctx.operations import add_command, add_file, compact
from ctx.operations.add_command import CapturedCommand
from ctx.operations.compact import CompactResult
from ctx.project.project_memory import ProjectMemory
from ctx.synthesis import session_stores
from ctx.workspace import Memory, Workspace


class StageCapturedResult(NamedTuple):
    """What was staged of a session."""

    files: tuple[str, ...]
    commands: tuple[NodeId, ...]
    compacted: tuple[CompactResult, ...]


def stage_captured(memory: Memory, session: Session) -> StageCapturedResult | None:
    """Stage the work of a session; None if the session is not staged."""
    with session_stores.session_memory(memory, session) as there:
        beside, staging = there.project_memory, session_stores.staging_of(there, session)
        if beside is None or staging is None:
            return None
        steps = [
            step
            for step in session_steps.of_session(memory.local, session.id)
            if spool.made_ms(step.id) >= staging.since_ms
        ]
        workspace = Workspace(beside.project, beside.config, beside, there.session)
        files = _stage_files(workspace, steps)
        commands = tuple(_stage_commands(there, beside, steps))
        return StageCapturedResult(files, commands, tuple(compact.compact_due(there)))


def _stage_files(workspace: Workspace, steps: Iterable[Step]) -> tuple[str, ...]:
    """Stage the files that steps wrote, in as many work commits as the limits of a step need."""
    written = dict.fromkeys(step.path for step in steps if step.kind == "write" and step.ok)
    root = workspace.project.root
    added: list[str] = []
    for paths in _in_steps(
        workspace, [path for path in written if _is_file(workspace.project, path)]
    ):
        options = add_file.Options(paths, root, extract_semantics=True, written=True)
        added += (each.path for each in add_file.add_file(workspace, options).added)
    return tuple(added)


def _is_file(project: Project, path: str) -> bool:
    """Whether a path is an existing file of the project. `add_file` leaves out ignored ones."""
    full = os.path.join(project.root, path)
    if not path or os.path.isabs(path) or not os.path.isfile(full):
        return False
    try:
        file_selection.project_path(project, full, path)
    except PathRefused:
        return False
    return True


def _in_steps(workspace: Workspace, paths: Sequence[str]) -> Iterator[list[str]]:
    """Paths in groups that fit into a step. A file that is too large for a step is left out."""
    most_files = workspace.config.integer("ingestion.max_files_per_step")
    most_bytes = workspace.config.integer("ingestion.max_bytes_per_step")
    group: list[str] = []
    taken = 0
    for path in paths:
        try:
            size = os.path.getsize(os.path.join(workspace.project.root, path))
        except OSError:
            continue
        if size > most_bytes or not most_files:
            continue
        if group and (len(group) == most_files or taken + size > most_bytes):
            yield group
            group, taken = [], 0
        group.append(path)
        taken += size
    if group:
        yield group


def _stage_commands(
    there: Memory, beside: ProjectMemory, steps: Iterable[Step]
) -> Iterator[NodeId]:
    """Add the commands that checked something, unless they are known or were deleted."""
    for step in steps:
        if step.kind != "command" or step.passed is None:
            continue
        node_id = NodeId(ids.derived_ulid(spool.made_ms(step.id), f"command\0{step.id}"))
        if beside.graph.has(node_id) or beside.graph.was_deleted(node_id):
            continue
        command = add_command.Options(
            _name(step),
            [step.output.encode("utf-8", "replace")],
            # In a pipe, the exit code is not that of the check.
            step.exit_code if (step.exit_code == 0) == step.passed else None,
            (f"session:{step.session}",),
            captured=CapturedCommand(node_id, step.at, _report(step)),
        )
        yield add_command.add_command(there, command).node.id


def _name(step: Step) -> str:
    line = " ".join(step.text.split())
    most = add_command.LONGEST_NAME
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _report(step: Step) -> ToolReport:
    """What a check reported: capture has read its whole output, of which a part is stored."""
    read = tool_output.read(step.output, step.text)
    tool = read.tool or shell_line.read(step.text).verb
    diagnostics = tuple(_diagnostic(tool, finding) for finding in step.findings)
    return ToolReport(tool, diagnostics, read.tests, "passed" if step.passed else "failed", ())


def _diagnostic(tool: str, finding: StepFinding) -> ToolDiagnostic:
    spans = (ToolSpan(finding.path, finding.line),) if finding.path else ()
    return ToolDiagnostic(tool, "error", finding.message, finding.code, spans, finding.test)
