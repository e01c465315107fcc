"""Secrets that have a telling name.

A name such as `DB_PASSWORD`, `apiKey` or `Authorization` is followed by a value in a few dozen
ways: `=` in shells and programs, `:` in YAML, JSON and headers, a blank after an option, "is" in a
sentence. The name makes the value suspect. Its look and its form decide whether it is a secret:
programs are full of `token = next_token`, environment files are not.
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from ctx.redaction import secret_columns
from ctx.redaction.entropy import RANDOM, is_placeholder, is_random, wordiness
from ctx.redaction.http_secrets import authorization
from ctx.redaction.nearby_secrets import given, nearby
from ctx.redaction.password_words import NAME_OF_A_SECRET, can_be_password, is_chosen
from ctx.redaction.scan_text import Page, SecretSpan, compiled, match, match_end
from ctx.redaction.secret_names import ANCHORS, Name, name_at

RANK = 1
# From the end of an anchor to the start of the value.
_SIGN = r"""(?x)
[\w.-]{0,40}+                                        # the rest of the name
(?:
    (?P<pair> (?: \\{0,3}["']?[,;]?\s{0,24}\\{0,3}["']?[Vv]alue\\{0,3}["']?[ \t]*[:=]
            | [ ]--?(?:value|body|secret-string)[ =] ) )[ \t]*+
  | \*{0,2}(?P<quote>\\{0,3}["'`])?(?:\[\d*\]|[\])]|[ ]\{[ ]?get;[^{}\n]{0,30}\})?[ \t]*+
    (?: (?: :[ \t]*[A-Za-z_&][\w.\[\],|& ]{0,40} | [a-z]{3,9} )[ ]=(?=[ ][bru]?["'`])  # name: str =
      | (?P<sign> :=|=>|->|\?=|\?:|:-|[=!]==?|=|:(?!:)|\|\||\?\?|(?<=[ ])(?:\||or|-|–|—)(?=[ ]) )
        \*{0,2}
      | (?P<call> [,({](?=[ \t]*[bfru]{0,2}\\{0,3}["'`]) )
    )[ \t]*+
  # <name>…</name>, <item key="name">…</item>, <td>name</td><td>…</td>
  | (?P<tag> (?:["']|[ ][^<>\n]{1,80}|</\w{1,12}>\s{0,20}<\w{1,12}[^<>\n]{0,60})?>(?:<!\[CDATA\[)? )
  | (?P<block> ["'][ \t]*\{[^{}]{0,200}?\sdefault[ \t]*=[ \t]*(?=") )  # Terraform
  | (?:\\{0,3}["'`])?
    (?P<scope> [ \t]+(?:for|of|on|at|von|f\u00fcr|vom|zum|zur)[ ][^\n.:;,=(){}<>]{1,40}? )?
    (?: [ \t]+(?P<verb> (?:(?:was|is|has[ ]been|got)[ ])?(?:now[ ])?(?:changed|set|reset)[ ]to:?
                     | (?:is|ist|lautet|war|was|\u00e8|to)(?:[ ]now)?:? )
      | (?<=\w)(?P<after> : ) )[ \t]+
  | [ \t]+(?=["'`])                                  # the password `…`
  | (?P<blank> [ \t]+|[,;|] )                        # ENV NAME …
)
"""
_OPTION = r"[\w-]{0,40}+[ \t]++(?!-)"
_QUOTE = r"""[bfruN]{0,2}(\\{0,3}["'`])"""
_QUOTED = {
    '"': r'(?>(?:[^"\\\n]|\\.){0,256})',
    "'": r"(?>(?:[^'\\\n]|\\.){0,256})",
    "`": r"[^`\n]{0,256}+",
}
_QUOTED_ESCAPED = r"""[^"'`\\\n]{0,256}+"""
_BARE = r"""[^\s"'`,;&<>(){}\[\]|\\]{1,256}+"""
# Up to the next blank, field (`;Database=…`) or parameter (`&user=…`).
_BARE_PASSWORD = r"""(?>(?:[^\s"'`<>,;&\\]|[,;&](?!\s|\Z|[\w.-]{2,40}=)){1,256})"""
_PHRASE = r"[a-z]{3,8}(?:[ ][a-z]{3,8}){11,23}(?![\w-])"
_REST_OF_LINE = r"(\S{1,256}+)[ \t]*+(?:\#[^\n]*)?(?:\r?\n|\Z)"
_LINE_LEAD = r"(?:\A|\n)[ \t>+-]*(?:(?:export|set|setx|declare -x|ENV|ARG)[ \t]+)?\Z"
_DIRECTIVE = (
    r"(?:(?:\A|\n)[ \t]*(?:ENV|ARG|setenv|SetEnv|set(?: -g?x)?)|(?i:config(?: set)?))[ \t]+\Z"
)
_TAIL = r"""[^\s"'`,;&<>(){}\[\]|\\]*+"""


ValueForm = Literal[
    "quoted",
    "line",  # All that is left of its line.
    "word",  # Within a line, at the end of a sentence or field.
    "inline",  # Within a line, but clearly a value.
    "loose",  # Within a line, and perhaps an expression of a program.
]


class _Value(NamedTuple):
    start: int
    end: int
    form: ValueForm


def find(page: Page) -> Iterator[SecretSpan]:
    for anchor in filter(page.keywords.get, ANCHORS):
        done = 0
        for at in page.keywords[anchor]:
            if at < done:
                continue
            name = name_at(page, at, at + len(anchor))
            if span := _find_at(page, name, anchor, at):
                yield span
                done = span.end
            elif name:
                yield from secret_columns.find(page, name)


def _find_at(page: Page, name: Name | None, anchor: bytes, at: int) -> SecretSpan | None:
    end = at + len(anchor)
    if name is None:
        return given(page, anchor, at, end)
    span = None
    if sign := match(_SIGN, page.text, end):
        span = _assigned_secret(page, name, sign)
    span = span or _value_before(page, name)
    if span or name.kind == "key":
        return span
    return _option(page, name, end) or nearby(page, anchor, at, end)


def _assigned_secret(page: Page, name: Name, sign: re.Match[str]) -> SecretSpan | None:
    if name.kind == "header":
        return authorization(page, sign.end())
    value = _value(page, name, sign)
    if value is None:
        return None
    text = page.text[value.start : value.end]
    if sign["call"] and not _is_argument(page, name, sign, value):
        return None
    if name.text.lower() == "pass" and not (sign["sign"] or sign["tag"] or sign["pair"]):
        return None  # "… to pass to …", "Pass `--verbose` …"
    if sign["sign"] == ":" and page.raw[max(0, name.start - 1) : name.start] == b":":
        return None  # `arn:aws:…:secret:name`
    if not _is_secret(text, name, value.form):
        return None
    return _span(page, name, value)


def _span(page: Page, name: Name, value: _Value) -> SecretSpan:
    end = value.end
    if end - value.start >= 256:  # Longer than the patterns reach: take all of it.
        end = match_end(_TAIL, page.text, end)
    rule = "password" if name.kind == "password" else "named-secret"
    return SecretSpan(value.start, end, rule, RANK)


def _value_before(page: Page, name: Name) -> SecretSpan | None:
    """The value in `SET value = '…' WHERE name = 'DB_PASSWORD'`."""
    start = name.start
    if page.raw[start - 1 : start] not in (b'"', b"'") or b"=" not in page.raw[start - 8 : start]:
        return None
    m = compiled(_VALUE_BEFORE).search(page.text, max(0, start - 400), start)
    if m is None or not _is_secret(m["value"], name, "quoted"):
        return None
    return _span(page, name, _Value(*m.span("value"), "quoted"))


_VALUE_BEFORE = (
    r"""(?i)value["'`]?[ ]*[=:][ ]*["'](?P<value>[^"'\\\n]{4,256})["']"""
    r"""[^;"'<>\n]{1,40}(?:key|name|setting|option)\W{1,6}\Z"""
)


def _value(page: Page, name: Name, sign: re.Match[str]) -> _Value | None:
    text, start = page.text, sign.end()
    if name.kind == "phrase" and (m := match(_PHRASE, text, start)):
        return _Value(*m.span(), "quoted")
    if sign["tag"]:
        end = text.find("</", start, start + 4096)
        end -= 3 * text.endswith("]]>", start, max(end, start))
        return _Value(start, end, "quoted") if end > start else None
    if m := match(_QUOTE, text, start):
        quote = m[1]
        body = _QUOTED_ESCAPED if len(quote) > 1 else _QUOTED[quote]
        return _Value(m.end(), match_end(body, page.text, m.end()), "quoted")
    if sign["call"]:
        return None
    lead = text[max(0, name.start - 24) : name.start]
    if sign["blank"]:
        m = match(r"([^\s:]{4,256}?);?[ \t]*+(?:\#[^\n]*)?(?:\r?\n|\Z)", text, start)
        if not m or not (re.search(_DIRECTIVE, lead) or is_chosen(m[1])):
            return None
        is_line = re.search(_DIRECTIVE, lead) or re.search(_LINE_LEAD, lead)
        return _Value(*m.span(1), "line") if is_line else None
    if sign["sign"] in ("=", ":", ":=", "?=") and re.search(_LINE_LEAD, lead):
        m = match(_REST_OF_LINE, text, start)
        glued = sign["sign"] == "=" and text[start - 1] == "="
        # `name = value` may be a line of a program, and value another name.
        is_value = (
            glued or sign["sign"] == ":" or not _is_code(m[1]) or _is_setting(page, name, sign)
            if m
            else False
        )
        if m and m[1][-1] not in ",;({[)" and is_value:
            return _Value(*m.span(1), "line")
    if sign["sign"] == ":-":
        return _Value(start, text.find("}", start, start + 256), "quoted")
    said = sign["verb"] or sign["after"]
    glued = text[start - 1] == "=" or _is_setting(page, name, sign)
    is_value = glued or said or sign["pair"] or sign["sign"] in (":", "|", "->", "-", "–", "—")
    before = page.raw[max(0, name.start - 1) : name.start]
    if name.kind == "password" and is_value and before not in (b"(", b",", b"."):
        end = match_end(_BARE_PASSWORD, page.text, start)
    else:
        end = match_end(_BARE, page.text, start)
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


def _is_setting(page: Page, name: Name, sign: re.Match[str]) -> bool:
    """Whether `name = value` is a line of a settings file or a comment, not of a program."""
    if sign["sign"] != "=":
        return False
    text = page.text
    value = match(r"(\S{4,128}+)[ \t]*+(?:\r?\n|\Z)", text, sign.end())
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


def _is_alone(page: Page, name: Name, start: int, end: int) -> bool:
    """Whether a value ends its sentence or field, outside of a call of a program."""
    text = page.text
    if re.search(r"\|[ ]*\Z", text[max(0, start - 4) : start]):  # In a table.
        return match(r"[ ]*(?:\||\r?\n|\Z)", text, end) is not None
    before = text[max(0, name.start - 200) : name.start].rpartition("\n")[2]
    if re.search(r"[({\[]|\A[ \t]*(?:#|//|\*)?[ \t]*@|:(?:param|type)", before):
        return False
    field = r"\Z|[\s&;\"'`]|,[\w.-]{1,40}="
    sentence = r"[.,!?;]?(?:\Z|[\"'`]|[ \t]*\r?\n)"
    return match(field if text[start - 1] == "=" else sentence, text, end) is not None


def _repeats(name: str, value: str) -> bool:
    """Whether the parts of a value are parts of its name: `PSK_WITH_AES = "psk-aes"`."""
    parts = re.findall(r"[a-z]+|\d+", value)
    return all(len(part) > 1 and part in name for part in parts)


def _is_code(value: str) -> bool:
    return value.isidentifier() and sum(c.isdigit() for c in value) < 4 and not is_random(value)


def _is_secret(value: str, name: Name, form: ValueForm) -> bool:
    if len(value) < (4 if name.kind == "pin" else 16 if form == "loose" else 6):
        return False
    value = value[:_JUDGED]
    if name.kind == "pin":
        return form in _CLEAR and re.fullmatch(r"\d{4,8}", value) is not None
    if re.fullmatch(r"#\w+|[A-Z]+(?:_[A-Z0-9]+)+", value) or value.startswith("arn:"):
        return False  # A colour, a constant, the name of a resource.
    if not value.isascii() and not re.search("[0-9]", value):
        return False  # A label in another language.
    if _repeats(re.sub(r"[\W_]", "", name.text).lower(), value.lower()):
        return False
    if name.kind == "phrase":
        return len(re.findall(r"[a-z]{3,8}(?=[ -]|\Z)", value)) >= 12
    looks_random = is_random(value) or (
        form in _CLEAR and re.fullmatch(_LETTERS, value) is not None and wordiness(value) <= RANDOM
    )
    if name.kind == "key" and re.search("[./]", value) and not (looks_random and len(value) >= 20):
        return False
    if name.kind == "key" and not (looks_random and len(value) >= 12):
        return name.text.isupper() and form in _CLEAR and len(value) >= 8 and is_chosen(value)
    if not looks_random and form == "loose":
        return False
    if not looks_random and name.kind == "secret":
        if form in _CLEAR and re.fullmatch("[A-Z2-7]{16,64}", value):  # Base32
            return wordiness(value) <= RANDOM
        if len(value) < 8 or not (form in _CLEAR and is_chosen(value)):
            return False
        if re.search(NAME_OF_A_SECRET, value):
            return False
    if is_placeholder(value) or re.search(_NO_SECRET, value):
        return False
    if looks_random:
        return True
    if re.search(_PATH, value) or (form != "quoted" and re.search(_EXPRESSION, value)):
        return False
    # A password that a person chose, then: digits or odd signs among letters.
    if value.isdigit():
        return form in _CLEAR
    if re.fullmatch(_WORDS, value):
        is_attribute = form != "quoted" and "." in value[:-1]
        return form in _CLEAR and not is_attribute and can_be_password(value)
    if m := re.fullmatch(r"\W*(\w?[A-Za-z]+)\W*\w?", value):  # A word with a sign at its end.
        return form in _CLEAR and can_be_password(m[1])
    return any(c.isalpha() for c in value)


# Letters alone are random if capitals are everywhere.
_LETTERS = r"(?=.{12})[a-z]*+(?:[A-Z]++[a-z]++){3,}[A-Z]*+"
_CLEAR = ("quoted", "line", "word")
_JUDGED = 128  # Characters of a value that are examined.
# Several words, named hashes, URLs (their passwords have a rule of their own).
_NO_SECRET = r"\s|\A\$\(|\A(?:sha\d+|md5|blake\w*)[-:$]|://"
_EXPRESSION = r"\A[A-Za-z_][\w.]{2,}[(\[]|[(\[)\]|]\Z"
_PATH = r"\A(?:\.{0,2}/|~/|[A-Za-z]:\\)"
_WORDS = r"[A-Za-z]+(?:[ _./:@-]+[A-Za-z]+)*[.:]?"


def _is_argument(page: Page, name: Name, sign: re.Match[str], value: _Value) -> bool:
    """Whether this is the first argument of a call, `setenv("PASSWORD", …)`, or of `password(…)`,
    or the last one of a pair, and not a list item."""
    text = page.text[value.start : value.end]
    if not sign["quote"]:
        return sign["call"] != "," and is_chosen(text) and not re.match(_VERB, name.text)
    lead = page.text[max(0, name.start - 6) : name.start]
    if re.search(r"\w\(\\{0,3}[\"'`]\Z", lead):
        return True
    is_last = match(r"\\{0,3}[\"'`][ ]?\)", page.text, value.end) is not None
    return is_random(text) or (is_last and (is_chosen(text) or name.kind in ("phrase", "pin")))


# Not `set_password("…")`.
_VERB = r"(?i)\W*(?:add|check|create|find|get|has|is|make|new|next|on|parse|read|test|to|verify)_?"


def _option(page: Page, name: Name, end: int) -> SecretSpan | None:
    """The value in `--password value`."""
    if not name.text.startswith("-") or name.kind == "header":
        return None
    if page.raw[name.start - 1 : name.start].strip(b" \t\n\"'"):
        return None
    if (m := match(_OPTION, page.text, end)) is None:
        return None
    start, body = m.end(), _BARE
    if quote := match(_QUOTE, page.text, start):
        start, body = quote.end(), _QUOTED_ESCAPED
    value = _Value(start, match_end(body, page.text, start), "word")
    if not _is_secret(page.text[start : value.end], name, value.form):
        return None
    return _span(page, name, value)
