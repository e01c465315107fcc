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
from typing import NamedTuple

from bench import report, secret_passwords, secret_values
from bench.secret_encodings import ENCODINGS, PLAIN, Encoding, is_left
from bench.secret_values import FORMATS, Sample
from bench.timing import Figure, times
from ctx import redaction

ROUNDS = 5
COMMAND = "python -m bench redaction"
PIECE, PASSWORD_PIECE = 8, 5
"""How many characters in a row give a secret away."""


def main() -> None:
    rng = random.Random(23)
    found = [*formats(rng), *encoded(rng), passwords(), *unnamed(rng)]
    if "-v" in sys.argv:
        left = collections.Counter(name for each in found for name in each.missed)
        for name, count in left.most_common():
            print(f"  missed {count:3} x {name}")
    report.show("redaction", [each.figure for each in found], command=COMMAND)

    texts = installed_sources()
    alarms = [
        false_alarms("lines about passwords", [(b, b) for b in secret_passwords.BENIGN]),
        false_alarms("lines of installed packages", texts.items()),
        false_alarms(
            "lines of wheel RECORD files", read_all(site_packages(), lambda name: name == "RECORD")
        ),
        false_alarms("lines of dpkg's files", read_all(["/var/lib/dpkg"], bool)),
    ]
    logs = [name for name in sys.argv[1:] if name != "-v"]
    if logs:
        alarms.append(false_alarms("lines of logs", read_all(logs, bool)))
    command = f"{COMMAND} FOLDER" if logs else COMMAND
    report.show("redaction-alarms", alarms, "the limit is one in 10,000 lines", command)

    size = sum(map(len, texts.values()))
    redact = speed(redaction.redact, texts, size)
    # The cost of any scan: a missing literal, searched by the C library, and by the
    # simplest pattern that has to look at every character.
    find = speed(lambda text: text.find("\0\0"), texts, size)
    scan = speed(re.compile(r"[\0\1]{2}").search, texts, size)
    figure = Figure(
        "remove secrets from source code, CPU",
        f"{redact:.1f} MB/s",
        f"{find:.0f} MB/s for one `str.find`",
        f"{scan:.0f} MB/s for one `re.search`",
        times(scan / redact),
        "≥ 20 MB/s",
    )
    report.show("redaction-speed", [figure], command=COMMAND)


class Caught(NamedTuple):
    """How many secrets are removed, and the names of those that are not."""

    figure: Figure
    missed: list[str]


def formats(rng: random.Random) -> Iterator[Caught]:
    samples = [(form.name, secret_values.sample(form, rng)) for form in FORMATS for _ in range(5)]
    yield caught(f"secrets of {len(FORMATS)} formats", samples, PLAIN, rng, limit="≥ 98 %")


def encoded(rng: random.Random) -> Iterator[Caught]:
    samples = [(form.name, secret_values.sample(form, rng)) for form in FORMATS for _ in range(3)]
    for encoding in ENCODINGS:
        yield caught(f"the same, {encoding.name}", samples, encoding, rng, limit="≥ 90 %")


def passwords() -> Caught:
    samples = list(secret_passwords.samples())
    name = f"passwords that people choose, in {len(secret_passwords.FORMS)} forms"
    return caught(name, samples, PLAIN, random.Random(0), PASSWORD_PIECE, "≥ 85 %")


def unnamed(rng: random.Random) -> Iterator[Caught]:
    pairs = [("aws pair", secret_values.aws_pair(rng)) for _ in range(100)]
    yield caught("AWS secret keys beside their id", pairs, PLAIN, rng)
    cookies = [("cookie", secret_values.cookie(rng)) for _ in range(100)]
    yield caught("cookies", cookies, PLAIN, rng)


def caught(
    name: str,
    samples: list[tuple[str, Sample]],
    encoding: Encoding,
    rng: random.Random,
    piece: int = PIECE,
    limit: str = "",
) -> Caught:
    missed = []
    for label, sample in samples:
        text = encoding.write(sample, rng)
        if is_left(sample.secret, encoding, redaction.redact(text).text, piece):
            missed.append(f"{encoding.name}: {label}")
    removed = len(samples) - len(missed)
    shown = f"{100 * removed / len(samples):.1f} % of {len(samples):,}"
    return Caught(Figure(f"{name}: removed", shown, limit=limit), missed)


def false_alarms(name: str, texts: Iterable[tuple[str, str]]) -> Figure:
    lines, alarms = 0, []
    for path, text in texts:
        lines += text.count("\n") + 1
        alarms += [
            f"{os.path.basename(path)[-60:]}:{finding.line}: {finding.rule}: "
            f"{text[finding.start : finding.end][:60]!r}"
            for finding in redaction.redact(text).findings
        ]
    for alarm in alarms if "-v" in sys.argv else alarms[:10]:
        print(f"  {alarm}")
    limit = f"{lines // 10_000:,}" if lines >= 10_000 else ""
    return Figure(f"false positives in {lines:,} {name}", f"{len(alarms)}", limit=limit)


def speed(work: Callable[[str], object], texts: dict[str, str], size: int) -> float:
    """Megabytes a second, in CPU time."""
    rates = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for text in texts.values():
            work(text)
        rates.append(size / 1e6 / (time.process_time() - start))
    return statistics.median(rates)


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
