"""What a start may load. Speed follows from it; speed itself is measured by `bench/startup.py`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Ctx

LISTED = """
import sys
before = set(sys.modules)
from ctx.cli.main import main
code = main(sys.argv[1:])
print(*sorted(set(sys.modules) - before), sep="\\n", file=sys.stderr)
raise SystemExit(code)
"""

# Each costs milliseconds that a command which only prints something has no use for.
THIRD_PARTY = {"backports", "blake3", "msgspec", "tomlkit"}


def loaded_by(*words: str) -> set[str]:
    """The modules that a command loads on top of what the interpreter has loaded anyway."""
    command = [sys.executable, "-c", LISTED, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_the_version_loads_five_modules() -> None:
    loaded = loaded_by("--version")
    assert loaded == {"ctx", "ctx.cli", "ctx.cli.main", "ctx.errors", "ctx.interrupts"}


@pytest.mark.parametrize("words", [["--help"], ["config", "list"]], ids=" ".join)
def test_without_the_store_only_the_standard_library_is_loaded(
    words: list[str], folder: Path
) -> None:
    loaded = loaded_by(*words)
    assert not THIRD_PARTY & loaded
    heavy = ("ctx.objects", "ctx.project", "ctx.capture", "ctx.synthesis")
    assert not {name for name in loaded if name.startswith(heavy)}


# What listing nodes needs of ctx. A module that is not here is one that every `ctx list` pays for.
FOR_A_LIST = """
ctx ctx.checkouts ctx.cli ctx.cli.arguments ctx.cli.commands ctx.cli.list
ctx.cli.main ctx.cli.nodes ctx.cli.opening ctx.cli.options ctx.cli.output
ctx.cli.settings ctx.cli.table_layout ctx.cli.terminal ctx.clock ctx.disk
ctx.errors ctx.ids ctx.interrupts ctx.layout ctx.markdown ctx.memory ctx.memory.graph
ctx.memory.graphs
ctx.memory.migrations ctx.memory.model ctx.memory.short_ids ctx.memory.records
ctx.memory.sources ctx.memory.user_store
ctx.operations ctx.operations.list ctx.operations.visible_nodes ctx.repository_names ctx.sqlite
ctx.sqlite.connection ctx.sqlite.truth ctx.workspace
"""
# Of the standard library, these would be felt: each costs several milliseconds.
TOO_HEAVY = {
    "dataclasses",
    "difflib",
    "hashlib",
    "inspect",
    "json",
    "pathlib",
    "shutil",
    "subprocess",
    "tempfile",
    "tomllib",
    "unicodedata",
}


def test_a_list_of_nodes_loads_no_more_than_it_shows(folder: Path) -> None:
    loaded_by("add", "--type=fact", "--tag=tier:reference", "Deploys run on Mondays")
    loaded = loaded_by("list", "--limit", "20")
    assert {name for name in loaded if name.split(".")[0] == "ctx"} == set(FOR_A_LIST.split())
    assert not (THIRD_PARTY | TOO_HEAVY) & loaded


def test_a_list_in_a_project_loads_nothing_that_writes(repo: Path, ctx: Ctx) -> None:
    ctx("init")
    ctx("add", "--type=fact", "Deploys run on Mondays")
    # A document that was just written is read again, because its time may stay the same.
    for path in (repo / ".ctx").rglob("*.md"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    ctx("list")
    loaded = loaded_by("list")
    assert not {"ctx.redaction", "ctx.memory.changes", "ctx.objects.codec"} & loaded
    assert not THIRD_PARTY & loaded


def test_filters_load_nothing_of_packs(folder: Path) -> None:
    loaded = loaded_by("query", "type:fact AND tag:tier:reference")
    ours = {name for name in loaded if name.split(".")[0] == "ctx"}
    assert not {name for name in ours if name.startswith(("ctx.packs", "ctx.search"))}
    assert not {name for name in ours if name.startswith(("ctx.code", "ctx.config", "ctx.objects"))}
    assert not THIRD_PARTY & loaded


def test_without_a_model_the_worker_loads_nothing_of_models() -> None:
    listed = "import sys, ctx.worker.run, ctx.worker.event_loop; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", listed], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert not {name for name in loaded if name.startswith(("ctx.llm", "httpx"))}


@pytest.mark.parametrize(
    "words",
    [["remember", "We connect by mail"], ["query", "how do we connect"], ["status"],
     ["recall", "mail"], ["context"], ["sessions", "list"]],
    ids=lambda words: words[0],
)  # fmt: skip
def test_without_a_model_nothing_of_models_or_servers_is_loaded(
    repo: Path, ctx: Ctx, words: list[str]
) -> None:
    assert ctx("add", "--user", "--type=fact", "We connect by mail").code == 0
    if words[0] == "query":
        (repo / "net.py").write_text("def connect():\n    pass\n")
        ctx(*words)
    loaded = loaded_by(*words)
    assert not {name for name in loaded if name.startswith(("ctx.llm", "ctx.mcp", "httpx"))}
    assert not {"mcp", "mcp_types", "pydantic"} & {name.split(".")[0] for name in loaded}
    if words[0] == "query":
        # A pack of few nodes needs no vectors.
        assert "ctx.packs.pack_pipeline" in loaded
        assert not {"numpy", "rustworkx"} & loaded
