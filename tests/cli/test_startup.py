"""What a start may load. Speed follows from it; speed itself is measured by `bench/startup.py`."""

import subprocess
import sys
from pathlib import Path

import pytest

LISTED = """
import sys
before = set(sys.modules)
from ctx.cli.main import main
code = main(sys.argv[1:])
print(*sorted(set(sys.modules) - before), sep="\\n", file=sys.stderr)
raise SystemExit(code)
"""

# Each costs milliseconds that a command which only prints something has no use for.
THIRD_PARTY = {"backports", "blake3", "msgspec", "pathspec", "tomlkit"}


def loaded_by(*words: str) -> set[str]:
    """The modules that a command loads on top of what the interpreter has loaded anyway."""
    command = [sys.executable, "-c", LISTED, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_loads_four_modules(option: str) -> None:
    assert loaded_by(option) == {"ctx", "ctx.cli", "ctx.cli.main", "ctx.errors"}


@pytest.mark.parametrize(
    "words",
    [["--help"], ["config", "get", "gc.keep_days"], ["config", "list"]],
    ids=" ".join,
)
def test_without_the_store_only_the_standard_library_is_loaded(
    words: list[str], folder: Path
) -> None:
    loaded = loaded_by(*words)
    assert not THIRD_PARTY & loaded
    assert not {name for name in loaded if name.startswith(("ctx.objects", "ctx.sessions"))}
