"""The ways in which a text with a secret is written down, and how a reader would undo them.

A secret is caught if no piece of it is left after undoing the encoding of what redaction returns.
"""

import base64
import binascii
import html
import json
import random
import re
import urllib.parse
from collections.abc import Callable
from typing import NamedTuple

from bench.secret_values import Sample

COLUMNS = 40
ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff\u00ad"


class Encoding(NamedTuple):
    name: str
    write: Callable[[Sample, random.Random], str]
    undo: Callable[[str], str]


def _unchanged(text: str) -> str:
    return text


def _json(sample: Sample, rng: random.Random) -> str:
    text = sample.text
    match rng.randrange(4):
        case 0:
            return json.dumps({"output": text})
        case 1:
            return json.dumps(json.dumps({"output": text}))
        case 2:
            return json.dumps({"output": text}).replace("/", "\\/")
        case _:
            escaped = "".join(c if c.isalnum() or c in " _" else f"\\u{ord(c):04x}" for c in text)
            return f'{{"output": "{escaped}"}}'


def _undo_json(text: str) -> str:
    text = re.sub(r"\\+u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)
    return re.sub(r"\\+n", "\n", text).replace("\\", "")


def _html(sample: Sample, rng: random.Random) -> str:
    match rng.randrange(3):
        case 0:
            return html.escape(sample.text)
        case 1:
            return "".join(c if c.isalnum() or c in " _\n" else f"&#{ord(c)};" for c in sample.text)
        case _:
            return "".join(
                c if c.isalnum() or c in " _\n" else f"&#x{ord(c):X};" for c in sample.text
            )


def _url(sample: Sample, rng: random.Random) -> str:
    match rng.randrange(4):
        case 0:
            return urllib.parse.quote(sample.text, safe="")
        case 1:
            return urllib.parse.quote_plus(sample.text)
        case 2:
            query = urllib.parse.urlencode({"page": "3", "body": sample.text, "lang": "en"})
            return f"GET https://example.com/log?{query} HTTP/1.1"
        case _:
            return "".join(f"%{byte:02X}" for byte in sample.text.encode())


def _cut(sample: Sample, rng: random.Random) -> str:
    return _inside(sample, "\\\n", rng)


def _zero_width(sample: Sample, rng: random.Random) -> str:
    return _inside(sample, rng.choice(ZERO_WIDTH), rng)


def _inside(sample: Sample, mark: str, rng: random.Random) -> str:
    """Put `mark` into the secret, not too close to its ends."""
    at = rng.randrange(len(sample.secret) // 4, len(sample.secret) * 3 // 4 + 1)
    cut = sample.secret[:at] + mark + sample.secret[at:]
    return sample.text.replace(sample.secret, cut)


def _columns(sample: Sample, _rng: random.Random) -> str:
    """Wrap it as a narrow terminal does, so that the secret is cut if it can be."""
    if len(sample.secret) < COLUMNS:
        start = sample.text.index(sample.secret)
        before = (COLUMNS - 8 - start) % COLUMNS
        padded = ("the next line is from the log of the job " * 2)[:before] + sample.text
    else:
        padded = sample.text
    return "\n".join(
        line[at : at + COLUMNS]
        for line in padded.split("\n")
        for at in range(0, max(len(line), 1), COLUMNS)
    )


def _base64(sample: Sample, rng: random.Random) -> str:
    match rng.randrange(4):
        case 0:
            return base64.b64encode(sample.text.encode()).decode()
        case 1:
            return f"  config: {base64.b64encode(sample.text.encode()).decode()}"
        case 2:
            return f'{{"data": "{base64.urlsafe_b64encode(sample.text.encode()).decode()}"}}'
        case _:
            text = f"{sample.text}\nretries: 3\n"
            return f"echo {base64.b64encode(text.encode()).decode()} | base64 -d"


def _undo_hex(text: str) -> str:
    return re.sub("(?:[0-9a-f]{2})+", lambda found: bytes.fromhex(found[0]).decode(), text)


def _undo_mail(text: str) -> str:
    return text.replace("=\n", "").replace("=3D", "=")


def _parts(sample: Sample, size: int) -> list[str]:
    text = sample.text.replace("=", "=3D")
    return [text[at : at + size] for at in range(0, len(text), size)]


def _strings(sample: Sample, rng: random.Random) -> str:
    cut = rng.choice(['"\n    "', '" + "', '" +\n    "', '" \\\n    "'])
    return f'text = "{_inside(sample, cut, rng)}"'


def _quoted(sample: Sample, rng: random.Random) -> str:
    return "> " + _columns(sample, rng).replace("\n", "\n> ")


def _coloured(sample: Sample, rng: random.Random) -> str:
    return _inside(sample, "\x1b[0m\x1b[1;31m", rng)


def _undo_base64(text: str) -> str:
    pieces = [text]
    for run in re.findall(r"[A-Za-z0-9+/_-]{8,}", text):
        standard = run.replace("-", "+").replace("_", "/")
        for offset in range(4):
            part = standard[offset:]
            part = part[: len(part) // 4 * 4]
            try:
                pieces.append(binascii.a2b_base64(part).decode("latin-1"))
            except binascii.Error:
                continue
    return "\n".join(pieces)


PLAIN = Encoding("plain", lambda sample, _: sample.text, _unchanged)

ENCODINGS = (
    Encoding("JSON", _json, _undo_json),
    Encoding("HTML", _html, html.unescape),
    Encoding("backslash", _cut, lambda text: text.replace("\\\n", "")),
    Encoding("zero-width", _zero_width, lambda text: re.sub(f"[{ZERO_WIDTH}]", "", text)),
    Encoding("URL", _url, urllib.parse.unquote_plus),
    Encoding("40 columns", _columns, lambda text: text.replace("\n", "")),
    Encoding("base64", _base64, _undo_base64),
    Encoding("hexadecimal", lambda sample, _: sample.text.encode().hex(), _undo_hex),
    Encoding("mail", lambda sample, _: "=\n".join(_parts(sample, 30)), _undo_mail),
    Encoding("strings", _strings, lambda text: re.sub(r'"\s*\+?\s*"', "", text)),
    Encoding("quoted", _quoted, lambda text: text.replace("\n> ", "")),
    Encoding("coloured", _coloured, lambda text: re.sub(r"\x1b\[[0-9;]*m", "", text)),
)


def is_left(secret: str, encoding: Encoding, redacted: str, piece: int) -> bool:
    """Whether `piece` characters of the secret in a row can still be read."""
    text = encoding.undo(re.sub(r"\[redacted:[a-z-]+\]", "\0", redacted))
    if encoding is not PLAIN:
        text, secret = re.sub(r"\s", "", text), re.sub(r"\s", "", secret)
    size = min(piece, len(secret))
    return any(secret[at : at + size] in text for at in range(len(secret) - size + 1))
