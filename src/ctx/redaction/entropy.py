"""Decides whether a value looks random or written by a person.

The Shannon entropy of a single value is not enough: `get_user_name_by_id2` and a key of the same
length differ by a fraction of a bit. The pairs of adjacent characters are better evidence. Names
consist of words, and in words three of four letter pairs are among the 120 most common ones; among
random letters it is one in six. So each pair is a small piece of evidence. The sum of the
log-likelihood ratios, `wordiness`, becomes more certain with length, so no threshold per length is
needed.
"""

import re
from functools import lru_cache

# The commonest letter pairs of identifiers in Python source: 76 % of all pairs.
_COMMON = frozenset(
    "ac ad ag al am an ap ar as at ba ca ce ch ck cl co cr ct da de di do ea ec ed ef el em en "
    "ep er es et ex fi fo ge ha he ic id ig il im in io is it ke la le lf li ll lo lt ma me mi "
    "mo mp na nc nd ne ng ni no ns nt oc od ol om on op or ot ou pa pe pl po pr pt py ra re ri "
    "ro rr rs rt sc se si so sp ss st su ta te th ti to tr ts ty ue ul um un up ur ut va ve yp "
    "".split()
)

# ln(probability in words / probability in random text), per pair of neighbours.
_COMMON_PAIR = 1.45  # 0.76 against 0.18
_RARE_PAIR = -1.2  # 0.24 against 0.82
_LETTER_BESIDE_DIGIT = -1.7  # 0.05 against 0.27
_HUMP = -0.4  # aB: camel case has these too, a little less often.
_SEQUENCE = 1.45  # aa, ab, 11, 12: what people type when they make a value up.

RANDOM = -4.0  # One chance in fifty to be words.
_JUDGED = 64  # Characters that are examined: more would not change the result.


def wordiness(value: str) -> float:
    """Positive for words, negative for random characters, near zero for neither."""
    value = value[:_JUDGED]
    return sum(map(_evidence, value, value[1:]))


@lru_cache(maxsize=8192)
def _evidence(left: str, right: str) -> float:
    if not (left.isalnum() and right.isalnum()):
        return 0.0
    if ord(right) - ord(left) in (0, 1):
        return _SEQUENCE
    if left.isdigit() and right.isdigit():
        return 0.0
    if left.isdigit() or right.isdigit():
        return _LETTER_BESIDE_DIGIT
    if left.islower() and right.isupper():
        return _HUMP
    return _COMMON_PAIR if (left + right).lower() in _COMMON else _RARE_PAIR


def is_random(value: str) -> bool:
    if len(value) < 8 or not is_varied(value):
        return False
    if re.fullmatch(_HEX, value):
        return True
    judged = value[:_JUDGED]
    # Abbreviations (`cfgTmplPtr`) have rare pairs as well, but seldom a digit.
    limit = RANDOM if re.search("[0-9]", judged) else 3 * RANDOM
    return wordiness(judged) <= limit and re.search("[A-Za-z]", judged) is not None


# Hexadecimal digits form too few pairs to judge, and no words of this length.
_HEX = r"(?=.*[a-fA-F])(?=.*\d)(?:[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12,}|[0-9A-F]{32,})"


def is_varied(value: str) -> bool:
    """Whether a value has many different characters, unlike a mask such as `ghp_xxxxxxxxxxxx`."""
    return len(set(value[-24:])) >= 6


def is_placeholder(value: str) -> bool:
    """Whether a value is a placeholder of a template, an example or documentation."""
    lowered = value.lower()
    return (
        lowered.strip("_-. ") in _STAND_INS
        or re.search(_TEMPLATE, value) is not None
        or (re.search(_PLACEHOLDER_WORDS, lowered) is not None and not is_random(value))
    )


_STAND_INS = frozenset(
    "admin anonymous apikey api_key api-key bar basic bearer changeit changeme default disabled "
    "empty enabled false foo foobar fake guest hidden key localhost masked missing mock "
    "mypass mypassword mysecret mytoken n/a nil no none null pass passphrase passwd password "
    "password1 password123 postgres private prompt pw pwd redacted removed required root s3cret "
    "s3cr3t sample secret secretkey secret_key string test test123 testing token true undefined "
    "unset unknown user username value".split()
)
# ${TOKEN} $TOKEN $(cmd) {{ token }} {token} %(token)s %s <token> #{token} [token] *** ...
_TEMPLATE = (
    r"\$\{|\$\([\w./ -]+\)|\{\{|\#\{|%\(\w+\)|\{\w*(?:[.:!][^{}]*)?\}|<[^<>]*>"
    r"|\*{3}|\.{3}|…|•{2}|\A%\w*%?\Z|\A\$[A-Za-z_]\w*\Z|\A\[.*\]?\Z|\A[@&]\w+\Z|\A-+\Z|EXAMPLE"
    # Words of languages without letters of ASCII, also as JSON escapes them; <string> in HTML.
    r"|[\u2e80-\uffff]{2}|(?:\\u[2-9a-fA-F][\da-fA-F]{3}){2}|\A&(?:lt|#x3C|#60);"
)
_PLACEHOLDER_WORDS = (
    r"x{4}|your|example|sample|dummy|placeholder|change.?me|change.?it|insert|replace|todo|fixme|redacted"
    r"|fake|my.?(?:secret|token|pass(?:word)?|key|api.?key)(?![a-z])|(?:secret|token|pass(?:word)?|key).?here|\benv\b|foo.?bar"
)
