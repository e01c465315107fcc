"""The documentation is generated from the program, or checked against it."""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from ctx import __version__, errors
from ctx.cli import options
from ctx.cli.commands import COMMANDS, command_named, completed
from tests import page_examples
from tests.conftest import Ctx, git
from tests.exchange.foreign import other_tools
from tests.scripted_session import ScriptedSession

ROOT = Path(__file__).parent.parent


def test_the_reference_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


DOCS = ROOT / "docs"


def test_the_index_links_to_every_page() -> None:
    pages = {page.relative_to(DOCS) for page in DOCS.rglob("*.md")}
    written = {str(page) for page in pages if page.parts[0] != "reference"} - {"index.md"}
    links = re.findall(r"\]\(([^)#]+)", (DOCS / "index.md").read_text())
    assert written - set(links) == set()


@pytest.mark.parametrize(
    "page",
    [*ROOT.glob("[AC]*.md"), *sorted((DOCS / "decisions").glob("*.md"))],
    ids=lambda page: page.stem,
)
def test_source_files_that_a_page_names_exist(page: Path) -> None:
    names = re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|sql|scm))`", page.read_text())
    folders = (ROOT, ROOT / "src" / "ctx")
    missing = [name for name in names if not any((folder / name).exists() for folder in folders)]
    assert missing == []


def test_each_promise_names_the_command_that_repeats_it() -> None:
    lines = (DOCS / "promises.md").read_text().splitlines()
    rows = [cells for line in lines if len(cells := line.split("|")) == 6][2:]
    benches = {path.stem for path in (ROOT / "bench").iterdir()}
    for _, _, command, tries, more, _ in rows:
        if command != " command " and command != "---":
            files = re.findall(r"tests/\S+\.py", command)
            assert command == f" `pytest {' '.join(files)}` "
            assert files
            assert all((ROOT / file).is_file() for file in files)
            assert tries.strip()
        words = re.findall(r"`([^`]+)`", more)
        assert all(
            each == "make thorough" or each.removeprefix("bench ") in benches for each in words
        )
    assert len(rows) > 30


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_bytes()) <= 8192


def test_the_readme_explains_installing_and_using_before_trying() -> None:
    text = (ROOT / "README.md").read_text()
    headings = re.findall(r"^## (.+)$", text.partition("## Install\n")[2], re.MULTILINE)
    assert headings[0] == "Use"
    assert "Try it and test it from a clone" in headings


def test_the_readme_explains_a_refused_pip_install() -> None:
    install = (ROOT / "README.md").read_text().partition("## Install")[2].partition("\n## ")[0]
    for words in ("externally-managed-environment", "uv tool install", "pipx install", "-m venv"):
        assert words in install


def test_the_package_has_a_command_of_its_own_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(project["scripts"]) == {"ctx", project["name"]}
    assert len(set(project["scripts"].values())) == 1


def shell(folder: Path, **variables: str) -> Callable[[str], str]:
    """Runs command lines with `ctx` on the path, the first one in this folder, which is empty."""
    folder.mkdir()
    place = folder.parent / "place"
    place.write_text(str(folder))
    binaries = folder.parent / "bin"
    binaries.mkdir()
    (binaries / "ctx").write_text(f'#!/bin/sh\nexec {sys.executable} -m ctx "$@"\n')
    (binaries / "ctx").chmod(0o755)
    environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}", **variables}
    environment.pop("CTX_HOME")

    def run(command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", f'trap "pwd > {place}" EXIT; {{ {command}\n}} 2>&1'],
            cwd=place.read_text().strip(),
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    return run


def test_page_examples_of_the_tutorial(tmp_path: Path) -> None:
    page, start = DOCS / "tutorial.md", tmp_path / "shop"
    run = shell(start)
    assert page_examples.check_console(page, start / "shop", run, "command line") > 30


def test_page_examples_of_sync(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    run = shell(shop, CTX_SYNC_PASSPHRASE="correct horse battery")

    def run_on_laptop(command: str) -> str:
        return run(command).replace(f"{os.uname().nodename} (this", "laptop (this")

    assert page_examples.check_console(DOCS / "sync.md", shop, run_on_laptop) > 5


def in_home(run: Callable[[str], str]) -> Callable[[str], str]:
    """As it looks on the machine of a reader."""
    return lambda command: run(command).replace(os.environ["HOME"], "/home/you")


@pytest.mark.parametrize("page", ["models", "privacy", "team", "troubleshooting"])
def test_page_examples_of_a_page(page: str, tmp_path: Path) -> None:
    start = tmp_path / "shop"
    run = in_home(shell(start))
    shop = start / "shop" if page in ("privacy", "team") else start
    assert page_examples.check_console(DOCS / f"{page}.md", shop, run) > 5


def test_page_examples_of_moving_from_other_tools(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    page = DOCS / "import.md"
    run = in_home(shell(shop))
    other_tools.fill(Path(os.environ["HOME"]), shop)
    for script, name in re.findall(r"```python\n(# (\S+)\n.*?)```", page.read_text(), re.DOTALL):
        (shop / name).write_text(script)
    assert page_examples.check_console(page, shop, run) > 5


def test_page_examples_of_the_first_session(tmp_path: Path) -> None:
    with ScriptedSession(tmp_path / "space") as session:
        page = DOCS / "tutorial.md"
        assert page_examples.check_console(page, session.project, session.run, "agent") > 5


def test_page_examples_of_the_trust_warning(repo: Path, ctx: Ctx) -> None:
    (repo / "README.md").write_text("# Shop\n")
    git("add", "-A")
    git("commit", "-qm", "Start")
    git("remote", "add", "origin", "https://example.org/ada/shop")
    assert ctx("init").code == 0
    git("remote", "set-url", "origin", "https://example.org/eve/shop")
    page_examples.check_excerpt(DOCS / "claude-code.md", "trust warning", ctx("list").err)


def examples() -> list[tuple[str, str]]:
    found = []
    for name in COMMANDS:
        if name != "help":
            parser = command_named(name)[1]
            found += [(name, line) for line in example_lines(parser)]
            for word, inner in options.subcommands_of(parser).items():
                lines = example_lines(inner)
                assert lines, f"ctx {name} {word} has no examples"
                found += [(name, line) for line in lines]
    return found


def example_lines(parser: argparse.ArgumentParser) -> list[str]:
    """The examples of a parser, without explanations that are on lines of their own."""
    lines = (parser.epilog or "").splitlines()[1:]
    return [line for line in lines if not line.startswith(" " * 6)]


@pytest.mark.parametrize(("name", "line"), examples())
def test_an_example_in_the_help_can_be_typed(name: str, line: str) -> None:
    command = re.split(r"\s{2,}", line.strip())[0]
    # Only what ctx itself is given: not what is piped into it, nor where its output goes.
    parts = re.split(r"\s(?:\||&&|<|>)\s", command)
    ours = [part[part.index("ctx ") :] for part in parts if "ctx " in part]
    assert ours, f"ctx {name} has an example without ctx"
    for part in ours:
        # The shell puts in how the command before it ended.
        parse(shlex.split(part.replace("$?", "1"))[1:])


def parse(words: list[str]) -> None:
    leading, name, rest = options.split(words)
    if name is None:
        assert words == ["--version"]
        return
    module, parser = command_named(name)
    parser.parse_args(leading + completed(module, rest))


def test_every_command_has_examples() -> None:
    assert {name for name, _ in examples()} == set(COMMANDS) - {"help"}


def test_every_command_names_the_shape_of_its_json() -> None:
    reference = ROOT / "docs" / "reference"
    page = (reference / "commands.md").read_text()
    shapes = re.findall(r"^## (\S+)$", (reference / "json.md").read_text(), re.MULTILINE)
    # `ctx mcp` speaks a protocol of its own.
    for name in set(COMMANDS) - {"help", "mcp"}:
        parser = command_named(name)[1]
        inner = [f"ctx {name} {word}" for word in options.subcommands_of(parser)]
        for command in inner or [f"ctx {name}"]:
            named = re.search(rf"^`{command} --format json` prints \[(\S+)\]\(", page, re.MULTILINE)
            assert named, f"{command}: see docs/generate.py"
            assert named[1] in shapes, command


def test_every_shape_is_described_once_with_all_shapes_in_it() -> None:
    page = (ROOT / "docs" / "reference" / "json.md").read_text()
    shapes = dict(
        re.findall(
            r"^## (\S+)\n(?:\nPrinted by [^\n]*\n)?\n```\n(.*?)```", page, re.MULTILINE | re.DOTALL
        )
    )
    headings = re.findall(r"^## (\S+)$", page, re.MULTILINE)
    assert list(shapes) == headings
    assert len(headings) == len(set(headings))
    plain = {"ObjectId", "NodeId", "SessionId", "ChangeId", "Ulid"}
    for name, fields in shapes.items():
        for line in fields.splitlines():
            unquoted = re.sub(r'"[^"]*"', "", line.partition(": ")[2])
            types = set(re.findall(r"\b(?:\w+\.)?[A-Z]\w+", unquoted)) - plain
            assert types <= set(headings), f"{name}: {line}"


def test_error_codes_are_distinct_and_in_order() -> None:
    classes = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.CtxError)
    ]
    codes = [cls.code for cls in classes]
    assert codes == [f"E{number:03}" for number in range(len(codes))]
    drawn = re.findall(r"(\w+)\s+(E\d+)", errors.__doc__ or "")
    assert drawn == [(cls.__name__, cls.code) for cls in classes[1:]]


def test_the_changelog_contains_this_version() -> None:
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_constraints_pin_versions_without_paths_or_urls() -> None:
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[^\s/@:]+", line), line
