"""The hosts that record: the one source of `ctx status`, the doctor and the page."""

import os

from ctx import layout
from ctx.agents import known_hosts
from ctx.agents.claude_code.settings import Setup
from ctx.agents.host_setup.host_setups import Machine
from ctx.cli import settings as surroundings
from ctx.cli.settings import Settings
from ctx.workspace import Environment


def recording_hosts(settings: Settings) -> tuple[str, ...]:
    """The titles of the hosts that run our hooks here, in whichever form they are registered."""
    store = settings.user_store
    environment = Environment(
        settings.folder, store, settings.environment, (), settings.joined_session
    )
    setup = Setup(environment, settings.claude_folder, (), {})
    found = []
    if setup.has_plugin or any(file.hooks or file.unmanaged for file in setup.files):
        found.append("Claude Code")
    project = layout.place(settings.folder, store.home).folder
    machine = Machine(settings.expanded("~"), surroundings.variables(), store.home, project)
    for host in known_hosts.setups():
        places = [host.folder(machine), *(file.path for file in host.files(machine))]
        if any(map(os.path.exists, places)):
            from ctx.agents.host_setup import host_checks

            if host_checks.records(host, machine):
                found.append(host.title)
    return tuple(found)
