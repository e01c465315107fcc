"""Passwords in commands and in files of programs, where no name says what they are.

`PLACES` is the table to extend. A row is a keyword and the pattern that is searched for near it.
Its group `value` is the password, or one of the groups of `_WORD`.
"""

import re
from collections.abc import Iterator
from functools import cache

from ctx.redaction.entropy import is_placeholder
from ctx.redaction.scan_text import Page, SecretSpan

RANK = 0

# A word of a shell: "…", '…' or bare.
_WORD = (
    r"""(?:"(?P<double>[^"\n]{3,128})"|'(?P<single>[^'\n]{3,128})'"""
    r"""|(?P<bare>[^\s"'|;&<>][^\s"'|<>]{2,128}))"""
)
_ARGUMENTS = r"\b(?:[^\n|;&]{0,200}?[ \t])?"
_USER = r"""["']?[^\s:"'$/]{1,64}:"""

# fmt: off
PLACES = (
    (b"mysql", rf"\bmysql\w*{_ARGUMENTS}-p{_WORD}"),
    (b"mariadb", rf"\bmariadb[\w-]*{_ARGUMENTS}-p{_WORD}"),
    (b"7z", rf"\b7z[ar]?{_ARGUMENTS}-p{_WORD}"),
    (b"sshpass", rf"\bsshpass{_ARGUMENTS}-p[ \t]*{_WORD}"),
    (b"login", rf"\b(?:docker|podman|helm|oc|skopeo|crane|nerdctl|az)\b[^\n|;&]{{0,40}}[ ]login{_ARGUMENTS}"
               rf"-p[ \t=]+{_WORD}"),
    (b"mongo", rf"\bmongo\w*{_ARGUMENTS}-p[ \t]+{_WORD}"),
    (b"zip", rf"\b(?:un)?zip{_ARGUMENTS}-P[ \t]+{_WORD}"),
    (b"sqlcmd", rf"\bsqlcmd{_ARGUMENTS}-P[ \t]*{_WORD}"),
    (b"redis-cli", rf"\bredis-cli{_ARGUMENTS}-a[ \t]+{_WORD}"),
    (b"ldap", rf"\bldap\w+{_ARGUMENTS}-w[ \t]*{_WORD}"),
    (b"htpasswd", rf"\bhtpasswd{_ARGUMENTS}-\w*b\w*[ \t]+\S{{1,128}}[ \t]+[^\s-]\S{{0,63}}[ \t]+{_WORD}"),
    (b"smbclient", rf"\bsmbclient{_ARGUMENTS}-U[ \t]*[\"']?[\w.\\-]{{1,64}}%{_WORD}"),
    (b"curl", rf"\bcurl{_ARGUMENTS}(?:-u|--user|--proxy-user)[ \t=]*{_USER}{_WORD}"),
    (b"sudo", rf"\b(?:echo|printf)[ \t]+{_WORD}[ \t]*\|[ \t]*sudo[ \t]+-S\b"),
    (b"chpasswd", rf"\b(?:echo|printf)[ \t]+{_USER}(?P<value>[^\s\"'|]{{3,128}})[\"']?[ \t]*\|[^\n|]{{0,20}}chpasswd"),
    (b"identified by", rf"(?i:identified by)[ ](?=[\"']){_WORD}"),
    (b"requirepass", rf"\brequirepass[ ]+{_WORD}[ \t]*(?:\r?\n|\Z)"),
    (b"psk=", rf"\bpsk={_WORD}"),
    (b"password", rf"\blogin[ \t]+\S{{1,64}}\s{{1,8}}password[ \t]+{_WORD}"),
    # .pgpass: host:port:database:user:password
    (b":5432:", r"(?<![^\s\"'])[\w.*-]{1,80}:5432:[\w*-]{1,64}:[\w*-]{1,64}:(?P<value>[^\s:\"']{3,128})[ \t]*(?:[\r\n\"']|\Z)"),
    (b":*:", r"(?<![^\s\"'])[\w.*-]{1,80}:(?:\d{2,5}|\*):[\w*-]{1,64}:[\w*-]{1,64}:(?P<value>[^\s:\"']{3,128})[ \t]*(?:[\r\n\"']|\Z)"),
)
# fmt: on

# Most commands have a short option. The search for it starts with a fixed character, so it is fast.
_OPTION = r"-(?<=[\s\"'`,]-)(?:p|[PawuUS][ \t\"']|b\w*[ \t]|-(?:user|proxy-user)[ =])"
_ANCHORS = (
    b"identified by",
    b"requirepass ",
    b"psk=",
    b"password ",
    b"chpasswd",
    b":5432:",
    b":*:",
)
_BEFORE, _AFTER, _STEP = 300, 500, 200


def find(page: Page) -> Iterator[SecretSpan]:
    last = -_STEP
    for at in _places(page):
        if at - last >= _STEP:  # Nearer ones were searched with the last one.
            last = at
            yield from _find_near(page, at)


def _places(page: Page) -> list[int]:
    places = [m.start() for m in _compiled(_OPTION).finditer(page.text)]
    for anchor in _ANCHORS:
        at = page.lower.find(anchor)
        while at >= 0:
            places.append(at)
            at = page.lower.find(anchor, at + _STEP)
    places.sort()
    return places


def _find_near(page: Page, at: int) -> Iterator[SecretSpan]:
    start, end = max(0, at - _BEFORE), at + _AFTER
    lower = page.lower[start:end]
    for keyword, pattern in PLACES:
        if keyword in lower:
            for m in _compiled(pattern).finditer(page.text, start, end):
                group = m.lastgroup or 0
                if _is_password(m[group]):
                    yield SecretSpan(*m.span(group), "command-password", RANK)


def _is_password(value: str) -> bool:
    if value.isalpha() and len(value) < 6:
        return False
    return not (value[0] in "$-/.<{(" or is_placeholder(value))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)
