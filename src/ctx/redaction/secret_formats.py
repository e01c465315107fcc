"""Secrets that are recognised by a prefix, a frame, or their place in a URL.

`FORMATS` is the table to extend. A row is a name, the literals of which one must be present (cheap
to search for), and the pattern that is then tried at the literal. If the pattern has a group, only
the group is the secret.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ctx.redaction.entropy import is_placeholder, is_random, is_varied, wordiness
from ctx.redaction.scan_text import Page, SecretSpan

RANK = 0


class Format(NamedTuple):
    rule: str
    anchors: str  # Separated by blanks; each is part of an unbroken value (see scan_text.py).
    pattern: str  # Tried at the anchor. Every repetition is bounded, for the sake of time.
    lead: int = 0  # How many characters of the value precede the anchor.


# fmt: off
FORMATS = (
    # Clouds.
    Format("aws-access-key", "AKIA ASIA ABIA ACCA", r"A(?:KI|SI|BI|CC)A[A-Z2-7]{16}(?![A-Z0-9])"),
    Format("aws-bedrock-key", "ABSK", r"ABSK[A-Za-z0-9+/]{100,300}={0,2}"),
    Format("gcp-api-key", "AIza", r"AIza[\w-]{35}(?![\w-])"),
    Format("gcp-oauth-token", "ya29.", r"ya29\.[\w.-]{20,2048}"),
    Format("gcp-client-secret", "GOCSPX-", r"GOCSPX-[\w-]{24,64}"),
    Format("azure-client-secret", "Q~", r"[\w~.-]{3}\dQ~[\w~.-]{31,37}(?![\w~])", lead=4),
    Format("azure-storage-key", "AccountKey=", r"AccountKey=([A-Za-z0-9+/]{40,100}={0,2})"),
    Format("azure-access-key", "SharedAccessKey=",
           r"SharedAccessKey=([A-Za-z0-9+/]{32,100}={0,2})"),
    Format("azure-signature", "sig=", r"sig=([A-Za-z0-9+/%]{40,120}=?)"),
    Format("azure-devops-token", "AZDO", r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}", lead=76),
    Format("alibaba-access-key", "LTAI", r"LTAI[A-Za-z0-9]{16,26}"),
    Format("digitalocean-token", "_v1_", r"do[opr]_v1_[0-9a-f]{64}", lead=3),
    Format("databricks-token", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?"),
    Format("heroku-token", "HRKU-", r"HRKU-[\w-]{30,100}"),
    Format("fly-token", "fm1 fm2_ fo1_", r"(?:fm[12]|fo1)[ar]?_[\w+/=-]{30,2048}"),
    Format("planetscale-token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[\w.=-]{32,64}"),
    Format("supabase-token", "sbp_ sb_secret_", r"sb(?:p|_secret)_[\w-]{30,64}"),
    Format("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70}", lead=14),
    Format("vault-token", "hvs. hvb. hvr.", r"hv[sbr]\.[\w-]{24,300}"),
    Format("doppler-token", "dp.",
           r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    Format("pulumi-token", "pul-", r"pul-[0-9a-f]{40}"),
    Format("clickhouse-key", "4b1d", r"4b1d[A-Za-z0-9]{38}"),
    Format("cloudflare-origin-key", "v1.0-", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
    Format("netlify-token", "nf", r"nf[pcuo]_[A-Za-z0-9]{36,40}"),
    Format("openshift-token", "sha256~", r"sha256~[\w-]{43}"),
    Format("prefect-key", "pnu_ pnb_", r"pn[ub]_[A-Za-z0-9]{36}"),
    Format("scalingo-token", "tk-us-", r"tk-us-[\w-]{48}"),
    Format("yandex-key", "AQVN", r"AQVN[\w-]{35,38}"),
    Format("yandex-token", "t1.", r"t1\.[\w-]{8,600}={0,2}\.[\w-]{86}={0,2}"),
    Format("gcp-refresh-token", "1//0", r"1//0[\w-]{40,256}"),
    Format("defined-networking-key", "dnkey-", r"dnkey-[a-z0-9=_-]{26}-[a-z0-9=_-]{52}"),
    Format("onepassword-token", "ops_eyJ", r"ops_eyJ[A-Za-z0-9+/]{200,4096}={0,3}"),
    Format("onepassword-key", "A3-",
           r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    Format("tailscale-key", "tskey-", r"tskey-[a-z]{2,16}-[A-Za-z0-9]{8,32}-[A-Za-z0-9]{16,64}"),
    # Forges and package indexes.
    Format("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{36,255}"),
    Format("github-fine-token", "github_pat_", r"github_pat_\w{36,255}"),
    Format("gitlab-token",
           "glpat- gldt- glrt glptt- glft- glsoat- glimt- glagent- glcbt- glffct- gloas- glwt-",
           r"gl(?:pat|dt|rtr?|ptt|ft|soat|imt|agent|cbt|ffct|oas|wt)-[\w-]{20,300}(?:\.[\w-]{2,40}){0,2}"),
    Format("gitlab-runner-token", "GR1348941", r"GR1348941[\w-]{20,50}"),
    Format("atlassian-token", "ATATT3 ATCTT3 ATBB",
           r"(?:AT[AC]TT3[\w=-]{60,300}|ATBB[A-Za-z0-9]{32})"),
    Format("npm-token", "npm_", r"npm_[A-Za-z0-9]{36,64}"),
    Format("pypi-token", "pypi-AgE", r"pypi-AgE[\w-]{50,1000}"),
    Format("rubygems-key", "rubygems_", r"rubygems_[0-9a-f]{48}"),
    Format("docker-token", "dckr_", r"dckr_[po]at_[\w-]{27,64}"),
    Format("clojars-token", "CLOJARS_", r"CLOJARS_[0-9a-z]{60}"),
    Format("bitbucket-token", "BBDC-", r"BBDC-[\w+@-]{44}"),
    Format("buildkite-token", "bkua_", r"bkua_[0-9a-f]{40}"),
    Format("circleci-token", "CCIP", r"CCIP(?:AT|RJ)_[A-Za-z0-9]{20,24}_[0-9a-f]{40}"),
    Format("sonar-token", "sqp_ squ_ sqa_ sqb_", r"sq[puab]_[0-9a-f]{40}"),
    Format("sourcegraph-token", "sgp_ slk_",
           r"(?:sgp_(?:(?:[0-9a-f]{16}|local)_)?[0-9a-f]{40}|slk_[0-9a-f]{64})"),
    Format("harness-token", "pat. sat.", r"[ps]at\.[\w-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}"),
    Format("octopus-key", "API-", r"API-[A-Z0-9]{25,27}"),
    Format("infracost-key", "ico-", r"ico-[A-Za-z0-9]{32}"),
    Format("readme-key", "rdme_", r"rdme_[a-z0-9]{70}"),
    Format("sidekiq-key", "CONTRIBSYS__COM",
           r"""CONTRIBSYS__COM[\]"']{0,3}[ \t]?[=:][ \t]?["']?([0-9a-f]{8}:[0-9a-f]{8})"""),
    Format("nuget-key", "oy2", r"oy2[a-z0-9]{43}"),
    Format("artifactory-key", "AKCp", r"AKCp[A-Za-z0-9]{60,80}"),
    Format("artifactory-token", "cmVmdGtu", r"cmVmdGtu[A-Za-z0-9]{50,64}"),
    # Chat, mail, phone.
    Format("slack-token", "xox", r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,300}"),
    Format("slack-app-token", "xapp-", r"xapp-\d-[A-Za-z0-9-]{20,300}"),
    Format("slack-webhook", "hooks.slack.com/",
           r"hooks\.slack\.com/(?:services|workflows|triggers)/([\w/+-]{20,120})"),
    Format("discord-webhook", "discord.com/api/ discordapp.com/api/",
           r"discord(?:app)?\.com/api/webhooks/\d{15,22}/([\w-]{50,100})"),
    Format("discord-token", "MT Mj Mz ND NT Nj Nz OD OT",
           r"[MNO][\w-]{22,28}\.[\w-]{6}\.[\w-]{27,40}(?![\w-])"),
    Format("teams-webhook", "webhook.office.com/",
           r"webhook\.office\.com/webhookb2/[\w@-]{73}/IncomingWebhook/([\w/-]{64,150})"),
    Format("telegram-token", ":AA", r"(?<=\d{8}:)AA[\w-]{32,35}", lead=-1),
    Format("twilio-key", "SK", r"SK[0-9a-f]{32}"),
    Format("sendgrid-key", "SG.", r"SG\.[\w-]{16,32}\.[\w-]{32,64}"),
    Format("mailgun-key", "key-", r"key-[0-9a-f]{32}"),
    Format("mailchimp-key", "-us", r"[0-9a-f]{32}-us\d{1,2}", lead=32),
    Format("brevo-key", "xkeysib- xsmtpsib-", r"x(?:key|smtp)sib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    Format("resend-key", "re_", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}"),
    # Payment and trade.
    Format("stripe-key", "k_live_ k_test_ k_prod_",
           r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,247}", lead=1),
    Format("stripe-webhook-secret", "whsec_", r"whsec_[A-Za-z0-9+/]{24,90}={0,2}"),
    Format("shopify-token", "shpat_ shpca_ shppa_ shpss_ shpua_",
           r"shp(?:at|ca|pa|ss|ua)_[0-9a-fA-F]{32,64}"),
    Format("braintree-token", "access_token$",
           r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}"),
    Format("duffel-token", "duffel_", r"duffel_(?:test|live)_[\w=-]{43}"),
    Format("easypost-key", "EZAK EZTK", r"EZ[AT]K[A-Za-z0-9]{54}"),
    Format("flutterwave-key", "FLW", r"FLW(?:SECK|PUBK)(?:_TEST)?-[0-9a-f]{12,32}-X"),
    Format("maxmind-key", "_mmk", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk", lead=36),
    Format("settlemint-token", "sm_", r"sm_(?:aat|pat|sat)_[A-Za-z0-9]{16}"),
    Format("shippo-token", "shippo_", r"shippo_(?:live|test)_[0-9a-f]{40}"),
    Format("square-token", "sq0", r"sq0[a-z]{3}-[\w-]{22,50}"),
    Format("square-access-token", "EAAA", r"EAAA[A-Za-z0-9_-]{60}(?![\w-])"),
    Format("plaid-token", "access-", r"access-(?:sandbox|development|production)-[0-9a-f-]{36}"),
    # Models.
    Format("anthropic-key", "sk-ant-", r"sk-ant-[\w-]{20,300}"),
    Format("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-None- sk-or-v",
           r"sk-(?:proj|svcacct|admin|None|or-v\d)-[\w-]{20,300}"),
    Format("openai-key", "sk-", r"sk-[A-Za-z0-9]{32,100}"),
    Format("huggingface-token", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{30,64}"),
    Format("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{40,64}"),
    Format("xai-key", "xai-", r"xai-[A-Za-z0-9]{60,100}"),
    Format("perplexity-key", "pplx-", r"pplx-[A-Za-z0-9]{40,64}"),
    Format("replicate-token", "r8_", r"r8_[A-Za-z0-9]{37,40}"),
    Format("elevenlabs-key", "sk_", r"sk_[0-9a-f]{48}"),
    Format("pinecone-key", "pcsk_", r"pcsk_[A-Za-z0-9]{5,6}_[A-Za-z0-9]{60,66}"),
    Format("tavily-key", "tvly-", r"tvly-(?:dev-|prod-)?[\w-]{32,64}"),
    Format("langsmith-key", "lsv2_", r"lsv2_[ps][tk]_[0-9a-f]{32}_[0-9a-f]{10}"),
    # Work and observation.
    Format("linear-key", "lin_api_ lin_oauth_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,64}"),
    Format("notion-token", "ntn_", r"ntn_[A-Za-z0-9]{40,60}"),
    Format("notion-token", "secret_", r"secret_[A-Za-z0-9]{43}"),
    Format("figma-token", "figd_", r"figd_[\w-]{36,64}"),
    Format("airtable-token", "pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    Format("postman-key", "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    Format("sentry-token", "sntrys_ sntryu_", r"sntry(?:s_[\w+/=-]{60,400}|u_[0-9a-f]{64})"),
    Format("grafana-token", "glsa_ glc_",
           r"gl(?:sa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}|c_[A-Za-z0-9+/]{32,400}={0,2})"),
    Format("newrelic-key", "NRAK- NRII- NRAA-", r"NR(?:AK|II|AA)-[A-Za-z0-9_-]{27,40}"),
    Format("newrelic-key", "NRJS- NRRA- NRIQ-", r"NR(?:JS-[0-9a-f]{19}|(?:RA|IQ)-[\w-]{32,42})"),
    Format("adafruit-key", "aio_", r"aio_[A-Za-z0-9]{28}"),
    Format("adobe-secret", "p8e-", r"p8e-[A-Za-z0-9]{32}"),
    Format("contentful-token", "CFPAT-", r"CFPAT-[\w-]{43}"),
    Format("dropbox-token", "sl.", r"sl\.(?:u\.)?[\w-]{100,1400}"),
    Format("dropbox-token", "AAAAAAAAAA", r"[a-z0-9]{11}AAAAAAAAAA[\w=-]{43}", lead=11),
    Format("facebook-token", "EAA", r"EAA[A-Z][A-Za-z0-9]{90,300}"),
    Format("frameio-token", "fio-u-", r"fio-u-[\w=-]{64}"),
    Format("hubspot-token", "pat-", r"pat-(?:na|eu)\d-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    Format("intra-token", "s-s4t2", r"s-s4t2(?:ud|af)-[0-9a-f]{64}"),
    Format("launchdarkly-key", "sdk- api- mob-",
           r"(?:sdk|api|mob)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    Format("mapbox-token", "sk.eyJ", r"sk\.eyJ[\w-]{30,300}\.[\w-]{20,24}"),
    Format("twitter-token", "AAAAAAAAAAAAAAAAAAAAA", r"A{21}[A-Za-z0-9%]{70,110}"),
    Format("typeform-token", "tfp_", r"tfp_[\w.=-]{40,60}"),
    Format("dynatrace-token", "dt0", r"dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    # Anybody's.
    Format("jwt", "eyJ", r"eyJ[\w-]{10,600}\.[\w-]{8,8192}(?:\.[\w-]{0,2048}){1,3}"),
    Format("age-secret-key", "AGE-SECRET-KEY-1",
           r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
)
# fmt: on
_ANCHORED = [(anchor, format_) for format_ in FORMATS for anchor in format_.anchors.split()]

# A value may follow an escaped line end (`\nghp_…`) or a percent-encoded sign (`%3Dghp_…`).
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
_STOP = r"(?![A-Za-z0-9])"


def find(page: Page) -> Iterator[SecretSpan]:
    # Searching text takes a tenth of the time of searching bytes.
    long = page.long.decode("ascii")
    for anchor, format_ in _ANCHORED if long else ():
        if anchor in long:
            yield from _find_format(page, format_, page.find_long(anchor.encode()))
            if format_.rule == "aws-access-key":
                yield from _find_aws_secrets(page, page.find_long(anchor.encode()))
    yield from _find_private_keys(page)
    yield from _find_url_passwords(page)


def _find_format(page: Page, format_: Format, places: Iterable[int]) -> Iterator[SecretSpan]:
    rule, _, pattern, lead = format_
    match = re.compile(_START + pattern + _STOP, re.ASCII).match
    done = 0
    for at in places:
        if at >= max(lead, done) and (m := match(page.text, at - lead)):
            start, end = m.span(m.lastindex or 0)
            value = page.text[start:end]
            if is_varied(value) and "EXAMPLE" not in value:
                yield SecretSpan(start, end, rule, RANK)
            done = m.end()


def _find_aws_secrets(page: Page, key_ids: Iterable[int]) -> Iterator[SecretSpan]:
    """Find secrets without a name, beside their key id."""
    secret = re.compile(_AWS_SECRET)
    done = 0
    for at in key_ids:
        for m in secret.finditer(page.text, max(done, at - _BESIDE), at + _BESIDE):
            if is_random(m[0]) and not re.fullmatch("[0-9a-f]+", m[0]):
                yield SecretSpan(*m.span(), "aws-secret-key", RANK)
            done = m.end()


_BESIDE = 200
_AWS_SECRET = r"(?<![\w+/=.-])[A-Za-z0-9+/]{40}(?![\w+/=-])"


def _find_private_keys(page: Page) -> Iterator[SecretSpan]:
    """Find PEM blocks, also truncated ones, and ones with escaped line ends.

    Programs also mention keys: `"-----BEGIN PRIVATE KEY-----" in text`. So there is a key only if
    something that could be one follows.
    """
    text = page.text
    at = page.raw.find(b"-----BEGIN")
    while at >= 0:
        end = at + 10
        if begin := re.compile(_BEGIN).match(text, at):
            end = begin.end()
            stop = text.find("-----END ", end, end + _LONGEST_KEY)
            if stop >= 0 and text.find("-----BEGIN", end, stop) < 0:
                foot = re.compile(_END).match(text, stop)
                body_end, key_end = stop, foot.end() if foot else stop
            elif body := re.compile(_CUT_SHORT).match(text, end):
                body_end = key_end = body.end()
            else:
                body_end = key_end = end
            if _holds_key(text, end, body_end):
                yield SecretSpan(at, key_end, "private-key", RANK)
                end = key_end
        at = page.raw.find(b"-----BEGIN", end)


_LONGEST_KEY = 20_000
_BEGIN = r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_END = r"-----END [A-Z0-9 ]{0,40}-----"
# What can be between the lines of a key: in a file, a string of a program, a quotation, a diff.
_BETWEEN = r"""(?>(?:\\+[nrt]|[\s"'+,>|#*-])*)"""
_CUT_SHORT = (
    rf"(?>(?:{_BETWEEN}(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): [^\n\\]{{0,100}}"
    rf"|[A-Za-z0-9+/=]{{16,}}+))+)(?:{_BETWEEN}[A-Za-z0-9+/=]{{1,15}}+(?=\s*+(?:\Z|[\"'\\])))?"
)


def _holds_key(text: str, start: int, end: int) -> bool:
    return any(
        wordiness(m[0]) < 0 and is_varied(m[0])
        for m in re.compile(r"[A-Za-z0-9+/=]{32,}").finditer(text, start, end)
    )


def _find_url_passwords(page: Page) -> Iterator[SecretSpan]:
    for at in page.keywords[b"://"]:
        if m := re.compile(_URL_PASSWORD).match(page.text, at):
            user, password = m.groups()
            if password != user and len(password) > 2 and not is_placeholder(password):
                yield SecretSpan(*m.span(2), "url-password", RANK)


_URL_PASSWORD = r"""://([^\s:/?#@"'`<>\\]{0,64}):([^\s/?#"'`<>\\]{1,128})@(?=[\w.\[%$-])"""
