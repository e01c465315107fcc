"""Random secrets in the documented shape of each vendor, and the lines in which they appear.

This generator is independent of the rules in `ctx.redaction`: it knows the shapes that vendors
document and that secret scanners look for, not how ctx finds them. A vendor whose values have no
mark of their own is generated with the setting under which the vendor documents it.
"""

import base64
import json
import random
import string
from collections.abc import Callable
from typing import NamedTuple

LOWER = string.ascii_lowercase
DIGITS = string.digits
ALNUM = string.ascii_letters + DIGITS
HEX = "0123456789abcdef"
SMALL = LOWER + DIGITS
LARGE = string.ascii_uppercase + DIGITS
URLSAFE = ALNUM + "-_"
BASE64 = ALNUM + "+/"
BASE32 = string.ascii_uppercase + "234567"


class Sample(NamedTuple):
    """A text with a secret in it. Only `secret` has to disappear."""

    text: str
    secret: str


class Format(NamedTuple):
    name: str
    value: Callable[[random.Random], str]
    settings: tuple[str, ...] = ()
    """Where the value appears if it has no mark of its own. Empty: anywhere."""


class Piece:
    """Random characters of an alphabet. Pieces and literals add up to a value."""

    def __init__(self, *parts: str | tuple[str, int] | tuple[str, int, int]) -> None:
        self._parts = parts

    def __call__(self, rng: random.Random) -> str:
        return "".join(
            part if isinstance(part, str) else _characters(rng, *part) for part in self._parts
        )


def _characters(rng: random.Random, alphabet: str, least: int, most: int = 0) -> str:
    count = rng.randint(least, most) if most else least
    return "".join(rng.choices(alphabet, k=count))


def _uuid(rng: random.Random) -> str:
    return "-".join(_characters(rng, HEX, count) for count in (8, 4, 4, 4, 12))


def _with_uuid(before: str) -> Callable[[random.Random], str]:
    return lambda rng: before + _uuid(rng)


def _base64_json(rng: random.Random, **fields: object) -> str:
    text = json.dumps({**fields, "n": rng.randrange(10**9)}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _jwt(rng: random.Random) -> str:
    head = _base64_json(rng, alg="HS256", typ="JWT")
    body = _base64_json(rng, sub=_characters(rng, DIGITS, 10), iat=1516239022)
    return f"{head}.{body}.{_characters(rng, URLSAFE, 43)}"


def _discord(rng: random.Random) -> str:
    user = base64.urlsafe_b64encode(_characters(rng, "123456789", 18).encode()).decode()
    return f"{user}.{_characters(rng, URLSAFE, 6)}.{_characters(rng, URLSAFE, 38)}"


def _mapbox(rng: random.Random) -> str:
    body = _base64_json(rng, u=_characters(rng, LOWER, 8), a=_characters(rng, SMALL, 25))
    return f"sk.{body}.{_characters(rng, URLSAFE, 22)}"


def _grafana(rng: random.Random) -> str:
    return _base64_json(rng, k=_characters(rng, ALNUM, 32), id=1)


def private_key(kind: str, rows: int) -> Callable[[random.Random], str]:
    def value(rng: random.Random) -> str:
        body = "\n".join(_characters(rng, BASE64, 64) for _ in range(rows))
        return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----"

    return value


FORMATS = (
    Format(
        "1password-secret-key", Piece("A3-", (LARGE, 6), "-", (LARGE, 6), *(("-", (LARGE, 5)) * 4))
    ),
    Format("1password-service-account", lambda rng: "ops_eyJ" + _characters(rng, BASE64, 250)),
    Format("adafruit", Piece("aio_", (ALNUM, 28))),
    Format("adobe-client", Piece("p8e-", (ALNUM, 32))),
    Format("age", Piece("AGE-SECRET-KEY-1", ("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58))),
    Format("airtable-pat", Piece("pat", (ALNUM, 14), ".", (HEX, 64))),
    Format("algolia", Piece((HEX, 32)), ("ALGOLIA_API_KEY", "algolia_admin_key")),
    Format("alibaba-id", Piece("LTAI", (ALNUM, 20))),
    Format("alibaba-secret", Piece((ALNUM, 30)), ("ALIBABA_SECRET_KEY", "accessKeySecret")),
    Format("anthropic", Piece("sk-ant-api03-", (URLSAFE, 93), "AA")),
    Format("anthropic-admin", Piece("sk-ant-admin01-", (URLSAFE, 93), "AA")),
    Format("artifactory", Piece("AKCp", (ALNUM, 69))),
    Format("artifactory-reference", Piece("cmVmdGtu", (ALNUM, 56))),
    Format("asana", Piece("2/", (DIGITS, 16), "/", (DIGITS, 16), ":", (HEX, 32)), ("ASANA_TOKEN",)),
    Format("atlassian", Piece("ATATT3", (URLSAFE, 186))),
    Format("aws-key-id", Piece("AKIA", (BASE32, 16))),
    Format("aws-temporary-id", Piece("ASIA", (BASE32, 16))),
    Format("aws-secret", Piece((BASE64, 40)), ("AWS_SECRET_ACCESS_KEY", "aws_secret_access_key")),
    Format("aws-bedrock", Piece("ABSK", (ALNUM, 109, 120))),
    Format("azure-client-secret", Piece((ALNUM, 3), "8Q~", (ALNUM + "_-.", 34))),
    Format("azure-storage", Piece((BASE64, 86), "=="), ("AccountName=acc;AccountKey",)),
    Format("azure-devops", Piece((LOWER + "234567", 52)), ("AZURE_DEVOPS_TOKEN", "azdo_pat")),
    Format("beamer", Piece("b_", (URLSAFE, 44)), ("BEAMER_API_KEY",)),
    Format("bitbucket", Piece("ATBB", (ALNUM, 32))),
    Format("braintree", Piece("access_token$production$", (SMALL, 16), "$", (HEX, 32))),
    Format("buildkite", Piece("bkua_", (HEX, 40))),
    Format("circleci", Piece("CCIPAT_", (ALNUM, 22), "_", (HEX, 40))),
    Format("clickhouse", Piece("4b1d", (ALNUM, 38)), ("CLICKHOUSE_CLOUD_SECRET",)),
    Format("clojars", Piece("CLOJARS_", (HEX, 60))),
    Format("cloudflare", Piece((URLSAFE, 40)), ("CLOUDFLARE_API_TOKEN", "cf_api_key")),
    Format("cloudflare-origin", Piece("v1.0-", (HEX, 24), "-", (HEX, 146))),
    Format("cloudinary", Piece("cloudinary://", (DIGITS, 15), ":", (URLSAFE, 27), "@demo")),
    Format("codecov", _uuid, ("CODECOV_TOKEN",)),
    Format("cohere", Piece((ALNUM, 40)), ("COHERE_API_KEY", "CO_API_KEY")),
    Format("coinbase", Piece((URLSAFE, 64)), ("COINBASE_ACCESS_TOKEN",)),
    Format("confluent", Piece((ALNUM, 64)), ("CONFLUENT_SECRET_KEY",)),
    Format("contentful", Piece("CFPAT-", (URLSAFE, 43))),
    Format("databricks", Piece("dapi", (HEX, 32))),
    Format("datadog", Piece((HEX, 32)), ("DD_API_KEY", "DATADOG_APP_KEY")),
    Format("defined-networking", Piece("dnkey-", (SMALL, 26), "-", (SMALL, 52))),
    Format("digitalocean", Piece("dop_v1_", (HEX, 64))),
    Format("digitalocean-oauth", Piece("doo_v1_", (HEX, 64))),
    Format("discord-bot", _discord),
    Format(
        "discord-webhook",
        Piece("https://discord.com/api/webhooks/", (DIGITS, 18), "/", (URLSAFE, 68)),
    ),
    Format("docker-hub", Piece("dckr_pat_", (URLSAFE, 27))),
    Format("doppler", Piece("dp.pt.", (ALNUM, 43))),
    Format("dropbox-short", Piece("sl.", (URLSAFE, 138))),
    Format("dropbox-long", Piece((SMALL, 11), "AAAAAAAAAA", (URLSAFE, 43))),
    Format("dropbox-app", Piece((SMALL, 15)), ("DROPBOX_APP_SECRET",)),
    Format("duffel", Piece("duffel_live_", (URLSAFE, 43))),
    Format("dynatrace", Piece("dt0c01.", (BASE32, 24), ".", (BASE32, 64))),
    Format("easypost", Piece("EZAK", (ALNUM, 54))),
    Format("elevenlabs", Piece("sk_", (HEX, 48))),
    Format("etsy", Piece((SMALL, 24)), ("ETSY_ACCESS_TOKEN",)),
    Format("facebook-page", Piece("EAAM", (ALNUM, 120, 180))),
    Format("facebook-secret", Piece((HEX, 32)), ("FACEBOOK_APP_SECRET",)),
    Format("fastly", Piece((URLSAFE, 32)), ("FASTLY_API_TOKEN",)),
    Format("figma", Piece("figd_", (URLSAFE, 40))),
    Format("finnhub", Piece((SMALL, 20)), ("FINNHUB_API_KEY",)),
    Format("flickr", Piece((SMALL, 32)), ("FLICKR_ACCESS_TOKEN",)),
    Format("flutterwave", Piece("FLWSECK_TEST-", (HEX, 32), "-X")),
    Format("fly", Piece("FlyV1 fm2_", (BASE64, 120))),
    Format("frameio", Piece("fio-u-", (URLSAFE, 64))),
    Format("gcp-api-key", Piece("AIza", (URLSAFE, 35))),
    Format("github-app", Piece("ghs_", (ALNUM, 36))),
    Format("github-fine", Piece("github_pat_", (ALNUM, 22), "_", (ALNUM, 59))),
    Format("github-oauth", Piece("gho_", (ALNUM, 36))),
    Format("github-pat", Piece("ghp_", (ALNUM, 36))),
    Format("github-refresh", Piece("ghr_", (ALNUM, 36))),
    Format("gitlab-deploy", Piece("gldt-", (URLSAFE, 20))),
    Format("gitlab-feed", Piece("glft-", (URLSAFE, 20))),
    Format("gitlab-pat", Piece("glpat-", (URLSAFE, 20))),
    Format("gitlab-routable", Piece("glpat-", (URLSAFE, 27), ".01.", (SMALL, 9))),
    Format("gitlab-runner", Piece("glrt-", (URLSAFE, 20))),
    Format("gitlab-runner-registration", Piece("GR1348941", (URLSAFE, 20))),
    Format("gitlab-trigger", Piece("glptt-", (HEX, 40))),
    Format("gitter", Piece((URLSAFE, 40)), ("GITTER_ACCESS_TOKEN",)),
    Format("gocardless", Piece("live_", (URLSAFE, 40)), ("GOCARDLESS_API_TOKEN",)),
    Format("google-access", Piece("ya29.a0", (URLSAFE, 160))),
    Format("google-client-secret", Piece("GOCSPX-", (URLSAFE, 28))),
    Format("google-refresh", Piece("1//0", (URLSAFE, 80, 100))),
    Format("grafana-api-key", _grafana, ("GRAFANA_API_KEY", "Authorization: Bearer")),
    Format("grafana-cloud", Piece("glc_", (BASE64, 120))),
    Format("grafana-service", Piece("glsa_", (ALNUM, 32), "_", (HEX, 8))),
    Format("groq", Piece("gsk_", (ALNUM, 52))),
    Format("harness", Piece("pat.", (URLSAFE, 22), ".", (HEX, 24), ".", (ALNUM, 20))),
    Format("hashicorp-vault", Piece("hvs.", (URLSAFE, 95))),
    Format("hashicorp-vault-batch", Piece("hvb.", (URLSAFE, 140))),
    Format("heroku", _uuid, ("HEROKU_API_KEY",)),
    Format("heroku-new", Piece("HRKU-AA", (URLSAFE, 58))),
    Format("hubspot", _with_uuid("pat-na1-")),
    Format("huggingface", Piece("hf_", (string.ascii_letters, 34))),
    Format("ibm-cloud", Piece((URLSAFE, 44)), ("IBM_CLOUD_API_KEY", "ibm_api_key")),
    Format("infracost", Piece("ico-", (ALNUM, 32))),
    Format("intercom", Piece((ALNUM, 60)), ("INTERCOM_API_KEY",)),
    Format("intra42", Piece("s-s4t2ud-", (HEX, 64))),
    Format("jfrog-identity", Piece((ALNUM, 64)), ("JFROG_IDENTITY_TOKEN",)),
    Format("jwt", _jwt),
    Format("kraken", Piece((BASE64, 86)), ("KRAKEN_SECRET_KEY",)),
    Format("langsmith", Piece("lsv2_pt_", (HEX, 32), "_", (HEX, 10))),
    Format("launchdarkly", _with_uuid("sdk-"), ("LAUNCHDARKLY_SDK_KEY",)),
    Format("linear", Piece("lin_api_", (ALNUM, 40))),
    Format("linkedin", Piece((ALNUM, 16)), ("LINKEDIN_CLIENT_SECRET",)),
    Format("lob", Piece("live_", (HEX, 35)), ("LOB_API_KEY",)),
    Format("mailchimp", Piece((HEX, 32), "-us20")),
    Format("mailgun", Piece("key-", (HEX, 32))),
    Format("mapbox", _mapbox),
    Format("mattermost", Piece((SMALL, 26)), ("MATTERMOST_ACCESS_TOKEN",)),
    Format("maxmind", Piece((ALNUM, 6), "_", (ALNUM, 29), "_mmk")),
    Format("messagebird", Piece((SMALL, 25)), ("MESSAGEBIRD_API_TOKEN",)),
    Format("mistral", Piece((ALNUM, 32)), ("MISTRAL_API_KEY",)),
    Format("mongodb-url", Piece("mongodb+srv://app:", (ALNUM, 16), "@cluster0.ab1cd.mongodb.net")),
    Format("netlify", Piece("nfp_", (ALNUM, 36))),
    Format("new-relic", Piece("NRAK-", (LARGE, 27))),
    Format("new-relic-browser", Piece("NRJS-", (HEX, 19))),
    Format("notion", Piece("ntn_", (DIGITS, 11), (ALNUM, 35))),
    Format("npm", Piece("npm_", (ALNUM, 36))),
    Format("npmrc", _uuid, ("//registry.npmjs.org/:_authToken",)),
    Format("nuget", Piece("oy2", (SMALL, 43))),
    Format("octopus", Piece("API-", (LARGE, 26))),
    Format("okta", Piece("00", (URLSAFE, 40)), ("OKTA_API_TOKEN", "Authorization: SSWS")),
    Format("openai", Piece("sk-", (ALNUM, 20), "T3BlbkFJ", (ALNUM, 20))),
    Format("openai-project", Piece("sk-proj-", (URLSAFE, 74), "T3BlbkFJ", (URLSAFE, 74))),
    Format("openrouter", Piece("sk-or-v1-", (HEX, 64))),
    Format("openshift", Piece("sha256~", (URLSAFE, 43))),
    Format("perplexity", Piece("pplx-", (ALNUM, 48))),
    Format("pinecone", Piece("pcsk_", (ALNUM, 6), "_", (ALNUM, 63))),
    Format("plaid", _with_uuid("access-production-")),
    Format("planetscale", Piece("pscale_tkn_", (URLSAFE, 43))),
    Format("planetscale-password", Piece("pscale_pw_", (URLSAFE, 43))),
    Format("postman", Piece("PMAK-", (HEX, 24), "-", (HEX, 34))),
    Format("prefect", Piece("pnu_", (ALNUM, 36))),
    Format("private-key-ec", private_key("EC PRIVATE KEY", 3)),
    Format("private-key-openssh", private_key("OPENSSH PRIVATE KEY", 6)),
    Format("private-key-rsa", private_key("RSA PRIVATE KEY", 12)),
    Format("pulumi", Piece("pul-", (HEX, 40))),
    Format("pypi", Piece("pypi-AgEIcHlwaS5vcmc", (URLSAFE, 150))),
    Format("rapidapi", Piece((URLSAFE, 50)), ("X-RapidAPI-Key",)),
    Format("readme", Piece("rdme_", (SMALL, 70))),
    Format("replicate", Piece("r8_", (ALNUM, 37))),
    Format("rubygems", Piece("rubygems_", (HEX, 48))),
    Format("scalingo", Piece("tk-us-", (URLSAFE, 48))),
    Format("sendbird", Piece((HEX, 40)), ("SENDBIRD_ACCESS_TOKEN",)),
    Format("sendgrid", Piece("SG.", (URLSAFE, 22), ".", (URLSAFE, 43))),
    Format("sendinblue", Piece("xkeysib-", (HEX, 64), "-", (ALNUM, 16))),
    Format(
        "sentry-org",
        lambda rng: f"sntrys_{_base64_json(rng, iat=1)}_{_characters(rng, BASE64, 43)}",
    ),
    Format("sentry-user", Piece("sntryu_", (HEX, 64))),
    Format("settlemint", Piece("sm_aat_", (ALNUM, 16))),
    Format("shippo", Piece("shippo_live_", (HEX, 40))),
    Format("shopify", Piece("shpat_", (HEX, 32))),
    Format("shopify-shared", Piece("shpss_", (HEX, 32))),
    Format("sidekiq", Piece((HEX, 8), ":", (HEX, 8)), ("BUNDLE_ENTERPRISE__CONTRIBSYS__COM",)),
    Format("slack-app", Piece("xapp-1-A", (LARGE, 10), "-", (DIGITS, 13), "-", (HEX, 64))),
    Format("slack-bot", Piece("xoxb-", (DIGITS, 12), "-", (DIGITS, 12), "-", (ALNUM, 24))),
    Format("slack-user", Piece("xoxp-", *(((DIGITS, 12), "-") * 3), (HEX, 32))),
    Format(
        "slack-webhook",
        Piece(
            "https://hooks.slack.com/services/T", (LARGE, 9), "/B", (LARGE, 10), "/", (ALNUM, 24)
        ),
    ),
    Format("snyk", _uuid, ("SNYK_TOKEN",)),
    Format("sonarqube", Piece("squ_", (HEX, 40))),
    Format("sourcegraph", Piece("sgp_", (HEX, 16), "_", (HEX, 40))),
    Format("square", Piece("sq0atp-", (URLSAFE, 22))),
    Format("square-secret", Piece("sq0csp-", (URLSAFE, 43))),
    Format("stripe", Piece("sk_live_", (ALNUM, 24))),
    Format("stripe-restricted", Piece("rk_live_", (ALNUM, 99))),
    Format("stripe-webhook", Piece("whsec_", (ALNUM, 32))),
    Format("sumologic", Piece((ALNUM, 64)), ("SUMOLOGIC_ACCESSKEY", "sumo_access_key")),
    Format("supabase", Piece("sbp_", (HEX, 40))),
    Format("tailscale", Piece("tskey-auth-", (ALNUM, 12), "CNTRL-", (ALNUM, 32))),
    Format("tavily", Piece("tvly-", (ALNUM, 32))),
    Format(
        "teams-webhook",
        lambda rng: (
            f"https://acme.webhook.office.com/webhookb2/{_uuid(rng)}@{_uuid(rng)}/IncomingWebhook/"
            f"{_characters(rng, HEX, 32)}/{_uuid(rng)}"
        ),
    ),
    Format("telegram", Piece("7", (DIGITS, 9), ":AA", (URLSAFE, 33))),
    Format("terraform-cloud", Piece((ALNUM, 14), ".atlasv1.", (URLSAFE, 67))),
    Format("travis", Piece((ALNUM, 22)), ("TRAVIS_TOKEN", "travis_api_token")),
    Format("twilio", Piece("SK", (HEX, 32))),
    Format("twilio-auth", Piece((HEX, 32)), ("TWILIO_AUTH_TOKEN",)),
    Format("twitch", Piece((SMALL, 30)), ("TWITCH_CLIENT_SECRET",)),
    Format("twitter-bearer", Piece("A" * 21, (ALNUM + "%", 85))),
    Format("twitter-secret", Piece((ALNUM, 45)), ("TWITTER_ACCESS_TOKEN_SECRET",)),
    Format("typeform", Piece("tfp_", (URLSAFE + ".", 59))),
    Format("vercel", Piece((ALNUM, 24)), ("VERCEL_TOKEN",)),
    Format("voyage", Piece("pa-", (URLSAFE, 43)), ("VOYAGE_API_KEY",)),
    Format("wandb", Piece((HEX, 40)), ("WANDB_API_KEY",)),
    Format("xai", Piece("xai-", (ALNUM, 80))),
    Format("yandex-api", Piece("AQVN", (URLSAFE, 36))),
    Format("yandex-secret", Piece("YC", (URLSAFE, 38)), ("YANDEX_SECRET_KEY",)),
    Format("zendesk", Piece((ALNUM, 40)), ("ZENDESK_SECRET_KEY",)),
)

ANYWHERE = (
    "{}",
    "    {}",
    'client = Client("{}")',
    "retrying with {} after 3 attempts",
    "I pasted {} into the form by mistake.",
    "<td>{}</td>",
    'x = ["{}"]',
    "[2026-05-01T10:00:00Z] request 17 used {} (200)",
    "`{}`",
    "curl https://api.example.com/v1/items?limit=3&v={}",
    "- {}",
    "echo {} | tool login --stdin",
)
"""Lines that give no hint that a secret is near."""

UNDER_A_NAME = (
    "{name}={}",
    "export {name}={}",
    '{name}="{}"',
    "{name}: {}",
    '"{name}": "{}"',
    "docker run -e {name}={} image",
    'os.environ["{name}"] = "{}"',
    "12:00:01 env {name}={} started",
)


def sample(form: Format, rng: random.Random) -> Sample:
    value = form.value(rng)
    if not form.settings:
        return Sample(rng.choice(ANYWHERE).format(value), confidential(value))
    name = rng.choice(form.settings)
    if name.startswith("Authorization"):
        return Sample(f"{name} {value}", value)
    lines = UNDER_A_NAME if name.isidentifier() else ("{name}={}",)
    return Sample(rng.choice(lines).format(value, name=name), value)


def confidential(value: str) -> str:
    """The part of a value that nobody may read: not the host, not the frame of a key."""
    if value.startswith("-----BEGIN"):
        return "\n".join(value.split("\n")[1:-1])
    if ":AA" in value:  # A Telegram token begins with the number of the bot.
        return value.partition(":")[2]
    if "webhookb2" in value:
        return value.split("/")[-2]
    if value.startswith("https://"):
        return value.split("/")[-1]
    if "://" in value:
        return value.split("://")[1].split("@")[0].split(":")[1]
    return value


BESIDE_A_KEY_ID = (
    "{id} {}",
    "{id},{}",
    "{id}:{}",
    "{id}\n{}",
    "Access key: {id}\nSecret: {}",
    'boto3.client("s3", "{id}", "{}")',
    "| {id} | {} |",
)


def aws_pair(rng: random.Random) -> Sample:
    """An AWS secret without a name, beside its key id."""
    key_id, secret = Piece("AKIA", (BASE32, 16))(rng), Piece((BASE64, 40))(rng)
    return Sample(rng.choice(BESIDE_A_KEY_ID).format(secret, id=key_id), secret)


COOKIES = (
    "Cookie: sessionid={}",
    "Cookie: theme=dark; session={}; lang=en",
    "Set-Cookie: PHPSESSID={}; path=/; HttpOnly",
    "curl -b 'JSESSIONID={}' https://example.com/admin",
    "curl --cookie 'auth={}' https://example.com/admin",
    "< set-cookie: connect.sid={}; Path=/; Secure",
    "'Cookie': 'wordpress_logged_in_ab12={}'",
)


def cookie(rng: random.Random) -> Sample:
    value = _characters(rng, rng.choice((HEX, SMALL, ALNUM)), 26, 40)
    return Sample(rng.choice(COOKIES).format(value), value)
