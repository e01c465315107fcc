"""The names of secrets: `DB_PASSWORD`, `apiKey`, `Authorization`, "access token"."""

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from ctx.redaction.keywords import QUALIFIERS, SEEDS
from ctx.redaction.password_words import NODE_ID
from ctx.redaction.scan_text import Page, match_end

# Searched for everywhere, so there are few. "pass" covers password, passwd, passphrase.
ANCHORS = (
    *(b"secret", b"token", b"pass", b"pw", b"psk", b"cred", b"auth", b"key"),
    *(b"pin", b"mnemonic", b"phrase", b"code", b"salt", b"pepper", b"community", b"cookie"),
    *(b"bearer", b"_pat", b"puk", *SEEDS),
)

# A word of a name that makes it the name of a secret: by its end, as names are
# glued together (`pgpassword`, `authtoken`), or as a whole.
_SECRET_ENDS = ("secret", "token", "credential", "apikey", "secretkey", "accesskey", "privatekey",
                "authkey", "signingkey", "encryptionkey", "accountkey")  # fmt: skip
_PASSWORD_ENDS = ("password", "passwd", "passphrase", "passcode", "pwd", "passwort", "passord",
                  "storepass", "keypass", "userpass", "dbpass", "psk")  # fmt: skip
_SECRET_WORDS = frozenset(("auth", "cred"))
# `smtppass`, not `bypass`.
_PASS = (
    r"(?:admin|api|app|auth|bind|cert|client|db|ftp|http|key|ldap|login|mail|mysql|net|pg|proxy"
    r"|redis|require|root|server|sftp|smtp|sql|ssh|store|su|sudo|trust|user|vpn|web|wifi)(?:pass|pw)"
)

# Names of things about a secret: `token_count`, `password_hash`, `public_key`.
_ABOUT = frozenset(
    "hash hashed hasher sha md blake digest checksum fingerprint integrity csrf xsrf "
    "public pub tokenizer next starting continuation change lock pagination idempotency "
    "cursor".split()
)
_ABOUT_LAST = frozenset(
    "algorithm arn at attempts attr author backend callback char chars charset check class cls "
    "code column count created ctx date dir doc docs duration enabled endpoint env error expired "
    "expires expiry expiration field file filename flow fn format func function grant group "
    "handler header help hint host id identifier ids idx index info interval issuer kind label "
    "length len lifetime limit line list location manager max message method mgr min mode model "
    "module msg name names namespace ns offset owner page param parameter path pattern "
    "placeholder policy pos position prefix prompt property provider re realm ref regex region "
    "regexp reset role rule scheme scope scopes separator seq server service set size source span "
    "spec start state status stdin stream style suffix table target text time timeout title ttl "
    "type types uid uri url urls usage used user username validator var vars verifier "
    "version".split()
)

# Which of several secrets: `DB_PASS_PROD`, `token_old`.
_WHICH = frozenset(
    "old new prod production dev staging stage test live local main primary secondary current "
    "previous temp tmp default initial hex base64 b64 value".split()
)

NameKind = Literal["password", "secret", "header", "pin", "phrase", "key"]


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
    return Name(start, text, kind) if kind and not re.fullmatch(NODE_ID, text) else None


@lru_cache(maxsize=4096)
def _kind(text: str) -> NameKind | None:
    text = re.sub(r"(?i)(pass)_(?=word|phrase|code|wd)", r"\1", text)
    words = [w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", text)]
    while len(words) > 1 and (words[-1] in _WHICH or words[-1].isdigit()):
        words.pop()
    if (
        words[0] in QUALIFIERS and text[0].isalpha()
    ):  # "api key", with a blank: the anchor was qualified.
        words.insert(0, QUALIFIERS[words[0]][0])
    if words[-1].removesuffix("s") == "code" and len(words) > 1:
        return _KINDS.get(words[-2]) or ("secret" if words[-2] in QUALIFIERS["code"] else None)
    if words[-1] in _SALTS:  # `hash_salt`, `csrf_secret`: a secret, whatever it is for.
        return "secret" if words[-1] == "secret" else "key"
    if words[-1] in _ABOUT_LAST or not _ABOUT.isdisjoint(words):
        return None
    if words[-1] == "authorization":
        return "header"
    singular = [w if w.endswith("ss") else w.removesuffix("s") for w in words]
    for word in singular:
        if word.endswith(_PASSWORD_ENDS) or re.fullmatch(_PASS, word):
            return "password"
    if words[-1] in ("pass", "pw") or words[-2:] == ["redis", "auth"]:  # Not `pass_fds`.
        return "password"
    for before, word in zip(["", *singular], singular, strict=False):
        if before in QUALIFIERS.get(word, ()):
            return _KINDS.get(word, "secret")
    for before, word in zip(["", *singular], singular, strict=False):
        if word.endswith(_SECRET_ENDS) or word in _SECRET_WORDS:
            return "secret"
        if word in ("seed", "secret") and before in ("otp", "totp"):
            return "secret"
        if word in _KINDS and word != "phrase":
            return _KINDS[word]
    if words[-1] in ("bearer", "pat"):
        return "secret"
    if "community" in words:
        return "password" if words[0] == "snmp" or words[-1] == "string" else "key"
    if words[-1] == "key" and _NO_SECRET_KEY.isdisjoint(words):
        return "key" if _KEY_OF.isdisjoint(words) else "secret"
    return "key" if words[-1] == "cookie" and len(words) > 1 else None


_KINDS: dict[str, NameKind] = {
    **dict.fromkeys(("pin", "puk"), "pin"),
    **dict.fromkeys(("mnemonic", "seedphrase", "phrase"), "phrase"),
}
_SALTS = ("secret", "salt", "pepper")
_KEY_OF = frozenset(QUALIFIERS["key"])


_NO_SECRET_KEY = frozenset(
    "annotation by cache dict foreign group hash hot index item label lookup map natural object "
    "parent partition primary public range registry row sort state unique".split()
)


_NAME_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
