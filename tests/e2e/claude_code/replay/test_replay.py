"""After each session, memory contains the expected observations and nothing else."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests import installed
from tests.conftest import git
from tests.e2e.claude_code.client import Person
from tests.e2e.claude_code.replay import in_javascript, in_python, in_rust
from tests.e2e.claude_code.replay.scenario import Expected, Scenario, played_at

SCENARIOS = (*in_python.SCENARIOS, *in_javascript.SCENARIOS, *in_rust.SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_session_gives_the_expected_observations(person: Person, scenario: Scenario) -> None:
    with_tools(person, scenario)
    session = played(person, scenario)

    made = [node for node in person.captured() if f"session:{session}" in node["tags"]]
    observations = [node for node in made if node["type"] == "observation"]
    told = "\n\n".join(node["content"] for node in observations)
    for expected in scenario.observations:
        assert any(matches(node, expected) for node in observations), f"{expected}\n\n{told}"
    assert len(observations) <= scenario.most, told
    for node in made:
        for junk in scenario.junk:
            assert junk not in node["content"], f"{junk!r} is in:\n{node['content']}"
        assert not is_prompt(node["content"], scenario), node["content"]

    (summary,) = [node for node in made if node["type"] == "summary"]
    for section, words in scenario.summary.items():
        text = flat(summary["metadata"][section])
        assert all(word in text for word in words), f"{section}: {words}\n\n{text}"


def with_tools(person: Person, scenario: Scenario) -> None:
    """Create the repository and the programs that run its tests."""
    for path, content in scenario.files.items():
        file = person.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    git("add", "-A", cwd=person.project)
    git("commit", "-qm", "A small project", cwd=person.project)
    git("config", "user.name", "A Person", cwd=person.project)
    git("config", "user.email", "person@example.org", cwd=person.project)
    person.puts_on_path("python3", [sys.executable])
    if scenario in in_javascript.SCENARIOS:
        person.puts_on_path("node", [installed.program("node")])
    if scenario in in_rust.SCENARIOS:
        tools = toolchain()
        for name in ("cargo", "rustc"):
            person.puts_on_path(name, [tools / name])


def toolchain() -> Path:
    """The real programs: wrappers on the PATH may need a home that does not exist."""
    path = shutil.which("rustc") or str(Path.home() / ".cargo" / "bin" / "rustc")
    home = os.path.expanduser(f"~{os.environ.get('USER', 'root')}")
    rustup = {"RUSTUP_HOME": f"{home}/.rustup", "CARGO_HOME": f"{home}/.cargo"}
    try:
        done = subprocess.run(
            [path, "--print", "sysroot"],
            env={**os.environ, **{k: v for k, v in rustup.items() if os.path.isdir(v)}},
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        installed.skip_without("rustc")
    return Path(done.stdout.strip()) / "bin"


def played(person: Person, scenario: Scenario) -> str:
    """Run the session and return its id."""
    return person.converse(
        [(turn.prompt, played_at(person.project, turn.replies)) for turn in scenario.turns]
    )


def matches(node: dict[str, Any], expected: Expected) -> bool:
    return (
        f"kind:{expected.kind}" in node["tags"]
        and all(word in node["content"] for word in expected.words)
        and set(expected.files) <= set(node["metadata"].get("files", ()))
    )


def is_prompt(content: str, scenario: Scenario) -> bool:
    """Whether a node only repeats the prompt."""
    return any(content.strip() == turn.prompt.strip() for turn in scenario.turns[:1])


def flat(section: str | Sequence[str]) -> str:
    return section if isinstance(section, str) else "\n".join(section)
