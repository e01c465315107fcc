"""Removes secrets from text before it is stored.

`redact(text)` is a pure function from text to text and findings. It uses
these signs, from the most to the least certain:

* **formats** (`secret_formats.py`): values with a known form, such as a
  vendor's prefix, a PEM block, a JWT, a password inside a URL;
* **commands** (`command_passwords.py`): `mysql -p…`, `curl -u user:…`, `.pgpass`;
* **names** (`named_secrets.py`): values that have the name of a secret, as in
  `DB_PASSWORD=…`, `"apiKey": "…"`, `Authorization: Bearer …`, `--token …`;
* **sentences** (`named_secrets.py`, `spoken_passwords.py`): "the password is …";
* **forms** (`password_forms.py`): columns of tables, answers to prompts, "from … to …";
* **HTTP** (`http_secrets.py`): secrets in headers, and in options of programs that send them;
* **neighbours** (`nearby_secrets.py`): values that look random and stand next to a
  word such as "token" in a sentence;
* **services** (`service_secrets.py`): values that stand beside the name of a service, and have
  the length of its keys.

Each module has a function `find`, which yields spans of a `Page` (`scan_text.py`); `named_secrets`
calls `nearby_secrets`. `keywords.py` finds the words beside which secrets stand, and
`secret_names.py` the names of secrets. `decoding.py` decodes parts of the page, for which the same
functions are called, and maps the spans back; its decoders are in `escapes.py`, `broken_lines.py`
and `encoded_values.py`. `needle.py` finds what `ctx scrub` removes.

A random-looking value alone is never a secret: source code is full of hashes,
ids and encoded fixtures, and a memory that lost them would be worthless. `entropy.py`
distinguishes random values from words, `password_words.py` passwords from what is
said about them.

Invariants: a finding never contains a secret; redacting twice changes nothing;
text outside of findings stays unchanged. The package reads `formats.txt`, no clock
and no environment, and imports only light modules such as `re`, because every
write passes through it.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from ctx.redaction import (
    command_passwords,
    decoding,
    http_secrets,
    named_secrets,
    nearby_secrets,
    password_forms,
    secret_formats,
    service_secrets,
    spoken_passwords,
)
from ctx.redaction.decoding import DecodedView
from ctx.redaction.entropy import is_random
from ctx.redaction.scan_text import Page, SecretSpan, marker, read


class Finding(NamedTuple):
    """The position of a secret. Offsets count characters of the text given to `redact`."""

    rule: str
    start: int
    end: int
    line: int


class RedactedText(NamedTuple):
    text: str
    findings: tuple[Finding, ...]


def redact(text: str) -> RedactedText:
    spans = _scan(text) if len(text) >= _SHORTEST else []
    if not spans:
        return RedactedText(text, ())
    redacted = _replace(text, spans)
    # A replacement shortens its line and may bring a word and a value closer together. Repeating
    # until nothing is found makes the result a fixed point. Replacements are never matched again,
    # so the loop ends, nearly always after one pass.
    while more := _scan(redacted):
        spans = _merge_spans(spans, more)
        redacted = _replace(text, spans)
    return RedactedText(redacted, _findings(text, spans))


_SHORTEST = len("psk=abc")


def names_with_secrets(names: Collection[str]) -> set[str]:
    """The names that contain a secret. Many at once take hardly longer than one."""
    if not redact("\n\0\n".join(names)).findings:
        return set()
    return {name for name in names if redact(name).findings}


def texts_without_secrets(texts: Sequence[str]) -> set[str]:
    """Those of the texts that `redact` leaves unchanged. One search for many short texts takes a
    tenth of the time of many searches."""
    joined = _BETWEEN_TEXTS.join(texts)
    if not _scan(joined):
        return set(texts)
    if len(texts) == 1:
        return set()
    half = len(texts) // 2
    return texts_without_secrets(texts[:half]) | texts_without_secrets(texts[half:])


# No rule matches NUL, and lines that were wrapped are compared with three lines before and after.
_BETWEEN_TEXTS = "\n\n\n\n\0\n\n\n\n"


def _scan(text: str) -> list[SecretSpan]:
    """The secrets in `text`: sorted spans that do not overlap.

    Overlapping matches are merged under the name of the first rule: a format is more precise than a
    name.
    """
    page = read(text)
    candidates = [span for span in _candidates(page, _DEPTH) if not page.was_redacted(span)]
    candidates.sort(key=lambda span: span.start)  # Stable: formats stay before names.
    spans: list[SecretSpan] = []
    for span in candidates:
        if spans and span.start < spans[-1].end:
            last = spans[-1]
            rule = min(last, span, key=lambda s: s.rank).rule
            end, rank = max(last.end, span.end), min(last.rank, span.rank)
            spans[-1] = SecretSpan(last.start, end, rule, rank)
        else:
            spans.append(span)
    return spans


def _candidates(page: Page, depth: int) -> Iterator[SecretSpan]:
    plain = [span for rules in _RULES for span in rules.find(page)]
    yield from plain
    if depth and (view := decoding.view(page)):
        plain.sort(key=lambda span: -span.rank)
        ranks = {at: span.rank for span in plain for at in (span.end, span.start)}
        for found in _candidates(read(view.text), depth - 1):
            start, end, is_guess = view.origin(found.start, found.end)
            span = found._replace(start=start, end=end)
            if not is_guess or _was_cut(page, span, view, found, ranks):
                yield span


def _was_cut(
    page: Page, span: SecretSpan, view: DecodedView, found: SecretSpan, ranks: dict[int, int]
) -> bool:
    """Whether a secret in joined lines was one value before, and not a secret and another line.

    `ranks` has the starts and ends of the secrets that are in the lines.
    """
    cut = page.text.find("\n", span.start, span.end)
    if cut < 0 or span.rank == nearby_secrets.RANK:
        return False
    at = found.start + cut - span.start
    is_value = not re.search(r"[=:][^=\s]", view.text[at : found.end + 2])
    if cut not in ranks:
        return is_value or span.rank == secret_formats.RANK
    if view.origin(at, at + 1)[0] in ranks:
        return False
    return span.rank < ranks[cut] or (is_value and is_random(view.text[at : found.end]))


_RULES = (
    secret_formats,
    command_passwords,
    named_secrets,
    spoken_passwords,
    password_forms,
    http_secrets,
    service_secrets,
)
_DEPTH = 3
"""How many encodings are undone, as in base64 inside a JSON string inside another."""


def _replace(text: str, spans: list[SecretSpan]) -> str:
    pieces: list[str] = []
    at = 0
    for span in spans:
        pieces += (text[at : span.start], marker(span.rule))
        at = span.end
    pieces.append(text[at:])
    return "".join(pieces)


def _merge_spans(spans: list[SecretSpan], more: list[SecretSpan]) -> list[SecretSpan]:
    """Add to `spans` what was found after they were replaced."""
    joined = list(spans)
    shift, upcoming = 0, iter(spans)
    span = next(upcoming, None)
    for late in more:
        while span and span.start <= late.start + shift:
            shift += span.end - span.start - len(marker(span.rule))
            span = next(upcoming, None)
        joined.append(late._replace(start=late.start + shift, end=late.end + shift))
    joined.sort(key=lambda s: s.start)
    return joined


def _findings(text: str, spans: list[SecretSpan]) -> tuple[Finding, ...]:
    findings, line, at = [], 1, 0
    for span in spans:
        line += text.count("\n", at, span.start)
        at = span.start
        findings.append(Finding(span.rule, span.start, span.end, line))
    return tuple(findings)
