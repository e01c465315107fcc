"""How imports of TypeScript and JavaScript are resolved: settings, packages, endings, both kinds of
modules."""

import json
from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.code import build, index_check, index_file
from ctx.code.qualified_names import QualifiedNames
from ctx.code.resolve import facts
from ctx.code.resolve.typescript_settings import tolerant_json
from tests import effort
from tests.files import write

MADE = "export const made = 1;\n"


def imports(folder: Path, files: dict[str, str]) -> dict[str, str]:
    """The target of each import of a project, by path and import text."""
    root = folder / "project"
    write(root, files)
    database = str(folder / "code.db")
    build.refresh(index_check.SourceTree(str(root), None, database))
    connection = index_file.open_for_reading(database)
    assert connection is not None
    names = QualifiedNames(connection, str(root))
    rows = connection.execute("SELECT path, facts, targets FROM facts JOIN files ON id = file_id")
    found = {}
    for path, packed, targets in rows:
        known = facts.decode(packed).imports
        for each, target in zip(known, array("q", targets), strict=True):
            found[f"{path} {each.module}"] = names.qualified_name(target) if target else ""
    connection.close()
    return found


PROJECTS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "endings": (
        {
            "a.ts": 'import { made } from "./b.js";\nimport * as c from "./c";\n'
            'import * as d from "./d";\nimport * as e from "./e.mjs";\nimport "./f.css";\n'
            'import * as up from "..";\nimport * as g from "./g.js";\n',
            "b.ts": MADE,
            "c.d.ts": MADE,
            "d/index.tsx": MADE,
            "e.mts": MADE,
            "f.css": "",
            "g.js": MADE,
            "g.ts/index.ts": MADE,
        },
        {
            "a.ts ./b.js": "b.made",
            "a.ts ./c": "c.d",
            "a.ts ./d": "d/index",
            "a.ts ./e.mjs": "e",
            "a.ts ./f.css": "",
            "a.ts ..": "",
            "a.ts ./g.js": "g",
        },
    ),
    "a configuration that extends others": (
        {
            "tsconfig.base.json": '{"compilerOptions": {"baseUrl": "./source", /* here */\n'
            '  "paths": {"~/*": ["*", "generated/*"], "exact": ["one"],},},}',
            "app/tsconfig.json": '{"extends": ["../tsconfig.base"]} // all of it',
            "app/a.ts": 'import { made } from "~/one";\nimport * as b from "~/two";\n'
            'import * as c from "exact";\nimport * as d from "deep/three";\nimport e from "e";\n',
            "source/one.ts": MADE,
            "source/generated/two.ts": MADE,
            "source/deep/three.ts": MADE,
        },
        {
            "app/a.ts ~/one": "source/one.made",
            "app/a.ts ~/two": "source/generated/two",
            "app/a.ts exact": "source/one",
            "app/a.ts deep/three": "source/deep/three",
            "app/a.ts e": "",
        },
    ),
    "a configuration that only names others": (
        {
            "tsconfig.json": '{"files": [], "references": [{"path": "./tsconfig.app.json"}]}',
            "tsconfig.app.json": '{"compilerOptions": {"paths": {"@/*": ["./src/*"]}}}',
            "src/a.ts": 'import { made } from "@/b";\n',
            "src/b.ts": MADE,
        },
        {"src/a.ts @/b": "src/b.made"},
    ),
    "settings that make no sense": (
        {
            "tsconfig.json": '{"extends": "./tsconfig.json", "compilerOptions": {"paths":'
            ' {"a": "b", "c": [1, "../../out"]}, "baseUrl": 3}}',
            "package.json": '["no table"]',
            "p/package.json": '{"name": "c", "main": "../../../out.js", "exports": [[{}], 1]}',
            "a.ts": 'import a from "a";\nimport c from "c";\nimport d from "./tsconfig.json";\n',
        },
        {"a.ts a": "", "a.ts c": "", "a.ts ./tsconfig.json": ""},
    ),
    "packages of a workspace": (
        {
            "package.json": '{"workspaces": ["packages/*"]}',
            "packages/built/package.json": '{"name": "@w/built", "main": "./dist/index.cjs",'
            ' "exports": {".": {"import": "./dist/index.mjs"}, "./parts/*": "./dist/parts/*.js"}}',
            "packages/built/src/index.ts": MADE,
            "packages/built/src/parts/one.ts": MADE,
            "packages/plain/package.json": '{"name": "plain"}',
            "packages/plain/index.js": "module.exports = { made };\nconst made = 1;\n",
            "packages/plain/deep/two.js": "exports.made = () => 1;\n",
            "packages/user/a.ts": 'import { made } from "@w/built";\n'
            'import { made as b } from "@w/built/parts/one";\nimport { made as c } from "plain";\n'
            'import { made as d } from "plain/deep/two";\nimport e from "plain";\n',
            "packages/user/node_modules/x/package.json": '{"name": "x"}',
        },
        {
            "packages/user/a.ts @w/built": "packages/built/src/index.made",
            "packages/user/a.ts @w/built/parts/one": "packages/built/src/parts/one.made",
            "packages/user/a.ts plain": "packages/plain/index",
            "packages/user/a.ts plain/deep/two": "packages/plain/deep/two.made",
            "packages/plain/index.js ": "packages/plain/index.made",
        },
    ),
    "barrels that go in circles": (
        {
            "a.ts": 'export * from "./b";\nexport { far as near } from "./b";\n',
            "b.ts": 'export * from "./a";\nexport * from "./c";\nexport { gone } from "./a";\n',
            "c.ts": "const inner = 1;\nexport { inner as far };\nexport default inner;\n",
            "d.ts": 'import { near } from "./a";\nimport last from "./c";\n',
        },
        {
            "a.ts ./b": "c.inner",
            "b.ts ./a": "",
            "b.ts ./c": "c",
            "c.ts ": "c.inner",
            "d.ts ./a": "c.inner",
            "d.ts ./c": "c.inner",
        },
    ),
    "a module that is only described": (
        {
            "types.d.ts": 'declare module "elsewhere" {\n  export function go(): void;\n}\n',
            "a.ts": 'import { go } from "elsewhere";\n',
        },
        {"a.ts elsewhere": "types.d.elsewhere.go"},
    ),
}


@pytest.mark.parametrize("project", PROJECTS)
def test_imports_are_resolved_to_files_and_packages(project: str, tmp_path: Path) -> None:
    files, expected = PROJECTS[project]
    assert imports(tmp_path, files) == expected


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)


@settings(max_examples=effort.times(20))
@given(st.dictionaries(st.text(), VALUES), st.sampled_from(["// a\n", "/* , } */", "\n"]))
def test_json_with_comments_and_trailing_commas_is_read(value: dict[str, Any], noise: str) -> None:
    written = json.dumps(value, indent=1, ensure_ascii=False)
    lines = [
        line if line.endswith(("{", "[", ",")) else f"{line}{noise}" for line in written.split("\n")
    ]
    assert tolerant_json("\n".join(lines)) == value
    loose = written.replace("\n}", ",\n}") if value else written
    assert tolerant_json(f"{noise}{loose}{noise}") == value
