"""Damage to any byte of any file is detected and reported, never with a traceback."""

import gc
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ctx.cli.main import main
from ctx.layout import project_at
from ctx.objects import commits, object_index
from ctx.objects.object_store import Kind, Object, id_of
from ctx.objects.repository import Repository
from ctx.objects.verify import Damage, verify
from tests import effort
from tests.conftest import Ctx, use_home
from tests.e2e.conftest import copy_project

CODES = {"E001", "E002", "E003", "E004", "E007"}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a committed and a staged version of a file."""
    home = tmp_path_factory.mktemp("base")
    with pytest.MonkeyPatch.context() as patch:
        use_home(home, patch)
        folder = home / "app"
        folder.mkdir()
        patch.chdir(folder)
        assert main(["init"]) == 0
        (folder / "a.txt").write_text("some text, some text, some text\n")
        assert main(["add", "file", "a.txt", "-m", "One"]) == 0
        (folder / "a.txt").write_text("other text\n")
        assert main(["add", "file", "a.txt"]) == 0
        assert main(["debug", "verify"]) == 0
    return folder


@pytest.fixture
def project(folder: Path, base: Path, ctx: Ctx) -> Path:
    copy_project(base, folder)
    for words in (["trust", "--yes"], ["debug", "index"]):
        assert ctx(*words).code == 0
    return folder


def damages(folder: Path) -> tuple[Damage, ...]:
    repository = Repository(project_at(str(folder)))
    return verify(repository).damages + tuple(object_index.damages(repository.project))


def kept_files(folder: Path) -> list[Path]:
    """Every file in which each byte matters."""
    local = folder / ".ctx" / "local"
    places = [folder / ".ctx" / "objects", local / "stage", local / "refs"]
    files = [path for place in places for path in place.rglob("*") if path.is_file()]
    # An index of nodes is written to, and so has no seal.
    return sorted([*files, *(local / "index").glob("*/history.db")])


def damaged_variants(path: Path) -> Iterator[bytes]:
    whole = path.read_bytes()
    # Every single bit is tried where objects and sealed databases are tested by themselves.
    step = 1 if "refs" in path.parts else 31 if len(whole) < 2000 else 2999
    for position in range(0, len(whole), step):
        flipped = bytes([whole[position] ^ 0xFF])
        yield whole[:position] + flipped + whole[position + 1 :]
        yield whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :]
        yield whole[:position]
    yield whole + b"\0"


def test_every_flip_and_truncation_is_detected(project: Path) -> None:
    files = kept_files(project)
    assert len(files) > 12
    for path in files:
        whole = path.read_bytes()
        for wound in damaged_variants(path):
            path.write_bytes(wound)
            found = damages(project)
            assert found, f"{path}: a change went unnoticed"
            assert {item.code for item in found} <= CODES
            # Staged objects may be names of one file.
            assert any(path.samefile(item.where) for item in found), path
        path.write_bytes(whole)
    assert not damages(project)


def test_a_damaged_head_is_detected(project: Path) -> None:
    (head,) = (project / ".ctx" / "heads").iterdir()
    head.write_text("x")
    assert [item.where for item in damages(project)] == [str(head)]
    head.write_text("")
    for name in (
        head.name[:-1],
        "0" + head.name[1:] if head.name[0] != "0" else "1" + head.name[1:],
        head.name.upper(),
        head.name + "x",
        "notes",
    ):
        renamed = head.rename(head.with_name(name))
        report = verify(Repository(project_at(str(project))))
        assert {item.code for item in report.damages} <= {"E001"}
        # What is not the name of a commit is not a head. It is named, and harms nothing else.
        assert str(renamed) in {*(item.where for item in report.damages), *report.leftovers}
        head = renamed


def test_every_damage_is_listed(project: Path, ctx: Ctx) -> None:
    objects = [path for path in kept_files(project) if "objects" in path.parts]
    for path in objects[:4]:
        path.write_bytes(b"rubbish")
    (project / ".ctx" / "local" / "refs" / "main").write_text("rubbish")
    report = ctx("debug", "verify", "--format", "json")
    assert report.code == 1
    assert len(report.json["damages"]) >= 5
    text = ctx("debug", "verify")
    assert text.code == 1
    for path in objects[:4]:
        assert path.name in text.out


COMMANDS = [
    ["debug", "verify"],
    ["debug", "refs"],
    ["debug", "history"],
    ["debug", "index"],
    ["debug", "index", "path:a.txt"],
    ["add", "file", "a.txt"],
    ["commit", "-m", "On"],
    ["commit", "--amend", "-m", "On"],
    ["gc", "--keep-days", "0"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_ends_in_a_traceback(
    project: Path, ctx: Ctx, words: list[str], tmp_path: Path
) -> None:
    spare = tmp_path / "spare"
    shutil.copytree(project / ".ctx", spare)
    for number, path in effort.share(list(enumerate(kept_files(project))), 2, len(words)):
        whole = path.read_bytes()
        damaged_variants = (b"", b"rubbish", whole[:-3], whole + b"\0")
        for wound in effort.some(damaged_variants, number + len(words)):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(wound)
            ran = ctx(*words)
            where = f"{' '.join(words)} with damage {number} in {path}"
            assert ran.code in (0, 1), where
            assert "E000" not in ran.err, f"{where}: {ran.err}"
            if ran.code == 1 and words != ["debug", "verify"]:
                assert "error E0" in ran.err, where
            # What an error held on to is let go of now, not while the folder is being removed.
            gc.collect()
            shutil.rmtree(project / ".ctx")
            shutil.copytree(spare, project / ".ctx")


def test_gc_deletes_nothing_while_an_object_is_unreadable(project: Path, ctx: Ctx) -> None:
    (head,) = (project / ".ctx" / "heads").iterdir()
    (project / ".ctx" / "objects" / head.name[:2] / head.name).write_bytes(b"rubbish")
    before = kept_files(project)
    ran = ctx("gc", "--keep-days", "0", "--aggressive")
    assert ran.code == 1
    assert "E003" in ran.err
    assert kept_files(project) == before


def test_a_damaged_index_is_rebuilt(project: Path, ctx: Ctx) -> None:
    (database,) = (project / ".ctx" / "local" / "index").glob("*/history.db")
    right = ctx("debug", "index", "path:a.txt").out
    database.write_bytes(database.read_bytes()[:-100] + b"x" * 100)
    assert "E007" in ctx("debug", "verify").out
    assert ctx("debug", "index", "path:a.txt").out == right
    assert ctx("debug", "verify").code == 0
    shutil.rmtree(project / ".ctx" / "local" / "index")
    assert ctx("debug", "index", "path:a.txt").out == right


@pytest.mark.parametrize("what", ["head", "tree", "chain"])
def test_gc_deletes_nothing_while_an_object_is_missing(project: Path, ctx: Ctx, what: str) -> None:
    repository = Repository(project_at(str(project)))
    ((head, commit),) = repository.current()
    chain = repository.refs.require("work/cli")
    missing = {"head": head, "tree": commit.root_tree, "chain": chain}[what]
    for store in (repository.objects, repository.staged):
        for path in list(store.files()):
            if store.id_of_file(path) == missing:
                Path(path).unlink()
    before = kept_files(project)
    ran = ctx("gc", "--keep-days", "0", "--aggressive")
    assert ran.code == 1
    assert "error E001" in ran.err
    assert kept_files(project) == before


def test_adding_a_file_again_repairs_its_object(project: Path, ctx: Ctx) -> None:
    assert ctx("commit", "-m", "Two").code == 0
    (entry,) = ctx("debug", "index", "path:a.txt", "--format", "json").json["entries"]
    blob = entry["blob_id"]
    for path in project.rglob(blob):
        path.unlink()
    assert ctx("debug", "verify").code == 1
    ran = ctx("add", "file", "a.txt")
    assert "is repaired" in ran.out
    assert ctx("debug", "verify").code == 0
    assert "1 file unchanged." in ctx("add", "file", "a.txt").out


def test_a_damaged_object_is_read_from_staging_if_possible(project: Path, ctx: Ctx) -> None:
    assert ctx("commit", "-m", "Two").code == 0
    (entry,) = ctx("debug", "index", "path:a.txt", "--format", "json").json["entries"]
    blob = entry["blob_id"]
    (project / ".ctx" / "objects" / blob[:2] / blob).write_bytes(b"rubbish")
    assert ctx("debug", "cat", blob).out == "other text\n"
    assert "E003" in ctx("debug", "verify").out
    # What is committed must be whole by itself: staging does not travel with git.
    (project / ".ctx" / "objects" / blob[:2] / blob).unlink()
    assert "E001" in ctx("debug", "verify").out
    assert ctx("gc", "--keep-days", "0", "--aggressive").code == 1
    assert "is repaired" in ctx("add", "file", "a.txt").out
    assert ctx("debug", "verify").code == 0
    assert ctx("gc", "--keep-days", "0", "--aggressive").code == 0
    assert ctx("debug", "verify").code == 0


def test_a_damaged_note_of_a_stopped_commit_blocks_nothing(project: Path, ctx: Ctx) -> None:
    (head,) = (project / ".ctx" / "heads").iterdir()
    notes = ["", "x", "a\nb\nc\n", "\xff", "work/cli\n\n\n", "../x\n../y\nz\n"]
    for note in [*notes, *(f"{head.name}\n{note}" for note in notes)]:
        (project / ".ctx" / "local" / "PUBLISHING").write_text(note)
        (project / "b.txt").write_text(note)
        assert ctx("add", "file", "b.txt").code == 0
        assert not (project / ".ctx" / "local" / "PUBLISHING").exists()


def test_objects_of_a_newer_version_are_kept_and_counted(project: Path, ctx: Ctx) -> None:
    repository = Repository(project_at(str(project)))
    edge = {"edges": [{"tool": "of tomorrow"}], "created_at": "later"}
    payload = msgspec.msgpack.encode(["edge_batch", 2, edge])
    newer = Object(
        id_of(Object(repository.current()[0].id, Kind.TYPED, payload).canonical),
        Kind.TYPED,
        payload,
    )
    repository.objects.write([newer])
    assert "1 object of a newer ctx" in ctx("debug", "verify").out
    assert ctx("debug", "cat", newer.id).code == 0
    assert ctx("gc", "--keep-days", "9").code == 0


WRITER = """
from ctx.cli.main import main
for number in range(20):
    with open("f.txt", "w") as file:
        file.write(str(number))
    assert main(["-q", "add", "file", "f.txt", "-m", str(number)]) == 0
"""


def test_verify_beside_a_writer_reports_no_damage(folder: Path, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    writer = subprocess.Popen([sys.executable, "-c", WRITER], cwd=folder, stdout=subprocess.DEVNULL)
    try:
        while writer.poll() is None:
            assert ctx("debug", "verify").code == 0
    finally:
        assert writer.wait(timeout=300) == 0


@pytest.fixture
def project_with_commits(folder: Path, ctx: Ctx) -> Path:
    """A project with three commits of memory, and a staged node."""
    assert ctx("init").code == 0
    for name in ("One", "Two", "Three"):
        assert ctx("add", "--type=fact", name).code == 0
        assert ctx("commit", "-m", name).code == 0
    assert ctx("add", "--type=fact", "Staged").code == 0
    return folder


def object_of(folder: Path, which: str) -> Path:
    """The file of the commit or the batch with this name."""
    repository = Repository(project_at(str(folder)))
    name, _, what = which.partition(" ")
    (found,) = (
        (id, commit)
        for id, commit in commits.walk(repository.objects, repository.tips())
        if commit and commit.message == name
    )
    id = found[1].record_batches[0] if what == "batch" else found[0]
    return folder / ".ctx" / "objects" / id[:2] / id


def contents(ctx: Ctx) -> tuple[set[str], str]:
    ran = ctx("list", "--format=json")
    assert ran.code == 0, ran.err
    return {node["content"] for node in ran.json["nodes"]}, ran.err


@pytest.mark.parametrize(
    ("which", "left", "wound"),
    [
        ("One batch", {"Two", "Three", "Staged"}, "rubbish"),
        ("Two commit", {"Three", "Staged"}, "cut"),
        ("Three commit", {"Staged"}, "folder"),
    ],
)
def test_one_damaged_object_hides_only_its_own_nodes(
    project_with_commits: Path, ctx: Ctx, which: str, left: set[str], wound: str
) -> None:
    shutil.rmtree(project_with_commits / ".ctx" / "local" / "index")
    path = object_of(project_with_commits, which)
    whole = path.read_bytes()
    path.unlink()
    # In a clone nothing of it is left in staging either.
    (project_with_commits / ".ctx" / "local" / "stage" / "objects" / path.name).unlink(
        missing_ok=True
    )
    if wound == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"rubbish" if wound == "rubbish" else whole[:-3])
    warning = (
        f"1 object of the project's memory cannot be read ({path.name[:12]}): `ctx debug verify`"
        " says why."
    )
    assert contents(ctx) == (left, f'{{"warning": "{warning}"}}\n')
    ran = ctx("show", "01ZZZZ")
    assert ran.err.count(warning) == 1
    assert "E020" in ran.err
    ran = ctx("add", "--type=fact", "More")
    assert (ran.code, ran.err.count(warning)) == (0, 1), ran.err
    assert contents(ctx)[0] == {*left, "More"}
    assert ctx("debug", "verify").code == 1
    # A commit that cannot be read is none to build upon.
    is_head = which == "Three commit"
    assert ctx("commit", "-m", "More").code == int(is_head)
    assert contents(ctx)[0] == {*left, "More"}
    if wound == "folder":
        path.rmdir()
    path.write_bytes(whole)
    assert contents(ctx) == ({"One", "Two", "Three", "Staged", "More"}, "")
    assert ctx("commit", "-m", "Whole").code == 0
    assert ctx("debug", "verify").code == 0
