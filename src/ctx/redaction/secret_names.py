"""The names of secrets: `DB_PASSWORD`, `apiKey`, `Authorization`, "access token"."""

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from ctx.redaction.scan_text import Page, match_end

# Searched for everywhere, so there are few, and rare ones. "key" is common and counts only after
# one of `_KEY_OF`; "pass" covers password, passwd, passphrase.
ANCHORS = (b"secret", b"token", b"pass", b"pw", b"psk", b"cred", b"auth", b"key")

_KEY_OF = (
    "access account admin api app application auth client consumer cookie crypto decryption deploy "
    "encryption hmac ingest integration jwt license master private project secret security server "
    "recovery service session shared signing ssh storage subscription unlock unseal webhook"
).split()
_QUALIFIERS = tuple(word.encode() for word in _KEY_OF)
_LAST_LETTERS = frozenset(word[-2:] for word in _QUALIFIERS)

# A word of a name that makes it the name of a secret: by its end, as names are
# glued together (`pgpassword`, `authtoken`), or as a whole.
_SECRET_ENDS = ("secret", "token", "credential", "apikey", "secretkey", "accesskey", "privatekey",
                "authkey", "signingkey", "encryptionkey", "accountkey")  # fmt: skip
_PASSWORD_ENDS = ("password", "passwd", "passphrase", "passcode", "pwd", "passwort", "passord",
                  "storepass", "keypass", "userpass", "dbpass", "psk")  # fmt: skip
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


NameKind = Literal["password", "secret", "header"]


class Name(NamedTuple):
    start: int
    text: str
    kind: NameKind


def name_at(page: Page, at: int, end: int) -> Name | None:
    """The name around an anchor, if it is one of a secret."""
    floor = max(0, at - 48)
    start = floor + len(page.raw[floor:at].rstrip(_NAME_BYTES))
    text = page.text[start : match_end(r"[\w.-]{0,40}+", page.text, end)]
    kind = _kind(text)
    return Name(start, text, kind) if kind else None


@lru_cache(maxsize=4096)
def _kind(text: str) -> NameKind | None:
    words = [w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", text)]
    if words[0] == "key":  # "api key", with a blank: the anchor was qualified.
        words.insert(0, "api")
    if words[-1] in _ABOUT_LAST or not _ABOUT.isdisjoint(words) or text == "PWD":
        return None
    if words[-1] == "authorization":
        return "header"
    singular = [w if w.endswith("ss") else w.removesuffix("s") for w in words]
    for word in singular:
        if word.endswith(_PASSWORD_ENDS):
            return "password"
    if words[-1] in ("pass", "pw"):  # Not `pass_fds`.
        return "password"
    for before, word in zip(["", *singular], singular, strict=False):
        if word.endswith(_SECRET_ENDS) or word in _SECRET_WORDS:
            return "secret"
        if word == "key" and before in _KEY_OF:
            return "secret"
    return None


_NAME_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."


def find_anchors(page: Page, anchor: bytes) -> list[int]:
    """The positions of an anchor; those of "key" only after a word that makes it a secret."""
    positions = page.keywords[anchor]
    return (
        [at for at in positions if _is_qualified(page.lower, at)] if anchor == b"key" else positions
    )


def _is_qualified(lower: bytes, key: int) -> bool:
    end = key - 1 if lower[key - 1 : key] in (b" ", b"_", b".", b"-") else key
    return lower[end - 2 : end] in _LAST_LETTERS and lower.endswith(_QUALIFIERS, 0, end)
