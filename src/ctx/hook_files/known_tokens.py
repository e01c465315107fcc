"""Removes tokens with a distinctive prefix from an event, before it is written to the spool.

This is a small part of what `ctx.redaction` does when the event is processed, with the same result:
a few prefixes, found by searching for bytes in the JSON text. Loading `re` and all rules takes
longer than a whole hook. What is not certain, or takes long, is left to the processing.
"""

_LARGEST = 1 << 20
_MOST_PLACES = 256
_LONG, _MOST_VALUES = 20, 200
"""No token is shorter. Unless there are many, long values are extracted and searched alone."""
_LONGEST_KEY = 20_000
_BEGIN, _LABELS = b"-----BEGIN ", (b"PRIVATE KEY", b"PRIVATE KEY BLOCK")
_SMALL = b"abcdefghijklmnopqrstuvwxyz"
_LARGE = _SMALL.upper()
_ALNUM = _SMALL + _LARGE + b"0123456789"
_WIDE = _ALNUM + b"_-"
_BASE64 = _ALNUM + b"+/="
_SHAPE = bytes(120 if byte in _WIDE + b"+/.=~:%$" else 32 for byte in range(256))
_NOT_DENSE = _SMALL + b"_-+/.=~:%$"

TOKENS = (
    ("github-token", b"ghp_ gho_ ghs_ ghu_ ghr_", _ALNUM, 1, ((36, 255),)),
    ("github-fine-token", b"github_pat_", _ALNUM + b"_", 1, ((36, 255),)),
    ("gitlab-token", b"glpat-", _WIDE, 1, ((20, 300), (2, 40), (2, 40))),
    ("npm-token", b"npm_", _ALNUM, 1, ((36, 64),)),
    ("slack-token", b"xoxb- xoxp-", _ALNUM + b"-", 1, ((10, 300),)),
    ("sendgrid-key", b"SG.", _WIDE, 2, ((16, 32), (32, 64))),
    ("gcp-api-key", b"AIza", _WIDE, 1, ((35, 35),)),
    ("aws-access-key", b"AKIA ASIA", _LARGE + b"234567", 1, ((16, 16),)),
    ("stripe-key", b"sk_live_ rk_live_", _ALNUM, 1, ((10, 247),)),
    ("anthropic-key", b"sk-ant-", _WIDE, 1, ((20, 300),)),
    ("openai-key", b"sk-proj- sk-svcacct- sk-admin-", _WIDE, 1, ((20, 300),)),
    ("openai-key", b"sk-", _ALNUM, 1, ((32, 100),)),
    ("jwt", b"eyJ", _WIDE, 3, ((10, 600), (8, 8192), (0, 2048), (0, 2048), (0, 2048))),
)
"""From `redaction/formats.txt`: the rule, the prefixes, the characters, how many of the parts must
be there, and the lengths of the parts, which are separated by dots."""


def redact(data: bytes) -> bytes:
    """JSON without the tokens that are known here. It stays valid."""
    long = _long_values(data) if len(data) <= _LARGEST else b""
    if not long:
        return data
    for rule, prefixes, characters, least, lengths in TOKENS:
        for prefix in prefixes.split():
            at = data.find(prefix) if prefix in long else -1
            for _ in range(_MOST_PLACES):
                if at < 0:
                    break
                after = at + len(prefix)
                end = _token_end(data, after, characters, least, lengths)
                if end and _begins_word(data, at) and _is_varied(data[at:end]):
                    mark = b"[redacted:%b]" % rule.encode()
                    data, after = data[:at] + mark + data[end:], at + len(mark)
                at = data.find(prefix, after)
    first, *pieces = data.split(_BEGIN)
    return first + b"".join(map(_without_key, pieces)) if pieces else data


def _long_values(data: bytes) -> bytes:
    shape = data.translate(_SHAPE) + b" "
    values, end = [], 0
    while (start := shape.find(b"x" * _LONG, end)) >= 0:
        end = shape.find(b" ", start)
        value = data[start:end]
        if _is_dense(value):
            values.append(value)
        if len(values) > _MOST_VALUES:
            return data
    return b"\n".join(values)


def _is_dense(value: bytes) -> bool:
    return len(value.translate(None, _NOT_DENSE)) > 2


def _token_end(
    data: bytes, start: int, characters: bytes, least: int, lengths: "tuple[tuple[int, int], ...]"
) -> int:
    """The end of a token whose prefix ends at `start`; 0: there is none."""
    end = start
    for number, (shortest, longest) in enumerate(lengths):
        at = end + 1 if number else end
        part = data[at : at + longest + 1]
        length = len(part) - len(part.lstrip(characters))
        if length > longest:
            return 0
        if length < shortest or (number and data[end:at] != b"."):
            if number < least:
                return 0
            break
        end = at + length
    return 0 if data[end : end + 1].isalnum() else end


def _begins_word(data: bytes, at: int) -> bool:
    """Whether a value can begin here: also after an escaped line end, and not inside an escape."""
    before = data[max(0, at - 64) : at]
    if before.endswith(b"\\"):
        return (len(before) - len(before.rstrip(b"\\"))) % 2 == 0
    is_escaped = before[-2:-1] == b"\\" and before[-1:] in b"nrt"
    is_encoded = before[-3:-2] == b"%" or before[-6:-4] == b"\\u"
    return is_escaped or is_encoded or not before[-1:].isalnum()


def _is_varied(value: bytes) -> bool:
    return len(set(value[-24:])) >= 6 and b"EXAMPLE" not in value


def _without_key(piece: bytes) -> bytes:
    """What follows the beginning of a PEM block, without the block if that is a private key."""
    label, _, rest = piece.partition(b"-----")
    body, _, rest = rest.partition(b"-----END ")
    name, dashes, after = rest.partition(b"-----")
    lines = body.replace(b"\\", b" ").split() if len(body) < _LONGEST_KEY else ()
    is_key = any(len(line) > 32 and _is_dense(line) and not line.strip(_BASE64) for line in lines)
    if is_key and dashes and name == label and label.endswith(_LABELS) and b'"' not in body:
        return b"[redacted:private-key]" + after
    return _BEGIN + piece
