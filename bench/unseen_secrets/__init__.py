"""Samples of secrets as people and tools write them, to measure what a redaction engine catches.

Four parts: values with a vendor's format, values behind a name, passwords chosen by people, and
secrets in an encoding. All values are random or made up; nothing here was ever in use. Each sample
belongs to the half that one may tune on (`is_fit` True) or to the half that is only reported
(False), by the digest of what it was made from, so that the halves share no format, no name with
its syntax, no form and no encoding of a kind of secret. None: in neither half.
"""

import base64
import gzip
import hashlib
import json
import random
import re
import re._parser as regex_parser  # type: ignore[import-not-found]
import string
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

_MARK = re.compile(r"\[redacted:[^\]\n]*\]")
ALNUM = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"
USERS = "alice bob deploy jsmith svc_app mkeller operator kim backupuser tomas".split()
HOSTS = "db1.corp.lan 10.0.4.17 staging.acme.io files.example.net nas.home build02".split()
SERVICES = "grafana jenkins nextcloud postgres keycloak gitea rabbitmq wordpress".split()


class Sample(NamedTuple):
    part: str
    label: str
    text: str
    # As it stands in the text. Several pieces, apart from each other in the text, are separated by
    # line breaks, in the order of the text.
    secret: str
    is_fit: bool | None


def samples(formats: str, seed: int = 7) -> Iterator[Sample]:
    """All samples; `formats` is the text of the table of vendors' formats."""
    yield from format_samples(formats, random.Random(seed))
    yield from name_samples(_data("name_forms.txt"), random.Random(seed + 1))
    yield from password_samples(_data("password_forms.txt"), random.Random(seed + 2))
    yield from encoding_samples(random.Random(seed + 3))


def _data(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _is_even(key: str) -> bool:
    return hashlib.sha256(key.encode()).digest()[-1] % 2 == 0


def _text(rng: random.Random, characters: str, length: int) -> str:
    return "".join(rng.choices(characters, k=length))


def _uuid(rng: random.Random) -> str:
    return "-".join(_text(rng, HEX, length) for length in (8, 4, 4, 4, 12))


_NEAR_ALPHABETS = {
    "hex": HEX,
    "lower": LOWER,
    "upper": string.ascii_uppercase + string.digits,
    "word": ALNUM,
    "wide": ALNUM * 6 + "-_",
}

_LEADS = {
    "hooks.": "https://",
    "discord": "https://",
    "webhook.office": "https://acme.",
    "outlook.office": "https://",
    ".tines.com": "https://acme",
    "thingsboard": "https://",
    "sig=": "https://acme.blob.core.windows.net/logs?sv=2022-11-02&sr=c&",
    "AccountKey=": "DefaultEndpointsProtocol=https;AccountName=acme;",
    "SharedAccessKey=": "Endpoint=sb://acme.servicebus.windows.net/;SharedAccessKeyName=root;",
    "_gitlab_session=": "Cookie: ",
    "CONTRIBSYS__COM": "BUNDLE_ENTERPRISE__",
}

# {V} the value, {N} the name of the vendor as a variable, {n} in small letters.
_FORMAT_CONTEXTS = (
    '{"{n}_key": "{V}", "region": "eu-west-1"}',
    '  "{n}ApiKey": "{V}",',
    "{n}:\n  enabled: true\n  api_key: {V}\n",
    "{N}_API_KEY={V}",
    'export {N}_TOKEN="{V}"',
    "2025-03-04T11:02:17Z INFO {n} client started, key={V} retries=3",
    "[worker-2] DEBUG sending request with {n} token {V}",
    "curl -s -H 'Authorization: Bearer {V}' https://api.{n}.com/v1/items",
    'curl https://api.{n}.com/v1/me -H "X-Api-Key: {V}"',
    'const {n}Key = "{V}";',
    "# {n}\nkey = '{V}'",
    "{n}_client = Client(token='{V}')",
    "service,owner,key\n{n},ops,{V}\n",
    "GET https://api.{n}.com/v2/list?api_key={V}&limit=20",
    "| service | token |\n|---|---|\n| {n} | {V} |",
    "  412  {n} login --token {V}",
    "-e {N}_SECRET={V} \\",
    "the {n} token is {V}, please store it",
)


def format_samples(formats: str, rng: random.Random) -> Iterator[Sample]:
    for row in formats.splitlines():
        if not row.strip() or row.startswith("#"):
            continue
        if row.startswith("near "):
            _, length, kind, *services = row.split()
            identifier = f"near-{length}-{kind}"
            pattern = ""
        else:
            identifier, _, pattern = row.split(maxsplit=2)
            services = [identifier.split("-")[0]]
        for context in rng.sample(_FORMAT_CONTEXTS, 5):
            lead, value = "", ""
            if pattern:
                lead, value, tail = _value_of(pattern, rng)
                before = next(
                    (text for start, text in _LEADS.items() if lead.startswith(start)), ""
                )
                shown = before + lead + value + tail
            else:
                value = shown = _near_value(length, kind, rng)
            name = rng.choice(services)
            text = context.replace("{V}", shown).replace("{N}", name.upper())
            text = text.replace("{n}", name)
            yield Sample("formats", identifier, text, value, _is_even(identifier))


def _near_value(length: str, kind: str, rng: random.Random) -> str:
    if kind == "uuid":
        return _uuid(rng)
    shortest, _, longest = length.partition("-")
    size = rng.randint(int(shortest), int(longest or shortest))
    alphabet = _NEAR_ALPHABETS[kind]
    while True:
        value = _text(rng, alphabet, size)
        if value[0].isalnum() and value[-1].isalnum() and re.search(r"\d", value):
            return value


def _value_of(pattern: str, rng: random.Random) -> tuple[str, str, str]:
    """A text that the pattern matches: what precedes the secret, the secret, what follows it."""
    parsed = regex_parser.parse(pattern)
    while True:
        text = _generate(parsed, rng)
        match = re.search(pattern, text)
        if match and match.end() == len(text) and text[-1] not in "-_.%/~":
            start, end = match.span(match.re.groups)
            return text[:start], text[start:end], text[end:]


def _generate(nodes: Any, rng: random.Random) -> str:
    text = ""
    for kind, value in nodes:
        kind = str(kind)
        if kind == "LITERAL":
            text += chr(value)
        elif kind == "IN":
            text += rng.choice(_characters(value))
        elif kind == "BRANCH":
            text += _generate(rng.choice(value[1]), rng)
        elif kind == "MAX_REPEAT":
            shortest, longest, inner = value
            count = rng.randint(shortest, min(longest, shortest + 8))
            text += "".join(_generate(inner, rng) for _ in range(count))
        elif kind == "SUBPATTERN":
            text += _generate(value[3], rng)
        elif kind == "ASSERT" and value[0] < 0:
            text += _generate(value[1], rng)
    return text


def _characters(parts: Any) -> str:
    found = ""
    for kind, value in parts:
        if str(kind) == "LITERAL":
            found += chr(value)
        elif str(kind) == "RANGE":
            found += "".join(map(chr, range(value[0], value[1] + 1)))
        elif str(value) == "CATEGORY_DIGIT":
            found += string.digits
        else:
            found += ALNUM * 4 + "_"
    return found


# Names of variables and settings, by the kind of their values.
_NAMES = {
    "random": """SECRET_KEY JWT_SECRET jwtSecret WEBHOOK_SIGNING_SECRET SESSION_SECRET
        COOKIE_SECRET session_key NEXTAUTH_SECRET APP_KEY ENCRYPTION_KEY encryptionKey FERNET_KEY
        RAILS_MASTER_KEY SECRET_KEY_BASE API_KEY apiKey api_secret API_TOKEN access_token
        accessToken refresh_token REFRESH_TOKEN bearer_token bearerToken auth_token AUTH_TOKEN
        CLIENT_SECRET clientSecret client_credential OAUTH_CLIENT_SECRET oidc_client_secret
        consumer_secret HMAC_KEY hmacSecret signing_key signingKey PRIVATE_TOKEN private_key_hex
        DEPLOY_TOKEN RUNNER_REGISTRATION_TOKEN NPM_AUTH_TOKEN SONAR_LOGIN_TOKEN
        GRAFANA_API_TOKEN DD_API_KEY csrf_secret PASSWORD_SALT salt pepper hash_salt AUTH_SALT
        LICENSE_KEY licenseKey product_key shared_secret sharedSecret radius_secret
        TURN_STATIC_AUTH_SECRET PUSHER_APP_SECRET recaptcha_secret_key SERVICE_ROLE_KEY
        STORAGE_ACCOUNT_KEY AWS_SECRET_ACCESS_KEY aws_session_token kms_data_key ERLANG_COOKIE
        consul_gossip_key VAULT_UNSEAL_KEY rpc_secret bot_token""",
    "password": """DB_PW DB_PASS db_password dbPassword PGPASSWORD MYSQL_ROOT_PASSWORD MYSQL_PWD
        POSTGRES_PASSWORD MONGO_INITDB_ROOT_PASSWORD rootpw REDIS_PASSWORD redis_auth requirepass
        ldap_bind_pw LDAP_ADMIN_PASSWORD bindPassword smtpPass SMTP_PASSWORD EMAIL_HOST_PASSWORD
        mailPassword sasl_pwd SASL_PASSWORD imap_pass ftp_pass adminPassword ADMIN_PW
        GF_SECURITY_ADMIN_PASSWORD KEYCLOAK_ADMIN_PASSWORD RABBITMQ_DEFAULT_PASS wifiPsk
        wpa_passphrase wifi_password storepass storePassword keyPassword keyPassphrase
        KEYSTORE_PASSWORD trustStorePassword BORG_PASSPHRASE RESTIC_PASSWORD GPG_PASSPHRASE
        SSH_KEY_PASSPHRASE SUDO_PASS ansible_become_pass vnc_password proxy_pass_word
        snmp_community snmpAuthPass userPwd login_password TEST_USER_PASSWORD basic_auth_pass
        BACKUP_ENCRYPTION_PASSWORD htpasswd_pw OPENVPN_PASS hashicorp_userpass""",
    "digits": "pin PIN_CODE user_pin simPin",
    "seed": "otp_seed TOTP_SECRET totpSeed mfa_secret",
    "recovery": "recovery_code RECOVERY_KEY backup_code",
    "mnemonic": "mnemonic MNEMONIC walletSeedPhrase",
    "dsn": "DATABASE_URL DSN connectionString REDIS_URL SQLALCHEMY_DATABASE_URI BROKER_URL",
}


def name_samples(forms: str, rng: random.Random) -> Iterator[Sample]:
    syntaxes = [form for form in forms.splitlines() if "{V}" in form]
    for kind, names in _NAMES.items():
        for name in names.split():
            for syntax in rng.sample(syntaxes, 26):
                shown, secret = _named_value(kind, rng)
                text = syntax.replace("\\n", "\n").replace("{N}", name).replace("{V}", shown)
                halves = {_is_even(name), _is_even(syntax)}
                is_fit = halves.pop() if len(halves) == 1 else None
                yield Sample("names", kind, text, secret, is_fit)


def _named_value(kind: str, rng: random.Random) -> tuple[str, str]:
    """A value for a name of the kind, and the secret in it."""
    if kind == "dsn":
        password = rng.choice((human_password(rng), _text(rng, ALNUM, 18)))
        scheme = rng.choice(("postgres", "mysql", "redis", "amqp", "mongodb+srv"))
        return f"{scheme}://{rng.choice(USERS)}:{password}@db.internal:5432/app", password
    if kind == "digits":
        value = _text(rng, string.digits, rng.choice((4, 6, 6, 8)))
    elif kind == "seed":
        value = _text(rng, string.ascii_uppercase + "234567", rng.choice((16, 32)))
    elif kind == "recovery":
        value = "-".join(_text(rng, LOWER, 5) for _ in range(rng.choice((2, 4))))
    elif kind == "mnemonic":
        value = " ".join(rng.sample(_WORDS, 12))
    elif kind == "password" and rng.random() < 0.7:
        value = human_password(rng)
    else:
        value = _random_value(rng)
    return value, value


def _random_value(rng: random.Random) -> str:
    length = rng.randint(12, 40)
    alphabet = rng.choice((HEX, ALNUM, ALNUM * 5 + "+/", ALNUM * 5 + "-_", ALNUM * 3 + "!*.~^%"))
    return _text(rng, ALNUM, 1) + _text(rng, alphabet, length - 2) + _text(rng, ALNUM, 1)


_WORDS = """falcon maple otter canyon pirate dragon summer winter biscuit rocket tiger purple garden
    harbor puzzle walnut marble thunder cactus velvet saturn badger lemon copper violin meadow
    orchid comet pepper bandit jacket ticket wizard turtle hammer candle pumpkin silver monkey
    sunset amber cobalt granite kitten lobster mango noodle panda raven salmon tulip""".split()


def human_password(rng: random.Random) -> str:
    first, second, third = rng.sample(_WORDS, 3)
    kind = rng.randrange(5)
    if kind == 0:
        return first.capitalize() + _text(rng, string.digits, rng.randint(2, 4))
    if kind == 1:
        return "-".join((first, second, third))
    if kind == 2:
        leet = (first + second.capitalize()).translate(str.maketrans("aeio", "4310"))
        return leet[:14]
    if kind == 3:
        return first[: rng.randint(4, 6)] + _text(rng, string.digits, 2)
    return (
        first.capitalize()
        + rng.choice("!.*+=~")
        + second
        + str(rng.randint(1, 99))
        + rng.choice("!.*")
    )


def password_samples(forms: str, rng: random.Random) -> Iterator[Sample]:
    section = ""
    for form in forms.splitlines():
        if "{X}" not in form:
            section = form.lstrip("# ").split(",")[0].rstrip(".")
            continue
        for _ in range(5):
            password, other = human_password(rng), human_password(rng)
            text = form.replace("\\n", "\n").replace("{U}", rng.choice(USERS))
            text = text.replace("{H}", rng.choice(HOSTS)).replace("{S}", rng.choice(SERVICES))
            secrets = re.findall(r"\{[XY]\}", text)
            values = {"{X}": password, "{Y}": other}
            secret = "\n".join(values[name] for name in secrets)
            text = text.replace("{X}", password).replace("{Y}", other)
            yield Sample("passwords", section, text, secret, _is_even(form))


def _inner(kind: str, rng: random.Random) -> tuple[str, str]:
    """A short text with a secret: what precedes it, the secret."""
    if kind == "github":
        return "GITHUB_TOKEN=", rng.choice(("ghp_", "gho_", "ghs_")) + _text(rng, ALNUM, 36)
    if kind == "aws":
        return "AWS_SECRET_ACCESS_KEY=", _text(rng, ALNUM * 6 + "/+", 40)
    if kind == "slack":
        digits = _text(rng, "123456789", 12)
        return "token: ", f"xoxb-{digits}-{digits[::-1]}-{_text(rng, ALNUM, 24)}"
    if kind == "stripe":
        return "STRIPE_KEY=", "sk_live_" + _text(rng, ALNUM, rng.choice((24, 99)))
    if kind == "openai":
        return "key ", "sk-proj-" + _text(rng, ALNUM * 6 + "-_", 60)
    if kind == "password":
        password = _text(rng, ALNUM, 20) if rng.random() < 0.5 else human_password(rng) + "Qx7"
        return rng.choice(("DB_PASSWORD=", "password: ", "PGPASSWORD=")), password
    body = base64.b64encode(rng.randbytes(121)).decode()
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    head, tail = ("-----BEGIN EC PRIVATE KEY-----", "-----END EC PRIVATE KEY-----")
    return head + "\n", "\n".join((*lines, tail))


_INNER_KINDS = ("github", "aws", "slack", "stripe", "openai", "password", "pem")
_Encoded = tuple[str, list[str]]
_Encoder = Callable[[str, str], _Encoded]


def _chunks(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def _wrapped(width: int, before: str, after: str, first: str = "", last: str = "") -> _Encoder:
    """An encoder that breaks the secret into lines with something before and after each."""

    def encode(lead: str, secret: str) -> _Encoded:
        start = width // 2  # As after a text that precedes the secret on its line.
        pieces = [secret[:start].partition("\n")[0]]
        for line in secret[len(pieces[0]) :].split("\n"):
            pieces += _chunks(line, width)
        shown = (after + "\n" + before).join(
            [*lead.split("\n")[:-1], lead.split("\n")[-1] + pieces[0]]
        )
        return first + (after + "\n" + before).join([shown, *pieces[1:]]) + last, pieces

    return encode


def _inserted(mark: str, size: int) -> _Encoder:
    def encode(lead: str, secret: str) -> _Encoded:
        pieces = [piece for line in secret.split("\n") for piece in _chunks(line, size)]
        lines = [mark.join(_chunks(line, size)) for line in secret.split("\n")]
        return lead + "\n".join(lines), pieces

    return encode


def _each(form: Callable[[str], str], joint: str = "") -> _Encoder:

    def encode(lead: str, secret: str) -> _Encoded:
        piece = joint.join(map(form, secret))
        return "".join(form(character) + joint for character in lead) + piece, [piece]

    return encode


def _whole(form: Callable[[bytes], str], lead: str = "payload: ", width: int = 0) -> _Encoder:
    """An encoder of the whole text at once."""

    def encode(before: str, secret: str) -> _Encoded:
        before = "# settings of the service\n" + before
        blob = form((before + secret + "\n").encode())
        other = "".join(chr(ord(character) ^ 127) for character in secret)
        pairs = zip(blob, form((before + other + "\n").encode()), strict=False)
        start = next(at for at, (one, two) in enumerate(pairs) if one != two)
        lines = _chunks(blob, width or len(blob))
        pieces = [line[max(start - at * width, 0) :] for at, line in enumerate(lines)]
        return lead + "\n".join(lines), [piece for piece in pieces if piece]

    return encode


def _dump(style: str) -> _Encoder:
    """An encoder like the programs that print the bytes of a file."""

    def encode(lead: str, secret: str) -> _Encoded:
        data = (lead + secret + "\n").encode()
        lines, pieces = [], []
        for at in range(0, len(data), 16):
            line, first = data[at : at + 16], max(len(lead) - at, 0)
            last = min(len(line), len(data) - 1 - at)
            if style == "od-x":
                swapped = [line[i : i + 2][::-1].hex().zfill(4) for i in range(0, len(line), 2)]
                cells, first, last = swapped, (first + 1) // 2, last // 2
            elif style == "od-c":
                cells = [f"  {chr(byte)}" if byte != 10 else " \\n" for byte in line]
            elif style == "xxd":
                cells = [line[i : i + 2].hex() for i in range(0, len(line), 2)]
                first, last = (first + 1) // 2, last // 2
            else:
                cells = [f"{byte:02x}" for byte in line]
            offset = (
                f"{at:07o} "
                if style.startswith("od")
                else f"{at:08x}: "
                if style == "xxd"
                else f"{at:08x}  "
            )
            shown = re.sub(r"[^ -~]", ".", line.decode())
            side = {"xxd": "  " + shown, "hexdump": f"  |{shown}|"}.get(style, "")
            row = " ".join(cells)
            lines.append(offset + (row.ljust(39 if style == "xxd" else 47) if side else row) + side)
            if piece := " ".join(cells[first:last]):
                pieces.append(piece.strip())
            if side and (piece := shown[max(len(lead) - at, 0) : len(data) - 1 - at]):
                pieces.append(piece)
        return "\n".join(lines), pieces

    return encode


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _json_in_json(lead: str, secret: str) -> _Encoded:
    name = "private_key" if "BEGIN" in lead else re.sub(r"\W", "", lead)
    value = json.dumps(secret)[1:-1]
    inner = json.dumps({name: (lead if "BEGIN" in lead else "") + secret, "retries": 3})
    return json.dumps({"id": 81, "body": inner}), json.dumps(value)[1:-1].split("\n")


_ENCODERS: dict[str, _Encoder] = {
    "wrap-20": _wrapped(20, "", ""),
    "wrap-60": _wrapped(60, "", "", "The job printed this before it died: "),
    "wrap-64": _wrapped(64, "", ""),
    "wrap-76": _wrapped(76, "", "", "On Monday we set it "),
    "wrap-indented": _wrapped(24, "    ", ""),
    "quoted-printable": _wrapped(30, "", "=", "Content-Transfer-Encoding: quoted-printable\n\n"),
    "concat-python": _wrapped(18, '    "', '"', 'settings = (\n    "', '"\n)'),
    "concat-plus": _wrapped(16, '    + "', '"', 'const text = "', '";'),
    "concat-java": _wrapped(22, '        "', '" +', 'String text = "', '";'),
    "concat-c": _wrapped(20, '  "', '"', 'static const char text[] = "', '";'),
    "line-continuation": _wrapped(20, "", "\\", "export "),
    "mail-quote": _wrapped(30, "> ", "", "> "),
    "log-prefix": _wrapped(
        26, "2025-02-03 04:05:06 INFO app: ", "", "2025-02-03 04:05:06 INFO app: "
    ),
    "diff-plus": _wrapped(32, "+", "", "+"),
    "comment-wrap": _wrapped(28, "# ", "", "# "),
    "ansi": _inserted("\x1b[32m", 9),
    "ansi-reset": _inserted("\x1b[0m\x1b[1;31m", 14),
    "zero-width": _inserted("\u200b", 7),
    "soft-hyphen": _inserted("\u00ad", 10),
    "hex": _each(lambda c: f"{ord(c):02x}"),
    "hex-spaces": _each(lambda c: f"{ord(c):02x}", " "),
    "hex-escapes": _each(lambda c: f"\\x{ord(c):02x}"),
    "hex-array": _each(lambda c: f"0x{ord(c):02x}", ", "),
    "octal": _each(lambda c: f"\\{ord(c):03o}"),
    "decimal-array": _each(lambda c: str(ord(c)), ", "),
    "unicode-escapes": _each(lambda c: f"\\u{ord(c):04x}"),
    "html-decimal": _each(lambda c: f"&#{ord(c)};"),
    "html-hex": _each(lambda c: f"&#x{ord(c):x};"),
    "percent": _each(lambda c: f"%{ord(c):02X}"),
    "utf16-nul": _each(lambda c: c + "\0"),
    "xxd": _dump("xxd"),
    "hexdump-c": _dump("hexdump"),
    "od-c": _dump("od-c"),
    "od-x": _dump("od-x"),
    "base64": _whole(_b64),
    "base64-data": _whole(_b64, "kind: Secret\ndata:\n  app.env: "),
    "base64-wrapped": _whole(_b64, "Content-Transfer-Encoding: base64\n\n", 76),
    "base64-twice": _whole(lambda data: _b64(_b64(data).encode())),
    "base64url": _whole(lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="), "state="),
    "base64-gzip": _whole(lambda data: _b64(gzip.compress(data, mtime=0))),
    "base64-zlib": _whole(lambda data: _b64(zlib.compress(data)), "session="),
    "base64-utf16": _whole(
        lambda data: _b64(data.decode().encode("utf-16-le")), "powershell -enc "
    ),
    "base32": _whole(lambda data: base64.b32encode(data).decode()),
    "json-in-json": _json_in_json,
    "yaml-folded": _wrapped(40, "    ", "", "env:\n  line: >-\n    "),
}


def encoding_samples(rng: random.Random) -> Iterator[Sample]:
    for name, encode in _ENCODERS.items():
        for kind in _INNER_KINDS:
            for _ in range(20):
                text, pieces = encode(*_inner(kind, rng))
                yield Sample("encodings", name, text, "\n".join(pieces), _is_even(name + kind))


def is_caught(sample: Sample, redacted: str) -> bool:
    """Whether no piece of the secret is left. Encoded, a quarter of its characters may be."""
    if sample.part == "encodings":
        return _left(sample, redacted) <= 0.25
    pieces = sample.secret.split("\n")
    if any(sample.text.count(piece) <= redacted.count(piece) for piece in pieces):
        return False
    return not any(
        piece[at : at + 8] in redacted for piece in pieces for at in range(len(piece) - 7)
    )


def _left(sample: Sample, redacted: str) -> float:
    """The share of the characters of the secret that are outside of all marks."""
    text, at = sample.text, 0
    kept = bytearray(len(text))
    *parts, last = _MARK.split(redacted)
    for part in parts:
        found = text.find(part, at)
        if found < at:
            return 1.0
        kept[found : found + len(part)] = b"\1" * len(part)
        at = found + len(part)
    kept[len(text) - len(last) :] = b"\1" * len(last)
    characters: list[int] = []
    at = 0
    for piece in sample.secret.split("\n"):
        start = text.index(piece, at)
        at = start + len(piece)
        characters += [kept[each] for each in range(start, at) if not text[each].isspace()]
    return sum(characters) / len(characters)
