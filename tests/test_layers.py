"""The order in which modules may know each other. ARCHITECTURE.md shows the same list."""

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "ctx"

# Highest first. A line imports only from lines below it, never from its own line.
LAYERS = """
cli
mcp | agents | library
worker
page
server
operations
context
packs
synthesis
capture
agent_commands
codebase
workspace
direct
sync
project
exchange
memory | narrative | code | search | llm
objects
sqlite | config | hook_files | hosts | ids | tokens | terms | redaction | markdown
layout | locks
clock | git | repository_names
git_settings
checkouts
disk
errors | interrupts | detached
"""

RANK = {
    name.strip(): rank
    for rank, line in enumerate(LAYERS.strip().splitlines())
    for name in line.split("|")
}

# `python -m ctx` stands above everything; the package itself is only its version.
ENTRY = {"__main__": -1, "__init__": len(LAYERS)}


def layer_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_layers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every part of ctx that a module imports, wherever the import stands."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide which layer they reach"
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module":
            constants = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
            names = [value for value in constants if isinstance(value, str)]
        for name in names:
            parts = name.split(".")
            if parts[0] == "ctx" and len(parts) > 1:
                yield getattr(node, "lineno", 0), parts[1]


def violations(source: str, layer: str) -> list[str]:
    rank = ENTRY.get(layer, RANK.get(layer))
    assert rank is not None, f"{layer} has no place in the list of layers"
    found = []
    for line, other in imported_layers(ast.parse(source)):
        if other == layer or other.startswith("__"):
            continue
        if other not in RANK:
            found.append(f"line {line}: {other} has no place in the list of layers")
        elif RANK[other] <= rank:
            found.append(f"line {line}: {layer} must not import {other}")
    return found


MODULES = sorted(SOURCE.rglob("*.py"))


def test_a_module_imports_only_from_below() -> None:
    found = {
        str(path.relative_to(SOURCE)): violations(path.read_text(), layer_of(path))
        for path in MODULES
    }
    assert {path: each for path, each in found.items() if each} == {}


def test_an_import_inside_a_function_counts_too() -> None:
    hidden = "def f():\n    from ctx.project import staging\n"
    assert violations(hidden, "objects") == ["line 2: objects must not import project"]
    assert violations("import ctx.git\n", "clock") == ["line 1: clock must not import git"]
    assert violations("from ctx import workspace\n", "project")
    assert violations("def f():\n    import_module('ctx.cli.main')\n", "objects")
    assert violations("from ctx.objects import store\n", "project") == []


def test_the_architecture_page_shows_this_list() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    shown = page.partition("<!-- layers -->\n```\n")[2].partition("\n```")[0]
    lines = [line.split("  ")[0].strip() for line in shown.splitlines()]
    assert lines == LAYERS.strip().splitlines()


def test_every_package_has_a_docstring_and_exports_nothing() -> None:
    for path in SOURCE.rglob("__init__.py"):
        tree = ast.parse(path.read_text())
        assert ast.get_docstring(tree), f"{path} has no essay"


def test_a_package_that_lists_its_modules_lists_all_of_them() -> None:
    for path in SOURCE.rglob("__init__.py"):
        essay = ast.get_docstring(ast.parse(path.read_text()), clean=False) or ""
        if not re.search(r"^    \w", essay, re.MULTILINE):
            continue
        listed = [word for word in re.findall(r"[\w*]+", essay) if word != "*"]
        found = {each.stem for each in path.parent.glob("*.py")} - {"__init__"}
        missing = {name for name in found if not any(fnmatch(name, word) for word in listed)}
        assert not missing, path


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_the_files_that_a_page_for_developers_names_exist(page: str) -> None:
    named = re.findall(r"`([\w/.-]+\.(?:py|js|toml|txt|yml|md))`", (ROOT / page).read_text())
    assert len(named) > 20
    folders = (ROOT, SOURCE, ROOT / "tests")
    # A name without a folder continues a list of files that are in one.
    missing = {
        name
        for name in named
        if not any((folder / name).exists() or any(folder.rglob(f"*/{name}")) for folder in folders)
    }
    assert not missing


# Who may do what only one place does.
HOOK = "agents/runtime/hook.py"
ONLY = {
    "reads the environment": (
        ("os.environ", "os.getenv"),
        {"cli/settings.py", "git.py", "detached.py", HOOK},
    ),
    "prints": (("print(", "sys.stdout", "sys.stderr"), {"cli/output.py", "cli/main.py"}),
    "asks the time": (
        ("time.time", "datetime.now", "time.monotonic"),
        {"clock.py", HOOK, "agents/runtime/run_apply.py"},
    ),
    "runs git": (('"git"',), {"git.py"}),
    "catches everything": (("except Exception",), {"cli/main.py", HOOK, "worker/worker.py"}),
}


def is_used(word: str, source: str) -> bool:
    """Whether a word is used on its own: `fingerprint(` is not `print(`."""
    return word in source and bool(re.search(rf"(?:\b|(?=\W)){re.escape(word)}", source))


@pytest.mark.parametrize("deed", ONLY)
def test_some_functions_are_used_in_one_place_only(deed: str) -> None:
    words, allowed = ONLY[deed]
    for path in MODULES:
        name = str(path.relative_to(SOURCE))
        if name not in allowed:
            source = path.read_text()
            used = [word for word in words if is_used(word, source)]
            assert not used, f"{name} {deed}: {used}"


def test_no_group_has_a_possessive_quantifier() -> None:
    """Before 3.11.5, Python matches wrongly if the last repetition of `(?:…)*+` fails half-way.

    `(?>(?:…)*)` means the same, and works. Single characters, as in `[a-z]*+`, always did.
    """
    group = re.compile(r"\)(?:[*+?]|\{+\d*,?\d*\}+)\+")
    for path in MODULES:
        used = group.search(path.read_text())
        assert not used, f"{path}: {used}"
