"""Passwords in the forms in which people write them down.

The answer to a prompt, "from … to …", "bob / …", `bob:…@tcp(`. Each form needs
a sign of its own, and a value that a person could have chosen: letters with digits or odd signs.
"""

import re
from collections.abc import Iterator

from ctx.redaction.password_words import is_chosen
from ctx.redaction.scan_text import Page, SecretSpan, compiled, match

RANK = 1

_WORD = r"(?:pass(?:word|phrase|code|wd)?|pwd?|passwort|kennwort)"
_VALUE = r"""["'`]?(?P<value>[^\s"'`,|<>]{4,128}?)["'`]?[.,;?)]?(?=\s|\Z)"""
_OLD = r"""["'`]?(?P<old>[^\s"'`,|<>]{4,128}?)["'`]?"""
_BETWEEN = r"[^\n.:;=(){}]{0,40}?"
_FROM_TO = rf"from[ ]{_OLD}[ ]to[ ]{_VALUE}"
# Around a word for a password: what must be there, and the pattern.
_SENTENCES_BEFORE = (
    (b"from ", rf"(?i)\b{_FROM_TO}{_BETWEEN}\b{_WORD}\b"),
    (
        b" as ",
        rf"(?i)\b(?:use|using|with|set|enter|try|type)[ ]{_OLD}[ ]as[ ][a-z ]{{0,30}}{_WORD}\b",
    ),
)
_SENTENCES_FROM = (
    (b" from ", rf"(?i)\b{_WORD}\b{_BETWEEN}[ ]{_FROM_TO}"),
    (b":\n", rf"(?i)(?<!\w){_WORD}(?:[ ]for[ ]\S{{1,64}})?:[ \t]*\n{_VALUE}(?=\s*\n|\s*\Z)"),
)
_NAMED = rf"(?i){_WORD}[ ]{_VALUE}"
_ALONE = rf"(?i)pwd?[ ]{_VALUE}(?=[ \t]*(?:\n|\Z))"
# Other signs, and what stands around them.
_LOGIN = (
    r"(?i)\b(?:login|log[ ]in|wi-?fi|wlan|account|user(?:name)?|admin|zugang\w*|cred\w*|access|vpn)"
    rf"[ ]?[:=]?[ ]+[\w.@-]{{2,64}}[ ]/[ ]{_VALUE}"
)
_PAIR = rf"(?i)cred\w*[ :=]+[\w.@-]{{2,64}}:{_VALUE}"
_CONNECTION = r"[\w.-]{1,64}:(?P<value>[^\s:@\"'`/]{3,128})@(?:tcp|unix)\("
_ARGUMENTS = (
    r"(?i)auth\w{0,12}[ \t]*=?[ \t]*\w{0,20}[(\[][ \t]*[\"'][^\"'\n]{1,64}[\"'][ \t]*,[ \t]*"
    r"[\"'](?P<value>[^\"'\n]{3,128})[\"']"
)
_BEFORE, _AFTER = 100, 200


def find(page: Page) -> Iterator[SecretSpan]:
    lower = page.lower
    is_word = re.compile(_WORD.encode() + rb"(?![a-z0-9_])").match
    for at in sorted(page.keywords[b"pass"] + page.keywords[b"pw"] + page.keywords[b"kennwort"]):
        if not is_word(lower, at):
            continue
        before, after = lower[max(0, at - 80) : at], lower[at : at + 80]
        for sign, pattern in _SENTENCES_BEFORE:
            if sign in before:
                yield from _search(page, pattern, at)
        patterns = [pattern for sign, pattern in _SENTENCES_FROM if sign in after]
        if before.endswith((b" and ", b" with ", b" and the ", b" with the ")):
            patterns.append(_NAMED)
        if before.rstrip(b" ")[-1:] in b"\n,;(":
            patterns.append(_ALONE)
        for pattern in patterns:
            yield from _chosen(match(pattern, page.text, at))
    for at in page.keywords[b"cred"]:
        yield from _chosen(match(_PAIR, page.text, at))
    for at in page.keywords[b"auth"]:
        yield from _chosen(match(_ARGUMENTS, page.text, at))
    for at in page.keywords[b"@"]:
        if lower.startswith((b"tcp(", b"unix("), at + 1):
            yield from _search(page, _CONNECTION, at)
    for m in re.finditer(b"/(?<= /) ", lower):
        if m.start() and re.search(_LOGIN_WORDS, lower[max(0, m.start() - _BEFORE) : m.start()]):
            yield from _search(page, _LOGIN, m.start())


_LOGIN_WORDS = b"log|wi-?fi|wlan|account|user|admin|zugang|cred|access|vpn"


def _search(page: Page, pattern: str, at: int) -> Iterator[SecretSpan]:
    for m in compiled(pattern).finditer(page.text, max(0, at - _BEFORE), at + _AFTER):
        yield from _chosen(m)


def _chosen(m: re.Match[str] | None) -> Iterator[SecretSpan]:
    if m is not None:
        for name, value in m.groupdict().items():
            if is_chosen(value):
                yield SecretSpan(*m.span(name), "password", RANK)
