"""`ctx add command`: its options are in `add.py`."""

import argparse
from collections.abc import Iterable
from typing import NamedTuple

from ctx.cli import commit as commit_command
from ctx.cli import opening
from ctx.cli import settings as surroundings
from ctx.cli.add_document import workspace_to_commit
from ctx.cli.nodes import warn_of_redaction
from ctx.cli.output import Block, Line, Output, count
from ctx.cli.settings import Settings
from ctx.cli.terminal import cut
from ctx.errors import UsageError
from ctx.operations import commit
from ctx.operations.add_command import AddCommandResult, Options, add_command

# After a pipe, `$?` is not the exit code of the command before it.
_EXIT_CODE_EXAMPLE = (
    '`make test > out 2>&1; ctx add command --name "make test" --exit-code $? --stdin < out`'
)
_MOST_SHOWN = 5
_LONGEST_SHOWN = 160


class AddCommandCommitResult(NamedTuple):
    """The answer of `ctx add command --commit`."""

    added: AddCommandResult
    commit: commit.CommitResult


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    committing = workspace_to_commit(options, settings, output)
    wanted = Options(
        options.name, _command_output(options), options.exit_code, options.tag, options.user
    )
    with opening.adding(settings, output) as memory:
        kept = add_command(memory, wanted)
    if committing:
        message = options.message or kept.node.content.partition("\n")[0]
        made = commit.commit(committing, commit.Options(message))
        output.show(AddCommandCommitResult(kept, made), render_both)
        commit_command.print_details(made, output)
    else:
        output.show(kept, render)
    warn_of_redaction(kept.redacted, output)
    if kept.outcome is None:
        output.note(f"Exit code unknown. To record it: {_EXIT_CODE_EXAMPLE}")


def _command_output(options: argparse.Namespace) -> Iterable[bytes]:
    if options.body is not None and options.body != "-":
        if options.stdin:
            raise UsageError("Use --body or --stdin, not both.")
        return [options.body.encode()]
    if not options.stdin and options.body is None:
        raise UsageError(
            "No output to add.",
            hint=_EXIT_CODE_EXAMPLE,
        )
    if surroundings.stdin_is_terminal():
        raise UsageError(
            "No output on stdin: it is a terminal.",
            hint=_EXIT_CODE_EXAMPLE,
        )
    return surroundings.stdin_in_parts()


def render_both(both: AddCommandCommitResult) -> list[Block]:
    return [*render(both.added), *commit_command.render(both.commit)]


def render(kept: AddCommandResult) -> list[Block]:
    tags = f" ({', '.join(kept.given)})" if kept.given else ""
    how = kept.node.content.partition("\n")[0]
    blocks: list[Block] = [Line(f"Added: {kept.short_id} {how}{tags}")]
    errors = [each.line for each in kept.diagnostics if each.severity == "error"]
    # What fits keeps the two spaces after its place.
    blocks += [
        Line(f"  {line if len(line) <= _LONGEST_SHOWN else cut(line, _LONGEST_SHOWN)}")
        for line in errors[:_MOST_SHOWN]
    ]
    if len(errors) > _MOST_SHOWN:
        blocks.append(Line(f"  and {count(len(errors) - _MOST_SHOWN, 'more error')}"))
    if kept.cut:
        blocks.append(Line(f"  {count(kept.cut, 'line')} in the middle left out."))
    return blocks
