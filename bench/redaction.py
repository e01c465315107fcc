"""How fast redaction is, and how often it is wrong, on the Python files installed here.

Run: python bench/redaction.py
"""

import os
import re
import statistics
import sysconfig
import time
from collections.abc import Callable

from ctx import redaction

ROUNDS = 5


def main() -> None:
    texts = installed_sources()
    size = sum(map(len, texts.values()))
    lines = sum(text.count("\n") + 1 for text in texts.values())
    print(f"{len(texts):,} files, {size / 1e6:.1f} MB, {lines:,} lines of installed Python source")

    redact = speed("redact", redaction.redact, texts, size)
    # The cost of any scan: a missing literal, searched by the C library, and by the
    # simplest pattern that has to look at every character.
    speed("floor: one str.find", lambda text: text.find("\0\0"), texts, size)
    scan = re.compile(r"[\0\1]{2}").search
    floor = speed("floor: one re.search", scan, texts, size)
    print(f"redact takes {floor / redact:.1f} times as long as one pass of a trivial pattern")

    found = [
        (
            f"{os.path.basename(path)}:{finding.line}",
            finding.rule,
            text[finding.start : finding.end],
        )
        for path, text in texts.items()
        for finding in redaction.redact(text).findings
    ]
    print(f"{len(found)} findings: {len(found) / lines * 10_000:.3f} in 10,000 lines")
    for place, rule, value in found:
        print(f"  {place}: {rule}: {value[:40]!r}")


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
    texts = {}
    for scheme in ("purelib", "stdlib"):
        for folder, folders, files in os.walk(sysconfig.get_path(scheme)):
            folders[:] = sorted(set(folders) - {"site-packages"})
            for name in sorted(files):
                if name.endswith(".py"):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8", errors="surrogateescape") as file:
                        texts[path] = file.read()
    return texts


if __name__ == "__main__":
    main()
