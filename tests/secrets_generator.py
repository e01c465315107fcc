"""Makes up secrets, by the formats that their vendors document, and texts that hold them.

Nothing here comes from the rules under test, so that agreement means something.
Prefixes are put together at run time: no line of this file looks like a key to
the scanners of a forge.
"""

import base64
import json
import random
import shlex
import string
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import quote

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALNUM = LOWER + UPPER + DIGITS
HEX = DIGITS + "abcdef"
BASE32 = UPPER + "234567"
BASE64 = ALNUM + "+/"
URL_SAFE = ALNUM + "-_"
BECH32 = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"

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
    contexts = NAMING + (SILENT if kind.speaks else ())
    context = rng.choice(contexts)
    text, embedded = context(rng, kind.label, secret)
    return Sample(kind.name, context.__name__, _surrounded(rng, text), embedded)


# --- values -----------------------------------------------------------------


def _chars(alphabet: str, low: int, high: int = 0) -> Make:
    def make(rng: random.Random) -> str:
        return "".join(rng.choices(alphabet, k=rng.randint(low, high or low)))

    return make


def _join(*parts: str | Make) -> Make:
    def make(rng: random.Random) -> str:
        return "".join(part if isinstance(part, str) else part(rng) for part in parts)

    return make


def _one_of(*makes: Make) -> Make:
    return lambda rng: rng.choice(makes)(rng)


def _b64(low: int, high: int = 0) -> Make:
    def make(rng: random.Random) -> str:
        return base64.b64encode(rng.randbytes(rng.randint(low, high or low))).decode()

    return make


def _uuid(rng: random.Random) -> str:
    digits = "".join(rng.choices(HEX, k=32))
    return "-".join(
        (digits[:8], digits[8:12], "4" + digits[13:16], "a" + digits[17:20], digits[20:])
    )


def _jwt(rng: random.Random) -> str:
    def part(value: object) -> str:
        dumped = json.dumps(value, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(dumped).decode().rstrip("=")

    header = {"alg": rng.choice(("HS256", "RS256", "ES256")), "typ": "JWT"}
    claims = {"sub": str(rng.randrange(10**10)), "iat": rng.randrange(10**9, 2 * 10**9)}
    signature = base64.urlsafe_b64encode(rng.randbytes(rng.choice((32, 64, 256)))).decode()
    return ".".join((part(header), part(claims), signature.rstrip("=")))


def _human_password(rng: random.Random) -> str:
    word = rng.choice(("Winter", "sunshine", "Dragon", "orange", "Berlin", "monkey", "Falcon"))
    return word + str(rng.randrange(10, 9999)) + rng.choice(("!", "$", "?", "#", ""))


def _manager_password(rng: random.Random) -> str:
    # What password managers offer: all classes, no quotes, blanks or backslashes.
    alphabet = ALNUM + "!#$%&*+-;=?@^_~()"
    value = rng.choices(alphabet, k=rng.randint(12, 28))
    value[rng.randrange(1, len(value) - 1)] = rng.choice(DIGITS)
    value[0] = rng.choice(ALNUM)
    value[-1] = rng.choice(ALNUM)
    return "".join(value)


def _pem(label: str, body: int) -> Make:
    def make(rng: random.Random) -> str:
        encoded = base64.b64encode(rng.randbytes(body)).decode()
        lines = [encoded[i : i + 64] for i in range(0, len(encoded), 64)]
        dashes = "-" * 5
        return "\n".join((f"{dashes}BEGIN {label}{dashes}", *lines, f"{dashes}END {label}{dashes}"))

    return make


def _url_password(rng: random.Random) -> str:
    return quote(_manager_password(rng), safe="!*-_~")


KINDS = (
    Kind(
        "aws access key id",
        "aws access key",
        _one_of(*(_join(p + "IA", _chars(BASE32, 16)) for p in ("AK", "AS", "AB"))),
    ),
    Kind("aws secret access key", "aws secret access key", _chars(BASE64, 40), speaks=False),
    Kind(
        "aws session token",
        "aws session token",
        _join("IQoJb3JpZ2lu", _b64(200, 500)),
        speaks=False,
    ),
    Kind("gcp api key", "google api key", _join("AI", "za", _chars(URL_SAFE, 35))),
    Kind("gcp oauth token", "access token", _join("ya", "29.", _chars(URL_SAFE, 60, 180))),
    Kind("gcp client secret", "client secret", _join("GOC", "SPX-", _chars(URL_SAFE, 28))),
    Kind("azure storage key", "azure storage account key", _b64(64), speaks=False),
    Kind("azure storage connection", "connection string", _b64(64)),
    Kind("azure service bus", "connection string", _b64(32)),
    Kind("azure sas", "sas url", lambda rng: quote(_b64(32)(rng), safe="")),
    Kind(
        "azure client secret",
        "azure client secret",
        _join(
            _chars(ALNUM + "_.-", 3),
            _chars(DIGITS, 1),
            "Q",
            "~",
            _chars(ALNUM + "_.~-", 33),
            _chars(ALNUM, 1),
        ),
    ),
    Kind(
        "github token",
        "github token",
        _join("gh", lambda rng: rng.choice("pousr"), "_", _chars(ALNUM, 36)),
    ),
    Kind(
        "github fine-grained",
        "github token",
        _join("github", "_pat_", _chars(ALNUM, 22), "_", _chars(ALNUM, 59)),
    ),
    Kind(
        "gitlab token",
        "gitlab token",
        _join(
            "gl",
            lambda rng: rng.choice(("pat", "dt", "rt", "ft", "imt", "soat")),
            "-",
            _chars(URL_SAFE, 20),
        ),
    ),
    Kind("gitlab trigger", "trigger token", _join("gl", "ptt-", _chars(HEX, 40))),
    Kind("gitlab runner", "registration token", _join("GR", "1348941", _chars(URL_SAFE, 20))),
    Kind(
        "slack bot token",
        "slack token",
        _join("xo", "xb-", _chars(DIGITS, 12), "-", _chars(DIGITS, 12), "-", _chars(ALNUM, 24)),
    ),
    Kind(
        "slack user token",
        "slack token",
        _join(
            "xo",
            "xp-",
            _chars(DIGITS, 12),
            "-",
            _chars(DIGITS, 12),
            "-",
            _chars(DIGITS, 12),
            "-",
            _chars(HEX, 32),
        ),
    ),
    Kind(
        "slack app token",
        "slack app token",
        _join(
            "xa",
            "pp-1-A",
            _chars(UPPER + DIGITS, 10),
            "-",
            _chars(DIGITS, 13),
            "-",
            _chars(HEX, 64),
        ),
    ),
    Kind(
        "slack webhook",
        "slack webhook",
        _join(
            "T",
            _chars(UPPER + DIGITS, 8, 10),
            "/B",
            _chars(UPPER + DIGITS, 8, 10),
            "/",
            _chars(ALNUM, 24),
        ),
    ),
    Kind(
        "stripe key",
        "stripe secret key",
        _join(
            lambda rng: rng.choice("sr"),
            "k_",
            lambda rng: rng.choice(("live", "test")),
            "_",
            _chars(ALNUM, 24, 99),
        ),
    ),
    Kind("stripe webhook secret", "webhook secret", _join("wh", "sec_", _chars(ALNUM, 32))),
    Kind(
        "openai legacy key",
        "openai api key",
        _join("s", "k-", _chars(ALNUM, 20), "T3Blbk", "FJ", _chars(ALNUM, 20)),
    ),
    Kind(
        "openai project key",
        "openai api key",
        _join(
            "s",
            "k-",
            lambda rng: rng.choice(("proj", "svcacct", "admin")),
            "-",
            _chars(URL_SAFE, 74),
            "T3Blbk",
            "FJ",
            _chars(URL_SAFE, 73),
            _chars(ALNUM, 1),
        ),
    ),
    Kind(
        "anthropic key",
        "anthropic api key",
        _join(
            "s",
            "k-ant-",
            lambda rng: rng.choice(("api03", "admin01", "oat01")),
            "-",
            _chars(URL_SAFE, 93),
            "AA",
        ),
    ),
    Kind("jwt", "access token", _jwt),
    Kind("npm token", "npm token", _join("np", "m_", _chars(ALNUM, 36))),
    Kind("npmrc", "npm token", _uuid),
    Kind("pypi token", "pypi token", _join("py", "pi-AgEIcHlwaS5vcmc", _chars(URL_SAFE, 120, 170))),
    Kind(
        "sendgrid key",
        "sendgrid api key",
        _join("S", "G.", _chars(URL_SAFE, 22), ".", _chars(URL_SAFE, 43)),
    ),
    Kind("twilio api key", "twilio api key", _join("S", "K", _chars(HEX, 32))),
    Kind("twilio auth token", "twilio auth token", _chars(HEX, 32), speaks=False),
    Kind("digitalocean token", "digitalocean token", _join("dop", "_v1_", _chars(HEX, 64))),
    Kind("hugging face token", "hf token", _join("h", "f_", _chars(LOWER + UPPER, 34))),
    Kind(
        "telegram token",
        "telegram bot token",
        _join(_chars("123456789", 8, 10), ":", "AA", _chars(URL_SAFE, 33)),
    ),
    Kind(
        "discord token",
        "discord bot token",
        _join(
            "M",
            _chars(ALNUM, 23),
            ".",
            _chars(URL_SAFE, 6),
            ".",
            _chars(URL_SAFE, 37),
            _chars(ALNUM, 1),
        ),
        speaks=False,
    ),
    Kind("discord webhook", "discord webhook", _chars(URL_SAFE, 68)),
    Kind("mailgun key", "mailgun api key", _join("ke", "y-", _chars(HEX, 32))),
    Kind("shopify token", "shopify access token", _join("shp", "at_", _chars(HEX, 32))),
    Kind("databricks token", "databricks token", _join("da", "pi", _chars(HEX, 32))),
    Kind(
        "vault token", "vault token", _join("hv", "s.", _chars(URL_SAFE, 90, 105), _chars(ALNUM, 1))
    ),
    Kind("age key", "age key", _join("AGE-", "SECRET-KEY-1", _chars(BECH32, 58))),
    Kind(
        "docker token",
        "docker token",
        _join("dckr", "_pat_", _chars(URL_SAFE, 26), _chars(ALNUM, 1)),
    ),
    Kind("linear key", "linear api key", _join("lin", "_api_", _chars(ALNUM, 40))),
    Kind("notion token", "notion token", _join("nt", "n_", _chars(DIGITS, 11), _chars(ALNUM, 35))),
    Kind("sentry token", "sentry auth token", _join("sntr", "yu_", _chars(HEX, 64))),
    Kind(
        "grafana token", "grafana token", _join("gl", "sa_", _chars(ALNUM, 32), "_", _chars(HEX, 8))
    ),
    Kind("groq key", "groq api key", _join("gs", "k_", _chars(ALNUM, 52))),
    Kind("new relic key", "new relic key", _join("NR", "AK-", _chars(UPPER + DIGITS, 27))),
    Kind(
        "postman key", "postman api key", _join("PM", "AK-", _chars(HEX, 24), "-", _chars(HEX, 34))
    ),
    Kind("heroku key", "heroku api key", _uuid, speaks=False),
    Kind("cloudflare token", "cloudflare api token", _chars(URL_SAFE, 40), speaks=False),
    Kind("fastly token", "fastly api token", _chars(URL_SAFE, 32), speaks=False),
    Kind("datadog key", "datadog api key", _chars(HEX, 32), speaks=False),
    Kind("generic base62 secret", "client secret", _chars(ALNUM, 24, 48), speaks=False),
    Kind("generic hex secret", "secret key", _chars(HEX, 40, 64), speaks=False),
    Kind("generic base64 secret", "signing key", _b64(24, 48), speaks=False),
    Kind("password", "db password", _manager_password, speaks=False),
    Kind("human password", "password", _human_password, speaks=False),
    Kind("connection string", "database url", _url_password),
    Kind(
        "basic authorization",
        "authorization",
        lambda rng: base64.b64encode(
            f"{_chars(LOWER, 4, 8)(rng)}:{_manager_password(rng)}".encode()
        ).decode(),
    ),
    Kind("bearer authorization", "authorization", _chars(URL_SAFE, 32, 64)),
    Kind("rsa private key", "private key", _pem("RSA PRIV" + "ATE KEY", 1190)),
    Kind("ec private key", "private key", _pem("EC PRIV" + "ATE KEY", 121)),
    Kind("openssh private key", "private key", _pem("OPENSSH PRIV" + "ATE KEY", 290)),
    Kind("plain private key", "private key", _pem("PRIV" + "ATE KEY", 1218)),
    Kind("encrypted private key", "private key", _pem("ENCRYPTED PRIV" + "ATE KEY", 1300)),
    Kind("pgp private key", "private key", _pem("PGP PRIV" + "ATE KEY BLOCK", 900)),
)


# --- contexts: the name of the value is there --------------------------------


def _upper(label: str) -> str:
    return label.upper().replace(" ", "_")


def _snake(label: str) -> str:
    return label.replace(" ", "_")


def _kebab(label: str) -> str:
    return label.replace(" ", "-")


def _camel(label: str) -> str:
    first, *rest = label.split()
    return first + "".join(word.capitalize() for word in rest)


Context = Callable[[random.Random, str, str], tuple[str, str]]


def env_file(rng: random.Random, label: str, secret: str) -> tuple[str, str]:
    mark = rng.choice(("", "", '"', "'"))
    return f"{rng.choice(('', 'export '))}{_upper(label)}={mark}{secret}{mark}", secret


def python_source(rng: random.Random, label: str, secret: str) -> tuple[str, str]:
    shape = rng.choice((
        '{snake} = "{secret}"',
        "    {snake}: str = '{secret}'",
        'client = Client("eu", {snake}="{secret}", retries=3)',
        'os.environ["{upper}"] = "{secret}"',
        "os.environ.setdefault('{upper}', '{secret}')",
        "        self.{snake} = '{secret}'",
        "settings = {{'{snake}': '{secret}', 'debug': True}}",
    ))  # fmt: skip
    return shape.format(snake=_snake(label), upper=_upper(label), secret=secret), secret


def yaml(rng: random.Random, label: str, secret: str) -> tuple[str, str]:
    shape = rng.choice((
        "  {snake}: {secret}",
        '{camel}: "{secret}"',
        "    {kebab}: '{secret}'",
        '  - name: {upper}\n    value: "{secret}"',
    ))  # fmt: skip
    names = {"snake": _snake(label), "camel": _camel(label), "kebab": _kebab(label)}
    return shape.format(**names, upper=_upper(label), secret=secret), secret


def json_document(rng: random.Random, label: str, secret: str) -> tuple[str, str]:
    name = rng.choice((_snake, _camel, _kebab, _upper))(label)
    document = json.dumps({"id": rng.randrange(999), name: secret, "region": "eu-west-1"})
    if rng.random() < 0.3:  # A document inside a document, as in a log of requests.
        document = json.dumps({"status": 200, "body": document})
    return document, json.dumps(secret)[1:-1]


def toml(rng: random.Random, label: str, secret: str) -> tuple[str, str]:
    return f'[service]\n{_snake(label)} = "{secret}"\nport = 8080', secret


def shell_command(rng: random.Random, label: str, secret: str) -> tuple[str, str]:
    shape = rng.choice((
        "{upper}={secret} ./deploy.sh --verbose",
        "tool deploy --{kebab} '{secret}' --region eu-west-1",
        "tool deploy --{kebab}={secret} --region eu-west-1",
        "docker run -e {upper}={secret} -p 80:80 image:latest",
        "gh workflow run ci.yml -f {snake}={secret}",
    ))  # fmt: skip
    names = {"upper": _upper(label), "kebab": _kebab(label), "snake": _snake(label)}
    if shlex.quote(secret) != secret:
        shape = shape.replace("{secret}", "'{secret}'").replace("''", "'")
    return "$ " + shape.format(**names, secret=secret), secret


def log_line(rng: random.Random, label: str, secret: str) -> tuple[str, str]:
    name = rng.choice((_snake, _camel))(label)
    return f"2024-05-17T10:22:31Z WARN auth: rejected {name}={secret} status=401", secret


def markdown(rng: random.Random, label: str, secret: str) -> tuple[str, str]:
    shape = rng.choice((
        "- **{title}**: `{secret}`",
        "- {title}: {secret}",
        "| {title} | `{secret}` |",
        "Set `{upper}` to `{secret}` and restart.",
    ))  # fmt: skip
    return shape.format(title=label.capitalize(), upper=_upper(label), secret=secret), secret


def properties(rng: random.Random, label: str, secret: str) -> tuple[str, str]:
    shape = rng.choice((
        "spring.datasource.{kebab}={secret}",
        "[client]\n{snake} = {secret}",
        "ENV {upper} {upper_too}={secret}",
    ))  # fmt: skip
    names = {"kebab": _kebab(label), "snake": _snake(label), "upper": "MODE=prod"}
    return shape.format(**names, upper_too=_upper(label), secret=secret), secret


def xml(rng: random.Random, label: str, secret: str) -> tuple[str, str]:
    shape = rng.choice((
        "  <{camel}>{secret}</{camel}>",
        '<add key="{camel}" value="{secret}" />',
        '<server {camel}="{secret}" port="80"/>',
    ))  # fmt: skip
    escaped = secret.replace("&", "&amp;")
    return shape.format(camel=_camel(label), secret=escaped), escaped


def javascript(rng: random.Random, label: str, secret: str) -> tuple[str, str]:
    shape = rng.choice((
        "const {camel} = '{secret}';",
        "export const {upper}: string = `{secret}`",
        'return {{ {camel}: "{secret}", retries: 3 }};',
        "{camel} := \"{secret}\"",
        "process.env.{upper} = process.env.{upper} || '{secret}';",
    ))  # fmt: skip
    return shape.format(camel=_camel(label), upper=_upper(label), secret=secret), secret


def http_header(rng: random.Random, label: str, secret: str) -> tuple[str, str]:
    name = "-".join(word.capitalize() for word in label.split())
    return f"GET /v1/items HTTP/1.1\r\nHost: api.test\r\nX-{name}: {secret}\r\n", secret


def curl(rng: random.Random, label: str, secret: str) -> tuple[str, str]:
    mark = rng.choice("\"'")
    header = f"-H {mark}X-{_kebab(label)}: {secret}{mark}"
    return f"curl -sS {header} https://api.test/v1/items", secret


def prose(rng: random.Random, label: str, secret: str) -> tuple[str, str]:
    shape = rng.choice((
        "The {label} is {secret}, please do not share it.",
        "I changed the {label} to {secret} yesterday.",
        'They said that the {label} was "{secret}".',
        "New {label}: {secret}",
        "Log in with the {label} `{secret}` on staging.",
    ))  # fmt: skip
    return shape.format(label=label, secret=secret), secret


NAMING: tuple[Context, ...] = (
    env_file, python_source, yaml, json_document, toml, shell_command, log_line, markdown,
    properties, xml, javascript, http_header, curl, prose,
)  # fmt: skip


# --- contexts: only the value is there ----------------------------------------


def alone(rng: random.Random, label: str, secret: str) -> tuple[str, str]:
    return secret, secret


def argument(rng: random.Random, label: str, secret: str) -> tuple[str, str]:
    return f"client = connect('{secret}', timeout=3)", secret


def sentence(rng: random.Random, label: str, secret: str) -> tuple[str, str]:
    return f"Why does {secret} not work (it did yesterday)?", secret


def query(rng: random.Random, label: str, secret: str) -> tuple[str, str]:
    return f"https://api.test/v1/items?page=2&k={secret}&sort=asc", secret


def changed_line(rng: random.Random, label: str, secret: str) -> tuple[str, str]:
    return f"@@ -1,2 +1,2 @@\n-x = None\n+x = <{secret}>", secret


def bearer(rng: random.Random, label: str, secret: str) -> tuple[str, str]:
    return f'curl -H "Authorization: Bearer {secret}" https://api.test/', secret


SILENT: tuple[Context, ...] = (alone, argument, sentence, query, changed_line, bearer)


# --- contexts that a kind needs ------------------------------------------------


def _in_storage_connection(rng: random.Random, secret: str) -> tuple[str, str, str]:
    before = "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey="
    return before, secret, ";EndpointSuffix=core.windows.net"


def _in_service_bus(rng: random.Random, secret: str) -> tuple[str, str, str]:
    before = "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey="
    return before, secret, rng.choice(("", ";EntityPath=orders"))


def _in_sas(rng: random.Random, secret: str) -> tuple[str, str, str]:
    before = "https://shop.blob.core.windows.net/c/b.txt?sv=2022-11-02&se=2025-01-01&sr=b&sp=r&sig="
    return before, secret, ""


def _in_slack_url(rng: random.Random, secret: str) -> tuple[str, str, str]:
    return "https://hooks.slack" + ".com/services/", secret, ""


def _in_discord_url(rng: random.Random, secret: str) -> tuple[str, str, str]:
    return f"https://discord.com/api/webhooks/{rng.randrange(10**17, 10**18)}/", secret, ""


def _in_npmrc(rng: random.Random, secret: str) -> tuple[str, str, str]:
    return "//registry.npmjs.org/:_authToken=", secret, ""


def _in_url(rng: random.Random, secret: str) -> tuple[str, str, str]:
    schemes = ("postgres", "postgresql+asyncpg", "mysql", "mongodb", "mongodb+srv", "redis", "amqp")
    scheme = rng.choice((*schemes, "https", "ftp", "smtp"))
    user = "" if scheme == "redis" else "svc_shop"
    before = rng.choice(("DATABASE_URL=", 'url = "', "connecting to ", "")) + f"{scheme}://{user}:"
    return before, secret, "@db-1.internal.test:5432/shop" + ('"' if '"' in before else "")


def _in_basic(rng: random.Random, secret: str) -> tuple[str, str, str]:
    return _authorization(rng, "Basic", secret)


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


OWN_CONTEXTS: dict[str, Callable[[random.Random, str], tuple[str, str, str]]] = {
    "azure storage connection": _in_storage_connection,
    "azure service bus": _in_service_bus,
    "azure sas": _in_sas,
    "slack webhook": _in_slack_url,
    "discord webhook": _in_discord_url,
    "npmrc": _in_npmrc,
    "connection string": _in_url,
    "basic authorization": _in_basic,
    "bearer authorization": _in_bearer,
    **{kind.name: _in_pem_context for kind in KINDS if kind.name.endswith("private key")},
}


def _surrounded(rng: random.Random, text: str) -> str:
    before = rng.choice(("", "# settings\n", "Here is what I see:\n\n", "naïve café ☕\n", "a\r\n"))
    after = rng.choice(("", "\n", "\nDEBUG=1\n", "\n\nThanks!\n", "\r\nend"))
    return before + text + after
