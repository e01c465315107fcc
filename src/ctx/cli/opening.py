"""From the settings of a command line to an open workspace."""

from ctx.cli.output import Output
from ctx.cli.settings import Settings
from ctx.workspace import Surroundings, Workspace, open_project


def open_workspace(settings: Settings, output: Output) -> Workspace:
    """The project that the command works on; what its configuration ignores is said once."""
    workspace = open_project(
        Surroundings(
            settings.folder,
            settings.user_store,
            settings.environment,
            settings.overrides,
            settings.joined_session,
        )
    )
    for warning in workspace.config.warnings:
        output.warn(warning)
    return workspace
