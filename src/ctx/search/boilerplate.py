"""Lines of an issue that say nothing about the code: descriptions of somebody's machine, lists of
packages, sentences of the issue form, licences.

A line is removed alone if it can be nothing else, such as `OS: Ubuntu 22.04`. Other lines, such as
`Byte Order: Little Endian`, and all lines in code blocks, are removed only as part of a table. The
first line of a task always stays.
"""

import re
from collections.abc import Iterator, Sequence
from enum import IntEnum
from functools import cache

_LEAST_ROWS = 3
_LEAST_SHARE = 3
"""At least every third line of a table is certain."""

_VERSION = (
    r"v?\d{1,6}(?:\.\d{1,6}){1,4}[\w.+~-]{0,40}"
    r"(?: (?:LTS|beta|stable)|,? ?build \S{1,60}| \(.{0,120}\)| \[.{0,120}\])?[\s\"'`,;|*]{0,8}$"
)
# Lines that are removed wherever they are outside of code blocks.
_WITH_VERSION = (
    # Python: 3.11, "react": "^18.2.0", numpy==1.26.4, | Rust | 1.75 |
    r"[\W_]{0,8}[\w@][\w ./@+()-]{0,50}[\"'`*\s]{0,6}(?::|==|@|\|)[\s\"'`^~<>=*]{0,8}" + _VERSION,
    # Ubuntu 22.04 LTS, - Rails 7.1.2
    r"[\s*•-]{0,8}[A-Za-z][\w.+-]{0,24}(?: [\w.+-]{1,24}){0,2}[ @/-]" + _VERSION,
    # The output of programs about themselves.
    r"(?:Linux|Darwin|FreeBSD|MINGW\S{0,20}) \S{1,80} \d{1,3}\.\d",
    r"(?:Python|platform \w{1,20} -- Python) \d\.\d{1,3}\.\d|Microsoft Windows \[",
    r"(?:java|openjdk|go|ruby|rustc|cargo|git|gcc|docker) (?:version )?\"?v?(?:go)?\d{1,3}\.\d",
)
_KEYS = frozenset(
    "os|operating system|operating systems|platform|distro|distribution|kernel|arch|architecture"
    "|processor|cpu|cpus|gpu|gpus|ram|device|hardware|browser|browsers|python|node|node.js|nodejs"
    "|npm|yarn|pnpm|java|jdk|jvm|ruby|golang|rust|rustc|php|composer|dotnet|.net|.net core|.net sdk"
    "|gcc|clang|cmake|cuda|cudnn|docker|kubernetes|installed via|installed with|installed from"
    "|installation method|install method|package manager|system.version|rootdir|cachedir"
    "|configfile|plugins|version|versions".split("|")
)
# The beginnings of what issue forms ask and explain.
_FORM = (
    *("a clear and concise description", "add any other context", "if applicable, add"),
    *("if applicable add", "include a minimal", "tell us ", "go to '", "click on '"),
    *("scroll down to '", "i have searched", "i've searched", "i have read", "i've read the"),
    *("i have checked", "i have verified", "i have confirmed", "i have looked", "i have included"),
    *("i agree to", "i confirm", "i understand that", "i am using the latest", "i accept"),
    *("i am running the latest", "i am on the latest", "please complete the", "please fill in"),
    *("please fill out", "please make sure you", "please make sure that you", "please read the"),
    *("please read our", "please tell us", "please search the", "please search for"),
    *("please search existing", "please search open", "please delete this", "please remove this"),
    *("thanks for taking", "thanks for filing", "thanks for reporting", "thanks for opening"),
    *("thanks for submitting", "thank you for taking", "thank you for your", "thanks for your"),
    *("thank you for contributing", "is there an existing issue", "by submitting this"),
    *("what version of ", "which version of ", "what operating system", "what platform "),
    *("what browser", "before opening a", "before submitting a", "before filing a"),
    *("when opening a", "when submitting a", "when filing a", "would you be willing to "),
    *("are you willing to ", "would you be interested in ", "i'm always frustrated when"),
    *("ex. i'm always frustrated", "signed-off-by:", "co-authored-by:", "reviewed-by:"),
    *("goarch=", "goos=", "gopath=", "goroot=", "gocache=", "goproxy=", "goversion=", "goenv="),
)
_FORM_LINES = frozenset(
    "see error|none|n/a|na|no response|steps to reproduce the behavior:"
    "|steps to reproduce the behaviour:|steps to reproduce:".split("|")
)
_MARKS = " \t*_-#>•|\"'`"
_MOST_WORDS = 2
"""A value with more words is a sentence, unless it contains a number."""
# Removed as part of a table: `pip list`, `conda list`, `npm ls`.
_ROW = (
    (
        r"\s{0,8}(?:\[\w{1,10}\] )?[\w.\[\]@/+-]{1,60}\s{2,40}v?\d{1,6}(?:\.\w{1,20}){1,4}"
        r"[\w.+~-]{0,40}(?:\s{1,40}\S{1,40}){0,3}\s*$"
    ),
    r"\s{0,8}[├└│─\s]{1,12}@?[\w./-]{1,60}@\d",
)
_MAYBE = (r"[\s*•-]{0,8}[A-Z][\w()/.' -]{1,40}:\s{1,60}\S[^\n]{0,160}$",)
_LONGEST = 200
"""The length of the longest line that is compared."""
_ANY_VERSION = re.compile(r"\d\.\d")
_LICENCE = (
    *("permission is hereby granted", "licensed under the ", "the software is provided"),
    *("without warrant", "this program is free software", "general public licen"),
    *("all rights reserved", "redistribution and use in source", "spdx-license-identifier:"),
    *("copyright (c)", "copyright ©", "copyright 19", "copyright 20"),
)
_FENCE = re.compile(r" {0,3}(?:`{3}|~{3})")
_MARKUP = re.compile(
    r"!\[[^\]\n]{0,200}\]\([^)\n]{0,500}\)"
    r"|</?(?:details|summary|img|br|picture|source|sub|sup|kbd)\b[^<>\n]{0,500}>",
    re.IGNORECASE,
)


class _Kind(IntEnum):
    TEXT, BLANK, MAYBE, ROW, ALONE = range(5)


@cache
def _pattern(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


def remove_lines(text: str) -> str:
    lines = text.split("\n")
    in_code, kinds = [], []
    is_code = False
    for line in lines:
        is_fence = _FENCE.match(line) is not None
        in_code.append(is_code or is_fence)
        is_code = is_code != is_fence
        kinds.append(_Kind.TEXT if is_fence else _kind(line, is_code))
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    kinds[first] = _Kind.TEXT
    gone = set(_licences(lines, first))
    for run in _runs(kinds):
        certain = [number for number in run if kinds[number] >= _Kind.ROW]
        table = range(certain[0], certain[-1] + 1) if len(certain) >= _LEAST_ROWS else range(0)
        if len(table) > len(certain) * _LEAST_SHARE:
            table = range(0)
        gone.update(n for n in run if n in table or kinds[n] == _Kind.ALONE)
    return "\n".join(
        line if in_code[number] else _without_markup(line)
        for number, line in enumerate(lines)
        if number not in gone
    )


def _without_markup(line: str) -> str:
    # In inline code, it is what the task is about.
    return _MARKUP.sub(" ", line) if ("<" in line or "![" in line) and "`" not in line else line


def _kind(line: str, is_code: bool) -> _Kind:
    if not line.strip():
        return _Kind.BLANK
    if len(line) > _LONGEST:
        return _Kind.TEXT
    has_version = _ANY_VERSION.search(line) is not None
    if (has_version and _pattern(_WITH_VERSION).match(line)) or _is_of_form(line):
        return _Kind.ROW if is_code else _Kind.ALONE
    if has_version and _pattern(_ROW).match(line):
        return _Kind.ROW
    return _Kind.MAYBE if ": " in line and _pattern(_MAYBE).match(line) else _Kind.TEXT


def _is_of_form(line: str) -> bool:
    """Whether a line is a sentence of an issue form, or a property of somebody's machine."""
    bare = line.strip(_MARKS).lower()
    sentence = bare.lstrip("0123456789. ")
    if sentence.startswith(_FORM) or sentence in _FORM_LINES or "[e.g." in bare:
        return True
    key, separator, value = bare.partition("|" if ":" not in bare else ":")
    key = key.rstrip(_MARKS)
    value = value.strip(_MARKS)
    if not separator or not value:
        return False
    has_number = not value.isalpha() and any(map(str.isdigit, value))
    if key in _KEYS:
        return has_number or len(value.split()) <= _MOST_WORDS
    # `Version of the shop: git 4f2a`, `Node.js version: v18`
    is_version = key.endswith((" version", " versions")) or key.startswith("version of ")
    return is_version and any(map(str.isdigit, "".join(value.split()[:2])))


def _runs(kinds: Sequence[_Kind]) -> Iterator[list[int]]:
    """The lines between two lines of text, without blank ones."""
    run: list[int] = []
    for number, kind in enumerate((*kinds, _Kind.TEXT)):
        if kind == _Kind.TEXT:
            if run:
                yield run
            run = []
        elif kind != _Kind.BLANK:
            run.append(number)


def _licences(lines: Sequence[str], first: int) -> Iterator[int]:
    """The lines of the paragraphs that are part of a licence."""
    text = "\n".join(lines).lower()
    marks = [mark for mark in _LICENCE if mark in text]
    start = 0
    for number, line in enumerate((*lines, "") if marks else ()):
        if any(map(str.isalnum, line)):
            continue
        paragraph = range(start, number)
        words = "\n".join(lines[start:number]).lower()
        if first not in paragraph and any(mark in words for mark in marks):
            yield from paragraph
        start = number + 1
