"""After any number of refreshes, the index equals one that is built from scratch.

Also if a refresh is interrupted, killed or runs beside others; and no process is left behind.
"""

import os
import resource
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ctx.code import build, index_file, process_pool
from ctx.code.packages import package_queries
from ctx.errors import CtxError, DiskFailure
from tests import effort
from tests.code.index_contents import built, built_from_scratch, place, refreshed_and_resolved
from tests.conftest import Ctx

Versions = dict[str, tuple[str, ...]]
"""Each path with what may stand in it. Names flow from one to the other."""

PYTHON: Versions = {
    "z.py": (
        "class Z1:\n    def m(self): ...\nclass Z2:\n    def m(self): ...\n",
        "class Z2:\n    def m(self): ...\n    def n(self): ...\n\n\nclass Z1(Z2):\n    pass\n",
        "from w import *\n",
        "def Z1():\n    return 1\n",
    ),
    "w.py": (
        "class Z1:\n    def m(self): ...\n",
        "from z import *\nfrom pkg import *\nLIMIT = 3\n",
        "import os as Z2\n",
        "from z import *\n",
        "from pkg.near import *\n",
    ),
    "x.py": (
        "from z import Z1, Z2\nclass X(Z1):\n    pass\n",
        "from z import Z1, Z2\nclass X(Z2):\n    pass\n",
        (
            "from z import Z1, Z2\nclass X:\n    def __init__(self, z: Z1):\n"
            "        self.z = z\n    def m(self): ...\n"
        ),
        "class X: pass\n",
        "class X(",
    ),
    "y.py": (
        "from x import X\nclass Y(X):\n    pass\n",
        (
            "from x import X\nclass Y:\n    def __init__(self):\n"
            "        self.x = X()\n    def m(self): return self.x.z.m()\n"
        ),
        "from x import X as Y\n",
        "import x\nY = x.X\n",
    ),
    "f.py": (
        "from x import X\nfrom y import Y\ndef g() -> Y: ...\ndef k(a: X): a.m()\n",
        "from x import X\nfrom y import Y\ndef g() -> X: ...\ndef k(a: Y): a.m()\n",
        "from y import Y\ndef g():\n    return Y()\nkept = Y()\n",
        "import y\ng = y.Y\nkept: y.Y = y.Y()\n",
    ),
    "h.py": (
        "from f import g\ndef t():\n    g().m()\n    g().x.m()\n    other.n()\n",
        "import f\ndef t():\n    f.g().m()\n    f.kept.m()\n    f.kept.x.z.m()\n",
        "from f import *\nfrom pkg.sub import deep\ndef t():\n    kept.m()\n    deep.call().m()\n",
        "from w import *\nfrom pkg.sub import Near\ndef t():\n    Z1().m()\n    Near().m()\n",
        "import pkg.sub.deep\ndef t():\n    pkg.sub.deep.call()\n    pkg.call()\n",
    ),
    "pkg/__init__.py": (
        "",
        "from .sub.deep import call\n",
        "from . import sub\nfrom f import g as call\n",
        "from .near import *\n",
    ),
    "pkg/sub/__init__.py": ("", "from ..near import *\n"),
    "pkg/sub/deep.py": (
        "from ...f import g\nfrom ..near import Near\ndef call() -> Near: ...\n",
        "from pkg.near import Near\nfrom y import Y\ndef call() -> Y: ...\nclass Deep(Near): ...\n",
    ),
    "pkg/beside.py": ("from . import Near\nNear().m()\n", "from .sub import *\nNear().m()\n"),
    "pkg/near.py": ("class Near:\n    def m(self): ...\n", "from x import X as Near\n"),
    "pkg.py": ("def call(): ...\n",),
    # Two of one name, and who means one of them.
    "one/util.py": ("def help(): ...\n", "def help(): ...\ndef more(): help()\n"),
    "two/util.py": ("def help(): ...\n", "from near import Near as help\n"),
    "one/__init__.py": ("",),
    "three/main.py": ("import util\nfrom one import util as first\nutil.help()\nfirst.help()\n",),
    "four/main.py": ("import util\nutil.help()\n",),
    # Many of one name, of which a few can be called.
    "many.py": (
        "".join(f"class C{n}:\n    n: int\n    m: int\n" for n in range(9)),
        "class C:\n    def n(self): ...\nunknown().n()\n",
    ),
    "README": ("nothing\n", "#!/usr/bin/env python3\nfrom f import g\ng().m()\n"),
    ".gitattributes": ("*.py linguist-generated\n", "pkg/** linguist-vendored\n"),
}

NATIVE: Versions = {
    "go.mod": ("module example.org/a\n", "module example.org/b\n"),
    "main.go": (
        'package main\n\nimport "example.org/a/lib"\n\nfunc main() {\n\tlib.Run()\n}\n',
        'package main\n\nimport "example.org/b/lib"\n\nfunc main() {\n\tlib.New().Stop()\n}\n',
    ),
    "lib/lib.go": (
        "package lib\n\nfunc Run() {}\n\ntype T struct{}\n\nfunc New() *T { return nil }\n",
        "package lib\n\nfunc (t *T) Stop() { Run() }\n",
    ),
    "lib/more.go": (
        "package lib\n\nfunc (t *T) Stop() {}\n",
        "package lib\n\ntype T struct{}\n\nfunc New() *T { return nil }\n",
    ),
    "Cargo.toml": (
        '[package]\nname = "one"\n\n[dependencies]\nother = { path = "other" }\n',
        '[package]\nname = "two"\n',
    ),
    "src/lib.rs": (
        "pub mod net;\nmod user;\npub use net::Client;\npub use other::Thing;\n",
        (
            "pub mod net;\nmod user;\npub use self::net::*;\n"
            "pub struct Thing;\nimpl Thing { pub fn go(&self) {} }\n"
        ),
    ),
    "src/net.rs": (
        (
            "pub struct Client { pub thing: crate::Thing }\nimpl Client {\n"
            "    pub fn new() -> Self { Client }\n    pub fn go(&self) {}\n}\n"
        ),
        (
            "use crate::Thing as Inner;\npub type Client = Inner;\n"
            "pub trait Go { fn go(&self) {} }\nimpl Go for Client {}\n"
        ),
    ),
    "src/user.rs": (
        "use crate::Client;\nfn f(c: &Client) {\n    c.go();\n    Client::new().thing.go();\n}\n",
        (
            "use crate::{net, Thing};\nfn f() {\n    net::Client::new().go();\n"
            "    let t: Thing = make();\n    t.go();\n}\n"
        ),
    ),
    "other/Cargo.toml": ('[package]\nname = "other"\n', '[package]\nname = "another"\n'),
    "other/src/lib.rs": (
        "pub struct Thing;\nimpl Thing { pub fn go(&self) {} }\n",
        "mod deep;\npub use deep::Deep as Thing;\n",
        "mod deep;\nmod inner;\npub use inner::*;\n",
        "mod deep;\nmod inner;\n",
    ),
    "other/src/deep.rs": (
        "pub struct Deep;\nimpl Deep { pub fn go(&self) {} }\n",
        "pub use super::inner::*;\nfn f() { super::Inner::go(); crate::Inner::go(); }\n",
    ),
    "other/src/inner.rs": ("pub struct Inner;\nimpl Inner { pub fn go() {} }\n",),
    "c/list.h": ("struct list { int n; };\nvoid push(struct list *l);\n", '#include "node.h"\n'),
    "c/node.h": ("void push(int n);\nint size(void);\n",),
    "c/list.c": (
        '#include "list.h"\nvoid push(struct list *l) { l->n++; }\n',
        '#include "node.h"\nstatic int size(void) { return 1; }\n',
    ),
    "c/main.c": ('#include "list.h"\nint main(void) { push(0); return size(); }\n',),
}

WEB: Versions = {
    "tsconfig.json": (
        '{"compilerOptions": {"baseUrl": ".", "paths": {"@app/*": ["web/*"]}}}\n',
        '{"compilerOptions": {"baseUrl": ".", "paths": {"@app/*": ["web/old/*"]}}}\n',
    ),
    "web/model.ts": (
        "export class Model { run() {} }\nexport const made = new Model();\n",
        "export { Model } from './old/model';\nexport default function run() {}\n",
        "export * from './old/model';\n",
    ),
    "web/old/model.ts": (
        "export class Model { run() {} stop() {} }\n",
        (
            "import { Model as Base } from '../model';\n"
            "export class Model extends Base { stop() {} }\n"
        ),
    ),
    "web/view.ts": (
        (
            "import { Model } from '@app/model';\n"
            "export function view(m: Model) { m.run(); m.stop(); }\n"
        ),
        "import * as model from './model';\nmodel.made.run();\nnew model.Model().stop();\n",
        "import run, { made } from './model';\nrun();\nmade.run();\n",
    ),
    "web/index.ts": ("export * from './view';\nexport * from './model';\n",),
    "web/use.ts": ("import { view, Model } from '.';\nview(new Model());\n",),
    "jv/a/Base.java": (
        "package a;\npublic class Base { public void run() {} }\n",
        "package a;\npublic class Base extends b.Top { }\n",
    ),
    "jv/b/Top.java": ("package b;\npublic class Top { public void run() {} }\n",),
    "jv/b/Use.java": (
        (
            "package b;\nimport a.Base;\n"
            "class Use { Base base; void f() { base.run(); new Base().run(); } }\n"
        ),
        (
            "package b;\nimport a.*;\n"
            "class Use extends Base { void f() { run(); new Top().run(); } }\n"
        ),
    ),
}

LEFT_OUT = (".gitattributes", "pkg.py")
"""Files that do not exist at first."""

_DEEDS = ("write", "write", "write", "delete", "touch", "behind its back", "refresh")
steps = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from(_DEEDS), st.integers(0, 4)), max_size=12
)


def change(root: Path, pool: Versions, number: int, what: str, version: int) -> None:
    name = sorted(pool)[number % len(pool)]
    path, text = root / name, pool[name][version % len(pool[name])]
    if what == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    elif path.exists():
        if what == "delete":
            path.unlink()
        elif what == "touch":
            os.utime(path)
        elif what == "behind its back":
            # Of the same size, and with the same times, as far as anybody can set them.
            before = path.stat()
            path.write_text(text.ljust(before.st_size)[: before.st_size])
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def start(root: Path, pool: Versions, version: int) -> None:
    for number, name in enumerate(sorted(pool)):
        if name not in LEFT_OUT:
            change(root, pool, number, "write", version)


@settings(
    max_examples=effort.times(30),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.sampled_from((PYTHON, NATIVE, WEB)), st.integers(0, 1), steps)
@example(PYTHON, 0, [(sorted(PYTHON).index("x.py"), "write", 1)])
@example(PYTHON, 0, [(sorted(PYTHON).index("one/__init__.py"), "delete", 0)])
@example(PYTHON, 1, [(sorted(PYTHON).index("pkg/__init__.py"), "delete", 0)])
def test_a_refreshed_index_equals_one_from_scratch(
    tmp_path: Path, pool: Versions, version: int, edits: list[tuple[int, str, int]]
) -> None:
    root, kept, new = tmp_path / "tree", tmp_path / "kept.db", tmp_path / "new.db"
    shutil.rmtree(root, ignore_errors=True)
    start(root, pool, version)
    built_from_scratch(root, kept)
    for number, what, chosen in edits:
        if what == "refresh":
            build.refresh(place(root, kept))
        else:
            change(root, pool, number, what, chosen)
    assert refreshed_and_resolved(root, kept) == built_from_scratch(root, new)
    again = build.refresh(place(root, kept))
    assert (again.added, again.changed, again.removed, again.resolved) == (0, 0, 0, 0)


# Interrupted


class Enough(BaseException):
    """Stands for Ctrl-C."""


MANY = process_pool.FEW + 16


def large(root: Path) -> Path:
    """Enough files that other processes parse them."""
    root.mkdir()
    for number in range(MANY):
        (root / f"m{number}.py").write_text(
            f"from m{number // 2} import C{number // 2} as Base\n"
            f"class C{number}(Base):\n    def f{number}(self):\n        self.f{number // 2}()\n"
        )
    return root


@pytest.mark.parametrize("at", effort.share([1, 40, 75, 120], 2))
def test_an_interrupted_refresh_is_finished_by_the_next(tmp_path: Path, at: int) -> None:
    root, kept = large(tmp_path / "tree"), tmp_path / "kept.db"
    calls = 0

    def tick(done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        assert 0 < done <= total
        if calls == at:
            raise Enough

    try:
        build.refresh(place(root, kept), tick)
        build.follow(place(root, kept), tick=tick)
        assert calls < at
    except Enough:
        assert children() == []
    assert refreshed_and_resolved(root, kept) == built_from_scratch(root, tmp_path / "new.db")


def test_after_an_interruption_the_next_refresh_reads_the_packages(tmp_path: Path) -> None:
    root, kept = tmp_path / "tree", tmp_path / "kept.db"
    root.mkdir()
    (root / "a.py").write_text("")
    (root / "pyproject.toml").write_text('[project]\nname = "tool"\n')

    def tick(done: int, total: int) -> None:
        # All files are read, and something of them is looked up.
        if total == 1:
            raise Enough

    with pytest.raises(Enough):
        build.refresh(place(root, kept), tick)
    with closing(sqlite3.connect(kept)) as connection, connection:
        # As if the files were older than a moment: then none of them is looked at again.
        connection.execute("UPDATE files SET settled = 1")
    build.refresh(place(root, kept))
    opened = index_file.open_for_reading(str(kept))
    assert opened is not None
    with closing(opened):
        assert [each.name for each in package_queries.all_packages(opened)] == ["tool"]


CHILD = """
import os, sys
from ctx.code import build
place = build.Place(sys.argv[1], None, sys.argv[2])
build.refresh(place, lambda done, total: os.write(1, b"."))
build.follow(place, tick=lambda done, total: os.write(1, b"."))
"""


def child(root: Path, database: Path) -> subprocess.Popen[bytes]:
    """A process that refreshes and prints a dot for each file."""
    words = [sys.executable, "-c", CHILD, str(root), str(database)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


EARLIER: set[int] = set()
"""Processes of other tests that were not waited for."""


@pytest.fixture(autouse=True)
def of_this_test_alone() -> None:
    EARLIER.clear()
    EARLIER.update(children())


def children(of: int | None = None) -> list[int]:
    """The child processes of this process, as far as the system lists them."""
    lists = Path(f"/proc/{of or os.getpid()}/task").glob("*/children")
    found = [int(pid) for each in lists for pid in each.read_text().split()]
    return [pid for pid in found if pid not in EARLIER]


@pytest.mark.parametrize("after", effort.share([0, 40, 90], 2))
def test_a_killed_refresh_is_finished_by_the_next(tmp_path: Path, after: int) -> None:
    root, kept = large(tmp_path / "tree"), tmp_path / "kept.db"
    with child(root, kept) as process:
        assert process.stdout is not None
        process.stdout.read(after)
        workers = [os.pidfd_open(pid) for pid in children(process.pid)]
        process.kill()
    for worker in workers:
        # It is readable when the process has ended.
        assert select.select([worker], [], [], 20)[0]
        os.close(worker)
    assert refreshed_and_resolved(root, kept) == built_from_scratch(root, tmp_path / "new.db")


def test_a_killed_reader_loses_only_its_current_file(tmp_path: Path) -> None:
    root, kept = large(tmp_path / "tree"), tmp_path / "kept.db"
    calls = 0

    def tick(done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            for pid in children():
                os.kill(pid, signal.SIGKILL)

    build.refresh(place(root, kept), tick)
    lost = [path for path, package_queries in built(kept).files.items() if package_queries[6]]
    assert len(lost) <= (os.cpu_count() or 1)
    for path in lost:
        (root / path).write_text((root / path).read_text() + "\n")
    assert refreshed_and_resolved(root, kept) == built_from_scratch(root, tmp_path / "new.db")
    assert children() == []


def test_several_processes_can_refresh_and_resolve_at_once(
    repo: Path, ctx: Ctx, tmp_path: Path
) -> None:
    files = large(repo / "tree")
    assert ctx("code", "outline", "tree/m0.py").code == 0
    code = "import sys; from ctx.cli.main import main; sys.exit(main(sys.argv[1:]))"
    together = [
        subprocess.Popen([sys.executable, "-c", code, *words.split()], stdout=-3, stderr=-1)
        for words in ("add code", "code callers f1 --no-refresh", "code cycles --no-refresh")
    ]
    said = [process.communicate(timeout=300)[1].decode() for process in together]
    assert [process.returncode for process in together] == [0, 0, 0], said
    database = index_of(ctx)
    assert refreshed_and_resolved(repo, database) == built_from_scratch(repo, tmp_path / "new.db")
    assert len(built(database).files) == len(list(files.iterdir()))


def index_of(ctx: Ctx) -> Path:
    return Path(ctx("code", "status", "--no-refresh", "--format", "json").json["path"])


# What cannot be


@settings(
    max_examples=effort.times(5),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.integers(0, 200_000), st.binary(max_size=5000), st.booleans())
@example(0, b"", True)
@example(0, b"not a database", True)
@example(8192, bytes(40_000), False)
@example(60_000, b"", True)
def test_a_damaged_index_is_rebuilt(
    repo: Path, ctx: Ctx, at: int, written: bytes, is_cut: bool
) -> None:
    start(repo, PYTHON, 0)
    assert ctx("add", "code").code == 0
    path = index_of(ctx)
    expected, content = built(path), path.read_bytes()
    rest = b"" if is_cut else content[at + len(written) :]
    path.write_bytes(content[:at] + written + rest)
    start(repo, PYTHON, 1)
    start(repo, PYTHON, 0)
    ran = ctx("add", "code")
    assert (ran.code, ran.err) == (0, "")
    # What nobody had to look at may still be damaged: that is found when it is asked for.
    if is_cut or not written:
        assert built(path).edges == expected.edges


def test_a_foreign_database_is_rebuilt(tmp_path: Path) -> None:
    root, kept = tmp_path / "tree", tmp_path / "kept.db"
    start(root, PYTHON, 0)
    with closing(sqlite3.connect(kept)) as connection:
        connection.execute("CREATE TABLE files (id)")
        connection.commit()
    assert refreshed_and_resolved(root, kept) == built_from_scratch(root, tmp_path / "new.db")


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    start(tmp_path / "tree", PYTHON, 0)
    (tmp_path / "index").write_text("a file")
    with pytest.raises(CtxError):
        build.refresh(place(tmp_path / "tree", tmp_path / "index" / "code.db"))


def test_a_full_disk_is_an_error(tmp_path: Path) -> None:
    root, kept = large(tmp_path / "tree"), tmp_path / "kept.db"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Writing behind this size is refused, as on a disk that is full.
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, limits[1]))
    try:
        with pytest.raises(DiskFailure):
            build.refresh(place(root, kept))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert children() == []
    assert refreshed_and_resolved(root, kept) == built_from_scratch(root, tmp_path / "new.db")


def test_a_file_whose_name_is_a_secret_is_not_indexed(tmp_path: Path) -> None:
    token = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    root, database = tmp_path / "root", tmp_path / "code.db"
    (root / token).mkdir(parents=True)
    for path in ("plain.py", f"{token}.py", f"{token}/inside.py"):
        (root / path).write_text("x = 1\n")
    for _ in range(2):
        assert set(refreshed_and_resolved(root, database).files) == {"plain.py"}
        assert token.encode() not in database.read_bytes()


def test_a_change_of_the_index_is_one_transaction() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        with index_file.writing(connection, ":memory:"):
            assert connection.in_transaction
        assert not connection.in_transaction
