"""The files that a release needs name the same version, and what GitHub reads is valid."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from ctx import __version__

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
TEMPLATES = sorted(
    set((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")) - {GITHUB / "ISSUE_TEMPLATE/config.yml"}
)
PIN = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40}")


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def test_the_changelog_begins_with_unreleased_and_this_version() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert headings[1].split()[0] == __version__


def test_the_citation_has_what_its_format_requires() -> None:
    citation = load(ROOT / "CITATION.cff")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert citation["cff-version"] == "1.2.0"
    assert citation["message"]
    assert citation["title"]
    assert citation["authors"]
    assert citation["type"] == "software"
    assert citation["version"] == __version__
    assert citation["license"] == project["license"]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_an_issue_form_has_what_github_requires(path: Path) -> None:
    form = load(path)
    assert form["name"]
    assert form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert fields
    assert all(field["attributes"]["label"] for field in fields)
    assert len({field["id"] for field in fields}) == len(fields)


@pytest.mark.parametrize("path", sorted((GITHUB / "workflows").glob("*.yml")), ids=lambda p: p.stem)
def test_a_workflow_may_only_read_and_names_exact_versions(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"]
        assert job.get("permissions") is None
        for step in job["steps"]:
            assert "uses" not in step or PIN.fullmatch(step["uses"])


def test_the_workflow_runs_the_same_script_on_linux_and_macos() -> None:
    jobs = load(GITHUB / "workflows" / "ci.yml")["jobs"]
    machines = [job["runs-on"].split("-")[0] for job in jobs.values()]
    assert sorted(machines) == ["macos", "ubuntu"]
    for job in jobs.values():
        assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
