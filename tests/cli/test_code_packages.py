"""`ctx code packages`: what the manifests of a project say."""

from pathlib import Path

import pytest

from tests.conftest import Ctx

MANIFESTS = {
    "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\n',
    "crates/core/Cargo.toml": (
        '[package]\nname = "netcore"\nversion = "0.1.0"\n'
        '[dependencies]\nserde = { version = "1", features = ["derive"], optional = true }\n'
        '[dev-dependencies]\ntempfile = "3"\n'
    ),
    "crates/core/src/lib.rs": "",
    "crates/cli/Cargo.toml": (
        '[package]\nname = "netcli"\nversion = "0.2.0"\n'
        '[dependencies]\nnetcore = { path = "../core" }\n'
    ),
    "crates/cli/src/main.rs": "fn main() {}\n",
    "web/package.json": (
        '{"name": "web", "version": "2.0.0", "main": "index.js", "dependencies": {"vue": "^3"}}'
    ),
    "web/index.js": "",
    "pyproject.toml": (
        '[project]\nname = "Tool_Kit"\nversion = "1"\ndependencies = ["requests[socks]>=2"]\n'
    ),
    "go.mod": "module example.org/shop\nrequire golang.org/x/net v1.0.0\n",
}


@pytest.fixture
def shop(repo: Path) -> Path:
    for path, content in MANIFESTS.items():
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text(content)
    return repo


def test_packages_of_every_ecosystem(shop: Path, ctx: Ctx) -> None:
    assert ctx("code", "packages").out == (
        "  example.org/shop         go      go.mod                  0 targets  needs 1\n"
        "  Tool_Kit          1      python  pyproject.toml          0 targets  needs 1\n"
        "  netcli            0.2.0  cargo   crates/cli/Cargo.toml   1 target   needs 1\n"
        "  netcore           0.1.0  cargo   crates/core/Cargo.toml  1 target   needs 2\n"
        "  web               2.0.0  npm     web/package.json        1 target   needs 1\n"
    )
    assert ctx("code", "packages", "vue").out == (
        "vue is not part of this project. Needed by\n  web  normal  ^3    web/package.json\n"
    )
    ran = ctx("code", "packages", "netcor")
    assert (ran.code, ran.out) == (1, "")
    assert "There is no package 'netcor'." in ran.err
    assert "Did you mean `netcore`" in ran.err
    assert ctx("init").code == 0
    assert ctx("code", "index").code == 0
    assert ctx("debug", "index", "package:netcore").out == (
        "In the code\n"
        "  name          netcore\n"
        "  version       0.1.0\n"
        "  ecosystem     cargo\n"
        "  root          crates/core\n"
        "  manifest      crates/core/Cargo.toml\n"
        "  targets       name netcore, kind lib, path crates/core/src/lib.rs\n"
        "  dependencies  name serde, kind normal, optional True, features derive, requirement 1\n"
        "  dependencies  name tempfile, kind dev, requirement 3\n"
    )
    [found] = ctx("debug", "index", "package:web", "--format", "json").json["code"]
    assert (found["manifest"], found["targets"][0]["path"]) == ("web/package.json", "web/index.js")
    for path in MANIFESTS:
        (shop / path).unlink()
    assert ctx("code", "packages").out == "No package manifest found.\n"


def test_a_package_with_what_it_needs_and_who_needs_it(
    shop: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = (
        "netcore 0.1.0: cargo, crates/core/Cargo.toml\n"
        "Builds\n"
        "  lib  netcore  crates/core/src/lib.rs\n"
        "Depends on\n"
        "  serde     normal  1  optional, with derive\n"
        "  tempfile  dev     3\n"
        "Needed by\n"
        "  netcli  normal      crates/cli/Cargo.toml\n"
    )
    for name in ("netcore", "crates/core", "crates/core/Cargo.toml", "./crates/core/"):
        assert ctx("code", "packages", name).out == expected, name
    [needed] = ctx("code", "packages", "netcli", "--format", "json").json["packages"][0][
        "dependencies"
    ]
    assert needed == {
        "name": "netcore",
        "kind": "normal",
        "optional": False,
        "features": [],
        "requirement": "",
        "local": True,
        "manifest": "crates/core/Cargo.toml",
    }
    assert "requests  normal  >=2  with socks" in ctx("code", "packages", "tool-kit").out
    monkeypatch.chdir(shop / "crates")
    assert ctx("code", "packages", "core").out == expected
