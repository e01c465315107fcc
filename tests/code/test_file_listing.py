"""Which files belong to the index, in a real repository and without one."""

import os
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctx import clock
from ctx.checkouts import find_checkout
from ctx.code import file_listing
from ctx.code.file_listing import ExcludedPath
from ctx.errors import DiskFailure
from tests import effort
from tests.conftest import git
from tests.files import write

LINK = "it is a symbolic link"
OTHER = "it is a git repository of its own"


def in_git(root: Path, *globs: str) -> list[str]:
    found = file_listing.list_files(str(root), find_checkout(str(root)), globs)
    return [path for path, *_ in found.files]


def without_git(root: Path, *globs: str) -> list[str]:
    return [path for path, *_ in file_listing.list_files(str(root), None, globs).files]


def test_a_file_is_listed_with_its_size_times_and_inode(repo: Path) -> None:
    write(repo, {"src/a.py": "x = 1\n"})
    found = os.lstat(repo / "src/a.py")
    told = ("src/a.py", 6, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    assert file_listing.list_files(str(repo), find_checkout(str(repo)), ()).files == [told]
    assert file_listing.list_files(str(repo), None, ()).files == [told]


def test_in_git_its_tracked_and_unignored_files_are_listed(repo: Path) -> None:
    write(repo, {".gitignore": "*.log\n", "a.py": "", "gone.py": "", "forced.log": ""})
    git("add", "-f", ".")
    (repo / "gone.py").unlink()
    write(repo, {"new/b.py": "", "b.log": "", ".ctx/config.toml": "", "sub/.ctx/x": ""})
    assert in_git(repo) == [".gitignore", "a.py", "forced.log", "new/b.py"]
    assert in_git(repo, "new/**", "*.log") == [".gitignore", "a.py"]
    # The output of tools, before it is in `.gitignore`.
    write(repo, {"vendored/__pycache__/kept.py": ""})
    git("add", "vendored")
    made = ("__pycache__/a.pyc", ".venv/lib/b.py", "web/node_modules/left/pad.js")
    write(repo, dict.fromkeys(made, ""))
    assert in_git(repo, "new/**", "*.log")[1:] == ["a.py", "vendored/__pycache__/kept.py"]


def test_an_unmerged_and_a_sparse_file_is_listed_if_it_is_there(repo: Path) -> None:
    write(repo, {"a.py": "1\n", "out/b.py": ""})
    git("add", ".")
    git("commit", "-qm", "one")
    for branch, text in (("other", "2\n"), ("third", "3\n")):
        git("checkout", "-qb", branch, "main")
        write(repo, {"a.py": text})
        git("commit", "-qam", branch)
    with pytest.raises(AssertionError, match="CONFLICT"):
        git("merge", "other")
    assert in_git(repo) == ["a.py", "out/b.py"]
    git("reset", "-q", "--hard")
    git("sparse-checkout", "set", "in")
    assert in_git(repo) == ["a.py"]


def test_a_project_below_the_top_lists_only_its_own_folder(repo: Path) -> None:
    write(repo, {"a.py": "", "part [1]/b.py": "", "part [1]/x/c.py": "", "part 1/d.py": ""})
    git("add", "a.py", "part [[]1]/b.py")
    assert in_git(repo / "part [1]") == ["b.py", "x/c.py"]


def test_a_project_that_its_repository_ignores_is_walked(repo: Path) -> None:
    write(repo, {".gitignore": "/*\n", "code/app/a.py": "", "code/app/node_modules/b.js": ""})
    assert in_git(repo / "code" / "app") == ["a.py"]
    write(repo, {"empty/.gitkeep": ""})
    (repo / "empty" / ".gitkeep").unlink()
    assert in_git(repo / "empty") == []


def test_ctxignore_also_excludes_tracked_files(repo: Path) -> None:
    files = ("big/data.json", "big/keep.json", "a.py", "sub/gen/x.py", "sub/y.py", "sub/z/y.py")
    write(repo, dict.fromkeys(files, ""))
    write(repo, {".ctxignore": "big/*\n!keep.json\n", "sub/.ctxignore": "/gen/\n/y.py\n"})
    git("add", ".")
    kept = [".ctxignore", "a.py", "big/keep.json", "sub/.ctxignore", "sub/z/y.py"]
    assert in_git(repo) == kept
    assert without_git(repo) == kept
    # One that git does not tell of holds as well, and globs are outweighed by it.
    git("rm", "-q", "--cached", "sub/.ctxignore")
    write(repo, {".gitignore": ".ctxignore\n", "sub/.ctxignore": "!a.py\n"})
    write(repo, {"sub/a.py": ""})
    assert in_git(repo, "a.py") == [
        *(".ctxignore", ".gitignore", "big/keep.json", "sub/a.py", "sub/gen/x.py"),
        *("sub/y.py", "sub/z/y.py"),
    ]


def test_excluded_paths_have_a_reason(repo: Path) -> None:
    write(repo, {"a.py": "", "bad\nname.py": "", "was/in.py": "", "nested/c.py": ""})
    git("add", "was")
    git("init", "-q", "nested")
    git("init", "-q", "module")
    git("commit", "-q", "--allow-empty", "-m", "one", cwd=repo / "module")
    git("add", "module")
    shutil.move(repo / "was", repo.parent / "elsewhere")
    os.symlink(repo.parent / "elsewhere", repo / "was")
    os.symlink("a.py", repo / "link.py")
    os.symlink(".", repo / "circle")
    with open(os.path.join(os.fsencode(repo), b"\xff.py"), "wb"):
        pass
    expected = [
        ExcludedPath("bad\nname.py", "its name has a control character in it"),
        ExcludedPath("circle", LINK),
        ExcludedPath("link.py", LINK),
        ExcludedPath("module", OTHER),
        ExcludedPath("nested", OTHER),
        ExcludedPath("was", LINK),
        ExcludedPath("\udcff.py", "its name is not UTF-8"),
    ]
    for checkout in (find_checkout(str(repo)), None):
        found = file_listing.list_files(str(repo), checkout, ())
        assert [path for path, *_ in found.files] == ["a.py"]
        assert found.left_out == expected


def test_only_plain_files_are_listed(folder: Path) -> None:
    write(folder, {"ä b\u00a0c.py": ""})
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        found = file_listing.list_files(str(folder), None, ())
    assert [path for path, *_ in found.files] == ["ä b\u00a0c.py"]
    reason = "it is not a plain file"
    assert found.left_out == [ExcludedPath("pipe", reason), ExcludedPath("socket", reason)]


def test_without_git_the_output_folders_of_tools_are_excluded(folder: Path) -> None:
    files = (
        "Cargo.toml target/debug/a.rs web/package.json web/node_modules/left/pad.js web/dist/b.js"
        " env/pyvenv.cfg env/lib/c.py .cache/CACHEDIR.TAG .cache/d.py pkg/__pycache__/e.pyc"
        " game/target/aim.py docs/build/how-to.md dist/dist.py .hg/store .ctx/config.toml"
    )
    write(folder, dict.fromkeys(files.split(), ""))
    kept = ["Cargo.toml", "dist/dist.py", "docs/build/how-to.md", "game/target/aim.py"]
    assert without_git(folder) == [*kept, "web/package.json"]
    left = ["Cargo.toml", "dist/dist.py", "web/package.json"]
    assert without_git(folder, "game/**", "*.md") == left


def test_very_deep_folders_are_listed_and_a_missing_one_is_an_error(folder: Path) -> None:
    deep = "/".join(["d"] * 400)
    os.makedirs(folder / deep)
    write(folder, {f"{deep}/a.py": "", "a.py": ""})
    assert without_git(folder) == ["a.py", f"{deep}/a.py"]
    with pytest.raises(DiskFailure, match="while listing the project's files"):
        without_git(folder / "nowhere")


NAMES = ["a", "b", "ab", "c.py", "d e", "é", "x.log"]
WORDS = ["a", "b", "*", "*.py", "a*", "**", "[ab]", "x.log", "é", "d\\ e"]
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
RULES = st.lists(
    st.builds(
        "{}{}{}{}".format,
        st.sampled_from(["", "", "!"]),
        st.sampled_from(["", "", "/"]),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map("/".join),
        st.sampled_from(["", "", "/"]),
    ),
    max_size=4,
).map("\n".join)
# From where in the tree the rules hold.
IGNORE_FILES = st.dictionaries(st.sampled_from(["", "a/", "b/", "a/b/"]), RULES, max_size=3)

compared = settings(
    max_examples=effort.times(30),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def plant(root: Path, paths: set[str]) -> None:
    """Create exactly these files; a path below an existing file is skipped."""
    for entry in root.iterdir():
        if entry.is_dir() and entry.name != ".git":
            shutil.rmtree(entry)
        elif entry.name != ".git":
            entry.unlink()
    for path in sorted(paths):
        if not any(above.is_file() for above in (root / path).parents):
            write(root, {path: ""})


def plant_rules(root: Path, name: str, rules: Mapping[str, str]) -> None:
    for folder, text in rules.items():
        if (root / folder).is_dir():
            write(root, {folder + name: text})


def listed_by_git(*words: str) -> set[str]:
    return set(git("ls-files", "-z", *words).split("\0")) - {""}


@compared
@given(st.sets(PATHS, max_size=15), IGNORE_FILES)
def test_without_git_the_same_ignore_rules_apply(
    repo: Path, paths: set[str], rules: dict[str, str]
) -> None:
    plant(repo, paths)
    plant_rules(repo, ".gitignore", rules)
    assert without_git(repo) == sorted(listed_by_git("--others", "--exclude-standard"))


@compared
@given(
    st.sets(PATHS, max_size=15), st.sets(PATHS, max_size=8), IGNORE_FILES, IGNORE_FILES, st.data()
)
def test_only_git_and_ctxignore_decide(
    repo: Path,
    before: set[str],
    after: set[str],
    rules: dict[str, str],
    own: dict[str, str],
    data: st.DataObject,
) -> None:
    plant(repo, before)
    git("read-tree", "--empty")
    tracked = data.draw(st.sets(st.sampled_from(sorted(before)))) if before else set()
    there = [path for path in sorted(tracked) if (repo / path).is_file()]
    git("update-index", "--add", "--", *there)
    plant(repo, after | set(data.draw(st.sampled_from([[], there]))))
    plant_rules(repo, ".gitignore", rules)
    plant_rules(repo, ".ctxignore", own)
    belonging = listed_by_git("--cached", "--others", "--exclude-standard")
    # A `.ctxignore` says to git itself which of them we leave out.
    ignored = listed_by_git("--cached", "--ignored", "--exclude-per-directory=.ctxignore")
    ignored |= listed_by_git("--others", "--ignored", "--exclude-per-directory=.ctxignore")
    assert in_git(repo) == sorted(path for path in belonging - ignored if (repo / path).is_file())


def test_a_file_changed_just_now_is_not_settled(folder: Path) -> None:
    def stamps() -> tuple[int, int]:
        [(_, _, mtime, ctime, _)] = file_listing.list_files(str(folder), None, ()).files
        return mtime, ctime

    file = folder / "a.py"
    file.write_text("one\n")
    seen_at = clock.now_ms() * 1_000_000
    mtime, ctime = stamps()
    # Written again at once, to the same size, and in the same tick.
    file.write_text("two\n")
    os.utime(file, ns=(mtime, mtime))
    assert stamps()[0] == mtime
    assert not file_listing.is_settled(mtime, ctime, seen_at)
    # Once the stamps are old enough the next writing must give others.
    later = max(stamps()) + file_listing.COARSEST_STAMP_NS + 1
    assert file_listing.is_settled(*stamps(), later)
    assert not file_listing.is_settled(*stamps(), later - 1)
    # Stamps from the future never settle.
    now = 1_700_000_000_000_000_000
    assert not file_listing.is_settled(now + 1, 0, now)
    assert not file_listing.is_settled(0, now + 3_600_000_000_000, now)
    assert file_listing.is_settled(0, 0, now)
