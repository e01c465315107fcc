"""What prompts without a subject are given ("thanks", "go on", "2"), beside prompts that have one.

    python -m bench subjects STORES [final]

STORES is the folder that `python -m bench starts` keeps its stores in; the last store of each
project is asked. Each prompt of `starts/prompts.json` is asked as the first one of a session, after
its start context, and as a later one. A hash parts the prompts: one half is for looking at, `final`
takes the other.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

from bench import report
from bench.report import Table
from ctx.context import excerpt_search, layers
from ctx.context.layers import ContextRequest
from ctx.hook_files import start_receipts
from ctx.ids import CLI_SESSION
from ctx.layout import UserStore
from ctx.operations.prompt_hints import prompt_hints
from ctx.workspace import Environment, open_memory

PROMPTS = Path(__file__).parent / "starts" / "prompts.json"
SESSION = "bench-subjects"


def last_stores(out: Path) -> Iterator[Path]:
    for project in sorted(out.iterdir()):
        stores = list(project.glob("*/store.db"))
        if stores:
            yield max(stores, key=lambda store: store.stat().st_size)


def half(prompts: list[str], *, final: bool) -> list[str]:
    return [each for each in prompts if hashlib.sha256(each.encode()).digest()[0] % 2 == final]


def given(store: Path, prompts: list[str], folder: str) -> Iterator[tuple[str, int, int]]:
    """Each prompt, and the tokens that it is given as the first and as a later one."""
    home = UserStore(f"{folder}/.ctx")
    Path(home.home).mkdir()
    shutil.copy(store, home.database)
    with open_memory(Environment(folder, home, {}, (), CLI_SESSION), writing=True) as memory:
        (name,) = memory.local.execute(
            "SELECT project FROM sessions GROUP BY 1 ORDER BY count(*) DESC"
        ).fetchone()
        work = f"{folder}/{name}" if name else folder
        if name:
            subprocess.run(["git", "init", "-q", work], check=True)
        connections = [memory.local]
        budget = memory.environment.user_config.integer
        request = ContextRequest(name, None, budget("context.budget"), session=SESSION)
        start = layers.make_context(connections, request).context
        items = {item.key: item.digest for item in start.items}
        start_receipts.note(home.home, SESSION, items)
        before = {*items.values(), *(key.rpartition(":")[2] for key in items)}
        for prompt in prompts:
            hits = excerpt_search.choose(
                *(connections, name, prompt, budget("context.prompt_budget")),
                session=SESSION,
                given=before,
                given_text=start.text,
            ).hits
            later = prompt_hints(memory, work, SESSION, prompt, time.monotonic() + 60)
            yield prompt, excerpt_search.context_from_hits(hits).tokens, later.tokens


def main() -> None:
    stores, final = Path(sys.argv[1]), sys.argv[2:] == ["final"]
    asked = {
        prompt: (kind, language)
        for language, kinds in json.loads(PROMPTS.read_text("utf-8")).items()
        for kind, prompts in kinds.items()
        for prompt in half(prompts, final=final)
    }
    found = defaultdict(list)
    for store in last_stores(stores):
        with tempfile.TemporaryDirectory() as folder:
            for prompt, first, later in given(store, list(asked), folder):
                found[asked[prompt]].append((first, later))
    rows = [
        [f"{kind}, {language}"]
        + [
            cell
            for each in zip(*tokens, strict=True)
            for cell in (f"{mean(each):.0f}", f"{max(each)}")
        ]
        for (kind, language), tokens in sorted(found.items(), reverse=True)
    ]
    columns = ("subject, language", "first prompt", "worst", "later prompt", "worst")
    report.show_table(Table("subjects", columns, rows), "python -m bench subjects STORES")


if __name__ == "__main__":
    main()
