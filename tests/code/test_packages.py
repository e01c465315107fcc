"""Packages that are read from manifests, compared with golden files and with cargo.

`tests/golden/packages` has a small project of each ecosystem, and what is read out of it.
`CTX_TEST_RENEW=1 pytest tests/code/test_packages.py` renews that.
"""

import json
import os
import posixpath
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctx.code.packages.manifests import MANIFESTS, read_all
from ctx.code.packages.npm import matches
from ctx.code.packages.package_model import (
    ManifestDependency,
    ManifestPackage,
    ManifestProblem,
    PackageTarget,
    PackageWorkspace,
)
from tests import effort
from tests.code.cargo import settle

GOLDEN = Path(__file__).parent.parent / "golden" / "packages"
# One folder for all examples: what is read is what was written last.
FEW = settings(
    max_examples=effort.times(30),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def write_files(root: Path, files: dict[str, str | bytes]) -> list[str]:
    """Write files into a folder, and return their paths."""
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        data = content if isinstance(content, bytes) else content.encode()
        (root / path).write_bytes(data)
    return list(files)


def read(root: Path, files: dict[str, str | bytes]) -> PackageWorkspace:
    return read_all(str(root), write_files(root, files))


def paths(root: Path) -> list[str]:
    """The files of a project, from its root."""
    every = (path for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return sorted(path.relative_to(root).as_posix() for path in every)


@pytest.mark.parametrize("ecosystem", ["cargo", "go", "maven", "npm", "python"])
def test_a_golden_project_is_read_completely(ecosystem: str) -> None:
    root = GOLDEN / ecosystem
    found = read_all(str(root), paths(root))
    described = {
        "packages": [{**each._asdict(), "targets": list(each.targets)} for each in found.packages],
        "dependencies": [each._asdict() for each in found.dependencies],
        "problems": found.problems,
    }
    text, expected = (
        json.dumps(described, indent=1, ensure_ascii=False),
        GOLDEN / f"{ecosystem}.json",
    )
    if os.environ.get("CTX_TEST_RENEW") == "1":
        expected.write_text(f"{text}\n")
    assert json.loads(text) == json.loads(expected.read_text())


def test_crates_are_those_of_cargo_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch, tmp_path)
    root = GOLDEN / "cargo"
    found = read_all(str(root), paths(root))
    ours = {each.manifest: _summary(found, each) for each in found.packages}
    theirs: dict[str, Any] = {}
    for manifest in ("Cargo.toml", "crates/apart/Cargo.toml"):
        theirs |= _cargo_metadata(root, manifest)
    # It says where a dependency is from only before anything stands in for it.
    patched = ("tide-table", "normal", False, (), "", "crates/tide-table/Cargo.toml")
    net = ours["crates/net/Cargo.toml"]["needs"]
    net[net.index(patched)] = (*patched[:5], "")
    assert ours == theirs


def _summary(found: PackageWorkspace, package: ManifestPackage) -> dict[str, Any]:
    needs = [each for each in found.dependencies if each.from_ == package.manifest]
    return {
        "name": package.name,
        "version": package.version,
        "targets": sorted(tuple(target) for target in package.targets),
        "needs": sorted(
            (each.to, each.kind, each.optional, each.features, each.known_as, each.manifest)
            for each in needs
        ),
    }


def _cargo_metadata(root: Path, manifest: str) -> dict[str, Any]:
    asked = ["cargo", "metadata", "--format-version=1", "--offline", "--no-deps"]
    done = subprocess.run(
        [*asked, "--manifest-path", str(root / manifest)], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()

    def inside(path: str) -> str:
        return os.path.relpath(path, root)

    def kind(kinds: list[str]) -> str:
        known = {"proc-macro": "proc_macro", "custom-build": "build_script", "cdylib": "lib"}
        return known.get(kinds[0], kinds[0])

    return {
        inside(package["manifest_path"]): {
            "name": package["name"],
            "version": package["version"],
            "targets": sorted(
                (target["name"], kind(target["kind"]), inside(target["src_path"]))
                for target in package["targets"]
            ),
            "needs": sorted(
                (
                    each["name"],
                    each["kind"] or "normal",
                    each["optional"],
                    tuple(each["features"]),
                    each["rename"] or "",
                    inside(posixpath.join(each["path"], "Cargo.toml")) if each.get("path") else "",
                )
                for each in package["dependencies"]
            ),
        }
        for package in json.loads(done.stdout)["packages"]
    }


def test_all_ecosystems_can_be_in_one_project(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "Cargo.toml": '[package]\nname = "mast"\n',
        "src/lib.rs": "",
        "web/package.json": '{"name": "flag"}',
        "tools/setup.cfg": "[metadata]\nname = knot\n",
        "srv/go.mod": "module example.org/wind\n",
    }
    found = read(tmp_path, files)
    assert [(each.name, each.ecosystem, each.root, each.modules) for each in found.packages] == [
        ("mast", "cargo", ".", ("mast",)),
        ("flag", "npm", "web", ("flag",)),
        ("knot", "python", "tools", ()),
        ("example.org/wind", "go", "srv", ("example.org/wind",)),
    ]
    assert (found.dependencies, found.problems) == ((), ())


DEEP = 100_000


@pytest.mark.parametrize(
    ("path", "content", "reason"),
    [
        ("Cargo.toml", "[package", "cannot be read: Expected ']' at the end of a table"),
        ("Cargo.toml", "a = " + "[" * DEEP, "is nested too deeply"),
        ("Cargo.toml", ".".join("a" * DEEP) + " = 1", "cannot be read: a key with too many parts"),
        ("Cargo.toml", 'x = {k = """a"b""", ' + "a." * DEEP + "a = 1}", "cannot be read: a key"),
        ("Cargo.toml", "[package]\nname = 'a\\u001b[2J'\n", ""),
        ("Cargo.toml", '[package]\nname = "a\\u001b[2J"\n', "names no package"),
        ("Cargo.toml", "[package]\nversion = 7\n", "names no package"),
        ("Cargo.toml", "x = " + "9" * 10_000, "cannot be read: Exceeds the limit"),
        ("package.json", "[]", "cannot be read: it holds no object"),
        ("package.json", '{"name": ', "cannot be read: Expecting value"),
        ("package.json", '{"":' * DEEP, "is nested too deeply"),
        ("package.json", '{"name": "a\\nb"}', "has a name that is none"),
        ("package.json", b'{"name": "\xff"}', "cannot be read: it is not UTF-8"),
        ("package.json", " " * 2_000_000, "cannot be read: it is larger than 1,048,576 bytes"),
        ("pyproject.toml", "\0", "cannot be read: "),
        ("setup.cfg", "name = x\n", "cannot be read"),
        ("setup.cfg", "[metadata]\n" + "a" + " " * 500_000 + "a", "cannot be read"),
        ("go.mod", "require example.org/a v1\n", "names no module"),
        ("pom.xml", "<project>", "cannot be read: no element found"),
        ("pom.xml", "<project/>", "names no artifact"),
        ("pom.xml", "<a>" * DEEP + "</a>" * DEEP, "names no artifact"),
        ("pom.xml", "<!DOCTYPE x [<!ENTITY a 'b'>]><x>&a;</x>", "cannot be read: it has"),
        ("pom.xml", "<p><artifactId>a\tb</artifactId></p>", "names no artifact"),
    ],
)  # fmt: skip
def test_a_broken_manifest_is_a_problem(
    path: str, content: str | bytes, reason: str, tmp_path: Path
) -> None:
    found = read(tmp_path, {path: content, "deep/go.mod": "module example.org/whole\n"})
    assert "example.org/whole" in [package.name for package in found.packages]
    assert len(found.problems) == bool(reason)
    for problem in found.problems:
        assert problem.path == path
        assert problem.reason.startswith(reason)
        assert problem.reason.isprintable()


def test_paths_outside_of_the_project_are_ignored(tmp_path: Path) -> None:
    outside: dict[str, str | bytes] = {
        "secret/Cargo.toml": '[package]\nname = "secret"\n',
        "secret/go.mod": "module example.org/secret\n",
        "secret/package.json": '{"name": "secret"}',
    }
    write_files(tmp_path, outside)
    root = tmp_path / "project"
    paths = write_files(
        root,
        {
            "Cargo.toml": '[package]\nname = "a"\nbuild = "../b.rs"\nworkspace = "../secret"\n'
            '[lib]\npath = "/etc/passwd"\n[[bin]]\nname = "c"\npath = "../../c.rs"\n'
            '[dependencies]\nsecret = { path = "../secret" }\n',
            "package.json": '{"name": "a", "main": "../x.js", "bin": {"y": "/bin/y"},'
            ' "exports": "./../../z.js", "workspaces": ["../*"],'
            ' "dependencies": {"secret": "file:../secret"}}',
            "go.mod": "module example.org/a\nrequire example.org/secret v1\n"
            "replace example.org/secret => ../secret\n",
            "go.work": "use ../secret\n",
        },
    )
    (root / "linked").symlink_to(tmp_path / "secret")
    (root / "Cargo").mkdir()
    (root / "Cargo" / "Cargo.toml").symlink_to(tmp_path / "secret" / "Cargo.toml")
    paths += ["linked/package.json", "Cargo/Cargo.toml", "../secret/go.mod"]
    found = read_all(str(root), paths)
    assert {package.name for package in found.packages} == {"a", "example.org/a"}
    assert [target for package in found.packages for target in package.targets] == [
        PackageTarget("c", "bin", "")
    ]
    assert not any(each.local for each in found.dependencies)
    behind = ("../secret/go.mod", "Cargo/Cargo.toml", "linked/package.json")
    reason = "cannot be read: it is behind a link"
    assert sorted(found.problems) == [ManifestProblem(path, reason) for path in behind]


def test_circular_workspace_members_are_read(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        {
            "Cargo.toml": '[workspace]\nmembers = ["a", "."]\n[package]\nname = "top"\n'
            'workspace = "a"\n[dependencies]\na = { path = "a" }\n',
            "a/Cargo.toml": '[workspace]\nmembers = [".."]\n[package]\nname = "a"\n'
            'workspace = ".."\n[dependencies]\ntop = { path = ".." }\nver = { workspace = true }\n',
        },
    )
    assert [(package.name, package.workspace) for package in found.packages] == [
        ("top", "a/Cargo.toml"),
        ("a", "Cargo.toml"),
    ]
    assert found.dependencies == (
        ManifestDependency("Cargo.toml", "a", "normal", local=True, manifest="a/Cargo.toml"),
        ManifestDependency("a/Cargo.toml", "top", "normal", local=True, manifest="Cargo.toml"),
        ManifestDependency("a/Cargo.toml", "ver", "normal"),
    )


def test_circular_parents_are_read(tmp_path: Path) -> None:
    pom = (
        "<project><parent><groupId>g</groupId><version>${v}</version><relativePath>{}"
        "</relativePath></parent><artifactId>same</artifactId><properties><v>${w}</v>"
        "<w>${v}</w></properties></project>"
    )
    files: dict[str, str | bytes] = {
        "pom.xml": pom.replace("{}", "a"),
        "a/pom.xml": pom.replace("{}", "../pom.xml"),
    }
    found = read(tmp_path, files)
    assert [(each.manifest, each.name, each.version) for each in found.packages] == [
        ("pom.xml", "g:same", "${w}"),
        ("a/pom.xml", "g:same", "${w}"),
    ]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "package.json")
    found = read_all(str(tmp_path), ["package.json", "gone/package.json"])
    assert found.problems == (
        ManifestProblem("package.json", "cannot be read: Not a plain file"),
        ManifestProblem("gone/package.json", "cannot be read: No such file or directory"),
    )
    assert read_all(str(tmp_path), ["src/main.rs"]) == PackageWorkspace()


def test_invalid_requirements_are_skipped_and_exports_limited(tmp_path: Path) -> None:
    listed = ["fine", "not a requirement", "???", "-e .", "https://example.org/x", "a" * 5000]
    text = f"[project]\nname = 'p'\ndependencies = {json.dumps(listed)}\n"
    many = {f"./{number}": f"./{number}.js" for number in range(5000)}
    manifest = json.dumps({"name": "a", "exports": many})
    found = read(tmp_path, {"pyproject.toml": text, "package.json": manifest})
    assert [each.to for each in found.dependencies] == ["fine"]
    assert len(found.packages[0].targets) < 1000


FIND = "[tool.setuptools.packages.find]\n"
HATCH = "[tool.hatch.build.targets.wheel]\n"


@pytest.mark.parametrize(
    ("told", "files", "roots", "modules"),
    [
        ("", ["p/__init__.py", "tests/__init__.py", "m.py"], (".",), ("p", "m")),
        ("", ["src/p/__init__.py", "q/__init__.py"], ("src",), ("p",)),
        ("", ["src/__init__.py", "src/a.py"], (".",), ("src",)),
        ("", ["a_name/deep/x.py", "other/deep/x.py"], (".",), ("a_name",)),
        ("", [], (".",), ()),
        ("[tool.setuptools.package-dir]\n'' = 'lib'", ["lib/p/__init__.py"], ("lib",), ("p",)),
        (FIND + "where=['a','b']", ["a/x.py", "b/y.py"], ("a", "b"), ("x", "y")),
        (FIND + "where=['../..']", ["x.py"], (".",), ("x",)),
        (HATCH + "packages=['py/p']", ["py/p/__init__.py"], ("py",), ("p",)),
        ("[tool.maturin]\npython-source='python'", ["python/p/__init__.py"], ("python",), ("p",)),
    ],
)  # fmt: skip
def test_the_folders_of_python_modules_are_recognised(
    told: str, files: list[str], roots: tuple[str, ...], modules: tuple[str, ...], tmp_path: Path
) -> None:
    manifest = f"[project]\nname = 'a-name'\n{told}\n"
    every: dict[str, str | bytes] = {"pyproject.toml": manifest, **dict.fromkeys(files, "")}
    [package] = read(tmp_path, every).packages
    assert (package.import_roots, package.modules) == (roots, modules)


@pytest.mark.parametrize(
    ("folder", "globs", "is_listed"),
    [
        ("packages/a", ["packages/*"], True),
        ("packages/a/b", ["packages/*"], False),
        ("packages/a/b", ["packages/**"], True),
        ("packages", ["packages/**"], True),
        ("a/b/c/d", ["./a/**/d"], True),
        ("a/d", ["a/**/d/"], True),
        ("a/x-y", ["a/x-?", "!a/x-y"], False),
        ("a/x-y", ["!a/x-y", "a/x-?"], True),
        ("a/[b]", ["a/[[]b]"], True),
        (".", ["**"], True),
        ("a", [], False),
        ("/".join("a" * 300), ["**/" * 90 + "b"], False),
        ("a" * 200, ["*a" * 140 + "b"], False),
    ],
)
def test_members_are_matched_by_globs(folder: str, globs: list[str], is_listed: bool) -> None:
    assert matches(folder, globs) is is_listed


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("../.."),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "name version exports bin main workspaces packages dependencies peerDependencies "
                "peerDependenciesMeta . ./a import a".split()
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(said=VALUES, more=VALUES)
@FEW
def test_any_json_can_be_read(said: Any, more: Any, tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "package.json": json.dumps(said),
        "packages/a/package.json": json.dumps(more),
    }
    _check_shape(read(tmp_path, files), files)


LINES = st.sampled_from(
    [
        *"[package] [workspace] [lib] [[bin]] [project] [tool.poetry] [metadata]".split(),
        *"[dependencies] [target.x.dependencies] [patch.y] [options] [project.scripts]".split(),
        *('name = "a"', "name = 1", 'path = "../x"', "build = true", "workspace = true", 'a = "1"'),
        *("a = {workspace = true}", 'a = {path = "."}', 'members = ["**"]', "edition = []"),
        *("version.workspace = true", "dependencies = ['a', 1]", "install_requires = a", "x"),
        *("module a", "require (", ")", "a v1 // indirect", "replace a => ./", "use ."),
        "replace =>",
        *("<project>", "<parent>", "</parent>", "<artifactId>a</artifactId>", "</project>"),
        *("packages:", "  - '*'", "packages: [a, '*']", "\0", "\ufeff", "=>"),
    ]
)


@given(data=st.data(), names=st.sets(st.sampled_from(sorted(MANIFESTS)), min_size=1))
@FEW
def test_any_lines_can_be_read(data: st.DataObject, names: set[str], tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {}
    for folder in ("", "inner/"):
        for name in names:
            files[folder + name] = "\n".join(data.draw(st.lists(LINES, max_size=10)))
    _check_shape(read(tmp_path, files), files)


def _check_shape(found: PackageWorkspace, files: dict[str, str | bytes]) -> None:
    """Check what holds for every result."""
    manifests = [package.manifest for package in found.packages]
    assert len(set(manifests)) == len(manifests)
    assert set(manifests) <= set(files)
    for package in found.packages:
        assert package.root == (posixpath.dirname(package.manifest) or ".")
        assert not any(target.path.startswith(("../", "/")) for target in package.targets)
    for each in found.dependencies:
        assert each.from_ in manifests
        assert each.local == bool(each.manifest)
        assert each.manifest in ("", *manifests)
    assert {problem.path for problem in found.problems} <= set(files)
