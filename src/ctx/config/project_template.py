"""The project file that `ctx init` writes: the project's name and the available settings."""

from ctx.config import schema
from ctx.config.setting import Setting, as_one_line, as_toml

_HEAD = """\
# Settings of this project for ctx; everybody who clones it gets them.
# A line that is commented out shows the default. `ctx config explain KEY` says more.
"""


def project_template(repo_id: str, version: str) -> str:
    """Deterministic, and generated from the schema."""
    # A folder name may contain line ends and invalid UTF-8.
    given = {"repo.id": as_one_line(repo_id), "repo.ctx_version": version}
    parts = [_HEAD]
    for section in schema.SECTIONS:
        settings = [s for s in schema.SETTINGS.values() if s.section == section and not s.is_fixed]
        if section in schema.PROJECT_SECTIONS and settings:
            lines = "\n".join(_entry(setting, given.get(setting.name)) for setting in settings)
            parts.append(f"[{section}]\n{lines}")
    return "\n".join(parts)


def _entry(setting: Setting, given: str | None) -> str:
    if given is None:
        return f"# {setting.doc}\n# {setting.key} = {as_toml(setting.default)}\n"
    return f"# {setting.doc}\n{setting.key} = {as_toml(given)}\n"
