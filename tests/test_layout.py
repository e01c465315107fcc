from pathlib import Path

import pytest

from ctx import layout
from ctx.errors import NotAProject, PathRefused
from ctx.memory import model
from tests.conftest import Ctx, git


def project_root(folder: Path, home: Path) -> str | None:
    project = layout.find_project(str(folder), str(home))
    return project.root if project else None


def make(folder: Path, text: str = "[repo]\n") -> None:
    (folder / ".ctx").mkdir(parents=True)
    (folder / ".ctx" / "config.toml").write_text(text)


@pytest.mark.parametrize(
    "text", ["[repo]\n", "# x\n[repo]\nid='a'\n", "[ repo ]\n", "repo.id='x'\n"]
)
def test_the_nearest_store_above_is_found(folder: Path, surroundings: Path, text: str) -> None:
    make(folder, text)
    deep = folder / "a" / "b"
    deep.mkdir(parents=True)
    assert project_root(deep, surroundings) == str(folder)
    make(folder / "a")
    assert project_root(deep, surroundings) == str(folder / "a")


def test_a_folder_with_only_the_name_is_not_a_store(folder: Path, surroundings: Path) -> None:
    make(folder, "[other]\n")
    assert project_root(folder, surroundings) is None
    (folder / ".ctx" / "config.toml").unlink()
    assert project_root(folder, surroundings) is None


@pytest.mark.parametrize("name", ["config.toml", ".gitignore"])
def test_a_folder_with_commits_of_memory_is_a_store(
    folder: Path, surroundings: Path, name: str
) -> None:
    store = folder / ".ctx"
    for inside in ("heads", "objects"):
        (store / inside).mkdir(parents=True)
    (store / name).write_text("[repos]\n")
    (store / "heads" / "main").touch()
    assert project_root(folder, surroundings) is None
    (store / "heads" / ("0af" + 61 * "9")).touch()
    assert project_root(folder, surroundings) == str(folder)
    assert project_root(folder, store) is None
    # Git leaves untracked commits behind when it switches to a branch without a store.
    (store / name).unlink()
    assert project_root(folder, surroundings) is None


def test_the_user_store_is_not_a_project_store(surroundings: Path) -> None:
    make(surroundings)
    assert project_root(surroundings, surroundings / ".ctx") is None
    assert project_root(surroundings, surroundings / "elsewhere") == str(surroundings)


def test_the_search_ends_at_the_top_of_the_checkout(folder: Path, surroundings: Path) -> None:
    make(folder)
    inner = folder / "inner"
    inner.mkdir()
    git("init", "-q", cwd=inner)
    assert project_root(inner, surroundings) is None
    with pytest.raises(NotAProject):
        layout.require_project(str(inner), str(surroundings))


def test_the_search_ends_at_home(surroundings: Path) -> None:
    make(surroundings.parent)
    work = surroundings / "work"
    work.mkdir()
    assert project_root(work, surroundings / ".ctx") is None


def test_local_files_are_in_the_git_folder(repo: Path, tmp_path: Path) -> None:
    (repo / "x").write_text("x")
    git("add", "x")
    git("commit", "-qm", "x")
    assert layout.project_at(str(repo)).local == str(repo / ".git" / "ctx" / "main")
    linked = tmp_path / "linked"
    git("worktree", "add", "-q", str(linked))
    expected = str(repo / ".git" / "ctx" / "worktree-linked")
    assert layout.project_at(str(linked)).local == expected


def test_two_projects_in_one_checkout_have_separate_folders(repo: Path) -> None:
    places = set()
    for name in ("a", "b", "x/a"):
        (repo / name).mkdir(parents=True)
        places.add(layout.project_at(str(repo / name)).local)
    places.add(layout.project_at(str(repo)).local)
    assert len(places) == 4
    assert all(place.startswith(str(repo / ".git" / "ctx")) for place in places)


def test_a_submodule_has_its_own_git_folder(repo: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git("init", "-q", cwd=other)
    (other / "y").write_text("y")
    git("add", "y", cwd=other)
    git("commit", "-qm", "y", cwd=other)
    git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub")
    local = layout.project_at(str(repo / "sub")).local
    assert local == str(repo / ".git" / "modules" / "sub" / "ctx" / "main")


def test_without_git_local_files_are_in_the_store(folder: Path) -> None:
    assert layout.project_at(str(folder)).local == str(folder / ".ctx" / "local")


def test_links_are_resolved(
    folder: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ctx("init").code == 0
    (folder / "a.txt").write_text("a")
    link = tmp_path / "link"
    link.symlink_to(folder)
    monkeypatch.chdir(link)
    assert ctx("add", "file", "a.txt", "-m", "A", "--format", "json").json["commit"]["files"] == [
        "a.txt"
    ]


@pytest.mark.parametrize("content", ["", "gitdir: /nowhere", "rubbish", "gitdir: ."])
def test_a_broken_git_file_is_not_a_checkout(folder: Path, content: str) -> None:
    (folder / ".git").write_text(content)
    assert layout.project_at(str(folder)).checkout is None or content == "gitdir: ."


@pytest.mark.parametrize(
    ("name", "project"),
    [
        ("app", "app"),
        ("my project", "my-project"),
        ("  spaced\tout  ", "spaced-out"),
        ('it\'s (new), `x`; "y"', "it-s-new-x-y"),
        ("ends: with*:", "ends:-with"),
        ("cafe\u0301", "caf\u00e9"),
        ("設計 更新", "設計-更新"),
        ("line\nbreak\u200b", "line-break"),
        ("x" * 200, "x" * 100),
        (" ", None),
        ("()", None),
        (":*", None),
    ],
)
def test_the_name_of_a_project_is_a_valid_tag(
    tmp_path: Path, surroundings: Path, name: str, project: str | None
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    git("init", "-q", cwd=folder)
    place = layout.place(str(folder), str(surroundings / ".ctx"))
    assert place.project == project
    assert place.folder == str(folder)
    if project:
        assert model.tag(f"project:{project}") == f"project:{project}"
        assert place.task_key == f"current_task:{project}:main"


def test_a_project_with_an_unusual_name_keeps_its_nodes(
    ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "my project"
    folder.mkdir()
    git("init", "-q", cwd=folder)
    monkeypatch.chdir(folder)
    assert ctx("add", "--type=fact", "--tag=tier:pinned", "Mine.").code == 0
    (node,) = ctx("list", "--format=json").json["nodes"]
    assert "project:my-project" in node["tags"]
    assert "Mine." in ctx("compose").out


def test_a_folder_is_the_same_place_through_a_link(
    repo: Path, surroundings: Path, tmp_path: Path
) -> None:
    home = str(surroundings / ".ctx")
    (repo / "src").mkdir()
    link = tmp_path / "other name"
    link.symlink_to(repo)
    inside = tmp_path / "inside"
    inside.symlink_to(repo / "src")
    here = layout.place(str(repo), home)
    assert here.project == "app"
    for folder in (link, link / "src", inside):
        assert layout.place(str(folder), home) == here
    without_git = tmp_path / "plain"
    without_git.mkdir()
    (tmp_path / "to-plain").symlink_to(without_git)
    found = layout.place(str(tmp_path / "to-plain"), home)
    assert found == layout.place(str(without_git), home)


def test_the_code_index_is_with_the_project_or_the_user(
    repo: Path, surroundings: Path, tmp_path: Path
) -> None:
    mine = layout.UserStore(str(surroundings / ".ctx"))
    inside = repo / "a" / "b"
    inside.mkdir(parents=True)
    code = layout.code_at(str(inside), mine)
    assert code.root == str(repo)
    assert code.database.startswith(str(surroundings / ".ctx" / "code"))
    assert code == layout.code_at(str(repo), mine)
    plain = tmp_path / "plain"
    plain.mkdir()
    assert layout.code_at(str(plain), mine).root == str(plain)
    assert layout.code_at(str(plain), mine).database != code.database
    make(repo)
    project = layout.code_at(str(inside), mine)
    assert project.database == str(repo / ".git" / "ctx" / "main" / "index" / "code.db")
    assert project.derived == str(repo / ".git" / "ctx" / "main" / "DERIVED")


def test_a_home_folder_under_git_is_not_a_project(surroundings: Path) -> None:
    mine = layout.UserStore(str(surroundings / ".ctx"))
    git("init", "-q")
    inside = surroundings / "work"
    inside.mkdir()
    assert layout.code_at(str(inside), mine).root == str(inside)
    with pytest.raises(PathRefused):
        layout.code_at(str(surroundings), mine)
