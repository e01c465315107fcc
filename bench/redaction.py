"""How much redaction catches, how often it is wrong, and how fast it is.

The secrets come from `secret_values`, `secret_encodings` and `secret_passwords`, the ordinary text
from what is installed here: Python sources, wheel RECORD files, dpkg's files, and the logs in the
folders that are named as arguments.

Run: python -m bench redaction [FOLDER OF LOGS …]
"""

import collections
import os
import random
import re
import statistics
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator

from bench import secret_passwords, secret_values
from bench.secret_encodings import ENCODINGS, PLAIN, Encoding, is_left
from bench.secret_values import FORMATS, Sample
from ctx import redaction

ROUNDS = 5
PIECE, PASSWORD_PIECE = 8, 5
"""How many characters in a row give a secret away."""


def main() -> None:
    rng = random.Random(23)
    print(f"caught ({len(FORMATS)} formats, {len(secret_passwords.FORMS)} forms of passwords)")
    missed = [*formats(rng), *encoded(rng), *passwords(), *unnamed(rng)]
    if "-v" in sys.argv:
        for name, count in collections.Counter(missed).most_common():
            print(f"  missed {count:3} x {name}")

    print("false alarms in 10,000 lines")
    false_alarms("lines about passwords", [(b, b) for b in secret_passwords.BENIGN])
    texts = installed_sources()
    false_alarms("Python sources", texts.items())
    false_alarms("RECORD files", read_all(site_packages(), lambda name: name == "RECORD"))
    false_alarms("dpkg", read_all(["/var/lib/dpkg"], bool))
    for folder in [name for name in sys.argv[1:] if name != "-v"]:
        false_alarms(folder, read_all([folder], bool))

    size = sum(map(len, texts.values()))
    redact = speed("redact", redaction.redact, texts, size)
    # The cost of any scan: a missing literal, searched by the C library, and by the
    # simplest pattern that has to look at every character.
    speed("floor: one str.find", lambda text: text.find("\0\0"), texts, size)
    scan = re.compile(r"[\0\1]{2}").search
    floor = speed("floor: one re.search", scan, texts, size)
    print(f"redact takes {floor / redact:.1f} times as long as one pass of a trivial pattern")


def formats(rng: random.Random) -> Iterator[str]:
    samples = [(form.name, secret_values.sample(form, rng)) for form in FORMATS for _ in range(5)]
    yield from caught("formats", samples, PLAIN, rng)


def encoded(rng: random.Random) -> Iterator[str]:
    samples = [(form.name, secret_values.sample(form, rng)) for form in FORMATS for _ in range(3)]
    for encoding in ENCODINGS:
        yield from caught(encoding.name, samples, encoding, rng)


def passwords() -> Iterator[str]:
    samples = list(secret_passwords.samples())
    yield from caught("human passwords", samples, PLAIN, random.Random(0), PASSWORD_PIECE)


def unnamed(rng: random.Random) -> Iterator[str]:
    pairs = [("aws pair", secret_values.aws_pair(rng)) for _ in range(100)]
    yield from caught("AWS secret beside its id", pairs, PLAIN, rng)
    cookies = [("cookie", secret_values.cookie(rng)) for _ in range(100)]
    yield from caught("cookies", cookies, PLAIN, rng)


def caught(
    name: str,
    samples: list[tuple[str, Sample]],
    encoding: Encoding,
    rng: random.Random,
    piece: int = PIECE,
) -> list[str]:
    """Print the share that is caught, and return the names of those that are missed."""
    missed = []
    for label, sample in samples:
        text = encoding.write(sample, rng)
        if is_left(sample.secret, encoding, redaction.redact(text).text, piece):
            missed.append(f"{encoding.name}: {label}")
    share = 1 - len(missed) / len(samples)
    print(f"  {name:26} {share:7.1%}  ({len(samples) - len(missed)} of {len(samples)})")
    return missed


def false_alarms(name: str, texts: Iterable[tuple[str, str]]) -> None:
    lines, alarms = 0, []
    for path, text in texts:
        lines += text.count("\n") + 1
        alarms += [
            f"{os.path.basename(path)[-60:]}:{finding.line}: {finding.rule}: "
            f"{text[finding.start : finding.end][:60]!r}"
            for finding in redaction.redact(text).findings
        ]
    rate = len(alarms) / max(lines, 1) * 10_000
    print(f"  {name:26} {rate:7.3f}  ({len(alarms)} in {lines:,} lines)")
    for alarm in alarms if "-v" in sys.argv else alarms[:10]:
        print(f"    {alarm}")


def speed(name: str, work: Callable[[str], object], texts: dict[str, str], size: int) -> float:
    rates = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for text in texts.values():
            work(text)
        rates.append(size / 1e6 / (time.process_time() - start))
    median = statistics.median(rates)
    print(
        f"{name:24} {median:8.1f} MB/s  (median of {ROUNDS}, {min(rates):.1f} to {max(rates):.1f})"
    )
    return median


def installed_sources() -> dict[str, str]:
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("stdlib")]
    return dict(read_all(folders, lambda name: name.endswith(".py"), {"site-packages"}))


def site_packages() -> list[str]:
    return [sysconfig.get_path("purelib")]


def read_all(
    roots: Iterable[str], wanted: Callable[[str], bool], skipped: Iterable[str] = ()
) -> Iterator[tuple[str, str]]:
    for root in roots:
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(set(folders) - set(skipped))
            for name in sorted(filter(wanted, files)):
                path = os.path.join(folder, name)
                try:
                    with open(path, encoding="utf-8", errors="surrogateescape") as file:
                        yield path, file.read()
                except OSError:
                    continue


if __name__ == "__main__":
    main()
