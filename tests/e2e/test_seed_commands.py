"""Every command line in the specification, exactly as written.

Ids differ: `<id>` and its like stand for nodes that were made before.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Ctx

COMMANDS = """
ctx add --type=fact --tag=project:viberent "Database uses SQLite with WAL mode"
echo "content" | ctx add --type=observation --stdin
ctx show <id>
ctx show <id> --with-edges
ctx update <id> --content="new content"
ctx update <id> --type=decision
ctx update <id> --meta=confidence=high
ctx list
ctx list --type=fact
ctx list --tag=task:current
ctx list --since=1h
ctx list --limit=20
ctx link <from-id> <to-id> --type=DEPENDS_ON
ctx link <from-id> <to-id> --type=DERIVED_FROM
ctx unlink <from-id> <to-id> --type=DERIVED_FROM
ctx unlink <from-id> <to-id>
ctx edges <id>
ctx edges <id> --direction=in
ctx edges <id> --direction=out
ctx tag <id> project:ctx
ctx tag <id> task:current tier:working
ctx untag <id> project:ctx
ctx tags
ctx tags --prefix=task:
ctx search "auth pattern"
ctx query "type:fact AND tag:project:viberent"
ctx query "type:decision"
ctx query "created:>24h"  # Created in last 24 hours
ctx query "(type:decision OR type:pattern) AND created:>7d"
ctx query "tag:tier:working AND NOT has:summary"
ctx query "type:observation AND tokens:<500"
ctx query "type:fact" --include-superseded
ctx trace <id>  # Show what this was derived from (recursive)
ctx trace <id> --reverse  # Show what depends on this
ctx related <id> --depth=2
ctx summarize <id1> <id2> <id3> --content="Summary text here"
ctx summarize <id1> <id2> --content="..." --archive-sources
ctx view create facts --query="type:fact OR type:decision" --budget=40000
ctx view list
ctx view render facts
ctx view render facts --budget=30000  # Override budget
ctx view render facts --format=markdown
ctx view update default --budget=80000
ctx view delete facts
ctx compose --query="tag:task:current" --budget=50000
ctx status
ctx export > backup.json
ctx export --query="tag:project:viberent" > project.json
ctx import < backup.json
ctx import --merge < other.json  # Don't fail on conflicts
ctx ingest README.md --tag=project:viberent --tag=type:documentation
ctx delete <id>
ctx delete <id2> --cascade  # Also delete nodes that DERIVED_FROM this
"""


@pytest.fixture
def shell(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which `ctx` is a command."""
    binaries = tmp_path / "bin"
    binaries.mkdir()
    (binaries / "ctx").write_text(f'#!/bin/sh\nexec {sys.executable} -m ctx "$@"\n')
    (binaries / "ctx").chmod(0o755)
    monkeypatch.setenv("PATH", f"{binaries}:/usr/bin:/bin")
    monkeypatch.delenv("CTX_HOME")
    return folder


def run(command: str) -> str:
    """Run a line in a shell."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_every_command_line_runs_as_written(shell: Path, ctx: Ctx) -> None:
    (shell / "README.md").write_text("# Viberent\n\nHow to run it.\n")
    (shell / "other.json").write_text('{"nodes": [], "edges": []}')
    made = [run(f'ctx add --type=fact "Node {n}"').split()[1] for n in range(4)]
    names = ("<id>", "<id1>", "<id2>", "<id3>")
    places = dict(zip(names, made, strict=True))
    places |= {"<from-id>": made[1], "<to-id>": made[2]}
    for line in COMMANDS.strip().splitlines():
        typed = re.sub(r"<[a-z0-9-]+>", lambda found: places[found[0]], line)
        words = shlex.split(typed, comments=True)
        if {"|", "<", ">"} & set(words):
            run(typed)
        else:
            ran = ctx(*words[1:])
            assert ran.code == 0, f"{line}\n{ran.out}{ran.err}"
    kept = run("ctx list --limit=0 --include-superseded")
    assert made[0] not in kept
    assert made[2] not in kept
    assert "Summary text here" not in kept, "it was derived from what was deleted with --cascade"
    assert made[1] in kept
