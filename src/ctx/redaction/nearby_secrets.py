"""Secrets that stand beside a word such as "token", without a sign between them.

A value that looks random is enough, and so is a password after "with password" or "credentials".
"""

import re
from bisect import bisect_left

from ctx.redaction.entropy import is_placeholder, is_random
from ctx.redaction.password_words import can_be_password
from ctx.redaction.scan_text import Page, SecretSpan, match

RANK = 2
NAMED_RANK = 1
_NEAR = 48


def given(page: Page, anchor: bytes, at: int, end: int) -> SecretSpan | None:
    """The password in "with password …" or "credentials: admin / …"."""
    if anchor == b"pass" and (m := match(_GIVEN, page.text, end)):
        lead = page.text[max(0, at - 24) : at]
        if re.search(_WITH, lead) and _is_mixed(m[1]) and not is_placeholder(m[1]):
            return SecretSpan(*m.span(1), "password", NAMED_RANK)
    if anchor == b"cred" and (m := match(_LOGIN, page.text, end)) and can_be_password(m[1]):
        return SecretSpan(*m.span(1), "password", NAMED_RANK)
    return None


def nearby(page: Page, anchor: bytes, at: int, end: int) -> SecretSpan | None:
    """A value that follows the name of a secret directly, or a random one soon in its line."""
    if anchor in (b"auth", b"pw", b"psk"):
        return None
    if span := given(page, anchor, at, end):
        return span
    if m := match(_NEXT_WORD, page.text, end):
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
        if re.search(r"\b(?:sha\d{1,3}|md5|blake\w{1,3})[=:-]", value):
            return None
        offset = max(value.rfind(":"), value.rfind("=")) + 1
        start, value = start + offset, value[offset:]
        shortest, longest = 20, 200
    if not shortest <= len(value) <= longest or re.search(_NO_NEIGHBOUR, value):
        return None
    if not is_random(value) or is_placeholder(value):
        return None
    return SecretSpan(start, start + len(value), "nearby-secret", RANK)


# "log in with password …", "credentials: admin / …"
_WITH = r"(?i)\b(?:with|use|using|mit|avec|con)[ ](?:(?:the|this|dem|le|la)[ ])?\Z"
_GIVEN = r"""(?:word|wort|phrase|code)[ ]["'`]?([^\s"'`(),<>]{6,128}?)["'`]?[.,!?]?(?=\s|\Z)"""
_LOGIN = r"""entials?(?:[ ]are|:)[ ][\w.@-]{2,64}[ ]?[/:][ ]?([^\s"'`/<>]{6,128})"""


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
