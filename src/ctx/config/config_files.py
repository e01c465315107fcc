"""Reading a configuration file that may be hostile.

A project file may be a folder, a FIFO, huge, or slow to parse. Each case is an error with a file
name and a line, never a traceback, a hang or exhausted memory.
"""

import os
import stat
from typing import Any, Literal, NamedTuple

from ctx.errors import ConfigInvalid

LARGEST_FILE = 256 * 1024
# The standard library's parser is quadratic in the parts of a key: 22 s for 64 KiB.
MOST_KEY_PARTS = 100


class ConfigPlace(NamedTuple):
    """The path of a configuration file, whether or not it exists."""

    layer: Literal["user", "project"]
    path: str

    @property
    def label(self) -> str:
        """The name in messages. There is only one project file, so `.ctx/config.toml` is enough."""
        if self.layer == "user":
            return self.path
        folder, name = os.path.split(self.path)
        return os.path.join(os.path.basename(folder), name)


class ConfigFile:
    """A parsed file. Line numbers are computed on demand."""

    def __init__(self, label: str, text: str, tables: dict[str, Any]) -> None:
        self.label = label
        self.text = text
        self.tables = tables
        self._lines: dict[tuple[str, ...], int] | None = None

    def at(self, *key: str) -> str:
        """The position of a key: `.ctx/config.toml:12`."""
        if self._lines is None:
            from ctx.config.toml_lines import key_lines

            self._lines = key_lines(self.text)
        line = self._lines.get(key)
        return f"{self.label}:{line}" if line else self.label


def read(place: ConfigPlace) -> ConfigFile | None:
    """The file, or None if it does not exist."""
    data = _bytes(place.path, place.label)
    if data is None:
        return None
    try:
        # Some editors write a byte order mark.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigInvalid(
            f"{place.label}:{line}: this is not UTF-8 text.", hint="Save the file as UTF-8."
        ) from None
    return ConfigFile(place.label, text, parse(text, place.label))


def parse(text: str, label: str) -> dict[str, Any]:
    if not text or text.isspace():
        return {}
    import tomllib

    for number, line in enumerate(text.split("\n"), 1):
        key = line if line.lstrip().startswith("[") else line.rpartition("=")[0]
        if key.count(".") >= MOST_KEY_PARTS:
            raise ConfigInvalid(f"{label}:{number}: this key has too many parts.", hint="")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigInvalid(f"{label}: brackets are nested too deep.", hint="") from None
    except ValueError as error:
        # Not only TOMLDecodeError: a number of thousands of digits is a plain ValueError.
        raise ConfigInvalid(
            _error_location(str(error), text, label), hint="The file must be valid TOML."
        ) from None


def _bytes(path: str, label: str) -> bytes | None:
    try:
        # Opening a FIFO would block until somebody writes.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            mode = os.fstat(fd).st_mode
            if not stat.S_ISREG(mode):
                what = "a folder" if stat.S_ISDIR(mode) else "not a plain file"
                raise ConfigInvalid(f"{label} is {what}.", hint="Move it away.")
            with open(fd, "rb", closefd=False) as file:
                data = file.read(LARGEST_FILE + 1)
        finally:
            os.close(fd)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            raise ConfigInvalid(
                f"{label} is a broken link.", hint="Remove it, or create its target."
            ) from None
        return None
    except OSError as error:
        raise ConfigInvalid(
            f"{label} cannot be read: {error.strerror}.",
            hint="Check who owns it and its permissions.",
        ) from None
    if len(data) > LARGEST_FILE:
        raise ConfigInvalid(
            f"{label} has more than {LARGEST_FILE // 1024} KiB: too large for settings.",
            hint="Move it away, and `ctx config set` starts a new one.",
        )
    return data


def _error_location(message: str, text: str, label: str) -> str:
    """`Expected … (at line 3, column 5)` as `FILE:3:5: expected …`."""
    reason, _, place = message.rpartition(" (at ")
    match place.rstrip(")").replace(",", "").split():
        case ["line", line, "column", column]:
            where = f"{label}:{line}:{column}"
        case ["end", "of", "document"]:
            last = text.rstrip("\n").split("\n")
            where = f"{label}:{len(last)}:{len(last[-1]) + 1}"
        case _:
            reason, where = message, label
    # The message quotes the file: keep control characters off the terminal.
    reason = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in reason)
    return f"{where}: {reason[:1].lower()}{reason[1:]}."
