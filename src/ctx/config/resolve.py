"""Where a value comes from: default, user file, project file, environment, flag; later ones win.

`load` is for commands: it gives a configuration that can be relied on, or says what is wrong.
`survey` is for whoever explains a configuration: it goes on after a mistake and lists them all.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

from ctx.config import config_files, schema, setting
from ctx.config.setting import Setting, Value
from ctx.errors import ConfigInvalid, UsageError

Layer = Literal["default", "user", "project", "environment", "flag"]
Ignored = tuple[tuple[str, ...], str]
"""A key in a file and why it is ignored; no reason if it is unknown."""

# Limit the warnings about one file.
MOST_WARNINGS = 10

_NOT_SETTINGS = frozenset(
    {"CTX_HOME", "CTX_DB", "CTX_SESSION", "CTX_OFF", "CTX_PATIENCE", "CTX_SYNC_PASSPHRASE"}
)

_T = TypeVar("_T")


class SettingSource(NamedTuple):
    """Where a value is set."""

    layer: Layer
    label: str
    """The file, the variable or the flag."""
    file: config_files.ConfigFile | None = None
    key: tuple[str, str] = ("", "")
    """The key in the file; may be an old name of the setting."""

    @property
    def place(self) -> str:
        """As in messages: `.ctx/config.toml:12`, `CTX_GC_KEEP_DAYS`, `--set …`, `default`."""
        return self.file.at(*self.key) if self.file else self.label


class SettingMention(NamedTuple):
    """A value from one layer."""

    source: SettingSource
    value: Value


class Config(NamedTuple):
    """Every setting with its value. An unknown name raises `KeyError`."""

    values: Mapping[str, Value]
    mentions: Mapping[str, Sequence[SettingMention]]
    """The values that are set, in the order of the layers: the last one wins."""
    warnings: tuple[str, ...] = ()
    problems: tuple[ConfigInvalid, ...] = ()
    """Always empty in what `load` returns."""

    def flag(self, name: str) -> bool:
        return self._typed_value(name, bool)

    def integer(self, name: str) -> int:
        return self._typed_value(name, int)

    def number(self, name: str) -> float:
        return self._typed_value(name, float)

    def text(self, name: str) -> str:
        return self._typed_value(name, str)

    def choice(self, name: str) -> str:
        if not schema.SETTINGS[name].choices:
            raise TypeError(f"{name} is not a choice")
        return self._typed_value(name, str)

    def texts(self, name: str) -> tuple[str, ...]:
        return self._typed_value(name, tuple)

    def explain(self, name: str) -> tuple[SettingMention, ...]:
        """Every layer that sets a value, the default first; the last one wins."""
        default = SettingMention(SettingSource("default", "default"), schema.SETTINGS[name].default)
        return default, *self.mentions.get(name, ())

    def _typed_value(self, name: str, kind: type[_T]) -> _T:
        value = self.values[name]
        # Exact: bool is a subclass of int, and the wrong kind is a bug.
        if type(value) is not kind:
            raise TypeError(f"{name} is a {type(value).__name__}, not a {kind.__name__}")
        return value


def load(
    user_file: str,
    project_file: str | None,
    environment: Mapping[str, str],
    overrides: Sequence[str],
) -> Config:
    """The configuration; raises the first error as `ConfigInvalid`."""
    config = survey(user_file, project_file, environment, overrides)
    if config.problems:
        raise config.problems[0]
    return config


def survey(
    user_file: str,
    project_file: str | None,
    environment: Mapping[str, str],
    overrides: Sequence[str],
) -> Config:
    """The configuration as far as it is valid, with all problems."""
    reading = _ConfigReader()
    reading.read_file(config_files.ConfigPlace("user", user_file))
    if project_file is not None:
        reading.read_file(config_files.ConfigPlace("project", project_file))
    reading.read_environment(environment)
    reading.read_overrides(overrides)
    values = {name: found.default for name, found in schema.SETTINGS.items()}
    values.update((name, said[-1].value) for name, said in reading.mentions.items())
    warnings = reading.warnings
    if reading.without_effect:
        named = ", ".join(reading.without_effect)
        warnings = [*warnings, f"Without effect, and can be removed: {named}."]
    return Config(values, reading.mentions, tuple(warnings), tuple(reading.problems))


class _ConfigReader:
    """Collects the values of all layers."""

    def __init__(self) -> None:
        self.mentions: dict[str, list[SettingMention]] = {}
        self.warnings: list[str] = []
        self.without_effect: list[str] = []
        self.problems: list[ConfigInvalid] = []

    def read_file(self, place: config_files.ConfigPlace) -> None:
        try:
            file = config_files.read(place)
        except ConfigInvalid as problem:
            self.problems.append(problem)
            return
        if file is None:
            return
        ignored: list[Ignored] = []
        for section, table in file.tables.items():
            if section not in schema.SECTIONS:
                ignored.append(((section,), ""))
            elif reason := _layer_refusal(place.layer, section):
                ignored.append(((section,), reason))
            elif not isinstance(table, dict):
                self.problems.append(
                    ConfigInvalid(
                        f"{file.at(section)}: {section} must be a table.",
                        hint=f"Write [{section}] on a line of its own, and its keys below it.",
                    )
                )
            else:
                ignored += self._read_section(place.layer, file, section, table)
        # The closest name is computed only for warnings that are shown.
        for key, reason in ignored[:MOST_WARNINGS]:
            self.warnings.append(f"{file.at(*key)}: {reason or _unknown(key)}")
        if len(ignored) > MOST_WARNINGS:
            self.warnings.append(
                f"{file.label}: and {len(ignored) - MOST_WARNINGS} more like these."
            )

    def _read_section(
        self, layer: Layer, file: config_files.ConfigFile, section: str, table: Mapping[str, object]
    ) -> list[Ignored]:
        """Read the known keys; return the ignored ones with a reason."""
        ignored: list[Ignored] = []
        for key, raw in table.items():
            name = f"{section}.{key}"
            known = schema.find(name)
            if name in schema.WITHOUT_EFFECT:
                self.without_effect.append(f"{name} ({file.at(section, key)})")
            elif known is None:
                ignored.append(((section, key), ""))
            elif known.key != key and known.key in table:
                ignored.append(((section, key), f"{name} is ignored: {known.name} is set as well."))
            else:
                self._set_value(known, raw, SettingSource(layer, file.label, file, (section, key)))
        return ignored

    def read_environment(self, environment: Mapping[str, str]) -> None:
        found: dict[str, str] = {}
        for variable, word in environment.items():
            # An empty variable means unset.
            if not variable.startswith("CTX_") or not word:
                continue
            known = schema.for_variable(variable)
            if known is not None:
                if known.name not in found or variable == known.variable:
                    found[known.name] = variable
            elif schema.is_without_effect(variable):
                self.without_effect.append(variable)
            elif variable not in _NOT_SETTINGS and (near := schema.nearest_variable(variable)):
                self.warnings.append(f"{variable} is ignored; did you mean {near}?")
        for name, variable in found.items():
            known = schema.SETTINGS[name]
            raw = setting.from_word(known, environment[variable])
            self._set_value(known, raw, SettingSource("environment", variable))

    def read_overrides(self, overrides: Sequence[str]) -> None:
        for override in overrides:
            name, equals, word = override.partition("=")
            if not equals:
                raise UsageError(
                    f"--set {override} has no value.", hint="Write --set KEY=VALUE, without spaces."
                )
            known = schema.setting_named(name.strip())
            raw = setting.from_word(known, word)
            self._set_value(known, raw, SettingSource("flag", f"--set {override}"))

    def _set_value(self, known: Setting, raw: object, source: SettingSource) -> None:
        if known.section in schema.USER_FILE_SECTIONS and source.layer != "user":
            self.warnings.append(
                f"{source.place} is ignored: {known.name} can only be set in your own file."
            )
            return
        if setting.is_without_effect(known, raw):
            self.warnings.append(f"{source.place}: {setting.refusal(known, raw)}.")
            return
        value = setting.accept(known, raw)
        if value is None:
            self.problems.append(
                ConfigInvalid(
                    f"{source.place}: {setting.refusal(known, raw)}.",
                    hint=f"`ctx config explain {known.name}` explains it.",
                )
            )
            return
        self.mentions.setdefault(known.name, []).append(SettingMention(source, value))


def _layer_refusal(layer: Layer, section: str) -> str:
    if layer == "project" and section not in schema.PROJECT_SECTIONS:
        return f"[{section}] is ignored: a project may not set it; your own file may."
    if layer == "user" and section in schema.PROJECT_ONLY_SECTIONS:
        return f"[{section}] is ignored: it names one project, and this file is for all of them."
    return ""


def _unknown(key: tuple[str, ...]) -> str:
    if len(key) == 1:
        near = schema.nearest(key[0], schema.SECTIONS)
        return f"there is no section [{_key_text(key[0])}]" + (
            f"; did you mean [{near}]?" if near else "."
        )
    near = schema.nearest(".".join(key), schema.SETTINGS)
    return f"there is no setting {key[0]}.{_key_text(key[1])}" + (
        f"; did you mean {near}?" if near else "."
    )


def _key_text(key: str) -> str:
    """A key from a file: quoted and escaped unless it is a plain word."""
    return key if key.isidentifier() and key.isascii() and len(key) < 60 else setting.shown(key)
