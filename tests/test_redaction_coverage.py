"""How much redaction catches of secrets that were generated without knowledge of its rules.

`python -m bench redaction` prints the same figures over more samples, and the speed.
"""

import base64
import json
import os
import random
import sysconfig
import time
import zlib
from collections import Counter
from collections.abc import Iterator

import pytest

from bench import secret_passwords, secret_values
from bench.secret_encodings import ENCODINGS, PLAIN, Encoding, is_left
from bench.secret_values import FORMATS, Sample
from ctx.redaction import redact, texts_without_secrets

SEED = 4711
PIECE, PASSWORD_PIECE = 8, 5


def share_caught(samples: list[Sample], encoding: Encoding = PLAIN, piece: int = PIECE) -> float:
    rng = random.Random(SEED)
    texts = [(sample.secret, encoding.write(sample, rng)) for sample in samples]
    missed = sum(is_left(secret, encoding, redact(text).text, piece) for secret, text in texts)
    return 1 - missed / len(samples)


def format_samples() -> list[Sample]:
    rng = random.Random(SEED)
    return [secret_values.sample(form, rng) for form in FORMATS for _ in range(2)]


def test_formats_are_caught() -> None:
    assert len(FORMATS) >= 86
    assert share_caught(format_samples()) >= 0.98


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda encoding: encoding.name)
def test_encoded_secrets_are_caught(encoding: Encoding) -> None:
    assert share_caught(format_samples()[::2], encoding) >= 0.90


def test_passwords_of_people_are_caught() -> None:
    assert len(secret_passwords.FORMS) >= 29
    assert len(secret_passwords.VALUES) >= 17
    samples = [sample for _, sample in secret_passwords.samples()]
    assert share_caught(samples, piece=PASSWORD_PIECE) >= 0.85


def test_a_search_of_many_texts_finds_what_a_search_of_each_finds() -> None:
    rng = random.Random(SEED)
    samples = [*format_samples(), *(sample for _, sample in secret_passwords.samples())]
    encodings = [PLAIN, *ENCODINGS]
    missed = []
    for number, sample in enumerate(rng.sample(samples, 250)):
        text = encodings[number % len(encodings)].write(sample, rng)
        before, after = rng.choices(NEIGHBOURS, k=3), rng.choices(NEIGHBOURS, k=3)
        clean = texts_without_secrets([*before, text, *after])
        assert clean.issuperset((*before, *after))
        if redact(text).findings and text in clean:
            missed.append(text)
    assert missed == []


NEIGHBOURS = (
    "The API speaks OAuth 2.0.",
    "A line of a terminal, wider than all others in this file: " + "words and words " * 12,
    'He wrote \\"fix: it reads a = b twice\\"\\nand left.',
    "https://example.org/search?q=a%20b&page=2",
    "[client]\nport = 3306",
    "```",
)


def test_no_form_of_a_password_is_unknown() -> None:
    caught = Counter[str]()
    for form, sample in secret_passwords.samples():
        caught[form] += not is_left(sample.secret, PLAIN, redact(sample.text).text, PASSWORD_PIECE)
    assert [form for form in secret_passwords.FORMS if not caught[form]] == []


def test_secrets_without_a_name_are_caught() -> None:
    rng = random.Random(SEED)
    assert share_caught([secret_values.aws_pair(rng) for _ in range(50)]) >= 0.98
    assert share_caught([secret_values.cookie(rng) for _ in range(50)]) >= 0.95


@pytest.mark.parametrize("text", secret_passwords.BENIGN)
def test_lines_about_passwords_are_left_alone(text: str) -> None:
    assert redact(text) == (text, ())


def ordinary_texts() -> Iterator[str]:
    """Sources, wheel RECORD files and dpkg's files, in a fixed order, a bounded number of each."""
    roots = (
        (sysconfig.get_path("stdlib"), ".py", 250),
        (sysconfig.get_path("purelib"), ".py", 250),
        (sysconfig.get_path("purelib"), "RECORD", 20),
        ("/var/lib/dpkg/info", ".md5sums", 100),
        ("/var/lib/dpkg/info", ".postinst", 50),
        ("/var/lib/dpkg/info", ".templates", 20),
    )
    for root, ending, most in roots:
        paths = []
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(set(folders) - {"site-packages", "test", "tests"})
            paths += [os.path.join(folder, name) for name in files if name.endswith(ending)]
        paths.sort()
        random.Random(SEED).shuffle(paths)
        for path in paths[:most]:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                yield file.read(200_000)


def test_ordinary_text_gives_few_false_alarms() -> None:
    lines = alarms = 0
    for text in ordinary_texts():
        lines += text.count("\n") + 1
        alarms += len(redact(text).findings)
    assert lines > 10_000
    assert alarms <= 1 + lines / 10_000


CI_LOG = """\
2026-05-01T09:27:57.8718342Z Requested labels: ubuntu-latest
2026-05-01T09:28:05.8720262Z ##[group]GITHUB_TOKEN Permissions
2026-05-01T09:28:05.8724695Z Secret source: Actions
2026-05-01T09:28:06.2491288Z Download action repository 'actions/checkout@v4' (SHA:{sha})
2026-05-01T09:28:07.1234567Z   token: ***
2026-05-01T09:28:07.1234567Z   persist-credentials: true
2026-05-01T09:28:08.1234567Z [command]/usr/bin/git fetch --depth=1 origin +{sha}:refs/x
2026-05-01T09:28:08.1234567Z http.https://github.com/.extraheader AUTHORIZATION: basic ***
2026-05-01T09:28:09.1234567Z HEAD is now at {sha} Rotate the password of the test user
2026-05-01T09:28:10.1234567Z Collecting passlib==1.7.4 --hash=sha256:{digest}
2026-05-01T09:28:10.1234567Z docker run -p 8080:80 -e CI=true -u 1001:1001 node:20 npm ci
2026-05-01T09:28:11.1234567Z Digest: sha256:{digest}
2026-05-01T09:28:12.1234567Z tests/test_login.py::test_password_is_required PASSED [ 12%]
2026-05-01T09:28:13.1234567Z Cache key: Linux-node-{digest}
2026-05-01T09:28:13.1234567Z Cache restored from key: setup-python-Linux-x64-22.04-{sha}
2026-05-01T09:28:14.1234567Z ✓ built in 3.2s (id {uuid})
"""


def test_logs_of_ci_give_no_false_alarm() -> None:
    rng = random.Random(SEED)
    for _ in range(50):
        digest = rng.randbytes(32).hex()
        text = CI_LOG.format(sha=rng.randbytes(20).hex(), digest=digest, uuid=digest[:32])
        assert redact(text) == (text, ())


# --- decoding -------------------------------------------------------------------

TOKEN = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
LINE, MARK = f"GITHUB_TOKEN={TOKEN}", "[redacted:github-token]"


def base32(text: str) -> str:
    return base64.b32encode(text.encode()).decode()


def compressed(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode())).decode()


def dump(text: str) -> str:
    """What `xxd` prints."""
    lines = (text[at : at + 16] for at in range(0, len(text), 16))
    return "\n".join(
        f"{16 * number:08x}: {line.encode().hex(' ', -2):<39}  {line}"
        for number, line in enumerate(lines)
    )


def test_the_line_after_a_secret_is_kept() -> None:
    for after in ("DEBUG=1", "y", TOKEN, "export X1Y2Z3=4", "#3A5B7C9D"):
        redacted = redact(f"GITHUB_TOKEN={TOKEN}\n{after}\n").text
        rest = "[redacted:github-token]" if after == TOKEN else after
        assert redacted == f"GITHUB_TOKEN=[redacted:github-token]\n{rest}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"a%20{TOKEN[:9]}%3{TOKEN[9:]}", None),
        (f"%22{TOKEN}%22", "%22[redacted:github-token]%22"),
        (TOKEN.replace("_", "%5F"), "[redacted:github-token]"),
        (TOKEN.replace("_", "&#95;"), "[redacted:github-token]"),
        (TOKEN.replace("_", "\\u005f"), "[redacted:github-token]"),
        (f"x {TOKEN[:20]}\u200b{TOKEN[20:]} y", "x [redacted:github-token] y"),
        (f"curl {TOKEN[:20]}\\\n{TOKEN[20:]} \\\n -v", "curl [redacted:github-token] \\\n -v"),
        (json.dumps(json.dumps(f"x {TOKEN}\ny")), '"\\"x [redacted:github-token]\\\\ny\\""'),
        ("a caption &lt;b&gt; &amp; more", None),
        (base32(f"#{LINE}"), base32(f"#{LINE}")[:16] + MARK + "="),
        (compressed(LINE), MARK + "=="),
        (base64.b64encode(LINE.encode("utf-16-le")).decode() + "\n", None),
        (LINE.encode("utf-16-le").decode(), None),
        ("".join(rf"\x{ord(c):02x}" for c in f"k {TOKEN}"), rf"\x6b\x20{MARK}"),
        ("".join(rf"\{ord(c):03o}" for c in f"k {TOKEN}"), rf"\153\040{MARK}"),
        (LINE.encode().hex(" "), f"{LINE[:13].encode().hex(' ')} {MARK}"),
        (
            ", ".join(map(hex, LINE.encode())),
            f"{', '.join(map(hex, LINE[:13].encode()))}, 0x{MARK}",
        ),
        (str([*LINE.encode()]), f"{str([*LINE[:13].encode()])[:-1]}, {MARK}]"),
        (dump(LINE), f"00000000: 4749 5448 5542 5f54 4f4b 454e {MARK}"),
        (f"+{TOKEN[:20]}\n+{TOKEN[20:]}", f"+{MARK}"),
        (f"10:01:02 app: {TOKEN[:20]}\n10:01:03 app: {TOKEN[20:]}", f"10:01:02 app: {MARK}"),
        (f"key: >-\n  {TOKEN[:25]}\n  {TOKEN[25:]}\n", f"key: >-\n  {MARK}\n"),
    ],
)
def test_the_encoded_secret_is_replaced_where_it_is(before: str, after: str | None) -> None:
    redacted = redact(before)
    if after is not None:
        assert redacted.text == after
    rebuilt, at = "", 0
    for finding in redacted.findings:
        rebuilt += before[at : finding.start] + f"[redacted:{finding.rule}]"
        at = finding.end
    assert rebuilt + before[at:] == redacted.text
    assert redact(redacted.text) == (redacted.text, ())


@pytest.mark.parametrize(
    "unit",
    [
        "\\", "\\n", "\\\n", "\\u0041", "%41", "%", "&quot;", "&#65;", "&", "\u200b", "x\u200bA1",
        "\\x41", "=41", "41 ", "0x41, ", "101, ", "\x1b[0m", "A\0", '"A1B2C3"\n', "> A1B2C3d4\n",
        "00000000: 4142 4344\n", "0000", "4142", "H4sIAAAA", compressed("A" * 10**6),
        "eyJh", "QUFB", "UVVGQlFVRkI", "aB3\n", "aB3+/xY9" * 5 + "\n", " -p", "mysql -p",
        "sshpass -p ", "curl -u a:", "echo 'x' | sudo -S ", "htpasswd -b a b ", "identified by '",
        ":5432:", ":*:", "*:*:*:a:", "login a password ", "cookie: a=", "cookie=", "; a=b",
        "password is ", "password for a ", "the password for ", "credentials: a / ",
        "with password ",
        "kennwort ist ", "mot de passe est ", "\u043f\u0430\u0440\u043e\u043b\u044c: ", "密码是",
        "passwordA", 'password" {default = "', "[a]\npassword = b\n", "AKIA" + "A2B3C4D5E6F7G2H3 ",
        "aaaaaaaaaaaAAAAAAAAAA", "A" * 22, "MTA5.", "access_token$", "a", "=", "://", "://a:b",
        "eyJhbGciOiJIUzI1NiJ9.", "-----BEGIN", "-----BEGIN PRIV" + "ATE KEY-----", "token=",
        "-----BEGIN PRIV" + "ATE KEY-----+", "password:", 'secret="', "api key is ", "curl -u ",
        "Authorization: ", "[redacted:password]", "gh" + "p_", "token=A1b2C3d4E5f6G7h8 ",
        "aB3+/x \"'",
    ],
)  # fmt: skip
def test_hostile_texts_cost_in_proportion_to_their_length(unit: str) -> None:
    """Four times the text takes about four times as long; twelve times would be too much."""
    assert _is_in_proportion(unit, 25_000) or _is_in_proportion(unit, 25_000)


def _is_in_proportion(unit: str, size: int) -> bool:
    seconds = _seconds(unit, size)
    if seconds > 0.1:
        # This is slow enough for a comparison with a shorter text.
        return seconds < 12 * _seconds(unit, size // 4)
    return _seconds(unit, size * 4) < 12 * max(seconds, 0.02)


def _seconds(unit: str, size: int) -> float:
    text = (unit * (size // len(unit) + 1))[:size]
    start = time.process_time()
    redact(text)
    return time.process_time() - start
