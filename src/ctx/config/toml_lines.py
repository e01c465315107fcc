"""On which line of a TOML document a key stands.

`tomllib` says where a document breaks, and not where a value came from. This scanner is only
given documents that `tomllib` has read, so it need not notice mistakes: it follows headers,
keys, inline tables and brackets, and skips everything else.
"""

import re
import tomllib

Path = tuple[str, ...]

_TOKEN = re.compile(
    r'''
      \#[^\n]*                                  # a comment
    | """(?:[^\\]|\\.)*?"{3,5}                  # strings of several lines may end in more quotes
    | \'\'\'.*?\'{3,5}
    | "(?:[^"\\\n]|\\.)*"
    | '[^'\n]*'
    | [\[\]{}=,.\n]
    | [^\s"'\#\[\]{}=,.]+                       # a bare key, or a part of a value
    ''',
    re.VERBOSE | re.DOTALL,
)


def key_lines(text: str) -> dict[Path, int]:
    """The line of every key and table, from 1; the first if there are several.

    Keys inside arrays are skipped: no setting is a list of tables.
    """
    lines: dict[Path, int] = {}
    table: Path = ()  # what the keys of this line belong to: the last header, or an inline table
    key: list[str] = []
    in_key = True
    # The open brackets: `{` if keys count, `(` for a brace inside an array.
    open_brackets: list[tuple[str, Path]] = []

    line, position = 1, 0
    for found in _TOKEN.finditer(text):
        part = found[0]
        line += text.count("\n", position, found.start())
        position = found.start()

        if part.startswith("#"):
            continue
        if part == "\n":
            if not open_brackets:
                in_key, key = True, []
        elif in_key:
            match part:
                case "[":
                    table = ()
                case "]" | "=":
                    path = (*table, *key)
                    for length in range(len(table) + 1, len(path) + 1):
                        lines.setdefault(path[:length], line)
                    if part == "]":
                        table = path
                    in_key = False
                case "}":
                    table = open_brackets.pop()[1]
                    in_key = False
                case ".":
                    pass
                case _:
                    key.append(_unquoted(part))
        else:
            inside = open_brackets[-1][0] if open_brackets else ""
            match part:
                case "{" if inside in ("", "{"):
                    open_brackets.append(("{", table))
                    table, key, in_key = (*table, *key), [], True
                case "[" | "{":
                    open_brackets.append(("[" if part == "[" else "(", table))
                case "]" | "}":
                    # The second bracket of `[[header]]` closes nothing.
                    if open_brackets:
                        table = open_brackets.pop()[1]
                case "," if inside == "{":
                    key, in_key = [], True
    return lines


def _unquoted(part: str) -> str:
    match part[0]:
        case "'":
            return part[1:-1]
        case '"':
            return str(tomllib.loads(f"key = {part}")["key"])
        case _:
            return part
