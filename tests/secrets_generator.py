"""Secrets of documented formats, in the texts in which people and programs write them.

The values come from `bench/secret_values.py`. Nothing here comes from the rules under test, so that
agreement means something.
"""

import base64
import random
import shlex
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import quote

from bench.secret_values import (
    ALNUM,
    BASE64,
    DIGITS,
    FORMATS,
    HEX,
    LOWER,
    URLSAFE,
    Piece,
    private_key,
)

Make = Callable[[random.Random], str]


class Kind(NamedTuple):
    name: str
    label: str  # What people call it: "stripe secret key".
    make: Make
    # Does the value say by itself what it is? Otherwise a context must name it.
    speaks: bool = True


class Sample(NamedTuple):
    kind: str
    context: str
    text: str
    secret: str  # As it stands in `text`, escapes included.


def samples(seed: int, per_kind: int) -> Iterator[Sample]:
    for kind in KINDS:
        rng = random.Random(f"{seed}/{kind.name}")
        for _ in range(per_kind):
            yield _sample(rng, kind)


def _sample(rng: random.Random, kind: Kind) -> Sample:
    secret = kind.make(rng)
    if kind.name in OWN_CONTEXTS:
        before, secret, after = OWN_CONTEXTS[kind.name](rng, secret)
        return Sample(kind.name, "own", _surrounded(rng, before + secret + after), secret)
    context = rng.choice([*NAMING, *(SILENT if kind.speaks else ())])
    text, embedded = _in_context(rng, context, kind.label, secret)
    return Sample(kind.name, context, _surrounded(rng, text), embedded)


def _human_password(rng: random.Random) -> str:
    word = rng.choice(("Winter", "sunshine", "Dragon", "orange", "Berlin", "monkey", "Falcon"))
    return word + str(rng.randrange(10, 9999)) + rng.choice(("!", "$", "?", "#", ""))


def _manager_password(rng: random.Random) -> str:
    # What password managers offer: all classes, no quotes, blanks or backslashes.
    value = rng.choices(ALNUM + "!#$%&*+-;=?@^_~()", k=rng.randint(12, 28))
    value[rng.randrange(1, len(value) - 1)] = rng.choice(DIGITS)
    value[0], value[-1] = rng.choices(ALNUM, k=2)
    return "".join(value)


def _url_password(rng: random.Random) -> str:
    return quote(_manager_password(rng), safe="!*-_~")


def _basic(rng: random.Random) -> str:
    user = Piece((LOWER, 4, 8))(rng)
    return base64.b64encode(f"{user}:{_manager_password(rng)}".encode()).decode()


def _of_format(name: str) -> Make:
    (found,) = (form for form in FORMATS if form.name == name)
    return found.value


KINDS = (
    *(
        Kind(
            form.name,
            f"{form.name.replace('-', ' ')} token"
            if not form.settings
            else form.settings[0].lower().replace("_", " "),
            form.value,
            speaks=not form.settings,
        )
        for form in FORMATS
        # Others have a text of their own, below.
        if all(setting.isidentifier() for setting in form.settings)
        and not form.name.startswith("private-key")
        and not form.name.endswith(("-url", "webhook", "cloudinary", "sidekiq"))
    ),
    Kind("npmrc", "", _of_format("npmrc")),
    Kind("azure storage connection", "", Piece((BASE64, 86), "==")),
    Kind("azure service bus", "", Piece((BASE64, 43), "=")),
    Kind("azure sas", "", lambda rng: quote(Piece((BASE64, 43), "=")(rng), safe="")),
    Kind("generic base62 secret", "client secret", Piece((ALNUM, 24, 48)), speaks=False),
    Kind("generic hex secret", "secret key", Piece((HEX, 40, 64)), speaks=False),
    Kind("generic base64 secret", "signing key", Piece((BASE64, 32, 64)), speaks=False),
    Kind("password", "db password", _manager_password, speaks=False),
    Kind("human password", "password", _human_password, speaks=False),
    Kind("connection string", "database url", _url_password),
    Kind("basic authorization", "authorization", _basic),
    Kind("bearer authorization", "authorization", Piece((URLSAFE, 32, 64))),
    Kind(
        "slack webhook", "", lambda rng: _of_format("slack-webhook")(rng).partition("services/")[2]
    ),
    Kind("discord webhook", "", Piece((URLSAFE, 68))),
    *(
        Kind(kind.lower(), "", private_key(kind, rows))
        for kind, rows in (
            ("RSA PRIV" + "ATE KEY", 25),
            ("EC PRIV" + "ATE KEY", 3),
            ("OPENSSH PRIV" + "ATE KEY", 6),
            ("PRIV" + "ATE KEY", 26),
            ("ENCRYPTED PRIV" + "ATE KEY", 28),
            ("PGP PRIV" + "ATE KEY BLOCK", 19),
        )
    ),
)


# --- contexts ------------------------------------------------------------------

NAMING = {
    "env file": ("{upper}={secret}", "export {upper}={secret}", '{upper}="{secret}"'),
    "python": (
        '{snake} = "{secret}"',
        "    {snake}: str = '{secret}'",
        'client = Client("eu", {snake}="{secret}", retries=3)',
        'os.environ["{upper}"] = "{secret}"',
        "os.environ.setdefault('{upper}', '{secret}')",
        "        self.{snake} = '{secret}'",
        "settings = {{'{snake}': '{secret}', 'debug': True}}",
    ),
    "yaml": (
        "  {snake}: {secret}",
        '{camel}: "{secret}"',
        "    {kebab}: '{secret}'",
        '  - name: {upper}\n    value: "{secret}"',
    ),
    "json": (
        '{{"id": 17, "{snake}": "{secret}", "region": "eu-west-1"}}',
        '{{"id": 17, "{camel}": "{secret}", "region": "eu-west-1"}}',
        # A document inside a document, as in a log of requests.
        r'{{"status": 200, "body": "{{\"{kebab}\": \"{secret}\", \"id\": 1}}"}}',
    ),
    "toml": ('[service]\n{snake} = "{secret}"\nport = 8080',),
    "shell": (
        "$ {upper}={quoted} ./deploy.sh --verbose",
        "$ tool deploy --{kebab} '{secret}' --region eu-west-1",
        "$ tool deploy --{kebab}={quoted} --region eu-west-1",
        "$ docker run -e {upper}={quoted} -p 80:80 image:latest",
        "$ gh workflow run ci.yml -f {snake}={quoted}",
    ),
    "log": (
        "2024-05-17T10:22:31Z WARN auth: rejected {snake}={secret} status=401",
        "2024-05-17T10:22:31Z WARN auth: rejected {camel}={secret} status=401",
    ),
    "markdown": (
        "- **{title}**: `{secret}`",
        "- {title}: {secret}",
        "| {title} | `{secret}` |",
        "Set `{upper}` to `{secret}` and restart.",
    ),
    "properties": (
        "spring.datasource.{kebab}={secret}",
        "[client]\n{snake} = {secret}",
        "ENV MODE=prod {upper}={secret}",
    ),
    "xml": (
        "  <{camel}>{escaped}</{camel}>",
        '<add key="{camel}" value="{escaped}" />',
        '<server {camel}="{escaped}" port="80"/>',
    ),
    "javascript": (
        "const {camel} = '{secret}';",
        "export const {upper}: string = `{secret}`",
        'return {{ {camel}: "{secret}", retries: 3 }};',
        '{camel} := "{secret}"',
        "process.env.{upper} = process.env.{upper} || '{secret}';",
    ),
    "header": (
        "GET /v1/items HTTP/1.1\r\nHost: api.test\r\nX-{header}: {secret}\r\n",
        'curl -sS -H "X-{kebab}: {secret}" https://api.test/v1/items',
    ),
    "prose": (
        "The {label} is {secret}, please do not share it.",
        "I changed the {label} to {secret} yesterday.",
        'They said that the {label} was "{secret}".',
        "New {label}: {secret}",
        "Log in with the {label} `{secret}` on staging.",
    ),
}
"""The name of the value is there."""

SILENT = {
    "alone": ("{secret}",),
    "argument": ("client = connect('{secret}', timeout=3)",),
    "sentence": ("Why does {secret} not work (it did yesterday)?",),
    "query": ("https://api.test/v1/items?page=2&k={secret}&sort=asc",),
    "changed line": ("@@ -1,2 +1,2 @@\n-x = None\n+x = <{secret}>",),
    "bearer": ('curl -H "Authorization: Bearer {secret}" https://api.test/',),
}
"""Only the value is there."""


def _in_context(rng: random.Random, context: str, label: str, secret: str) -> tuple[str, str]:
    words = label.split()
    escaped = secret.replace("&", "&amp;")
    shape = rng.choice((NAMING | SILENT)[context])
    text = shape.format(
        label=label,
        upper="_".join(words).upper(),
        snake="_".join(words),
        kebab="-".join(words),
        camel="".join(word.capitalize() if at else word for at, word in enumerate(words)),
        header="-".join(word.capitalize() for word in words),
        title=label.capitalize(),
        secret=secret,
        quoted=shlex.quote(secret),
        escaped=escaped,
    )
    return text, escaped if "{escaped}" in shape else secret


# --- contexts that a kind needs ------------------------------------------------


Own = Callable[[random.Random, str], tuple[str, str, str]]


def _between(before: str, after: str = "") -> Own:
    return lambda _rng, secret: (before, secret, after)


def _in_url(rng: random.Random, secret: str) -> tuple[str, str, str]:
    schemes = ("postgres", "postgresql+asyncpg", "mysql", "mongodb", "mongodb+srv", "redis", "amqp")
    scheme = rng.choice((*schemes, "https", "ftp", "smtp"))
    user = "" if scheme == "redis" else "svc_shop"
    before = rng.choice(("DATABASE_URL=", 'url = "', "connecting to ", "")) + f"{scheme}://{user}:"
    return before, secret, "@db-1.internal.test:5432/shop" + ('"' if '"' in before else "")


def _in_bearer(rng: random.Random, secret: str) -> tuple[str, str, str]:
    return _authorization(rng, rng.choice(("Bearer", "Bearer", "bearer", "token")), secret)


def _authorization(rng: random.Random, scheme: str, secret: str) -> tuple[str, str, str]:
    before, after = rng.choice((
        ("Authorization: ", "\r\nAccept: */*"),
        ('curl -H "Authorization: ', '" https://api.test/'),
        ('headers = {"Authorization": "', '", "Accept": "*/*"}'),
        ("  authorization: '", "'"),
        ("proxy-authorization: ", ""),
    ))  # fmt: skip
    return before + scheme + " ", secret, after


def _in_pem_context(rng: random.Random, secret: str) -> tuple[str, str, str]:
    lines = secret.split("\n")
    shape = rng.randrange(6)
    if shape == 0:  # A file.
        return "", secret, "\n"
    if shape == 1:  # A service account's JSON.
        return '{"type": "service_account", "private_key": "', "\\n".join(lines) + "\\n", '"}'
    if shape == 2:  # An environment file.
        return 'TLS_KEY="', "\\n".join(lines), '"'
    if shape == 3:  # YAML.
        return "tls:\n  key: |\n", "\n".join("    " + line for line in lines), "\n"
    if shape == 4:  # A program.
        return "KEY = (\n", "\n".join(f'    "{line}\\n"' for line in lines), "\n)\n"
    cut = rng.randint(2, max(2, len(lines) - 2))  # Output that was cut short.
    return "$ head id_rsa\n", "\n".join(lines[:cut]), "\n\n[output truncated]"


OWN_CONTEXTS: dict[str, Own] = {
    "azure storage connection": _between(
        "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=",
        ";EndpointSuffix=core.windows.net",
    ),
    "azure service bus": _between(
        "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=",
        ";EntityPath=orders",
    ),
    "azure sas": _between(
        "https://shop.blob.core.windows.net/c/b.txt?sv=2022-11-02&se=2025-01-01&sr=b&sp=r&sig="
    ),
    "slack webhook": _between("https://hooks.slack" + ".com/services/"),
    "discord webhook": _between("https://discord.com/api/webhooks/123456789012345678/"),
    "npmrc": _between("//registry.npmjs.org/:_authToken="),
    "connection string": _in_url,
    "basic authorization": lambda rng, secret: _authorization(rng, "Basic", secret),
    "bearer authorization": _in_bearer,
    **{kind.name: _in_pem_context for kind in KINDS if "private key" in kind.name},
}


def _surrounded(rng: random.Random, text: str) -> str:
    before = rng.choice(("", "# settings\n", "Here is what I see:\n\n", "naïve café ☕\n", "a\r\n"))
    after = rng.choice(("", "\n", "\nDEBUG=1\n", "\n\nThanks!\n", "\r\nend"))
    return before + text + after
