"""The cost of draining the spool: 1,000 events of a session, until they are steps.

The events are a typical mixture: commands that pass and fail, files read and written in three
languages, prompts, answers, searches. The floor reads the files, parses their JSON and inserts one
row for each, in as many transactions.

    python -m bench capture [ROUNDS]
"""

import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from bench import report, timing
from bench.timing import Cost, Figure, times
from ctx import clock
from ctx.agents.known_hosts import HOSTS
from ctx.capture import pipeline
from ctx.hook_files import spool
from ctx.ids import CLI_SESSION
from ctx.layout import UserStore
from ctx.memory import user_store
from ctx.operations import apply
from ctx.sqlite.connection import transaction
from ctx.workspace import Environment, open_memory

ROUNDS = 5
EVENTS = 1_000
BATCH = 64
SESSION = "5dd65eaa-e3b0-4b25-afae-79ee4238d2da"
ENDINGS = ("py", "ts", "rs")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "shop")
        (project / ".git").mkdir(parents=True)
        (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        events = list(working_session(project, random.Random(8)))
        size = sum(len(data) for _, data in events)
        print(f"{len(events):,} events, {size / 1e6:.1f} MB")

        def drained() -> Cost:
            home = filled(Path(folder, "home"), events)
            surroundings = Environment(
                str(project), UserStore(home), {}, (), CLI_SESSION, load_hosts=lambda: HOSTS
            )
            with open_memory(surroundings, writing=True) as memory:
                return timing.of_call(
                    lambda: (apply.events(memory, home, 5.0), pipeline.take(memory, home))
                )

        def floor() -> Cost:
            home = filled(Path(folder, "home"), events)
            return timing.of_call(lambda: one_row_each(home))

        measured = timing.alternate(rounds, {"ours": drained, "floor": floor})
    report.show(
        "capture",
        [
            Figure(
                f"turn {EVENTS:,} events into steps, wall",
                f"{measured.wall('ours'):.2f} s",
                f"{measured.wall('floor'):.2f} s for reading the files and inserting a row each",
                ratio=times(measured.wall_ratio("ours", "floor")),
                limit="3 s",
            ),
            Figure(
                f"turn {EVENTS:,} events into steps, CPU",
                f"{measured.cpu('ours'):.2f} s",
                f"{measured.cpu('floor'):.2f} s",
            ),
        ],
    )


def filled(home: Path, events: list[tuple[str, bytes]]) -> str:
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(mode=0o700)
    start = clock.now_ms() - len(events)
    for number, (kind, data) in enumerate(events):
        spool.put(str(home), f"{start + number:013d}-1-{number:08x}", kind, data)
    return str(home)


def one_row_each(home: str) -> None:
    with closing(user_store.open_for_writing(os.path.join(home, "store.db"))) as connection:
        names = spool.pending_names(home)
        for start in range(0, len(names), BATCH):
            with transaction(connection):
                for name in names[start : start + BATCH]:
                    with open(spool.path_of(home, name), "rb") as file:
                        assistant_message = json.loads(file.read())
                    values = (
                        spool.id_of(name),
                        assistant_message["session_id"],
                        assistant_message["hook_event_name"],
                    )
                    connection.execute(
                        "INSERT INTO events (id, session, event, at, folder, body)"
                        " VALUES (?, ?, ?, '', '', '{}')",
                        values,
                    )
            for name in names[start : start + BATCH]:
                os.unlink(spool.path_of(home, name))


def working_session(
    project: Path, chance: random.Random, count: int = EVENTS
) -> Iterator[tuple[str, bytes]]:
    files = {f"src/part_{n}.{ENDINGS[n % 3]}": source(ENDINGS[n % 3], n) for n in range(20)}
    makers = (
        command,
        command,
        command,
        failing,
        read,
        read,
        read,
        edit,
        edit,
        search,
        plan,
        assistant_message,
    )
    yield event("session-start", project, source="startup")
    for number in range(count - 2):
        if number % 40 == 0:
            yield event("prompt-submit", project, prompt=f"Now part {number}: make it faster.")
        else:
            kind, fields = chance.choice(makers)(project, files, chance)
            yield event(kind, project, tool_use_id=f"toolu_{number:06d}", **fields)
    yield event("session-end", project, reason="other")


def event(kind: str, project: Path, **fields: Any) -> tuple[str, bytes]:
    common = {
        "session_id": SESSION,
        "transcript_path": "/nowhere/transcript.jsonl",
        "cwd": str(project),
        "prompt_id": "afe3b301-9428-4cb5-a132-a8249d3d4dd2",
        "permission_mode": "default",
        "effort": {"level": "medium"},
        "hook_event_name": spool.EVENTS[kind],
    }
    return kind, json.dumps({**common, **fields}).encode()


Made = tuple[str, dict[str, Any]]
Files = dict[str, str]


def used(name: str, given: dict[str, Any], response: Any) -> Made:
    return "post-tool-use", {"tool_name": name, "tool_input": given, "tool_response": response}


def command(_project: Path, _files: Files, chance: random.Random) -> Made:
    words = chance.choice(("git status", "ls -la src", "pytest -q tests", "cargo build", "npx tsc"))
    printed = "\n".join(f"line {n} of what it says {chance.random()}" for n in range(40))
    response = {"stdout": f"{printed}\n{chance.randrange(99)} passed in 0.41s", "stderr": ""}
    return used("Bash", {"command": f"{words} # {chance.random()}"}, response)


def failing(_project: Path, files: Files, chance: random.Random) -> Made:
    path, line = chance.choice(list(files)), chance.randrange(1, 90)
    error = (
        "Exit code 1\n============ FAILURES ============\n____ test_it ____\n"
        f"    def test_it():\n>       assert total() == {line}\nE       assert 1 == {line}\n\n"
        f"{path}:{line}: AssertionError\n=== short test summary info ===\n"
        f"FAILED tests/test_a.py::test_it - assert 1 == {line}\n1 failed, 12 passed in 0.31s\n"
    )
    given = {"command": f"pytest -q {path}"}
    return "post-tool-use-failure", {"tool_name": "Bash", "tool_input": given, "error": error}


def read(project: Path, files: Files, chance: random.Random) -> Made:
    path = chance.choice(list(files))
    lines = files[path].count("\n")
    file = {"filePath": str(project / path), "content": files[path], "numLines": lines}
    response = {"type": "text", "file": {**file, "startLine": 1, "totalLines": lines}}
    return used("Read", {"file_path": str(project / path)}, response)


def edit(project: Path, files: Files, chance: random.Random) -> Made:
    path = chance.choice(list(files))
    before = files[path]
    parts = before.split("store(")[1:]
    rest = chance.choice(parts).partition("\n")[0]
    old, new = f"store({rest}", f"store({chance.randrange(1000)}, {rest}"
    files[path] = before.replace(old, new, 1)
    given = {"file_path": str(project / path), "old_string": old, "new_string": new}
    response = {"filePath": str(project / path), "oldString": old, "newString": new}
    return used("Edit", given, {**response, "originalFile": before, "structuredPatch": []})


def search(_project: Path, _files: Files, chance: random.Random) -> Made:
    return used("Grep", {"pattern": f"total_{chance.randrange(40)}"}, {"numFiles": 3})


def plan(_project: Path, _files: Files, chance: random.Random) -> Made:
    todos = [{"content": f"Part {chance.randrange(9)}", "status": "pending"} for _ in range(5)]
    return used("TodoWrite", {"todos": todos}, {})


def assistant_message(_project: Path, _files: Files, chance: random.Random) -> Made:
    text = f"Part {chance.randrange(999)} is done: the totals are kept, and nothing waits. " * 8
    return "stop", {"stop_hook_active": False, "last_assistant_message": text}


def source(ending: str, seed: int) -> str:
    """A file of about 6,000 characters."""
    forms = {
        "py": "def count_{n}(items, start={n}):\n    total_{n} = start\n    for item in items:\n"
        "        total_{n} += item.price * {n}\n    return store(total_{n}, items)\n\n\n",
        "ts": "export function count{n}(items: Item[], start = {n}): number {{\n"
        "  let total_{n} = start;\n  for (const item of items) {{ total_{n} += item.price; }}\n"
        "  return store(total_{n}, items);\n}}\n\n",
        "rs": "pub fn count_{n}(items: &[Item], start: u64) -> u64 {{\n"
        "    let mut total_{n} = start;\n    for item in items {{ total_{n} += item.price; }}\n"
        "    store(total_{n}, items)\n}}\n\n",
    }
    return "".join(forms[ending].format(n=seed + n if n > 24 else n) for n in range(35))


if __name__ == "__main__":
    main()
