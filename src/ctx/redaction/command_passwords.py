"""Passwords in commands and in files of programs, where no name says what they are.

`PLACES` is the table to extend. A row is a name, a keyword, and the pattern that is searched for
near it. Its group `value` is the password, or one of the groups of `_WORD`.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from ctx.redaction.entropy import is_placeholder
from ctx.redaction.password_words import is_sure
from ctx.redaction.scan_text import Page, SecretSpan, compiled, compiled_bytes

RANK = 0

# A word of a shell: "…", '…' or bare.
_WORD = (
    r"""(?:"(?P<double>[^"\n]{3,128})"|'(?P<single>[^'\n]{3,128})'"""
    r"""|(?P<bare>[^\s"'|;&<>][^\s"'|<>]{2,128}))"""
)
_ARGUMENTS = r"\b[^\n|;&]{0,200}?[ \t]"
_USER = r"""["']?[^\s:"'$/]{1,64}:"""

_PGPASS_END = r"""[\w*-]{1,64}:[\w*-]{1,64}:(?P<value>[^\s:"']{3,128})[ \t]*(?:[\r\n"']|\Z)"""
_LOGIN = r"\b(?:docker|podman|helm|oc|skopeo|crane|nerdctl|az)\b[^\n|;&]{0,40}[ ]login"
_ECHO = r"\b(?:echo|printf)[ \t]+"


class PasswordPlace(NamedTuple):
    rule: str
    keyword: bytes
    pattern: str


# fmt: off
PLACES = (
    PasswordPlace("mysql-password", b"mysql", rf"\bmysql\w*{_ARGUMENTS}-p{_WORD}"),
    PasswordPlace("mysql-password", b"mariadb", rf"\bmariadb[\w-]*{_ARGUMENTS}-p{_WORD}"),
    PasswordPlace("mysql-password", b"identified by", rf"(?i:identified by)[ ](?=[\"']){_WORD}"),
    PasswordPlace("mongo-password", b"mongo", rf"\bmongo\w*{_ARGUMENTS}-p[ \t]+{_WORD}"),
    PasswordPlace("sqlcmd-password", b"sqlcmd", rf"\bsqlcmd{_ARGUMENTS}-P[ \t]*{_WORD}"),
    PasswordPlace("redis-password", b"redis-cli", rf"\bredis-cli{_ARGUMENTS}-a[ \t]+{_WORD}"),
    PasswordPlace("redis-password", b"requirepass", rf"\brequirepass[ ]+{_WORD}[ \t]*(?:\r?\n|\Z)"),
    PasswordPlace("ssh-password", b"sshpass", rf"\bsshpass{_ARGUMENTS}-p[ \t]*{_WORD}"),
    PasswordPlace("login-password", b"login", rf"{_LOGIN}{_ARGUMENTS}-p[ \t=]+{_WORD}"),
    PasswordPlace("zip-password", b"7z", rf"\b7z[ar]?{_ARGUMENTS}-p{_WORD}"),
    PasswordPlace("zip-password", b"zip", rf"\b(?:un)?zip{_ARGUMENTS}-P[ \t]+{_WORD}"),
    PasswordPlace("ldap-password", b"ldap", rf"\bldap\w+{_ARGUMENTS}-w[ \t]*{_WORD}"),
    PasswordPlace("htpasswd-password", b"htpasswd",
          rf"\bhtpasswd{_ARGUMENTS}-\w*b\w*[ \t]+\S{{1,128}}[ \t]+[^\s-]\S{{0,63}}[ \t]+{_WORD}"),
    PasswordPlace("smb-password", b"smbclient",
          rf"\bsmbclient{_ARGUMENTS}-U[ \t]*[\"']?[\w.\\-]{{1,64}}%{_WORD}"),
    PasswordPlace("curl-password", b"curl",
          rf"\bcurl{_ARGUMENTS}(?:-u|--user|--proxy-user)[ \t=]*{_USER}{_WORD}"),
    PasswordPlace("http-password", b"http", rf"\bhttps?(?!:){_ARGUMENTS}-a[ \t]+{_USER}{_WORD}"),
    PasswordPlace("openssl-password", b"openssl", rf"\bopenssl{_ARGUMENTS}-k[ \t]+{_WORD}"),
    PasswordPlace("cookie", b"curl",
          rf"\bcurl{_ARGUMENTS}-b[ ]?[\"']?[^\s\"'=;]{{1,64}}=(?P<value>[^\s\"';]{{16,4096}})"),
    PasswordPlace("sudo-password", b"sudo", rf"{_ECHO}{_WORD}[ \t]*\|[ \t]*sudo[ \t]+-S\b"),
    PasswordPlace("sudo-password", b"chpasswd",
          rf"{_ECHO}{_USER}(?P<value>[^\s\"'|]{{3,128}})[\"']?[ \t]*\|[^\n|]{{0,20}}chpasswd"),
    PasswordPlace("wifi-password", b"psk", rf"\bpsk={_WORD}"),
    PasswordPlace("netrc-password", b"password",
          rf"\blogin[ \t]+\S{{1,64}}\s{{1,8}}password[ \t]+{_WORD}"),
    # host:port:database:user:password
    PasswordPlace("pgpass-password", b":5432:",
          rf"(?<![^\s\"'])[\w.*-]{{1,80}}:5432:{_PGPASS_END}"),
    PasswordPlace("pgpass-password", b":*:",
          rf"(?<![^\s\"'])[\w.*-]{{1,80}}:(?:\d{{2,5}}|\*):{_PGPASS_END}"),
)
# fmt: on

# Any program: a password after an option, and in its command a sign that it is one. `-p` and `-a`
# have many meanings, so the value must look like a password.
_OPTION_VALUE = rf"(?<=[ ])(?:-h?[pPwsAXNWkc]|--?[a-z]*-?pass\w*|/rp|/p:)[ =]?{_WORD}"
_USER_VALUE = (
    rf"(?<=[ ])(?:-[auUl]|--?(?:auth|user|login)|open -u)[ =]?[\"']?[\w.@\\/-]{{1,40}}[:%,]{_WORD}",
    rf"(?<=[ ])-U[ ]\S{{1,64}}[ ]//\S{{1,64}}[ ]{_WORD}",
)
_SUBJECT = (
    r"(?i)[ ](?:-[uUlD]|--user(?:name)?|/ru)[ =]?[^\s-]"
    r"|key|pass|crypt|snmp|ipmi|luks|gpg|ssl|zip|rar"
    r"|pdf|ldap|secret|cred"
)

# Most commands have a short option. The search for it starts with a fixed character, so it is fast.
_OPTION = rb"-(?<=[\s\"'`,]-)(?:p|[PakwuUSN][ \t\"']|b\w*[ \t]|-(?:user|proxy-user|auth)[ =])"
_ANCHORS = (b"identified by", b"psk", b":*:")
_BEFORE, _AFTER, _STEP = 300, 500, 200


def find(page: Page) -> Iterator[SecretSpan]:
    last = -_STEP
    for at in _places(page):
        if at - last >= _STEP:  # Nearer ones were searched with the last one.
            last = at
            yield from _find_near(page, at)


def _places(page: Page) -> list[int]:
    places = [m.start() for m in compiled_bytes(_OPTION).finditer(page.raw)]
    places += page.find_long(b":5432:")
    for anchor in _ANCHORS:
        places += page.keywords[anchor]
    places += [at for at in page.keywords[b"pass"] if _is_keyword(page.lower, at)]
    return sorted(places)


def _is_keyword(lower: bytes, at: int) -> bool:
    """Whether this "pass" is part of a keyword without an option."""
    if lower.startswith(b"password ", at):
        return b"login" in lower[max(0, at - 80) : at]
    return lower[max(0, at - 7) : at] == b"require" or lower[max(0, at - 2) : at] == b"ch"


def _find_near(page: Page, at: int) -> Iterator[SecretSpan]:
    start, end = max(0, at - _BEFORE), at + _AFTER
    lower = page.lower[start:end]
    for rule, keyword, pattern in PLACES:
        if keyword in lower:
            for m in compiled(pattern).finditer(page.text, start, end):
                group = m.lastgroup or 0
                if _is_password(m[group]):
                    yield SecretSpan(*m.span(group), rule, RANK)
    for pattern in (_OPTION_VALUE, *_USER_VALUE):
        for m in compiled(pattern).finditer(page.text, start, end):
            group = m.lastgroup or 0
            if is_sure(m[group].strip("\"'")) and (
                pattern is not _OPTION_VALUE or _is_secret_command(page.text, m.start())
            ):
                yield SecretSpan(*m.span(group), "password", RANK)


def _is_secret_command(text: str, at: int) -> bool:
    command = re.split(r"[\n|;&]", text[max(0, at - 160) : at])[-1]
    return re.search(_SUBJECT, command) is not None


def _is_password(value: str) -> bool:
    if value.isalpha() and len(value) < 6:
        return False
    return not (value[0] in "$-/.<{(" or is_placeholder(value))
