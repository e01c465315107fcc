import base64
import hashlib
import json
import random
import string
import uuid
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.secret_values import private_key
from ctx import redaction
from tests import effort, secrets_generator

ALNUM = string.ascii_letters + string.digits
RNG = random.Random(20240517)


def key(prefix: str, length: int, alphabet: str = ALNUM) -> str:
    return prefix + "".join(RNG.choices(alphabet, k=length))


def check(before: str, after: str) -> None:
    """Redact `before` and compare the whole text."""
    redacted = redaction.redact(before)
    assert redacted.text == after
    check_invariants(before, redacted)


def check_invariants(text: str, redacted: redaction.RedactedText) -> None:
    rebuilt, at = [], 0
    for finding in redacted.findings:
        assert at <= finding.start < finding.end <= len(text)
        assert finding.line == text.count("\n", 0, finding.start) + 1
        rebuilt += [text[at : finding.start], f"[redacted:{finding.rule}]"]
        at = finding.end
    assert "".join(rebuilt) + text[at:] == redacted.text
    assert redaction.redact(redacted.text) == (redacted.text, ())


def leaks(secret: str, text: str) -> bool:
    """Whether twelve consecutive characters of the secret are left."""
    for line in secret.replace("\\n", "\n").split("\n"):
        line = line.strip(' "')
        if "-----" in line or not line:
            continue
        width = min(12, len(line))
        if any(line[i : i + width] in text for i in range(len(line) - width + 1)):
            return True
    return False


# --- what is found ------------------------------------------------------------


def test_secrets_of_documented_formats_are_found() -> None:
    made, missed = Counter[str](), Counter[str]()
    for sample in secrets_generator.samples(seed=97, per_kind=30):
        assert sample.secret in sample.text
        made[sample.kind] += 1
        missed[sample.kind] += leaks(sample.secret, redaction.redact(sample.text).text)
    assert len(made) >= 190
    assert missed.total() <= 0.001 * made.total()
    assert {kind for kind in made if missed[kind] > 2} == set()


def test_formats_of_the_file_are_found_where_a_word_begins() -> None:
    for secret, rule in (
        (key("phx_", 44), "posthog-key"),
        (key("", 42) + "+ACR" + key("", 6), "azure-registry-password"),
        (key("$2b$12$", 53), "password-hash"),
        (key("", 22) + "tt-123456-" + key("", 20), "storyblok-token"),
        (key("tkn.v1_", 71) + "=", "teamwork-token"),
    ):
        for before in ("", "x = '", "a\\n", "?t%3D"):
            check(f"{before}{secret}'", f"{before}[redacted:{rule}]'")


def test_passwords_in_the_forms_that_people_write() -> None:
    found = "[redacted:password]"
    for text in (
        "Change the password from {} to {}.",
        "I changed it from {} to {}, the root password.",
        "Use {} as the database password",
        "log in as bob and password {}",
        "Password for bob:\n{}\n",
        "name,password\nbob,{}\nann,{}\n",
        "| user | password |\n|---|---|\n| bob | {} |\n",
        "Login: bob / {}",
        "creds bob:{}",
        "bob:{}@tcp(127.0.0.1:3306)/db",
        "get(url, auth=('bob', '{}'))",
        "pw {}",
        "the wifi password here is {} if you need it",
        "just type {} when it asks for the password",
        "the password was {} and is now {}",
        "# TODO remove the hardcoded password {}",
        "[sudo] password for bob: \n{}\nSorry, try again.",
        "Password for 'https://bob@nas.home': {}",
        'expect "assword:"\nsend "{}\\r"',
        "INSERT INTO users (name, password) VALUES ('kim', '{}');",
        "session.auth = ('ann', '{}')",
        "bcrypt.hashSync('{}', 10)",
        "evil-winrm -i nas.home -u deploy -p '{}'",
        "ssh-keygen -p -P {} -N {} -f id",
        "lftp -u kim,{} sftp://nas.home",
        "winexe -U bob%{} //nas cmd",
        "kinit bob <<< {}",
        "rabbitmqctl add_user bob {}",
        "sqlplus bob/{}@nas:1521/XE",
    ):
        count = text.count("{}")
        check(text.format(*["Sommer-2024!", "T1ger#lily"][:count]), text.format(*[found] * count))
        check(text.format(*["k1rsch3nB4um", "Kirsche4417"][:count]), text.format(*[found] * count))
    for text in (
        "The password changed from md5 to bcrypt.",
        "change the password column from varchar(20) to varchar(64)",
        "use utf8mb4 as charset, not a password",
        "name,password\nbob,missing\n",
        "id,token,kind\n1,2945500b7f,a\n",
        "get(url, auth=(user, 'password'))",
        "Password:\n  type: string\n",
        "8 / 2 and user / group",
        "Normalize the password according to rfc7613, with PBKDF2 and sha512.",
        "cargo test -p ctx-core-api, pass merge-strategy-specific options",
        "npm:string-width-cjs@4.2.0",
    ):
        check(text, text)


def test_values_beside_the_name_of_their_service_are_found() -> None:
    secret = key("", 40, "abcdef0123456789")
    found = "[redacted:service-secret]"
    for text in ("HELP_SCOUT={}", "cloudsmith: {}", 'wandb.login("{}")', "Use {} for todoist."):
        check(text.format(secret), text.format(found))
    check(f"[meraki]\nkey = {secret}", f"[meraki]\nkey = {found}")
    for text in (
        "commit {}",
        "cloudsmith: {}0",
        "https://host/todoist/blob/{}/a.py",
        "todoist\n\n{}",
        f"todoist {'x' * 64} {{}}",
    ):
        check(text.format(secret), text.format(secret))


def test_only_the_value_of_an_assignment_is_redacted() -> None:
    secret = key("", 24)
    check(f"export API_KEY={secret}\n", "export API_KEY=[redacted:named-secret]\n")
    check(f'token: str = "{secret}"', 'token: str = "[redacted:named-secret]"')
    check(f'{{"apiKey": "{secret}"}}', '{"apiKey": "[redacted:named-secret]"}')
    check("DB_PASSWORD=hunter22\r\nX=1", "DB_PASSWORD=[redacted:password]\r\nX=1")
    check("- password: Summer2024!", "- password: [redacted:password]")
    for name in ("ROOT_PW", "wifiPsk", "storepass"):
        check(f"{name}={secret}", f"{name}=[redacted:password]")
    check(f'VAULT_UNSEAL_KEY: "{secret}"', 'VAULT_UNSEAL_KEY: "[redacted:named-secret]"')
    check("<password>Summer2024!</password>", "<password>[redacted:password]</password>")
    check("mysql --password Summer2024! db", "mysql --password [redacted:password] db")
    check(
        "  - name: DB_PASSWORD\n    value: Summer2024!",
        "  - name: DB_PASSWORD\n    value: [redacted:password]",
    )
    check("Server=db;Password=Summer;2024;Db=x", "Server=db;Password=[redacted:password];Db=x")


@pytest.mark.parametrize(
    "name", ["appSecret", "X_API_TOKEN", "bind-cred", "signing_key", "DB_PW_OLD"]
)
def test_chosen_secrets_are_found_in_every_form_of_an_assignment(name: str) -> None:
    rule = "password" if name == "DB_PW_OLD" else "named-secret"
    for form in (
        *("{n}={v}", "{n} = '{v}'", "{n}: {v}", "{n} := {v}", "{n} -> {v}", "{n},{v}", "{n}\t{v}"),
        *("ENV {n} {v}", "- **{n}**: `{v}`", "| {n} | {v} |", "--{n} {v}", "${{{n}:-{v}}}"),
        *("const {n}: &str = '{v}'", "var {n} string = '{v}'", "static char {n}[] = '{v}'"),
        *(
            "set_{n}('{v}')",
            "put('{n}', '{v}')",
            "VALUES (1, '{n}', '{v}')",
            'std::string {n}{{"{v}"}}',
            "string {n} {{ get; set; }} = '{v}'",
            "SET value = '{v}' WHERE key = '{n}'",
        ),
        *('{{"name": "{n}", "value": "{v}"}}', "gh secret set {n} --body {v}"),
        *("<a key='{n}'>{v}</a>", "<ns:{n} a='b'>{v}</ns:{n}>", "<td>{n}</td><td>{v}</td>"),
    ):
        for value in ("Kirsche4417", "bold-comet-981"):
            before, after = (form.format(n=name, v=v) for v in (value, f"[redacted:{rule}]"))
            check(before, after)


def test_secrets_below_their_name_are_found() -> None:
    for text, value in (
        ("id,accessToken,at\n1,{},2025-01-09\n", "aQu*acz6y5sja0DpWF"),
        ("|| User || Password ||\n| bob | {} |", "tiger-jacket-cobalt"),
        ("USER   PASSWORD    HOST\nbob    {}   nas\n", "Monkey.garden93"),
        ("id | passwd\n---+------\n 7 | {}\n", "canyon-comet-falcon"),
        ("name\tpin\nbob\t{}\n", "4417"),
    ):
        assert value not in redaction.redact(text.format(value)).text


def test_only_values_of_its_kind_belong_to_a_name() -> None:
    words = "tiger walnut meadow canyon monkey violet velvet marble dragon lantern thunder otter"
    for name, value in (
        ("card_pin", "4417"),
        ("otpSeed", "WKLJXUECLOXQGLZW"),
        ("wallet_mnemonic", words),
        ("seed_phrase", words),
        ("PAYMENT_KEY", "Kirsche4417"),
        ("pinCode", "4417"),
        ("backup_codes", "j3pgk-rxl82"),
        ("PASSWORD_SALT", "jFW8v8m4CQvB"),
        ("app_pepper", "jFW8v8m4CQvB"),
        ("csrf_secret", "gf083b53d747"),
        ("GITHUB_PAT", "TcWiehPkczLpT"),
        ("ERLANG_COOKIE", "K4kbqgENJRSa"),
    ):
        check(f'{name} = "{value}"', f'{name} = "[redacted:named-secret]"')
    for name in ("smtppass", "proxy_pass_word", "snmp_community", "redis_auth"):
        check(f"{name}='Kirsche4417'", f"{name}='[redacted:password]'")
    check(f"MNEMONIC={words}\n", "MNEMONIC=[redacted:named-secret]\n")
    for text in (
        *('token_color = "#a1b2c3"', 'auth_psk = "Auth-PSK"', 'KEY_SPEC_TOKEN = "RSA_2048"'),
        *('token = "secret_key_123"', 'create_token("GTE0PRE")', 'led_pin = "13"', "spin: 4417"),
        *('"pass": "Предложение"', 'bypass = "Kirsche4417"', 'csrf_token = "Kirsche4417"'),
        *('S3_KEY = "fs.s3.retry1"', 'cache_key = "user-123-feed"', '"pass": "要素は有効です1"'),
        *('x["token"] = next2', "token: Ed448Key | X448Key", 'token_count = "Kirsche4417"'),
    ):
        check(text, text)


def test_only_the_password_of_a_connection_string_is_redacted() -> None:
    check(
        "postgres://shop:" + "s3cr9t-x@db:5432/shop?sslmode=require",
        "postgres://shop:[redacted:url-password]@db:5432/shop?sslmode=require",
    )
    check("redis://:" + "kx92kd@cache/0", "redis://:[redacted:url-password]@cache/0")
    check("curl -u bob:" + "kx92kd https://x", "curl -u bob:[redacted:curl-password] https://x")


def test_only_the_token_of_a_header_is_redacted() -> None:
    token = key("", 30)
    check(
        f"Authorization: Bearer {token}\r\n", "Authorization: Bearer [redacted:authorization]\r\n"
    )
    basic = base64.b64encode(b"bob:kx92kd").decode()
    check(f"authorization: Basic {basic}", "authorization: Basic [redacted:authorization]")


def test_the_more_specific_rule_names_a_secret() -> None:
    token = key("gh" + "p_", 36)
    check(f"GITHUB_TOKEN={token}", "GITHUB_TOKEN=[redacted:github-token]")
    check(f"GITHUB_TOKEN=x9-{token}", "GITHUB_TOKEN=[redacted:github-token]")


def pem(label: str = "RSA PRIV" + "ATE KEY") -> str:
    return private_key(label, 12)(RNG)


def test_private_keys_are_redacted_completely() -> None:
    block = pem()
    check(f"a\n{block}\nb", "a\n[redacted:private-key]\nb")
    check(f"a\n{pem('PGP PRIV' + 'ATE KEY BLOCK')}\nb", "a\n[redacted:private-key]\nb")
    check(json.dumps({"private_key": block}), '{"private_key": "[redacted:private-key]"}')
    check(block[: len(block) // 2], "[redacted:private-key]")
    indented = block.replace("\n", "\n    ")
    check(f"key: |\n    {indented}\nport: 1", "key: |\n    [redacted:private-key]\nport: 1")


def test_text_joined_by_a_replacement_is_checked_again() -> None:
    far = key("", 20) + "1aB2"
    text = f"token {key('gh' + 'p_', 250)} and {far} and so on"
    check_invariants(text, redaction.redact(text))


def test_a_secret_inside_the_mark_of_a_redaction_is_found() -> None:
    token = key("gh" + "p_", 36)
    check(f"[redacted:{token}]", "[redacted:[redacted:github-token]]")
    check("[redacted:password]", "[redacted:password]")


# --- what is left alone ---------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "password = get_password()",
        'token = os.environ["TOKEN"]',
        "token = os.getenv('API_TOKEN', default=None)",
        "self.token = token",
        "self._password = config['password']",
        'api_key: str = ""',
        "def login(user: str, password: Optional[str] = None) -> Token:",
        "PASSWORD=changeme",
        "API_KEY=your-api-key-here",
        'api_key = "YOUR_API_KEY"',
        "TOKEN=<token>",
        "TOKEN=${TOKEN}",
        "TOKEN=$GITHUB_TOKEN",
        "token: {{ secret }}",
        "token: ${{ secrets.GITHUB_TOKEN }}",
        'headers = {"Authorization": f"Bearer {token}"}',
        "Authorization: Bearer <your token>",
        "Authorization: Bearer $TOKEN",
        "password: xxxxxxxx",
        "password: ********",
        "SECRET_KEY=xxxxxxxxxxxxxxxxxxxxxxxxxxxx1",
        'password = "%s" % value',
        "max_tokens = 4096",
        "token_count: 1234567",
        'tokenizer = AutoTokenizer.from_pretrained("gpt2-medium-345m")',
        "<input type='hidden' name='csrf_token' value='{{ csrf_token() }}'>",
        'csrf_token = "kJ8s7Hs9Kd82Ls92Ms83"',
        "secret_name: my-app-secret",
        "secretKeyRef:\n  name: db-credentials\n  key: password",
        'key = "primary_key_column"',
        'foreign_key = "users.id"',
        "password_hash = 'sha256$abc'",
        "from ctx.secrets.tokens import token_bytes",
        "password=self.password, token=self.session.token",
        "https://example.com/path?page=2#token",
        "postgres://user:password@localhost/db",
        "https://user:pass@example.com/",
        "mongodb://<user>:<password>@host/db",
        "redis://:${REDIS_PASSWORD}@cache:6379",
        "postgres://postgres:postgres@localhost:5432/postgres",
        "http://localhost:8080/users@example.com",
        "ssh://git@github.com:22/org/repo.git",
        "curl -u user:$PASSWORD https://example.com",
        'if line.startswith("-----BEGIN RSA PRIV' + 'ATE KEY-----"):\n    return parse(line)',
        "the token expired after 3600 seconds, see RFC 6750 section 2.1",
        "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbC123",
        "task-sk-something-very-long-with-many-words-in-it-indeed",
        "AK" + "IAIOSFODNN7EXAMPLE",
        "gh" + "p_" + "x" * 36,
        "nextToken: eyJsYXN0S2V5IjoiMTIzNDU2Nzg5MCJ9",
        "token IDs: 50256, 50257 (see `special_tokens_map.json`)",
        "auth: oauth2-proxy-v7.4.0",
        "pass 12 of 40: unit/test_login2.py::test_password_reset2",
        "  '--ftp-pass[specify FTP password]:password' \\\n  '--ftp-port[port]:port [21]' \\\n",
    ],
)
def test_ordinary_lines_are_left_alone(text: str) -> None:
    assert redaction.redact(text) == (text, ())


def test_a_value_with_padding_ends_at_its_line() -> None:
    line = "PrivateKey=EEGlnEPYJV//kbvvIqxKkQwOiS+UENyPncC4bF46ong=\nListenPort=51820"
    assert redaction.redact(line).text.endswith("]\nListenPort=51820")


def hashes() -> Iterator[str]:
    for _ in range(20):
        data = RNG.randbytes(40)
        for name in ("md5", "sha1", "sha256", "sha512", "blake2b", "blake2s"):
            digest = hashlib.new(name, data)
            yield f"{digest.hexdigest()}  archive.tar.gz"
            yield f'{name} = "{digest.hexdigest()}"'
            yield f"{name}-{base64.b64encode(digest.digest()).decode()}"
        sha1 = hashlib.sha1(data).hexdigest()
        yield f"commit {sha1}\nAuthor: Bob <bob@example.com>"
        yield f"index {sha1[:7]}..{sha1[7:14]} 100644"
        yield f"* {sha1[:9]} Rotate the token and the password ({sha1})"
        yield f"password_sha256: {hashlib.sha256(data).hexdigest()}"


def identifiers() -> Iterator[str]:
    for _ in range(50):
        value = uuid.UUID(bytes=RNG.randbytes(16), version=4)
        yield f"request_id={value}"
        yield f'{{"id": "{value}", "user": "{value.hex}"}}'
        yield f"session {key('01', 24, '0123456789ABCDEFGHJKMNPQRSTVWXYZ')} started"
        yield f"i-{value.hex[:17]} vpc-{value.hex[:8]}"
    for node in ("01M7TC1BVF5N", "01M7TC1954PW", "01M7TC1B7PWD", "01M7TC1SSPSK", "01M7TC18PW68"):
        yield f"- `>` fact {node} RELATES_TO fact 01M7TC1YV4PW\n- `#` fact {node}: +area:net"
        yield f"- `+` fact {node}: The admin password rotates weekly. ({node}0123456789ABCD)"


def lock_files() -> Iterator[str]:
    for name in ("jsonwebtoken", "@aws-sdk/credential-provider-env", "js-tokens", "passport"):
        sha512 = base64.b64encode(RNG.randbytes(64)).decode()
        sha256 = RNG.randbytes(32).hex()
        h1 = base64.b64encode(RNG.randbytes(32)).decode()
        url = f"https://registry.npmjs.org/{name}/-/{name.rsplit('/')[-1]}-9.0.2.tgz"
        path = f"{sha256[:2]}/{sha256[2:4]}/{sha256[4:]}/{name}-1.0.tar.gz"
        package_lock = {"version": "9.0.2", "resolved": url, "integrity": f"sha512-{sha512}"}
        yield json.dumps({f"node_modules/{name}": package_lock}, indent=2)
        yield f'{name}@^9.0.0:\n  version "9.0.2"\n  resolved "{url}#{sha256[:40]}"'
        yield f"{name}@^9.0.0:\n  integrity sha512-{sha512}\n  dependencies:\n    jws ^3.2.2"
        yield f"  /{name}@9.0.2:\n    resolution: {{integrity: sha512-{sha512}}}\n    dev: true"
        yield f'[[package]]\nname = "{name}"\nversion = "1.0.0"\nchecksum = "{sha256}"'
        yield f'files = [\n    {{file = "{name}-1.0.whl", hash = "sha256:{sha256}"}},\n]'
        yield f'sdist = {{ url = "https://files.test/{path}", hash = "sha256:{sha256}", size = 1 }}'
        yield f"github.com/x/{name} v3.2.2 h1:{h1}\ngithub.com/x/{name} v3.2.2/go.mod h1:{h1}"
        yield f"{name}==1.0 \\\n    --hash=sha256:{sha256} \\\n    --hash=sha256:{sha256[::-1]}"


def encoded_fixtures() -> Iterator[str]:
    for size in (30, 300, 3000):
        data = base64.b64encode(RNG.randbytes(size)).decode()
        yield f'<img alt="token" src="data:image/png;base64,{data}">'
        yield f"background: url(data:font/woff2;base64,{data}) format('woff2');"
        yield f'ICON = "{data}"'
        source_map = json.dumps(
            {"version": 3, "sources": ["token.ts"], "mappings": ";AAAA,KAAK,CAC" * size}
        )
        yield source_map
        encoded = base64.b64encode(source_map.encode()).decode()
        yield f"//# sourceMappingURL=data:application/json;charset=utf-8;base64,{encoded}"
    yield (
        "!function(e,t){var n=e.token,r=t.password;function o(e){return n[e]||r(e)}e.exports={"
        "auth:o,getToken:function(){return this.t0k3n},secret:!0,key:[1,2].map(String),"
        "apiKey:void 0}}(a1,b2);"
    )


@pytest.mark.parametrize("samples", [hashes, identifiers, lock_files, encoded_fixtures])
def test_hashes_and_identifiers_are_left_alone(samples: object) -> None:
    assert callable(samples)
    for text in samples():
        assert redaction.redact(text) == (text, ())


# --- any text -------------------------------------------------------------------

FRAGMENTS = [
    "token", "password", "api_key", "secret", "=", ": ", '"', "'", "`", "\\", "\\n", "\n", "\r\n",
    " ", "\t", "\0", "://", "u:", "@host", "Bearer ", "Authorization: ", "Basic ", "--token ",
    "-----BEGIN PRIV" + "ATE KEY-----", "-----END PRIV" + "ATE KEY-----", "eyJ", ".", "é", "漢",
    "😀", "\udc80", "[redacted:password]", "[redacted:", "]", "gh" + "p_", "s" + "k-", "xo" + "xb-",
    "is ", "value: ", "export ", "curl -u ", "{", "}", "$", "%", "<", ">", "hunter22", "#",
    "Summer2024!", key("", 20), key("", 40), key("gh" + "p_", 36),
    key("eyJ", 20) + "." + key("eyJ", 30) + ".",
    base64.b64encode(RNG.randbytes(48)).decode(), RNG.randbytes(32).hex(), pem()[:200], "a" * 300,
]  # fmt: skip


@settings(max_examples=effort.times(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=8), max_size=25).map("".join))
def test_text_that_is_not_secret_is_kept(text: str) -> None:
    redacted = redaction.redact(text)
    check_invariants(text, redacted)
    assert all(a.end <= b.start for a, b in pairwise(redacted.findings))


@settings(max_examples=effort.times(100), deadline=None)
@given(st.text(st.characters(codec=None), max_size=200))
def test_any_text_can_be_redacted(text: str) -> None:
    check_invariants(text, redaction.redact(text))


def test_offsets_count_characters() -> None:
    token = key("gh" + "p_", 36)
    for before in ("", "é", "漢字 ", "😀\n", "\udc80\0", "\r\n" * 3):
        (finding,) = redaction.redact(f"{before}{token} 漢").findings
        assert finding.start == len(before)
        assert finding.end == len(before) + len(token)
