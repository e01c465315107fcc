"""A change in one file that changes the names in another: after the refresh, the index is the one
that is made from nothing."""

from pathlib import Path

import pytest

from ctx.code import build
from tests.code.index_contents import built, built_from_scratch, place

Files = dict[str, str | None]
"""Files to write; None removes one."""

CRATE = "[package]\nname = 'k'\nversion = '0.1.0'\n"
TWO = "export class A { connect() {} }\nexport class B { connect() {} }\n"
MAPPED = '{"compilerOptions": {"baseUrl": ".", "paths": {"@/*": ["%s/*"]}}}'

CASES: dict[str, tuple[Files, Files]] = {
    "of two with one name, one is taken away": (
        {"a.py": "def f(): ...\ndef f(): ...\n", "b.py": "from a import f\ndef g(): f()\n"},
        {"a.py": "def f(): ...\n"},
    ),
    "a second one with the same name": (
        {"a.py": "def f(): ...\n", "b.py": "from a import f\ndef g(): f()\n"},
        {"a.py": "def f(): ...\ndef f(): ...\n"},
    ),
    "a module of the same name elsewhere": (
        {"b/util.py": "def f(): ...\n", "c/x.py": "import util\ndef g(): util.f()\n"},
        {"a/util.py": "def f(): ...\n"},
    ),
    "a folder becomes a package": (
        {"a/b.py": "def f(): ...\n", "c/x.py": "import b\ndef g(): b.f()\n"},
        {"a/__init__.py": ""},
    ),
    "a package becomes a folder": (
        {"a/b.py": "def f(): ...\n", "a/__init__.py": "", "c/x.py": "import b\ndef g(): b.f()\n"},
        {"a/__init__.py": None},
    ),
    "a star leads elsewhere": (
        {
            "a.py": "def f(): ...\n",
            "b.py": "def f(): ...\n",
            "i.py": "from a import *\n",
            "c.py": "from i import f\ndef g(): f()\n",
        },
        {"i.py": "from b import *\n"},
    ),
    "an export of everything leads elsewhere": (
        {
            "a.ts": "export function f() {}\n",
            "b.ts": "export function f() {}\n",
            "index.ts": "export * from './a'\n",
            "c.ts": "import {f} from './index'\nfunction g() { f() }\n",
        },
        {"index.ts": "export * from './b'\n"},
    ),
    "behind another name, another base": (
        {
            "a.ts": TWO,
            "d.ts": "import {A, B} from './a'\nexport class Client extends A {}\n",
            "m.ts": "import {Client as Foo} from './d'\nexport function make(): Foo {}\n",
            "c.ts": "import {make} from './m'\nfunction g() { make().connect() }\n",
        },
        {"d.ts": "import {A, B} from './a'\nexport class Client extends B {}\n"},
    ),
    "a type of a crate is another one": (
        {
            "Cargo.toml": CRATE,
            "src/lib.rs": "mod a;\nmod c;\nmod d;\nmod m;\n",
            "src/a.rs": (
                "pub struct A;\nimpl A { pub fn go_on(&self) {} }\n"
                "pub struct B;\nimpl B { pub fn go_on(&self) {} }\n"
            ),
            "src/d.rs": "use crate::a::{A, B};\npub type Client = A;\n",
            "src/m.rs": "use crate::d::Client as Foo;\npub fn make() -> Foo { todo!() }\n",
            "src/c.rs": "use crate::m::make;\nfn g() { make().go_on() }\n",
        },
        {"src/d.rs": "use crate::a::{A, B};\npub type Client = B;\n"},
    ),
    "a file goes to another package": (
        {
            "go.mod": "module m\n",
            "x/a.go": "package x\n\nfunc Helper() {}\n",
            "x/b.go": "package x\n\nfunc g() { Helper() }\n",
            "y/c.go": 'package y\n\nimport "m/x"\n\nfunc h() { x.Helper() }\n',
        },
        {"x/a.go": "package z\n\nfunc Helper() {}\n"},
    ),
    "a header includes another one": (
        {
            "x/b.h": "static inline int helper(void) { return 1; }\n",
            "y/c.h": "static inline int helper(void) { return 2; }\n",
            "a.h": '#include "x/b.h"\n',
            "main.c": '#include "a.h"\nint main(void) { return helper(); }\n',
        },
        {"a.h": '#include "y/c.h"\n'},
    ),
    "settings under another name": (
        {
            "tsconfig.json": '{"extends": "./base.json"}',
            "base.json": MAPPED % "one",
            "one/a.ts": "export function f() {}\n",
            "two/a.ts": "export function f() {}\n",
            "b.ts": "import {f} from '@/a'\nfunction g() { f() }\n",
        },
        {"base.json": MAPPED % "two"},
    ),
    "what is left out": (
        {"lib/a.py": "def f(): ...\n", "c.py": "from lib.a import f\ndef g(): f()\n"},
        {".ctxignore": "lib/\n"},
    ),
}


def write(root: Path, files: Files) -> None:
    for path, content in files.items():
        if content is None:
            (root / path).unlink()
        else:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(content)


@pytest.mark.parametrize("case", CASES)
def test_a_change_in_one_file_updates_the_names_in_another(case: str, tmp_path: Path) -> None:
    root, database = tmp_path / "project", tmp_path / "index" / "code.db"
    root.mkdir()
    before, after = CASES[case]
    write(root, before)
    build.refresh(place(root, database))
    write(root, after)
    build.refresh(place(root, database))
    now = built(database)
    assert now == built_from_scratch(root, tmp_path / "fresh" / "code.db")
    assert now.unresolved == 0
