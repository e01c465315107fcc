"""Passwords in sentences and forms of other languages than English and German.

"la contraseña es …", "Mot de passe : …", "密码是…". English and German are part of
`named_secrets.py`, because their words are also names in programs.
"""

import re
from collections.abc import Iterator
from functools import cache

from ctx.redaction.entropy import is_placeholder
from ctx.redaction.password_words import can_be_password, is_sure
from ctx.redaction.scan_text import Page, SecretSpan

RANK = 1

# What is searched for in the lower-case text, in which a letter that is not ASCII is a `?`.
_ANCHORS = (b"kennwort", b"senha", b"wachtwoord", b"clave", b"heslo", b"parola", b"adgangskode")
_OTHER_ANCHORS = (
    *("ontrase", "ароль", "asło", "ösenord", "elszó", "ifre"),
    *("密码", "密碼", "パスワード", "비밀번호"),
)
_NOUN = (
    "kennwort|clave|mot de passe|contrase(?:ñ|n|n\u0303)a|senha|wachtwoord|парол[ьяю]|hasło"
    "|lösenord(?:et)?|adgangskode(?:n)?|heslo|jelszó|parola|şifre(?:si)?|密码|密碼|パスワード|비밀번호"
)
_SCOPE = r"(?:[ \t]+(?:für|pour|de|du|para|do|da|del|voor|för|для|do)[ ][^\n.:;,=(){}<>]{1,40}?)?"
_SIGN = (
    r"(?:[ \t\u00a0]*(?:[:=：—是为為は])[ \t]*"
    r"|[ \t]+(?:ist|lautet|est|es|è|é|is|to|är|er|je|это)"
    r"(?:[ ](?:maintenant|ahora|agora|nu))?:?[ \t]+|(?P<blank>[ ]))"
)
_VALUE = r"""(?P<quote>["'`«„“])?(?P<value>[!-~]{4,128})"""


def find(page: Page) -> Iterator[SecretSpan]:
    match = _sentence().search
    done = 0
    for at in _places(page):
        if at >= done and (m := match(page.text, max(0, at - 2), at + 256)):
            done = m.end()
            start, end = m.span("value")
            end = start + len(m["value"].rstrip(""".,;!?"'`"""))
            value = page.text[start:end]
            is_bare = m["blank"] or m[0][:5].lower() == "clave"
            if is_sure(value) if is_bare else _is_password(value):
                yield SecretSpan(start, end, "password", RANK)


def _places(page: Page) -> list[int]:
    places = []
    for anchor in _ANCHORS:
        places += page.keywords[anchor]
    places += [at - 7 for at in page.keywords[b"pass"] if page.lower.startswith(b"mot de ", at - 7)]
    if not page.text.isascii():
        for word in _OTHER_ANCHORS:
            if max(word) in page.text:  # A search for one letter is fast.
                places += [m.start() for m in re.finditer(word, page.text)]
    return sorted(places)


def _is_password(value: str) -> bool:
    if len(value) < 4 or is_placeholder(value) or "://" in value:
        return False
    return can_be_password(value) if re.fullmatch(r"[A-Za-z_-]+", value) else True


@cache
def _sentence() -> re.Pattern[str]:
    return re.compile(rf"(?:{_NOUN}){_SCOPE}{_SIGN}{_VALUE}", re.IGNORECASE)
