"""The MCP server: the time until `initialize` is answered, and the time of a warm `recall`.

The project has 10,000 files with an index and 10,000 nodes. The start is a whole process, from its
start to the answer, in CPU time; the floor is a process that only imports the SDK, and the limit is
0.3 s above it. `recall` is one call in a running server, from the request to the answer, as the
client of the SDK sees it; the floor is a `ping` over the same pipe.

    python -m bench mcp [CALLS]
"""

import os
import random
import subprocess
import sys
from pathlib import Path

FILES = 10_000
NODES = 10_000
IN_A_COMMIT = 500
CTX = str(Path(sys.executable).with_name("ctx"))
VERBS = "open close read write parse send receive retry cancel flush merge split load store".split()
NOUNS = (
    "connection session token cache queue index header packet record ledger invoice payment"
    " customer order schema cursor socket timer buffer branch commit widget report filter".split()
)
WORDS = (
    "timeout jitter gateway deadline budget proxy cookie nonce quota replica shard lease"
).split()


def environment(home: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CTX_", "CLAUDE", "GIT_"))
    }
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    people = {
        f"GIT_{role}_{field}": "a@example.org"
        for role in ("AUTHOR", "COMMITTER")
        for field in ("NAME", "EMAIL")
    }
    return {**kept, **quiet, **people, "HOME": home, "CTX_HOME": f"{home}/.ctx"}


def make_project(space: str) -> str:
    """A repository with an index of its code, and a project store with nodes."""
    rng = random.Random(11)
    root = Path(space, "shop")
    for number in range(FILES):
        path = (
            root
            / f"{rng.choice(NOUNS)}s"
            / f"{rng.choice(VERBS)}_{number // 200}"
            / f"m{number}.py"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_source(rng, number))
    variables = environment(space)

    def run(*words: str) -> None:
        subprocess.run(words, cwd=root, env=variables, check=True, stdout=subprocess.DEVNULL)

    run("git", "init", "-q", "-b", "main")
    run("git", "add", ".")
    run("git", "commit", "-q", "-m", "Add the shop")
    run(CTX, "init", "--yes")
    run(CTX, "code", "index")
    from ctx.ids import CLI_SESSION
    from ctx.project.compaction import CompactionOptions
    from tests.e2e.growing_project import WHO, open_project_memory

    with open_project_memory(root) as memory:
        for begin in range(0, NODES, IN_A_COMMIT):
            with memory.changing("add", WHO) as change:
                for number in range(begin, begin + IN_A_COMMIT):
                    node = change.add_node(
                        rng.choice(("fact", "decision", "pattern")), _sentence(rng, number)
                    )
                    change.tag(node, "tier:reference")
            memory.commit(CompactionOptions(CLI_SESSION, f"Commit {begin}", "cli"))
    run(CTX, "recall", "timeout")
    return str(root)


def _source(rng: random.Random, number: int) -> str:
    verb, noun, other = rng.choice(VERBS), rng.choice(NOUNS), rng.choice(NOUNS)
    return (
        f'"""The {noun} of module {number}: {rng.choice(WORDS)} and {rng.choice(WORDS)}."""\n\n\n'
        f"def {verb}_{noun}_{number}({other}: int) -> int:\n"
        f'    """{verb.capitalize()} the {noun} before the {rng.choice(WORDS)} of the {other}."""\n'
        f"    {rng.choice(WORDS)} = {other} + {number}\n    return {other}\n"
    )


def _sentence(rng: random.Random, number: int) -> str:
    return (
        f"We {rng.choice(VERBS)} the {rng.choice(NOUNS)} with a {rng.choice(WORDS)} of {number},"
        f" because the {rng.choice(NOUNS)} {rng.choice(VERBS)}s its {rng.choice(WORDS)} twice a"
        f" {rng.choice(NOUNS)}; see ticket {number % 997}."
    )
