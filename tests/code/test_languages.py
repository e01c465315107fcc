"""What is parsed and resolved in a small project of each language.

Each folder in `tests/golden/code/` is such a project. `<language>.json` has everything that is
parsed in each of its files, and `<language>.edges.json` the edges between items.
`CTX_TEST_RENEW=1 pytest tests/code/test_languages.py` renews both.
"""

import json
import os
from array import array
from pathlib import Path
from typing import Any

import pytest

from ctx.code import build, index_check, index_file, language_detection
from ctx.code.grammars import GRAMMARS
from ctx.code.qualified_names import QualifiedNames
from ctx.code.resolve import facts
from ctx.code.source_model import ParsedFile
from ctx.code.source_parser import parse
from ctx.code.vocabulary import CONFIDENCES, LABELS

GOLDEN = Path(__file__).parent.parent / "golden" / "code"
PROJECTS = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
RENEW = os.environ.get("CTX_TEST_RENEW") == "1"


def expected(path: Path, found: Any) -> Any:
    if RENEW:
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    return json.loads(path.read_text())


def plain(parsed: ParsedFile) -> dict[str, Any]:
    """The parsed file as JSON, without empty fields."""
    found = {
        "language": parsed.language,
        "namespace": parsed.namespace,
        "lines": parsed.lines,
        "items": [
            _filled(
                kind=item.kind,
                name=item.name,
                within=parsed.items[item.parent].name if item.parent > 0 else "",
                visibility=item.visibility,
                span=f"{item.start}-{item.end}, lines {item.line}-{item.end_line}",
                signature=item.signature,
                doc=item.doc,
                body_hash=item.body_hash.hex(),
                type=item.type,
                bases=list(item.bases),
            )
            for item in parsed.items
        ],
        "imports": [
            _filled(
                line=each.line,
                scope=_scope(parsed, each.scope),
                bound=each.bound,
                module=each.module,
                item=each.item,
                shared=each.shared,
            )
            for each in parsed.imports
        ],
        "bindings": [
            f"{_scope(parsed, each.scope)}: {each.name} {each.type}" for each in parsed.bindings
        ],
        # In the order of the file; the reader has them in none.
        "mentions": [
            f"{line} {_scope(parsed, scope)}: {kind} {expression}" + (f" ×{times}" * (times > 1))
            for line, scope, kind, expression, times in sorted(
                (each.line, each.scope, each.kind, each.expression, each.times)
                for each in parsed.mentions
            )
        ],
        "problems": [f"{each.line} {each.message}" for each in parsed.problems],
    }
    return _filled(**found)


def _scope(parsed: ParsedFile, place: int) -> str:
    return parsed.items[place].name if place else "."


def _filled(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


@pytest.mark.parametrize("project", PROJECTS)
def test_the_files_of_a_language_are_parsed_completely(project: str) -> None:
    found = {}
    for path in sorted((GOLDEN / project).rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            name = language_detection.language_of(path.name, content)
            if name in GRAMMARS:
                shown = path.relative_to(GOLDEN / project).as_posix()
                found[shown] = plain(parse(shown, content, name))
    assert found == expected(GOLDEN / f"{project}.json", found)


@pytest.mark.parametrize("project", PROJECTS)
def test_the_names_in_a_project_are_resolved(project: str, tmp_path: Path) -> None:
    root = str(GOLDEN / project)
    database = str(tmp_path / "code.db")
    build.refresh(index_check.SourceTree(root, None, database))
    connection = index_file.open_for_reading(database)
    assert connection is not None
    names = QualifiedNames(connection, root)
    rows = connection.execute("SELECT source, label, target, confidence, line, times FROM edges")
    edges = sorted(
        f"{names.qualified_name(source)} → {LABELS[label]} → {names.qualified_name(target)},"
        f" {CONFIDENCES[sure]}, line {line}" + (f" ×{times}" * (times > 1))
        for source, label, target, sure, line, times in rows
    )
    imports = {}
    rows = connection.execute(
        "SELECT path, facts, targets FROM facts JOIN files ON id = file_id ORDER BY path"
    )
    for path, packed, targets in rows:
        known = facts.decode(packed).imports
        for each, target in zip(known, array("q", targets or b""), strict=True):
            written = " ".join(filter(None, (each.module, each.item)))
            imports[f"{path}:{each.line} {written}"] = (
                names.qualified_name(target) if target else ""
            )
    connection.close()
    found = {"imports": imports, "edges": edges}
    assert found == expected(GOLDEN / f"{project}.edges.json", found)
