"""How much redaction catches, how often it is wrong, and how fast it is.

The secrets come from `unseen_secrets`: samples by somebody who did not know the rules. Only the
part is counted on which no rule was fitted. The encodings one by one are those of both parts, with
other values. The ordinary text comes from what is installed here: Python sources, wheel RECORD
files, dpkg's files, and the logs in the folders that are named as arguments.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import resources
from typing import NamedTuple

from bench import report, secret_passwords, secret_values, unseen_secrets
from bench.secret_encodings import PLAIN, is_left
from bench.secret_values import Sample
from bench.timing import Figure, times
from ctx import redaction

ROUNDS = 5
COMMAND = "python -m bench redaction"
PIECE = 8
"""How many characters in a row give a secret away."""
PARTS = {
    "formats": ("secrets with a vendor's format, removed", "≥ 97 %"),
    "names": ("values behind a name, removed", "≥ 97 %"),
    "passwords": ("passwords that people chose, removed", "≥ 85 %"),
    "encodings": ("secrets in an encoding, removed", "≥ 90 %"),
}
OTHER_SEED = 11
NAMED_ENCODINGS = (
    *("wrap-20", "wrap-76", "quoted-printable", "concat-python", "concat-java", "ansi"),
    *("hex", "hexdump-c", "base64-gzip", "utf16-nul", "wrap-indented"),
)


def main() -> None:
    rng = random.Random(23)
    found = [*unseen(), *unnamed(rng)]
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


def unseen() -> Iterator[Caught]:
    """The part of the samples that no rule was fitted on."""
    table = resources.files("ctx.redaction").joinpath("formats.txt").read_text("utf-8")
    samples: dict[str, list[tuple[str, bool]]] = collections.defaultdict(list)
    for sample in unseen_secrets.samples(table):
        if sample.is_fit is False:
            is_caught = unseen_secrets.is_caught(sample, redaction.redact(sample.text).text)
            samples[sample.part].append((sample.label, is_caught))
    for part, (name, limit) in PARTS.items():
        yield rate(name, samples[part], limit)
    encodings = collections.defaultdict(list)
    for sample in unseen_secrets.samples(table, seed=OTHER_SEED):
        if sample.part == "encodings" and sample.label in NAMED_ENCODINGS:
            is_caught = unseen_secrets.is_caught(sample, redaction.redact(sample.text).text)
            encodings[sample.label].append((sample.label, is_caught))
    for label in NAMED_ENCODINGS:
        yield rate(f"the same, {label}", encodings[label], "≥ 90 %")


def rate(name: str, samples: Sequence[tuple[str, bool]], limit: str) -> Caught:
    missed = [label for label, is_caught in samples if not is_caught]
    share = 100 * (len(samples) - len(missed)) / len(samples)
    return Caught(Figure(name, f"{share:.1f} % of {len(samples):,}", limit=limit), missed)


def unnamed(rng: random.Random) -> Iterator[Caught]:
    pairs = [("aws pair", secret_values.aws_pair(rng)) for _ in range(100)]
    yield caught("AWS secret keys beside their id", pairs, rng)
    cookies = [("cookie", secret_values.cookie(rng)) for _ in range(100)]
    yield caught("cookies", cookies, rng)


def caught(name: str, samples: list[tuple[str, Sample]], rng: random.Random) -> Caught:
    def is_removed(sample: Sample) -> bool:
        text = redaction.redact(PLAIN.write(sample, rng)).text
        return not is_left(sample.secret, PLAIN, text, PIECE)

    return rate(name, [(label, is_removed(sample)) for label, sample in samples], "")


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
