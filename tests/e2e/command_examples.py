"""A line or more for each command, for the tests that run all of them.

A new command is a new line in one of these groups; `test_streams` names the commands without one.
`{A}` and `{B}` are nodes with an edge from one to the other, `{D}` is a deleted node, `{C}` a
commit. `test_untrusted_store` expects that none of them prints a store that is not trusted.
"""

import shlex

from ctx.cli import options
from ctx.cli.commands import COMMANDS, command_named

READS = """
show {A} --history --with-edges
show {B}
list
list --project
list --deleted
tags
tags --project
edges {A}
undo --list
undo --dry-run
task current
task list --all
search deploys
search deploys --project
pack deploys
pack deploys --explain
query deploys
query deploys --as=nodes
query type:fact
query deploys --explain --include-narrative
recall deploys
recall deploys --project
trace {A}
related {A}
timeline {A}
timeline main.py
timeline {B}
why
why --list
compose
compose --seed={A}
compose --all-projects
context
context --explain
view list
view render default
delete {A} --dry-run
forget deploys --dry-run
move {B} --project --dry-run
stage
stage status
log
log --oneline
log --day=2020-01-01
diff
review
review list
trust --list
scrub deploys --dry-run
scrub --dry-run
gc --dry-run
debug cat {C}
debug refs
debug history
debug verify
debug index
debug index main.py
debug graph
debug graph --around=main.py
code outline main.py
code callers deploy
code callees deploy
code imports main.py
code cycles
code packages
code changed
code history main.py
code status
sessions list --all
sessions show none-such
sessions replay none-such
sessions synthesise none-such --dry-run
sessions delete none-such --dry-run
sessions rebuild none-such --dry-run
learnings list
learnings list --all
worker status
worker logs
export
export --project
export --query=deploys
import --dry-run export.json
store
store status
store check
store path
store recover --dry-run
sync status
sync home --dry-run
cost
install --print
install --dry-run
install --projection --dry-run
install --git --dry-run
uninstall --dry-run
uninstall --git --dry-run
doctor
status
config get repo.id
config list
config list --changed
config explain repo.id
completion bash
"""

STORE_WRITES = """
add --type=fact --tag=c:d --tag=tier:reference --meta=why=because --supersedes={B} "Own words"
remember "Own words"
update {A} --content=Other --type=task --meta=a=b
tag {A} x:1 x:2 x:3 tier:pinned
untag {A} a:b number:1
pin {A} {B}
unpin {A}
why cli --wrong 1 --instead "Own words"
link {A} {B} --type=SUPERSEDES
unlink {A} {B}
summarize {A} {B} --content=Short --archive-sources
task start "Something else"
task end --summarize
view create own --query=type:fact
view update default --query=type:fact
learnings add "Own words" --category=gotcha
ingest main.py --tag=a:b
restore {D}
import export.json
store rebuild --yes
store restore other.db --yes
undo
delete {A} --cascade --yes
forget tag:a:b --yes
"""
"""What changes the user's store, and is killed and interrupted while it does."""

OTHER_WRITES = """
add node --type=fact "Own words"
add file main.py -m Own
add note "Own note"
add task "Own task"
add decision "Own decision" --commit
add command --name=true --body=fine
add command true --user
add cargo
add code
add code --snapshot
add rust
remember --id={B} --link=RELATES_TO:{A}
update {A} --summary=x
edit {A}
restore --backup
link {B} {A}
relate main.py DependsOn task_0001
relate {B} DependsOn {A}
move {A} --user
task start task_0001
view delete own
init
commit -m Own
commit --auto
commit --amend
stage start Own
stage flush
stage compact -m Own
stage recover
review accept {A}
review accept --all
review reject {A}
review reject --all
rebuild
rebuild --full
trust
trust --revoke
scrub nowhere --yes
gc
code index
sessions synthesise none-such
sessions delete none-such --yes
pause --for=1m
resume
learnings confirm {A}
learnings reject {A}
worker stop
store backup
store copy --to copy.db
sync add home shared --plain
sync
sync run
sync remove home
llm --query=deploys
config set repo.id own --project
config unset repo.id --project
hook apply
stage abort --yes
"""

STARTS = """
worker start --set worker.idle_seconds=0
worker run --set worker.idle_seconds=0
mcp
serve
ui --no-open --db=other.db
hook session-start
hook prompt-submit
hook stop
hook post-tool-use
hook post-tool-use-failure
hook pre-compact
hook session-end
hook subagent-stop
hook pre-edit
"""
"""Servers, and hooks, which read what a client sends. `tests/mcp` and `tests/page` have untrusted
stores of their own."""


def lines(*groups: str) -> list[str]:
    return [line for group in groups for line in group.strip().splitlines()]


def filled(line: str, a: str, b: str, deleted: str = "", commit: str = "0") -> list[str]:
    """The words of a line, with nodes and a commit in it."""
    return shlex.split(line.format(A=a, B=b, D=deleted or a, C=commit))


def leaf(line: str) -> str:
    """The command of a line, with its subcommand."""
    words = line.split()
    count = 2 if words[1:] and words[1] in _subcommands(words[0]) else 1
    return " ".join(words[:count])


def leaves() -> set[str]:
    """Every command, or its subcommands."""
    return {
        f"{name} {below}".strip()
        for name in COMMANDS
        if name != "help"
        for below in _subcommands(name) or [""]
    }


def _subcommands(name: str) -> list[str]:
    return list(options.subcommands_of(command_named(name)[1])) if name in COMMANDS else []
