"""`ctx status`"""

import argparse
import os

from ctx import layout
from ctx.cli import opening
from ctx.cli.output import Output, VerbatimText, count
from ctx.cli.settings import Settings
from ctx.objects.untracked_commits import HERE
from ctx.operations.status import MemoryStatus, as_text, status

EXAMPLES = """
ctx status                  what is in memory, what is open, and what to do next
ctx status --format json    for scripts
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """No options of its own."""


def run(_options: argparse.Namespace, settings: Settings, output: Output) -> None:
    database = settings.graph_database
    new = not layout.is_server(database) and not os.path.exists(database)
    with opening.reading(settings, output) as memory:
        found = status(memory, new=new)
        if not memory.environment.is_single_store:
            from ctx.cli import install_questions
            from ctx.cli.recording_hosts import recording_hosts

            found = found._replace(hooks=recording_hosts(settings))
            found = found._replace(next_step=_next_step(found))
        output.show(found, lambda result: [VerbatimText(as_text(result))])
        if not memory.environment.is_single_store and output.is_for_people:
            install_questions.note(install_questions.find(memory, settings), output)


def _next_step(found: MemoryStatus) -> str | None:
    """The first thing that is worth doing."""
    here = sum(each.state == HERE for each in found.untracked)
    steps = {
        "`ctx trust` shows what the project store holds, and asks whether to use it": (
            found.project_store == "not trusted"
        ),
        "`ctx review` shows changes that conflict": found.conflicts,
        "`ctx install` registers the hooks with your agents": found.hooks == (),
        "`ctx review` shows what agents propose": found.proposals,
        "`ctx commit -m MESSAGE` commits what is staged": found.staged,
        f"`git add .ctx` adds {count(here, 'commit')} of memory to git": here,
        '`ctx add "…"` stores a first fact': not found.nodes,
    }
    return next((step for step, applies in steps.items() if applies), None)
