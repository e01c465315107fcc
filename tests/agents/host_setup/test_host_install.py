"""Every host: its files are changed, and restored to the byte."""

import os
from pathlib import Path

import pytest

from ctx.agents.host_setup import host_install, known_setups
from ctx.agents.host_setup.host_install import HostParts
from ctx.agents.host_setup.host_setups import HostSetup, Machine, find_host

HOSTS = known_setups.SETUPS

JSON = """\
{
\t// mine
\t"mcpServers": { "other": {"command": "x"} , },
\t"servers": {},  "context_servers": {"a": {}},
\t"mcp": {

\t},
\t"hooks": {
\t\t"Stop": [ { "hooks": [ { "type": "command", "command": "make lint" } ] } ]
\t}
}
"""
TOML = """\
model = "m" # mine
[mcp_servers.other]
command = 'x'
# the end"""
YAML = """\
GOOSE_MODEL: m # mine
extensions:
    developer:
        enabled: true
"""
FOREIGN = {".toml": TOML, ".yaml": YAML, ".json": JSON}
OURS_ALONE = ("ctx.js", "ctx.json")


@pytest.fixture
def machine(surroundings: Path) -> Machine:
    return Machine(str(surroundings), {"PATH": "/usr/bin:/bin"}, str(surroundings / ".ctx"))


def tree(home: str) -> dict[str, bytes | None]:
    """Everything in a home but our own folder."""
    return {
        str(path): path.read_bytes() if path.is_file() else None
        for path in Path(home).rglob("*")
        if ".ctx" not in path.parts
    }


def install(host: HostSetup, machine: Machine) -> None:
    assert list(host_install.write_files(host, machine, HostParts()))


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_in_and_out_again(machine: Machine, host: HostSetup) -> None:
    """Into files with comments, odd formatting and the entries of others."""
    for path in {Path(file.path) for file in host.files(machine)}:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.name not in OURS_ALONE:
            path.write_text(FOREIGN[path.suffix])
        else:
            (path.parent / "theirs").write_text("x")
    before = tree(machine.home)
    assert not host_install.is_registered(host, machine)
    install(host, machine)
    installed = tree(machine.home)
    assert installed != before
    assert host_install.is_registered(host, machine)
    for change in host_install.write_files(host, machine, HostParts()):
        assert not change.is_one
    assert tree(machine.home) == installed
    assert all(change.is_one for _, change in host_install.remove_files(host, machine))
    assert tree(machine.home) == before


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_what_was_created_is_gone_afterwards(machine: Machine, host: HostSetup) -> None:
    install(host, machine)
    assert find_host(host, machine)
    list(host_install.remove_files(host, machine))
    assert tree(machine.home) == {}
    assert not find_host(host, machine)


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_an_older_installation_is_updated(
    machine: Machine, host: HostSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr("sys.executable", "/an/older/bin/python")
        install(host, machine)
    files = host.files(machine)
    changes = list(host_install.write_files(host, machine, HostParts()))
    for file, change in zip(files, changes, strict=True):
        assert host_install.added_part(file, change).state == "updated"
        assert "/an/older" not in (change.after or "") or file.path == files[-1].path
    assert "/an/older" not in Path(files[-1].path).read_text()
    list(host_install.remove_files(host, machine))
    assert tree(machine.home) == {}


def test_hosts_of_other_homes(machine: Machine, tmp_path: Path) -> None:
    """Hosts whose folder a variable names."""
    names = {"CODEX_HOME": "codex", "COPILOT_HOME": "copilot", "QWEN_HOME": "qwen"}
    names["XDG_CONFIG_HOME"] = "opencode"
    for variable, name in names.items():
        moved = machine._replace(variables={variable: str(tmp_path / "elsewhere")})
        for file in known_setups.setup_named(name).files(moved):
            assert file.path.startswith(str(tmp_path / "elsewhere"))


def test_a_host_is_found_by_its_program_or_its_folder(machine: Machine, tmp_path: Path) -> None:
    codex = known_setups.setup_named("codex")
    assert find_host(codex, machine) == ""
    os.mkdir(codex.folder(machine))
    assert find_host(codex, machine) == codex.folder(machine)
    program = tmp_path / "codex"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert find_host(codex, machine._replace(variables={"PATH": str(tmp_path)})) == str(program)
