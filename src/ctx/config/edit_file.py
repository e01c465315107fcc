"""Changes one value in a configuration file and nothing else.

Comments, order and spacing are kept. The new text is parsed before it is written: exactly one value
may differ. Concurrent changes wait for each other.
"""

import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from ctx import disk, interrupts, locks
from ctx.config import config_files, schema, setting
from ctx.config.setting import Setting, Value
from ctx.errors import ConfigInvalid, LockConflict

_LOCK_SECONDS = 5.0
_LONGEST_LINE = 90

Tables = dict[str, Any]


class SettingChange(NamedTuple):
    """A change of one setting in one file. None: not set there."""

    key: str
    old: Value | None
    new: Value | None
    file: str
    changed: bool


def set_value(place: config_files.ConfigPlace, known: Setting, value: Value) -> SettingChange:
    """Write a value that the schema has accepted."""
    return _change(place, known, value)


def unset(place: config_files.ConfigPlace, known: Setting) -> SettingChange:
    return _change(place, known, None)


def _change(place: config_files.ConfigPlace, known: Setting, value: Value | None) -> SettingChange:
    # The real path, so that a dotfile manager's link is kept. A link in a clone may point
    # anywhere, so it is never followed for writing.
    if place.layer == "project" and os.path.islink(place.path):
        raise ConfigInvalid(
            f"{place.label} is a link, and ctx does not write through a project's links.",
            hint="Change the file that it leads to with an editor.",
        )
    path = os.path.realpath(place.path)
    if value is None and not os.path.exists(path):
        return SettingChange(known.name, None, None, path, changed=False)
    with disk.explain_errors(f"changing {place.label}"), _lock_folder(os.path.dirname(path)):
        file = config_files.read(place)
        text, tables = (file.text, file.tables) if file else ("", {})
        table = tables.get(known.section, {})
        if not isinstance(table, dict):
            raise ConfigInvalid(
                f"{place.label}: {known.section} must be a table.",
                hint=f"Write [{known.section}] on a line of its own, and its keys below it.",
            )
        # The current name first: it wins if both are set.
        standing = sorted(_keys(known) & table.keys(), key=lambda key: key != known.key)
        raw = table[standing[0]] if standing else None
        accepted = setting.accept(known, raw)
        old = accepted
        if standing and accepted is None:
            # An invalid value is replaced too, and reported as it is in the file.
            old = raw if isinstance(raw, bool | int | float | str) else setting.shown(raw)
        is_so = not standing if value is None else standing == [known.key] and accepted == value
        change = SettingChange(known.name, old, value, path, changed=not is_so)
        if change.changed:
            _write(path, _change_value(place.label, text, tables, known, value))
        return change


def _change_value(
    label: str, text: str, tables: Tables, known: Setting, value: Value | None
) -> str:
    """The text with only this value changed."""
    rest = {
        key: raw for key, raw in tables.get(known.section, {}).items() if key not in _keys(known)
    }
    plain = list(value) if isinstance(value, tuple) else value
    wanted = {**tables, known.section: rest if value is None else {**rest, known.key: plain}}
    as_by_hand = (
        _comment_out_setting(text, known)
        if value is None
        else _uncomment_setting(text, known, value)
    )
    for candidate in as_by_hand:
        if _parses_to(candidate, wanted):
            return candidate
    candidate = _rewritten(text, known, plain)
    if not _parses_to(candidate, wanted):
        raise ConfigInvalid(
            f"{label} is written in a way that ctx cannot change safely.",
            hint=f"Change [{known.section}] {known.key} with an editor.",
        )
    return candidate


def _uncomment_setting(text: str, known: Setting, value: Value) -> Iterator[str]:
    """Uncomment the setting: `# keep_days = 7` loses its `#` and gets the new value.

    The same key may be commented out in several sections; parsing shows which one was right.
    """
    for match in re.finditer(rf"^#[ \t]*({_line(known)})", text, re.MULTILINE):
        # Skip the first line of a multi-line array.
        if _reads(match[1]) is not None:
            line = f"{known.key} = {setting.as_toml(value)}"
            yield text[: match.start()] + line + text[match.end() :]


def _comment_out_setting(text: str, known: Setting) -> Iterator[str]:
    """The reverse: below its description, the line becomes the commented default."""
    described = re.escape(f"# {known.doc}")
    for match in re.finditer(rf"^{described}\r?\n({_line(known)})", text, re.MULTILINE):
        line = f"# {known.key} = {setting.as_toml(known.default)}"
        yield text[: match.start(1)] + line + text[match.end(1) :]


def _line(known: Setting) -> str:
    return rf"{re.escape(known.key)}[ \t]*=[^\r\n]*"


def _rewritten(text: str, known: Setting, value: object) -> str:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document: Any = tomlkit.parse(text)
        for key in _keys(known) if value is None else _keys(known) - {known.key}:
            document.get(known.section, {}).pop(key, None)
        if value is not None:
            item: Any = tomlkit.item(value)
            if isinstance(value, list) and len(item.as_string()) > _LONGEST_LINE:
                item.multiline(True)
            if known.section not in document:
                document[known.section] = tomlkit.table()
            document[known.section][known.key] = item
        changed = tomlkit.dumps(document)
    except TOMLKitError:
        return ""
    # New lines get the file's line ending.
    return changed.replace("\r\n", "\n").replace("\n", "\r\n") if "\r\n" in text else changed


def _parses_to(text: str, wanted: Tables) -> bool:
    """Whether the text parses to these tables. Empty sections are ignored."""
    found = _reads(text)
    if found is None:
        return False
    return {k: v for k, v in found.items() if v != {}} == {
        k: v for k, v in wanted.items() if v != {}
    }


def _reads(text: str) -> Tables | None:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def _keys(known: Setting) -> set[str]:
    """The key of a setting and its old names, which a change removes."""
    older = {old.partition(".")[2] for old, new in schema.RENAMED.items() if new == known.name}
    return {known.key} | older


@contextmanager
def _lock_folder(folder: str) -> Iterator[None]:
    """Lock the folder. The file itself cannot be locked: a change replaces it."""
    disk.make_folder(folder)
    fd = os.open(folder, os.O_RDONLY)
    try:
        # Some network file systems have no locks; there, the last writer wins.
        with suppress(OSError):
            if not locks.wait_for(fd, _LOCK_SECONDS):
                raise LockConflict(f"Another process is changing settings in {folder}.")
        yield
    finally:
        os.close(fd)


def _write(path: str, text: str) -> None:
    mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else disk.FILE_MODE
    interrupts.defer()
    disk.replace(path, text.encode())
    if mode != disk.FILE_MODE:
        os.chmod(path, mode)
