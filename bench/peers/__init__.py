"""Other tools beside ctx: the same events, questions and tasks, on the same machine, in one run.

    python -m bench peers --install [hooks|memory|files|grep …]
    python -m bench peers [hooks|memory|files|grep …] [OPTIONS]

`hooks` compares claude-mem, `memory` basic-memory and mem0, `files` aider's repository map, and
`grep` git grep and ripgrep. `installs` has the versions. Each tool is installed into a folder of
its own under `.cache/peers`, by npm or pip; nothing of it enters our environment.

While it measures, the benchmark has no network but the loopback interface (`offline`). A tool has a
temporary HOME, by which all its processes are found and ended (`processes`). One module drives each
tool. The code that imports a Python tool is in `drivers` and runs in the interpreter of that tool.

The machine may be busy, so CPU time is the figure to compare. It includes child processes.
"""
