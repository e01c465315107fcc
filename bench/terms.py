"""How fast text is split into terms, compared with the simplest tokenizer in Python.

Reads the standard library of the running interpreter, about as many megabytes as a large
repository. Both sides alternate, so that a busy machine slows them equally, and are measured in CPU
time. The first round of ctx, with empty caches, is shown separately.

    python -m bench terms [ROUNDS]
"""

import re
import statistics
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from time import process_time

from bench import report
from bench.timing import Figure, times
from ctx import terms


def floor(text: str) -> list[str]:
    return [word.lower() for word in re.findall(r"\w+", text)]


def seconds(tokenize: Callable[[str], list[str]], texts: list[str]) -> float:
    started = process_time()
    for text in texts:
        tokenize(text)
    return process_time() - started


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    sources = sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py"))
    texts = [
        source.read_text(encoding="utf-8", errors="replace")
        for source in sources
        if "site-packages" not in source.parts
    ]
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    ascii_share = sum(map(str.isascii, texts)) / len(texts)
    print(f"{len(texts)} files, {megabytes:.1f} MB, {ascii_share:.0%} of them ASCII")

    first = seconds(terms.extract, texts)
    timings = [(seconds(terms.extract, texts), seconds(floor, texts)) for _ in range(rounds)]
    ours, bare = map(statistics.median, zip(*timings, strict=True))
    print(f"first round {megabytes / first:.1f} MB/s, then medians of {rounds}")
    name = "split source code into terms, CPU"
    least = f"{megabytes / bare:.1f} MB/s for `\\w+` and lower case"
    figure = Figure(name, f"{megabytes / ours:.1f} MB/s", least, ratio=times(ours / bare))
    report.show("terms", [figure])


if __name__ == "__main__":
    main()
