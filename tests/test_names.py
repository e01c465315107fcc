"""Names can be found with grep: no vague words, and no name that two things share."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent / "src" / "ctx"

BANNED = frozenset("told said found each of asked given heard seen sought led".split())

# Keys of the JSON that commands print: they stay as they are.
JSON_KEYS = frozenset(
    {
        ("exchange/scrub_files.py", "ScrubbedPlace", "found"),
        ("operations/add.py", "AddResult", "given"),
        ("operations/add_command.py", "AddCommandResult", "given"),
        ("operations/document.py", "AddDocumentResult", "given"),
        ("operations/keep_answer.py", "KeptAnswer", "given"),
        ("operations/agent_proposals.py", "Proposal", "asked"),
        ("operations/code_cycles.py", "Cycle", "of"),
        ("operations/session_synthesis.py", "SynthesisResult", "asked"),
        ("operations/sessions.py", "SessionDetails", "given"),
        ("operations/store_checks.py", "DoctorCheck", "seen"),
        ("operations/store.py", "RecoveryStep", "told"),
    }
)

# Module names that may be used more than once, beside those of commands.
SHARED_MODULES = frozenset(
    {
        "__init__",
        # A language has its grammar, its name resolution, its manifests and its diagnostics.
        *("c", "cpp", "go", "java", "python", "rust", "typescript"),
        # The script that each host runs.
        "entry",
    }
)


class Name(NamedTuple):
    path: str
    owner: str
    """The class, for a method or an attribute."""
    name: str
    kind: str


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def names(path: Path) -> Iterator[Name]:
    """Functions, methods, classes and attributes of classes; the module itself."""
    place = path.relative_to(ROOT).as_posix()
    yield Name(place, "", path.stem, "module")
    pending: list[tuple[ast.AST, str]] = [(ast.parse(path.read_text()), "")]
    while pending:
        tree, owner = pending.pop()
        for node in ast.iter_child_nodes(tree):
            inner = owner
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    yield Name(place, owner, name, "function")
                    inner = ""
                case ast.ClassDef(name=name):
                    yield Name(place, owner, name, "class")
                    inner = name
                case ast.AnnAssign(target=ast.Name(id=name)) if owner:
                    yield Name(place, owner, name, "attribute")
                case ast.Assign(targets=targets) if owner:
                    for target in targets:
                        if isinstance(target, ast.Name):
                            yield Name(place, owner, target.id, "attribute")
            pending.append((node, inner))


@pytest.fixture(scope="module")
def all_names() -> list[Name]:
    return [name for path in modules() for name in names(path)]


def test_no_banned_names(all_names: list[Name]) -> None:
    banned = {
        (each.path, each.owner, each.name)
        for each in all_names
        if each.name.strip("_").lower() in BANNED
    }
    assert banned - JSON_KEYS == set()
    # An exception that is no longer needed goes.
    assert JSON_KEYS - banned == set()


def test_public_classes_have_unique_names(all_names: list[Name]) -> None:
    places = defaultdict(list)
    for each in all_names:
        if each.kind == "class" and not each.name.startswith("_"):
            places[each.name].append(each.path)
    shared = {name: where for name, where in places.items() if len(where) > 1}
    # The library calls a project `Project`, as its users do; inside, that is the layout's class.
    assert shared.pop("Project") == ["layout.py", "library.py"]
    assert shared.keys() <= {"Options"}


def test_modules_have_unique_names() -> None:
    # A command's file, its operation and the file that does its work share the verb on purpose.
    verbs = {path.stem for path in (ROOT / "cli").glob("*.py")}
    counts = Counter(path.stem for path in modules() if path.stem not in verbs | SHARED_MODULES)
    assert [name for name, number in counts.items() if number > 1] == []


@pytest.mark.parametrize(
    "source", ["def told(): ...", "class Said: ...", "class A:\n    of: int", "def _found(): ..."]
)
def test_banned_names_are_detected(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    monkeypatch.setattr("tests.test_names.ROOT", tmp_path)
    assert any(each.name.strip("_").lower() in BANNED for each in names(path))
