"""Secrets that have a telling name.

A name such as `DB_PASSWORD`, `apiKey` or `Authorization` is followed by a value in a few dozen
ways: `=` in shells and programs, `:` in YAML, JSON and headers, a blank after an option, "is" in a
sentence. The name makes the value suspect. Its look and its form decide whether it is a secret:
programs are full of `token = next_token`, environment files are not.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from typing import Literal, NamedTuple

from ctx.redaction.entropy import is_placeholder, is_random
from ctx.redaction.password_words import can_be_password
from ctx.redaction.scan_text import Page, SecretSpan

RANK = 1
NEARBY_RANK = 2

# Searched for everywhere, so there are few, and rare ones. "key" is common and counts only after
# one of `_KEY_OF`; "pass" covers password, passwd, passphrase.
ANCHORS = (b"secret", b"token", b"pass", b"pwd", b"cred", b"auth", b"key")

_KEY_OF = (
    "access account admin api app application auth client consumer cookie crypto decryption deploy "
    "encryption hmac ingest integration jwt license master private project secret security server "
    "service session shared signing ssh storage subscription webhook"
).split()
_QUALIFIED = rf"(?:{'|'.join(_KEY_OF)})[ _.-]?\Z".encode()

# A word of a name that makes it the name of a secret: by its end, as names are
# glued together (`pgpassword`, `authtoken`), or as a whole.
_SECRET_ENDS = ("secret", "token", "credential", "apikey", "secretkey", "accesskey", "privatekey",
                "authkey", "signingkey", "encryptionkey", "accountkey")  # fmt: skip
_PASSWORD_ENDS = ("password", "passwd", "passphrase", "passcode", "pwd", "passwort", "passord")
_SECRET_WORDS = frozenset(("auth", "cred"))

# Names of things about a secret: `token_count`, `password_hash`, `public_key`.
_ABOUT = frozenset(
    "csrf xsrf hash hashed hasher sha md blake digest checksum fingerprint integrity "
    "public pub tokenizer next starting continuation change lock pagination idempotency "
    "cursor".split()
)
_ABOUT_LAST = frozenset(
    "algorithm arn at attempts attr author backend callback charset class cls code column count "
    "created ctx date dir doc docs duration enabled endpoint env error expired expires expiry "
    "expiration field file filename flow fn format func function grant group handler header help "
    "hint host id identifier ids idx index info interval issuer kind label length len lifetime "
    "limit line list location manager max message method min mode model module msg name names "
    "namespace ns "
    "offset owner page param parameter path pattern placeholder policy pos position prefix prompt "
    "property provider re ref regex region regexp reset role rule scheme scope scopes separator "
    "seq server service set size source span start state status stdin stream style suffix table "
    "target text time timeout title ttl type types uid uri url urls usage used user username "
    "validator var vars verifier version".split()
)

# From the end of an anchor to the start of the value.
_SIGN = r"""(?x)
[\w.-]{0,40}+                                        # the rest of the name
(?:
    \*{0,2}(?P<quote>\\{0,3}["'`])?[\])]?[ \t]*+
    (?: :[ \t]*[A-Za-z_][\w.\[\],| ]{0,40}[ ]=(?=[ ][bru]?["'`])  # name: type = "…"
      | (?P<sign> :=|=>|[=!]==?|=|:(?!:)|\|\||\?\?|(?<=[ ])(?:\||or)(?=[ ]) )\*{0,2}
      | (?P<call> , )
    )[ \t]*+
  | (?P<tag> > )                                     # <name>…</name>
  | (?P<pair> \\{0,3}["']?[,;]?\s{0,24}\\{0,3}["']?value\\{0,3}["']?[ \t]*[:=] )[ \t]*+
  | (?P<block> ["'][ \t]*\{[^{}]{0,200}?\sdefault[ \t]*=[ \t]*(?=") )  # Terraform
  | (?:\\{0,3}["'`])?
    (?P<scope> [ \t]+(?:for|of|on|at|von|f\u00fcr|vom|zum|zur)[ ][^\n.:;,=(){}<>]{1,40}? )?
    (?: [ \t]+(?P<verb> (?:(?:was|is|has[ ]been|got)[ ])?(?:now[ ])?(?:changed|set|reset)[ ]to:?
                     | (?:is|ist|lautet|war|was|\u00e8|to)(?:[ ]now)?:? )
      | (?<=\w)(?P<after> : ) )[ \t]+
  | [ \t]+(?=["'`])                                  # the password `…`
)
"""
_OPTION = r"[\w-]{0,40}+[ \t]++(?!-)"
_QUOTE = r"""[bfru]{0,2}(\\{0,3}["'`])"""
_QUOTED = {
    '"': r'(?>(?:[^"\\\n]|\\.){0,256})',
    "'": r"(?>(?:[^'\\\n]|\\.){0,256})",
    "`": r"[^`\n]{0,256}+",
}
_QUOTED_ESCAPED = r"""[^"'`\\\n]{0,256}+"""
_BARE = r"""[^\s"'`,;&<>(){}\[\]|\\]{1,256}+"""
# Up to the next blank, field (`;Database=…`) or parameter (`&user=…`).
_BARE_PASSWORD = r"""(?>(?:[^\s"'`<>,;&\\]|[,;&](?!\s|\Z|[\w.-]{2,40}=)){1,256})"""
_REST_OF_LINE = r"(\S{1,256}+)[ \t]*+(?:\#[^\n]*)?(?:\r?\n|\Z)"
_LINE_LEAD = r"(?:\A|\n)[ \t>+-]*(?:(?:export|set|setx|declare -x|ENV|ARG)[ \t]+)?\Z"
_TAIL = r"""[^\s"'`,;&<>(){}\[\]|\\]*+"""


ValueForm = Literal[
    "quoted",
    "line",  # All that is left of its line.
    "word",  # Within a line, at the end of a sentence or field.
    "inline",  # Within a line, but clearly a value.
    "loose",  # Within a line, and perhaps an expression of a program.
]


class _Name(NamedTuple):
    start: int
    text: str
    kind: Literal["password", "secret", "header"]


class _Value(NamedTuple):
    start: int
    end: int
    form: ValueForm


def find(page: Page) -> Iterator[SecretSpan]:
    sign = _compiled(_SIGN).match
    qualified = re.compile(_QUALIFIED).search
    for anchor in ANCHORS:
        done = 0
        at = page.lower.find(anchor)
        while at >= 0:
            end = at + len(anchor)
            if at >= done and (anchor != b"key" or qualified(page.lower, max(0, at - 14), at)):
                span = None
                if m := sign(page.text, end):
                    span = _assigned(page, at, end, m)
                span = span or _option(page, at, end) or _nearby(page, anchor, at, end)
                if span:
                    yield span
                    done = span.end
            at = page.lower.find(anchor, end)
    yield from _find_bearers(page)


def _assigned(page: Page, at: int, end: int, sign: re.Match[str]) -> SecretSpan | None:
    name = _name(page, at, end)
    if name is None:
        return None
    if name.kind == "header":
        return _header(page, sign.end())
    value = _value(page, name, sign)
    if value is None:
        return None
    text = page.text[value.start : value.end]
    if sign["call"] and not (sign["quote"] and (is_random(text) or _is_argument(page, name))):
        return None
    if name.text.lower() == "pass" and not (sign["sign"] or sign["tag"] or sign["pair"]):
        return None  # "… to pass to …", "Pass `--verbose` …"
    if sign["sign"] == ":" and page.raw[max(0, name.start - 1) : name.start] == b":":
        return None  # `arn:aws:…:secret:name`
    if not _is_secret(text, name, value.form):
        return None
    return _span(page, name, value)


def _span(page: Page, name: _Name, value: _Value) -> SecretSpan:
    end = value.end
    if end - value.start >= 256:  # Longer than the patterns reach: take all of it.
        end = _match_end(_TAIL, page, end)
    rule = "password" if name.kind == "password" else "named-secret"
    return SecretSpan(value.start, end, rule, RANK)


def _name(page: Page, at: int, end: int) -> _Name | None:
    raw, start = page.raw, at
    floor = max(0, at - 48)
    while start > floor and raw[start - 1] in _NAME_BYTES:
        start -= 1
    end = _match_end(r"[\w.-]{0,40}+", page, end)
    text = page.text[start:end]
    words = [w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", text)]
    if words[0] == "key":  # "api key", with a blank: the anchor was qualified.
        words.insert(0, "api")
    if words[-1] in _ABOUT_LAST or not _ABOUT.isdisjoint(words) or text == "PWD":
        return None
    if words[-1] == "authorization":
        return _Name(start, text, "header")
    singular = [w if w.endswith("ss") else w.removesuffix("s") for w in words]
    for word in singular:
        if word.endswith(_PASSWORD_ENDS):
            return _Name(start, text, "password")
    if words[-1] in ("pass", "pw"):  # Not `pass_fds`.
        return _Name(start, text, "password")
    for before, word in zip(["", *singular], singular, strict=False):
        if word.endswith(_SECRET_ENDS) or word in _SECRET_WORDS:
            return _Name(start, text, "secret")
        if word == "key" and before in _KEY_OF:
            return _Name(start, text, "secret")
    return None


_NAME_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."


def _value(page: Page, name: _Name, sign: re.Match[str]) -> _Value | None:
    text, start = page.text, sign.end()
    if m := _match(_QUOTE, text, start):
        quote = m[1]
        body = _QUOTED_ESCAPED if len(quote) > 1 else _QUOTED[quote]
        return _Value(m.end(), _match_end(body, page, m.end()), "quoted")
    if sign["call"]:
        return None
    lead = text[max(0, name.start - 24) : name.start]
    if sign["sign"] in ("=", ":") and re.search(_LINE_LEAD, lead):
        m = _match(_REST_OF_LINE, text, start)
        glued = sign["sign"] == "=" and text[start - 1] == "="
        # `name = value` may be a line of a program, and value another name.
        is_value = (
            glued or sign["sign"] == ":" or not _is_code(m[1]) or _is_setting(page, name, sign)
            if m
            else False
        )
        if m and m[1][-1] not in ",;({[)" and is_value:
            return _Value(*m.span(1), "line")
    if sign["tag"]:
        end = text.find("</", start, start + 4096)
        return _Value(start, end, "quoted") if end > start else None
    said = sign["verb"] or sign["after"]
    glued = text[start - 1] == "=" or _is_setting(page, name, sign)
    is_value = glued or said or sign["pair"] or sign["sign"] in (":", "|")
    before = page.raw[max(0, name.start - 1) : name.start]
    if name.kind == "password" and is_value and before not in (b"(", b",", b"."):
        end = _match_end(_BARE_PASSWORD, page, start)
    else:
        end = _match_end(_BARE, page, start)
        is_value = is_value and text[end : end + 1] not in ("(", "[", "{", ",", ")")
    if said:
        end = start + len(text[start:end].rstrip(".:?"))
    if end <= start:
        return None
    if (sign["verb"] or "").startswith("to") and not re.search(_SETTING, lead + name.text):
        return _Value(start, end, "inline")  # "the password to decrypt"
    if is_value and _is_alone(page, name, start, end):
        return _Value(start, end, "word")
    return _Value(start, end, "inline" if is_value else "loose")


def _is_setting(page: Page, name: _Name, sign: re.Match[str]) -> bool:
    """Whether `name = value` is a line of a settings file or a comment, not of a program."""
    if sign["sign"] != "=" or name.kind != "password":
        return False
    text = page.text
    value = _match(r"(\S{4,128}+)[ \t]*+(?:\r?\n|\Z)", text, sign.end())
    if value is None:
        return False
    if not re.search(r"[.()\[\],;\"']|\A\w+\Z", value[1]):
        return True  # Not an expression.
    lead = text[max(0, name.start - 400) : name.start]
    line = lead[lead.rfind("\n") + 1 :]
    return re.search(r"\A[ \t]*(?:#|//|;|--)", line) is not None or _in_section(lead)


def _in_section(lead: str) -> bool:
    """Whether a line such as `[client]` starts the settings."""
    head = lead.rfind("\n[")
    lines = lead[head + 1 :] if head >= 0 or lead.startswith("[") else ""
    return (
        re.fullmatch(r"\[[\w .:-]{1,64}\]\s*(?:[#;\w][^\n()]{0,200}\n\s*){0,20}", lines) is not None
    )


_SETTING = r"(?i)\b(?:set|chang|reset|updat|rotat)"


def _is_alone(page: Page, name: _Name, start: int, end: int) -> bool:
    """Whether a value ends its sentence or field, outside of a call of a program."""
    text = page.text
    before = text[text.rfind("\n", max(0, name.start - 200), name.start) + 1 : name.start]
    if re.search(r"[({\[]|\A[ \t]*(?:#|//|\*)?[ \t]*@|:(?:param|type)", before):
        return False
    field, sentence = r"\Z|[\s&;\"'`]", r"[.,!?;]?(?:\Z|[ \t]*\r?\n)"
    return _match(field if text[start - 1] == "=" else sentence, text, end) is not None


def _is_code(value: str) -> bool:
    return value.isidentifier() and sum(c.isdigit() for c in value) < 4


def _is_secret(value: str, name: _Name, form: ValueForm) -> bool:
    if len(value) < 6:
        return False
    value = value[:_JUDGED]
    looks_random = is_random(value)
    if not looks_random and (name.kind == "secret" or form == "loose"):
        return False
    if is_placeholder(value) or re.search(_NO_SECRET, value):
        return False
    if looks_random:
        return form != "loose" or len(value) >= 16
    if re.search(_PATH, value) or (form != "quoted" and re.search(_EXPRESSION, value)):
        return False
    # A password that a person chose, then: digits or odd signs among letters.
    if value.isdigit():
        return form in ("quoted", "line", "word")
    if re.fullmatch(_WORDS, value):
        is_attribute = form != "quoted" and "." in value[:-1]
        return form in ("quoted", "line", "word") and not is_attribute and can_be_password(value)
    if m := re.fullmatch(r"\W*(\w?[A-Za-z]+)\W*\w?", value):  # A word with a sign at its end.
        return form in ("quoted", "line", "word") and can_be_password(m[1])
    return any(c.isalpha() for c in value)


_JUDGED = 128  # Characters of a value that are examined.
# Several words, named hashes, URLs (their passwords have a rule of their own).
_NO_SECRET = r"\s|\A(?:sha\d+|md5|blake\w*)[-:$]|://"
_EXPRESSION = r"\A[A-Za-z_][\w.]{2,}[(\[]|[(\[)\]|]\Z"
_PATH = r"\A(?:\.{0,2}/|~/|[A-Za-z]:\\)"
_WORDS = r"[A-Za-z]+(?:[ _./:@-]+[A-Za-z]+)*[.:]?"


def _is_argument(page: Page, name: _Name) -> bool:
    """Whether this is the first argument of a call, `setenv("PASSWORD", …)`, and not a list
    item."""
    lead = page.text[max(0, name.start - 6) : name.start]
    return re.search(r"\w\(\\{0,3}[\"'`]\Z", lead) is not None


def _header(page: Page, start: int) -> SecretSpan | None:
    m = _match(_CREDENTIALS, page.text, start)
    if m is None or is_placeholder(m["value"]):
        return None
    value = m["value"]
    if (m["scheme"] or "").lower() == "basic":
        # Base64 of user:password, which has letters of both cases.
        plausible = len(value) >= 8 and not value.islower() and not value[1:].islower()
    else:
        plausible = _is_opaque(value)
    return SecretSpan(*m.span("value"), "authorization", RANK) if plausible else None


_CREDENTIALS = (
    r"""[bfru]{0,2}\\{0,3}["'`]?(?:(?P<scheme>[A-Za-z][\w-]{2,20})[ \t]+)?"""
    r"""(?:token=)?\\{0,3}["']?(?P<value>[\w.~+/=:-]{8,4096}+)"""
)


def _find_bearers(page: Page) -> Iterator[SecretSpan]:
    at = page.lower.find(b"bearer")
    while at >= 0:
        m = _match(r"""[ \t]+["'`]?([\w.~+/-]{16,4096}+={0,2})""", page.text, at + 6)
        if m and not is_placeholder(m[1]) and _is_opaque(m[1]):
            yield SecretSpan(*m.span(1), "authorization", RANK)
        at = page.lower.find(b"bearer", at + 6)


def _is_opaque(value: str) -> bool:
    return len(value) >= 12 and is_random(value)


def _option(page: Page, at: int, end: int) -> SecretSpan | None:
    """The value in `--password value`."""
    lead = page.raw[max(0, at - 24) : at]
    dashes = lead.rfind(b" --")
    if dashes < 0 or b" " in lead[dashes + 1 :]:
        return None
    m = _match(_OPTION, page.text, end)
    name = _name(page, at, end)
    if m is None or name is None or name.kind == "header":
        return None
    start, body = m.end(), _BARE
    if quote := _match(_QUOTE, page.text, start):
        start, body = quote.end(), _QUOTED_ESCAPED
    value = _Value(start, _match_end(body, page, start), "inline")
    if not _is_secret(page.text[start : value.end], name, value.form):
        return None
    return _span(page, name, value)


_NEAR = 48


def _nearby(page: Page, anchor: bytes, at: int, end: int) -> SecretSpan | None:
    """A random value that follows the word directly, or soon and in the same line."""
    if anchor in (b"auth", b"pwd"):
        return None
    if anchor == b"pass" and (m := _match(_GIVEN, page.text, end)):
        lead = page.text[max(0, at - 24) : at]
        if re.search(_WITH, lead) and _is_mixed(m[1]) and not is_placeholder(m[1]):
            return SecretSpan(*m.span(1), "password", RANK)
    if anchor == b"cred" and (m := _match(_LOGIN, page.text, end)) and can_be_password(m[1]):
        return SecretSpan(*m.span(1), "password", RANK)
    if m := _match(_NEXT_WORD, page.text, end):
        start, value = m.start(1), m[1].rstrip(".:?!")
        lead = page.text[max(0, at - 32) : at]
        if re.fullmatch("[0-9a-f]+", value) and re.search(r"/[\w.-]*\Z", lead):
            return None  # A path and its checksum.
        shortest, longest = 12, 4096
    else:
        index = bisect_left(page.starts, end)
        if index == len(page.starts) or page.starts[index] - end > _NEAR:
            return None
        start = page.starts[index]
        value = page.text[start : start + page.lines[index + 1] - page.lines[index] - 1]
        if re.search(_FAR, page.text[end:start]) or re.search(_OTHERWISE, value):
            return None
        value = value.rstrip(".:=%")
        if re.match(r"(?:sha\d{1,3}|md5|blake\w{1,3})[=:-]", value):
            return None
        offset = max(value.rfind(":"), value.rfind("=")) + 1
        start, value = start + offset, value[offset:]
        shortest, longest = 20, 200
    if not shortest <= len(value) <= longest or re.search(_NO_NEIGHBOUR, value):
        return None
    if not is_random(value) or is_placeholder(value) or _name(page, at, end) is None:
        return None
    return SecretSpan(start, start + len(value), "nearby-secret", NEARBY_RANK)


# "log in with password …", "credentials: admin / …"
_WITH = r"(?i)\b(?:with|use|using|mit|avec|con)[ ](?:(?:the|this|dem|le|la)[ ])?\Z"
_GIVEN = r"""(?:word|wort|phrase|code)[ ]["'`]?([^\s"'`(),<>]{6,128}?)["'`]?[.,!?]?(?=\s|\Z)"""
_LOGIN = r"""entials?(?:[ ]are)?:?[ ][\w.@-]{2,64}[ ]?[/:][ ]?([^\s"'`/<>]{6,128})"""


def _is_mixed(value: str) -> bool:
    return any(map(str.isalpha, value)) and not re.fullmatch(r"\W*[A-Za-z-]+\W*", value)


_NEXT_WORD = (
    r"""[\w-]{0,20}+["'`]?[ \t]++["'`]?(?=[^\s\d]{0,99}\d)([^\s"'`(),;:<>{}\[\]|\0]{12,4096}+)"""
)
# Another line, something redacted, or a word that says what the value is instead.
_FAR = (
    r"(?i)[\n\0]|hash|sha\d|md5|digest|commit|checksum|integrity|fingerprint|uuid|revision"
    r"|base64,|\bid\b| -"
)
# The name of a resource, a line of go.sum, something cut short, a hash or a UUID.
_OTHERWISE = r"\A(?:arn|h1):|\.{3}\Z|\A[0-9a-fA-F-]+[.:]?\Z"
# Paths, files, versions, numbers.
_NO_NEIGHBOUR = r"\A//|\A/[a-z_.-]+/|/.*\.|\.\w+/|\Asha\d+-|\A0x|://"


def _match_end(pattern: str, page: Page, start: int) -> int:
    m = _match(pattern, page.text, start)
    return m.end() if m else start


def _match(pattern: str, text: str, start: int) -> re.Match[str] | None:
    return _compiled(pattern).match(text, start)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # Compiled when first needed: at import this would cost more than the import.
    return re.compile(pattern, re.ASCII)
