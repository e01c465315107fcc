"""Passwords in the forms in which people write them down.

Beside a word for a password: in its sentence, after a prompt, in a call. And beside the name of a
user: "log in as bob / …", `bob:…@tcp(`. A value must look as if a person had chosen it. In a
sentence it must also look like nothing else, or stand where only a password can stand.
"""

import re
from collections.abc import Callable, Iterator

from ctx.redaction.keywords import CALLS
from ctx.redaction.password_words import is_chosen, is_distinctive, is_passphrase, is_sure
from ctx.redaction.scan_text import Page, SecretSpan, compiled, compiled_bytes, match

RANK = 1

_WORD = r"(?:pass(?:word|phrase|code|wd|wort|e)s?|pwd?|kennwort|(?<=\n)pass)"
_VALUE = (
    r"""["'`«„“]?[ ]?(?P<value>[^\s"'`,|<>«»“”]{6,128}?)[ ]?["'`»”]?[.,;:?)\]}]?(?=\s|\Z|[)\]*])"""
)
_OLD = r"""["'`]?(?P<old>[^\s"'`,|<>]{4,128}?)["'`]?"""
_USER = r"""["'`]?[\w.@-]{2,64}["'`]?"""
_PLACE = r"""["'`]?[\w./:@-]{2,80}["'`]?"""

# --- the sentence around a word for a password ---

_BETWEEN = r"[^\n(){}\[\];=<>]{0,60}?"
_LINKS = (
    r"(?:[ ](?:is|are|was|were|be|here|should|must|can|will|now|currently|rotated|changed|set|reset"
    r"|generated|created|enter|type|use|always|still|both|all|ist|lautet|es|est"
    rf"|(?:for|of|on|at|von|für|pour|para|de|del)[ ]{_PLACE}))"
)
_CHANGE = rf"{_OLD}[ ](?:to|->|=>|→|with|by|auf|in|durch|por|par|and[ ]is[ ]now)[ ]{_VALUE}"
# What must be near, and the pattern. The word ends at the start of those after it.
_FROM_TO = rf"[ ]{_BETWEEN}\bfrom[ ]{_OLD}[ ]to[ ]{_VALUE}"
_AFTER_WORD = (
    (b" from ", _FROM_TO),
    (b" ", rf"{_LINKS}{{0,5}}:?(?:[ ][057])?[ ]{_VALUE}"),
    (b" ", rf"[ ]{_BETWEEN}{_CHANGE}"),
    (b":\n", rf"{_BETWEEN}:[ \t]*\n+{_VALUE}(?=\s*\n|\s*\Z)"),
    (b": ", rf"[ ]for[ ](?:key[ ])?{_PLACE}:[ ]{_VALUE}(?=[ \t]*(?:\n|\Z))"),
    (b":", rf"[^\n:=]{{0,60}}:[ ]?\n?{_VALUE}(?=[ \t]*(?:\n|\Z))"),
    (b" ", rf"[ ]{_USER}[ ]{_VALUE}(?=[ \t]*(?:\n|\Z))"),
    (b" = ", rf"[ ]=[ ]{_VALUE}(?=[ \t]*(?:\n|\Z))"),
    (b"? ", rf"\?[ ]{_VALUE}(?=[ \t]*(?:\n|\Z))"),
    (b"(", r"""["'`]?[ ]*[:=]?[ ]*\w{0,24}\([ ]*["'](?P<value>[^"'\n]{6,128})["']"""),
    (b"(", rf"[ ]\({_VALUE}"),
    (b'"', r"""["'\])]{1,4}(?:[ ]*,[ ]*|\.\w{1,12}\()["'](?P<value>[^\s"']{6,128})["']"""),
    (b"'", r"""["'\])]{1,4}(?:[ ]*,[ ]*|\.\w{1,12}\()["'](?P<value>[^\s"']{6,128})["']"""),
    (b"<", r"[ \w:]{0,20}<(?:b|code|strong|em|i|tt|kbd)>(?P<value>[^\s<>]{6,128})</"),
)
_AS_PASSWORD = (
    rf"(?i)\b(?:use|using|with|set|enter|try|type|and)[ ]{_VALUE}"
    r"[ ](?:as|when|if|for)\b[\w ]{0,40}\Z"
)
_QUOTED = (
    r"(?i)[\"'`](?P<value>[^\s\"'`]{6,128})[\"'`]"
    r"[ ][^\n(){}=]{0,40}(?:as|for|is)[ ](?:the[ ]|a[ ])?\Z"
)
_BEFORE_WORD = (
    (" ", _AS_PASSWORD),
    ("'", _QUOTED),
    ("|", rf"\b(?:echo|printf|yes)[ ]{_VALUE}[ ]\|[ ](?:sudo[ ])?\Z"),
    ("from ", rf"(?i)\bfrom[ ]{_CHANGE}{_BETWEEN}\Z"),
)
_NEAR = 80
_CODE = r"[\n(){}\[\];=<>]"
_TOKEN = r"(?<![^\s\"'`(\[«])[A-Za-z0-9][^\s\"'`,|<>()«»]{5,40}"

# --- other signs ---

_ACCOUNT = (
    r"(?i)\b(?:login|log[ ]in|sign[ ]in|wi-?fi|wlan|account|user(?:name)?|admin|zugang\w*|cred\w*"
    r"|access|vpn)[^\n/]{0,30}?"
)
_LOGIN = rf"{_ACCOUNT}[ :=(]+{_USER}[ ]/[ ]{_VALUE}"
_MAIL = rf"(?<!\S)[\w.-]{{2,40}}@[\w.-]{{4,60}}[ ]/[ ]{_VALUE}"
_PAIR = rf"(?i)cred\w*(?:[ ]are)?[ :=]+{_USER}(?:[ ]?[:/][ ]?|[ ]and[ ]){_VALUE}"
_CONNECTION = r"[\w.-]{1,64}:(?P<value>[^\s:@\"'`/]{3,128})@(?:tcp|unix)\("
_ARGUMENTS = (
    r"(?i)(?:auth|cred)\w{0,12}[ \t]*=?[ \t]*\w{0,20}[(\[][ \t]*[\"'][^\"'\n]{1,64}[\"']"
    r"[ \t]*,[ \t]*"
    r"[\"'](?P<value>[^\"'\n]{3,128})[\"']"
)
_SENT = (
    r"(?i)assword\b[^\n]{0,24}\n?[^\n]{0,24}\bsend(?:_?line|_?keys)?\b[ (-]{1,4}[\"']"
    r"(?P<value>[^\s\"'\\]{6,128})"
)
_PASS_IS = rf"(?i)pass(?:{_LINKS}{{0,3}}:?)[ ]{_VALUE}"
_PASS_CALL = r"""(?i)\w{4,30}(?:\.\w{1,20})?\([ ]?b?["'](?P<value>[^\s"']{6,128})["']"""
_CALL = (
    r"""(?i)\w+(?:\.\w+)?[ (]{0,2}(?:[^()\n]{0,100}["'][\w.@+-]{2,64}["'],[ ]?|[^()"'\n]{0,16})"""
    r"""["'](?P<value>[^\s"']{6,128})["']"""
)
_LOG_IN = (
    rf"(?m)^\S{{1,8}}[ ](?i:login)[ ]{_USER}[ ]{_VALUE.replace('value', 'after')}"
    r"(?=[ \t]*(?:\n|\Z))"
    rf"|\b(?i:log[ ]?in)(?:\([\"']{_USER}[\"'],[ ]*b?|[^\n/]{{0,16}}?[ :(]{_USER}"
    rf"(?:[ ](?:and|und|et|y)[ ]|[ ]?/[ ]?|:|,[ ])){_VALUE}"
)
_USER_PASSWORD = (
    rf"(?:add|create|new)_user[ ](?:-\S+[ ])*{_USER}[ ]{_VALUE}"
    rf"|/user:\S{{1,64}}[ ]{_VALUE.replace('value', 'after')}"
    rf"|[ ]use[ ][^\n]{{2,60}}?[ ]{_VALUE.replace('value', 'before')}[ ]/user:"
)
# What is searched for, and a pattern for its line.
_AFTER_SIGN = (
    (b"login", _LOG_IN),
    (b"log in", _LOG_IN),
    (b"ctl add_user ", _USER_PASSWORD),
    (b"create_user ", _USER_PASSWORD),
)
_IS_WORD = rb"(?<![a-z0-9])%b(?![a-z0-9_])" % _WORD.encode()
_SLASH = b"/(?:(?<= /) |user:|(?<= /)rp )"
_TO_INPUT = rf"(?<!<)<<<[ ]{_VALUE}(?=[ \t]*(?:\n|\Z))"
# USER/PASSWORD@HOST, DOMAIN/USER:PASSWORD@HOST
_BEFORE_HOST = (
    r"""(?<![^\s"'=])(?:[\w.-]{1,32}/)?(?!npm:)[\w.-]{2,40}(?P<sign>[:/])"""
    r"""["]?(?P<value>[^\s:/@"']{6,64})"?@\Z"""
)
_ROWS = r"(?i)\((?P<names>[^()]{1,300})\)\s*values\s*\((?P<values>[^()]{1,600})\)"
_BEFORE, _AFTER = 100, 200


def find(page: Page) -> Iterator[SecretSpan]:
    if page.keywords:
        yield from _beside_keywords(page)
    lower = page.lower
    for m in compiled_bytes(_SLASH).finditer(lower):
        at = m.start()
        before = lower[max(0, at - _BEFORE) : at]
        if m[0] == b"/user:":
            yield from _search(page, _USER_PASSWORD, at, is_sure)
        elif m[0] == b"/rp ":
            yield from _chosen(match(rf"/rp[ ]{_VALUE}", page.text, at), is_sure)
        else:
            if re.search(_ACCOUNT_WORDS, before):
                yield from _search(page, _LOGIN, at)
            if b"@" in before:
                yield from _search(page, _MAIL, at)
    for m in compiled_bytes(b"<(?<=<<<) ").finditer(lower):
        yield from _chosen(match(_TO_INPUT, page.text, m.start() - 2), is_sure)


def _beside_keywords(page: Page) -> Iterator[SecretSpan]:
    lower, is_word = page.lower, compiled_bytes(_IS_WORD).match
    for at in sorted(page.keywords[b"pass"] + page.keywords[b"pw"] + page.keywords[b"kennwort"]):
        if word := is_word(lower, at):
            yield from _beside(page, at, word.end())
        elif lower.startswith(b"pass", at):
            yield from _chosen(match(_PASS_IS, page.text, at), is_distinctive)
            yield from _chosen(match(_PASS_CALL, page.text, at), is_sure)
    for at in page.keywords[b"assword"]:
        if b"send" in lower[at : at + _NEAR]:
            yield from _chosen(match(_SENT, page.text, at))
    for at in page.keywords[b"cred"]:
        yield from _chosen(match(_PAIR, page.text, at))
        yield from _chosen(match(_ARGUMENTS, page.text, at))
    for at in page.keywords[b"auth"]:
        yield from _chosen(match(_ARGUMENTS, page.text, at))
    for at in page.keywords[b"secret"] + page.keywords[b"key"]:
        if re.search(rb"(?:enable |wi-?fi |wlan )\Z", lower[max(0, at - 8) : at]):
            end = at + (6 if lower.startswith(b"secret", at) else 3)
            yield from _beside(page, at, end)
    for at in page.keywords[b"community"]:
        yield from _chosen(match(rf"\w+[ ]{_VALUE}", page.text, at), is_sure)
    for at in page.keywords[b"secret"]:
        yield from _chosen(match(rf"secret[ ]\d[ ]{_VALUE}", page.text, at), is_sure)
    for call in page.keywords.keys() & CALLS:
        for at in page.keywords[call]:
            yield from _chosen(match(_CALL, page.text, at), is_sure)
    for at in page.keywords[b"@"]:
        if lower.startswith((b"tcp(", b"unix("), at + 1):
            yield from _search(page, _CONNECTION, at)
    for sign, pattern in _AFTER_SIGN:
        for at in page.keywords[sign]:
            yield from _search(page, pattern, at, is_sure)
    yield from _before_hosts(page)


def _before_hosts(page: Page) -> Iterator[SecretSpan]:
    for at in page.keywords[b"@"]:
        host, before = page.raw[at + 1 : at + 4], page.raw[max(0, at - _NEAR) : at]
        if (host[:1].isalpha() or host.isdigit()) and re.search(rb"[:/][^\s:/@']{6,}+\Z", before):
            login = compiled(_BEFORE_HOST).search(page.text, max(0, at - _NEAR), at + 1)
            is_word = is_sure if login and login["sign"] == ":" else is_distinctive
            if login and is_word(login["value"]):
                yield SecretSpan(*login.span("value"), "password", RANK)


_ACCOUNT_WORDS = b"log|sign|wi-?fi|wlan|account|user|admin|zugang|cred|access|vpn"


def _beside(page: Page, at: int, end: int) -> Iterator[SecretSpan]:
    text = page.text
    before = text[max(0, at - _NEAR) : at].rpartition("\n")[2]
    after = page.lower[end : end + _NEAR]
    for sign, pattern in _AFTER_WORD:
        if sign in after:
            is_password = _looks_chosen if pattern is _FROM_TO else is_sure
            yield from _chosen(match("(?i)" + pattern, text, end), is_password)
    for lead, pattern in _BEFORE_WORD:
        if lead in before:
            yield from _chosen(compiled(pattern).search(text, at - len(before), at))
    clause = re.split(_CODE, before)[-1]
    yield from _tokens(page, at - len(clause), at)
    yield from _tokens(page, end, end + len(re.split(_CODE, text[end : end + _NEAR])[0]))
    if m := compiled(_ROWS).search(text, at - len(before), at + 400):
        yield from _row(m, at)


def _tokens(page: Page, start: int, end: int) -> Iterator[SecretSpan]:
    """Words of a sentence that can hardly be anything but a password."""
    for m in compiled(_TOKEN).finditer(page.text, start, end):
        value = m[0].rstrip(".:,;?")
        if is_distinctive(value):
            yield SecretSpan(m.start(), m.start() + len(value), "password", RANK)


def _looks_chosen(value: str) -> bool:
    return is_chosen(value.replace("=", "+")) or is_passphrase(value)


def _search(
    page: Page, pattern: str, at: int, is_password: Callable[[str], bool] = _looks_chosen
) -> Iterator[SecretSpan]:
    for m in compiled(pattern).finditer(page.text, max(0, at - _BEFORE), at + _AFTER):
        yield from _chosen(m, is_password)


def _chosen(
    m: re.Match[str] | None, is_password: Callable[[str], bool] = _looks_chosen
) -> Iterator[SecretSpan]:
    if m is not None:
        for name, value in m.groupdict().items():
            if value and is_password(value):
                yield SecretSpan(*m.span(name), "password", RANK)


def _row(m: re.Match[str], at: int) -> Iterator[SecretSpan]:
    """The value of a column in `INSERT INTO … (name, password) VALUES (…)`."""
    values = re.split(r",\s*", m["values"])
    column = m["names"].count(",", 0, max(0, at - m.start("names")))
    if m.start("names") <= at < m.end("names") and column < len(values):
        value = values[column].strip("\"' ")
        if _looks_chosen(value):
            start = m.start("values") + m["values"].index(value)
            yield SecretSpan(start, start + len(value), "password", RANK)
