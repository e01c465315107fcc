"""A project keeps its name in sub-folders, working trees and after a move."""

import os
import shutil
from pathlib import Path

import pytest

from ctx import layout, repository_names
from ctx.checkouts import find_checkout
from tests.conftest import git


@pytest.fixture
def home(surroundings: Path) -> str:
    return str(surroundings / ".ctx")


def name(folder: Path, home: str) -> str | None:
    return layout.place(str(folder), home).project


def record(folder: Path, home: str) -> None:
    checkout = find_checkout(str(folder))
    assert checkout
    repository_names.record(home, checkout.common_dir, layout.new_name(home, checkout))


@pytest.fixture
def shop(tmp_path: Path, home: str) -> Path:
    path = tmp_path / "shop"
    git("init", "-q", str(path))
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=path)
    (path / "sub").mkdir()
    record(path, home)
    return path


def test_sub_folders_and_working_trees_have_the_name_of_the_project(
    shop: Path, home: str, tmp_path: Path
) -> None:
    git("worktree", "add", "-q", str(tmp_path / "feature"), cwd=shop)
    places = (shop, shop / "sub", shop / "not" / "there", tmp_path / "feature")
    assert {name(each, home) for each in places} == {"shop"}


def test_a_renamed_folder_keeps_its_name(shop: Path, home: str, tmp_path: Path) -> None:
    moved = tmp_path / "store"
    shop.rename(moved)
    assert name(moved, home) == "shop"
    record(moved, home)
    again = tmp_path / "other"
    moved.rename(again)
    assert name(again / "sub", home) == "shop"
    assert layout.place(str(again), home).task_key == "current_task:shop:main"
    # Another repository in the old place is another project.
    git("init", "-q", str(moved))
    assert name(moved, home) == "store"


def test_another_folder_gets_another_name(shop: Path, home: str, tmp_path: Path) -> None:
    copy, moved = tmp_path / "shop-2", tmp_path / "store"
    shutil.copytree(shop, copy)
    assert (name(shop, home), name(copy, home)) == ("shop", "shop-2")
    shop.rename(moved)
    assert name(moved, home) == "shop"
    # The system can give a folder the inode number of a deleted one.
    stamped = moved / ".git" / "description"
    before = stamped.stat()
    os.utime(stamped, ns=(1, 1))
    assert name(moved, home) == "store"
    os.utime(stamped, ns=(before.st_atime_ns, before.st_mtime_ns))
    # The old place is taken.
    git("init", "-q", str(shop))
    assert (name(shop, home), name(moved, home)) == ("shop", "store")


def test_projects_in_folders_of_the_same_name_get_different_names(
    shop: Path, home: str, tmp_path: Path
) -> None:
    second, third, fourth = (
        tmp_path / path for path in ("acme/shop", "more/acme/shop", "most/acme/shop")
    )
    for path, expected in ((second, "acme-shop"), (third, "shop-2"), (fourth, "shop-3")):
        git("init", "-q", str(path))
        # It is the same before anything was written down.
        assert name(path, home) == expected
        record(path, home)
        assert name(path / "sub", home) == expected
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=second)
    git("worktree", "add", "-q", str(tmp_path / "feature"), cwd=second)
    assert name(tmp_path / "feature", home) == "acme-shop"
    assert name(shop, home) == "shop"
    # A name stays what it is, also when there is nobody left to be mistaken for.
    shutil.rmtree(shop)
    assert name(second, home) == "acme-shop"


def test_a_new_clone_keeps_the_name(shop: Path, home: str, tmp_path: Path) -> None:
    shutil.rmtree(shop)
    for path in (shop, tmp_path / "acme" / "shop"):
        git("init", "-q", str(path))
        assert name(path, home) == "shop"


def test_the_name_is_recorded_in_a_private_file(shop: Path, home: str) -> None:
    folder = Path(home, "projects")
    (file,) = folder.iterdir()
    first, where, stamp = file.read_text().splitlines()
    assert (first, where) == ("shop", f"{shop}/.git")
    assert stamp.startswith("description ")
    assert (file.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)
    before = file.stat().st_mtime_ns
    record(shop, home)
    assert file.stat().st_mtime_ns == before
    for damaged in (b"", b"\xff\xfe", b"x", b"x\ny"):
        file.write_bytes(damaged)
        assert name(shop, home) == "shop"


def test_working_trees_of_a_bare_repository_have_its_name(
    home: str, tmp_path: Path, shop: Path
) -> None:
    bare = tmp_path / "till.git"
    git("clone", "-q", "--bare", str(shop), str(bare))
    for branch in ("one", "two"):
        git("worktree", "add", "-q", "-b", branch, str(tmp_path / branch), cwd=bare)
    assert [name(tmp_path / branch, home) for branch in ("one", "two")] == ["till", "till"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["{shop}=till"], ("till", "till", "till")),
        (["{shop}/sub=part"], ("shop", "part", "shop")),
        (["{shop}=till", "{shop}/sub=part"], ("till", "part", "till")),
        (["~/nowhere=x", "nonsense", "=y"], ("shop", "shop", "shop")),
    ],
)
def test_a_configured_name_is_used(
    shop: Path, home: str, tmp_path: Path, names: list[str], expected: tuple[str, ...]
) -> None:
    git("worktree", "add", "-q", str(tmp_path / "feature"), cwd=shop)
    written = ", ".join(f'"{each.format(shop=shop)}"' for each in names)
    Path(home, "config.toml").write_text(f"[capture]\nproject_names = [{written}]\n")
    assert (
        tuple(name(each, home) for each in (shop, shop / "sub", tmp_path / "feature")) == expected
    )


def test_an_invalid_configuration_is_ignored(shop: Path, home: str) -> None:
    for text in ("project_names", "[capture]\nproject_names = 7\n", "capture = 'project_names'"):
        Path(home, "config.toml").write_text(text)
        assert name(shop, home) == "shop"
