"""One setting: what it takes, and how a value is read from a file or from a word.

A value has the same meaning wherever it stands. A file gives TOML values; the environment and
the command line give words, which `from_word` turns into what TOML would have given. `accept`
then decides for all of them.
"""

import re
from typing import Literal, NamedTuple

Value = bool | int | float | str | tuple[str, ...]
Kind = Literal["flag", "whole", "number", "text", "texts", "choice"]

_WORDS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_LONGEST_TEXT = 1_000
_LONGEST_SHOWN = 60


class Setting(NamedTuple):
    """A row of the schema."""

    name: str
    kind: Kind
    default: Value
    doc: str
    low: float = 0
    high: float = 0
    choices: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    """Allowed prefixes of a non-empty text, if any."""
    form: str = ""
    """A pattern for the text, or for each text of a list, if any."""
    example: str = ""
    """A text that matches it."""
    instead: str = ""
    """What applies instead of a value from old files that has no effect."""
    older: tuple[Value, ...] = ()
    """Such values. A file may contain them; `ctx config set` refuses them."""

    @property
    def section(self) -> str:
        return self.name.partition(".")[0]

    @property
    def key(self) -> str:
        return self.name.partition(".")[2]

    @property
    def variable(self) -> str:
        return variable_of(self.name)

    @property
    def is_fixed(self) -> bool:
        """Whether there is only one value; the setting exists because old files have it."""
        one_number = self.kind == "whole" and self.low == self.high
        return one_number or len(self.choices) == 1 or bool(self.older)

    @property
    def takes(self) -> str:
        """Completes the sentence `NAME must be …`."""
        match self.kind:
            case "flag":
                return "true or false"
            case "whole" if self.low == self.high:
                return f"{self.low}, the only value there is"
            case "whole":
                return f"a whole number from {self.low} to {self.high}"
            case "number":
                return f"a number from {self.low:g} to {self.high:g}"
            case "text" if self.starts:
                return f"a text that starts with {_join_with_or(self.starts)}"
            case "text" if self.example:
                return f'a text like "{self.example}"'
            case "text":
                return "a text of one line"
            case "texts" if self.example:
                return f'a list of texts like "{self.example}"'
            case "texts":
                return "a list of texts"
            case "choice":
                return _join_with_or(tuple(map(as_toml, self.choices)))


def variable_of(name: str) -> str:
    """The environment variable: `CTX_GC_KEEP_DAYS` for `gc.keep_days`."""
    return "CTX_" + name.replace(".", "_").upper()


def accept(setting: Setting, raw: object) -> Value | None:
    """The value, if it is valid for the setting. None is never a value."""
    match setting.kind:
        case "flag":
            return raw if isinstance(raw, bool) else None
        case "whole":
            # bool is a subclass of int in Python.
            if isinstance(raw, int) and not isinstance(raw, bool):
                return raw if setting.low <= raw <= setting.high else None
        case "number":
            # Comparisons with nan are false, so the bounds reject it too.
            if isinstance(raw, int | float) and not isinstance(raw, bool):
                return float(raw) if setting.low <= raw <= setting.high else None
        case "text":
            if isinstance(raw, str) and _is_one_line(raw):
                fits = not setting.starts or not raw or raw.startswith(setting.starts)
                fits = fits and (not setting.form or re.fullmatch(setting.form, raw) is not None)
                return raw if fits else None
        case "texts":
            if isinstance(raw, list | tuple):
                texts = tuple(item for item in raw if isinstance(item, str) and _is_one_line(item))
                has_form = not setting.form or all(re.fullmatch(setting.form, t) for t in texts)
                return texts if len(texts) == len(raw) and has_form else None
        case "choice":
            return raw if isinstance(raw, str) and raw in setting.choices else None
    return None


def from_word(setting: Setting, word: str) -> object:
    """The TOML value of a word; the word itself if it cannot be parsed.

    A list is written with commas, or as a TOML array if an item contains a comma.
    """
    try:
        match setting.kind:
            case "flag":
                return _WORDS.get(word.strip().lower(), word)
            case "whole":
                return int(word)
            case "number":
                return float(word)
            case "texts" if word.lstrip().startswith("["):
                return _from_array(word)
            case "texts":
                return [part.strip() for part in word.split(",") if part.strip()]
    except ValueError:
        pass
    return word


def is_without_effect(setting: Setting, raw: object) -> bool:
    return any(type(raw) is type(value) and raw == value for value in setting.older)


def refusal(setting: Setting, raw: object) -> str:
    """Why a value is invalid, as a sentence without its full stop."""
    if is_without_effect(setting, raw):
        return f"{setting.name} = {shown(raw)} has no effect: {setting.instead}"
    return f"{setting.name} must be {setting.takes}, not {shown(raw)}"


def shown(raw: object) -> str:
    """A value as it appears in the file, shortened for a message."""
    match raw:
        case bool() | int() | float() | str():
            text = as_toml(raw)
        case dict():
            text = "a table"
        case list() | tuple():
            text = "[" + ", ".join(map(shown, raw)) + "]"
        case _:  # Dates and times are TOML values too.
            text = str(raw)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def as_toml(value: Value) -> str:
    """A value as TOML. Control characters are escaped."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            # Python refuses to format a number of thousands of digits.
            return str(value) if value.bit_length() < 1024 else "a huge number"
        case float():
            return repr(value)
        case str():
            return '"' + "".join(map(_escaped, value)) + '"'
        case _:
            return "[" + ", ".join(map(as_toml, value)) + "]"


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if _is_control(character):
        return f"\\u{ord(character):04x}"
    return character


def _is_control(character: str) -> bool:
    """Control characters and lone surrogates."""
    code = ord(character)
    return code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000


def as_one_line(text: str) -> str:
    """A valid one-line text made from any text."""
    return "".join("-" if _is_control(character) else character for character in text)[
        :_LONGEST_TEXT
    ]


def _is_one_line(text: str) -> bool:
    return len(text) <= _LONGEST_TEXT and not any(map(_is_control, text))


def _from_array(word: str) -> object:
    import tomllib

    try:
        tables = tomllib.loads(f"value = {word}")
    except RecursionError:
        return word
    # A multi-line word could contain more than the array.
    return tables["value"] if len(tables) == 1 else word


def _join_with_or(words: tuple[str, ...]) -> str:
    return ", ".join(words[:-1]) + " or " + words[-1] if len(words) > 1 else words[0]
