"""`ctx config`: read and change settings."""

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ctx import layout
from ctx.cli import opening, options
from ctx.cli.output import Block, Line, Output, Table
from ctx.cli.settings import Settings
from ctx.config import resolve, schema, setting
from ctx.config.config_files import ConfigPlace
from ctx.config.resolve import Config, Layer
from ctx.config.setting import Setting, Value, as_toml
from ctx.errors import ContentRefused, StoreNotTrusted, UsageError

if TYPE_CHECKING:
    from ctx.config.edit_file import SettingChange

EXAMPLES = """
ctx config list --changed                          what differs from the defaults, and where
ctx config get retrieval.default_budget
ctx config set retrieval.default_budget 24000      in this project, if there is one
ctx config set llm.backend claude_cli --user       for yourself, everywhere
ctx config explain gc.keep_days                    what it means and where its value comes from
"""


class ConfigValue(NamedTuple):
    """A setting's value and where it comes from."""

    key: str
    value: Value
    layer: Layer
    place: str


class ConfigList(NamedTuple):
    settings: tuple[ConfigValue, ...]


class ConfigLayer(NamedTuple):
    """The value of a setting in one layer."""

    layer: Layer
    place: str
    value: Value
    wins: bool


class ConfigExplanation(NamedTuple):
    key: str
    doc: str
    takes: str
    default: Value
    value: Value
    variables: tuple[str, ...]
    files: tuple[str, ...]
    """The files that may set it: `user`, `project`."""
    layers: tuple[ConfigLayer, ...]


def prepare(words: list[str]) -> list[str]:
    """`ctx config` alone is `ctx config list --changed`."""
    found = options.with_subcommand(words, "list")
    return found if found == words else [*found, "--changed"]


def configure(parser: argparse.ArgumentParser) -> None:
    group = options.subcommands(parser)

    get = options.add_subcommand(
        group, "get", "print the value of a setting", "ctx config get gc.keep_days"
    )
    _key_argument(get)

    change = options.add_subcommand(
        group,
        "set",
        "write a setting into a file",
        """
ctx config set storage.compression_level 9
ctx config set ingestion.ignore_globs "target/**,dist/**"
ctx config set ingestion.ignore_globs '["a,b/**", "dist/**"]'
ctx config set gc.keep_days 30 --user
""",
    )
    _key_argument(change)
    change.add_argument("value", metavar="VALUE", help="lists: with commas, or as a TOML array")
    _file_options(change)

    unset = options.add_subcommand(
        group,
        "unset",
        "remove a setting from a file",
        "ctx config unset storage.compression_level\nctx config unset gc.keep_days --user",
    )
    _key_argument(unset)
    _file_options(unset)

    listing = options.add_subcommand(
        group,
        "list",
        "list all settings, their values, and where those come from",
        "ctx config list\nctx config list --changed --format json",
    )
    options.flag(listing, "--changed", "only those that are set somewhere")

    explain = options.add_subcommand(
        group,
        "explain",
        "show what a setting means and every place that sets it",
        "ctx config explain retrieval.default_budget",
    )
    _key_argument(explain)


def run(parsed: argparse.Namespace, settings: Settings, output: Output) -> None:
    match parsed.subcommand:
        case "get":
            config = resolve.load(*_sources(settings, output))
            output.show(_answer(config, schema.setting_named(parsed.key)), _render_value)
        case "list":
            config = resolve.load(*_sources(settings, output))
            answers = (_answer(config, known) for known in schema.SETTINGS.values())
            listed = (each for each in answers if not parsed.changed or each.layer != "default")
            output.show(ConfigList(tuple(listed)), _render_listing)
        case "explain":
            # Works with a broken configuration, because people use it to find the problem.
            config = resolve.survey(*_sources(settings, output))
            output.show(_explanation(config, schema.setting_named(parsed.key)), _render_explanation)
        case "set" | "unset":
            known = schema.setting_named(parsed.key)
            place = _place(parsed, settings, known, output)
            output.show(_change(parsed, place, known), _render_change)
            # Read again: another file, a variable or a flag may override it.
            config = resolve.survey(*_sources(settings, output))
            source, value = config.explain(known.name)[-1]
            if source.layer not in ("default", place.layer):
                output.note(f"{source.place} overrides it: {known.name} is {as_toml(value)} here.")
    for message in (*(problem.message for problem in config.problems), *config.warnings):
        output.warn(message)


def _sources(
    settings: Settings, output: Output
) -> tuple[str, str | None, Mapping[str, str], Sequence[str]]:
    user = settings.user_store
    project = opening.trusted_project(settings, output)
    project_file = project.config_file if project else None
    return user.config_file, project_file, settings.environment, settings.overrides


def _answer(config: Config, known: Setting) -> ConfigValue:
    source, value = config.explain(known.name)[-1]
    return ConfigValue(known.name, value, source.layer, source.place)


def _explanation(config: Config, known: Setting) -> ConfigExplanation:
    mentions = config.explain(known.name)
    return ConfigExplanation(
        known.name,
        known.doc,
        known.takes,
        known.default,
        config.values[known.name],
        schema.variables(known),
        tuple(layer for layer in ("user", "project") if _may_hold(layer, known)),
        tuple(
            ConfigLayer(
                mention.source.layer, mention.source.place, mention.value, mention is mentions[-1]
            )
            for mention in mentions
        ),
    )


def _may_hold(layer: str, known: Setting) -> bool:
    if layer == "project":
        return known.section in schema.PROJECT_SECTIONS
    return known.section not in schema.PROJECT_ONLY_SECTIONS


def _place(
    parsed: argparse.Namespace, settings: Settings, known: Setting, output: Output
) -> ConfigPlace:
    """The file to change: the requested one, else the project's if it may have the setting."""
    user = ConfigPlace("user", settings.user_store.config_file)
    if parsed.scope is None:
        project = opening.trusted_project(settings, output)
        if project and _may_hold("project", known):
            return ConfigPlace("project", project.config_file)
    elif parsed.scope == "project":
        if not _may_hold("project", known):
            raise UsageError(
                f"A project cannot set {known.name}: it would affect everybody who clones it.",
                hint="Set it for yourself with --user.",
            )
        layout.require_project(settings.folder, settings.user_store.home)
        project = opening.trusted_project(settings, output)
        if project is None:
            raise StoreNotTrusted(
                "The project store is not trusted, so its settings cannot be changed."
            )
        return ConfigPlace("project", project.config_file)
    if not _may_hold("user", known):
        raise UsageError(
            f"{known.name} can only be set in a project file.",
            hint="Run this in a project; `ctx init` creates one.",
        )
    return user


def _change(parsed: argparse.Namespace, place: ConfigPlace, known: Setting) -> "SettingChange":
    from ctx.config import edit_file
    from ctx.redaction import redact

    if parsed.subcommand == "unset":
        return edit_file.unset(place, known)
    if redact(f"{known.name} = {parsed.value}").findings:
        raise ContentRefused(
            "The value contains a secret.",
            hint="Secrets are not stored. Put it into an environment variable.",
        )
    raw = setting.from_word(known, parsed.value)
    value = setting.accept(known, raw)
    if value is None or setting.is_without_effect(known, raw):
        raise UsageError(
            f"{setting.refusal(known, raw)}.",
            hint=f"See `ctx config explain {known.name}`.",
        )
    return edit_file.set_value(place, known, value)


def _key_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="such as gc.keep_days; see `ctx config list`")


def _file_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    for scope, whose in (("user", "your own"), ("project", "the project's")):
        group.add_argument(
            f"--{scope}",
            action="store_const",
            const=scope,
            dest="scope",
            help=f"change {whose} file",
        )


def _render_value(answer: ConfigValue) -> list[Block]:
    """The bare value, for scripts; a list has one item per line."""
    if isinstance(answer.value, str):
        return [Line(answer.value)]
    if isinstance(answer.value, tuple):
        return [Line(item) for item in answer.value]
    return [Line(as_toml(answer.value))]


def _render_listing(listing: ConfigList) -> list[Block]:
    rows = [(each.key, as_toml(each.value), each.place) for each in listing.settings]
    if not rows:
        return [Line("All settings have their defaults. `ctx config list` shows them.")]
    return [Table(("setting", "value", "from"), rows)]


def _render_explanation(explained: ConfigExplanation) -> list[Block]:
    rows = [
        (layer.place, as_toml(layer.value), "wins" if layer.wins else "")
        for layer in explained.layers
    ]
    files = " or ".join(explained.files)
    variables = f", or by {' or '.join(explained.variables)}" if explained.variables else ""
    return [
        Line(f"{explained.key} = {as_toml(explained.value)}"),
        Line(explained.doc),
        Line(f"It must be {explained.takes}."),
        Line(f"Set it in the {files} file{variables}."),
        Table(("from", "value", ""), rows),
    ]


def _render_change(change: "SettingChange") -> list[Block]:
    old, new = (None if v is None else as_toml(v) for v in (change.old, change.new))
    if not change.changed:
        state = "not set" if new is None else f"{new} already"
        return [Line(f"{change.key} is {state} in {change.file}.")]
    return [Line(f"{change.key}: {old or 'not set'} → {new or 'not set'} in {change.file}")]
