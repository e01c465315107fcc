"""Lines of issues that say nothing about the code."""

import string
import time
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx.search.boilerplate import remove_lines

TITLE = "Orders are lost"


FORMS = """
Python: 3.11
- OS: Ubuntu 22.04 LTS
* **Operating System**: macOS
Platform: linux-x86_64
Browser: Firefox
Shop version: 2.4.0-rc.1
Version of the shop: git 4f2a
| Rust | 1.75.0 |
"react": "^18.2.0",
numpy==1.26.4
- Rails 7.1.2
Debian 12.4 (bookworm)
Python 3.9.6 | packaged by conda-forge | (default, Jul 11 2021)
Linux box 6.6.87.2-microsoft-standard-WSL2 #1 SMP x86_64 GNU/Linux
go version go1.21.5 linux/amd64
GOARCH="amd64"
A clear and concise description of what the bug is.
1. Go to '...'
4. See error
_No response_
I have searched the existing issues
Thanks for taking the time to fill out this form!
 - Device: [e.g. iPhone6]
What version of the shop are you using?
Are you willing to submit a pull request?
"""


@pytest.mark.parametrize("line", FORMS.strip().split("\n"))
def test_lines_of_forms_and_environments_are_removed(line: str) -> None:
    assert remove_lines(f"{TITLE}\n{line}\nThey are gone.") == f"{TITLE}\nThey are gone."
    # The first line is what the task is about.
    assert remove_lines(line) == line


SENTENCES = """
The current version: it loses orders
Windows: separators in paths are wrong
Docker: the container never starts when the disk is full
Expected: the order is placed
Please provide a way to cancel orders
Please search without accents
Since 2.4 the orders are lost when the server restarts.
timeout: none of the orders is placed
place_order(order, version=2.4)
I have three orders
None of them is placed
"""


@pytest.mark.parametrize("line", SENTENCES.strip().split("\n"))
def test_sentences_stay(line: str) -> None:
    text = f"{TITLE}\n{line}\nThey are gone."
    assert remove_lines(text) == text


PIP = """\
Package            Version
------------------ ---------
attrs              23.1.0
numpy              1.26.4
shop               2.4.0
"""
CONDA = """\
# Name                    Version                   Build  Channel
absl-py                   1.1.0                    pypi_0    pypi
blas                      1.0                         mkl
shop                      2.4.0            py37hf484d3e_1000    conda-forge
"""
MACHINE = """\
PyTorch version: 2.4.0+cu121
Is debug build: False

OS: Ubuntu 22.04.2 LTS (x86_64)
GCC version: (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
Byte Order:                         Little Endian
CPU: 32
"""


def test_tables_are_removed_also_in_code() -> None:
    for table in (PIP, CONDA, MACHINE):
        rest = remove_lines(f"{TITLE}\n```\n{table}```\nThey are gone.")
        assert "They are gone." in rest
        for gone in ("numpy", "shop", "conda-forge", "Byte Order", "PyTorch"):
            assert gone not in rest
    # Code stays.
    text = (
        f"{TITLE}\n```yaml\nversion: '3.8'\nservices:\n  shop:\n    image: shop\n```\n"
        "```python\nx = 1.5\ny = 2.5\nz = 3.5\nprint(x)\n```\n"
        "Expected: one order\nActual: none at all\nNote: it worked before\n"
    )
    assert remove_lines(text) == text


def test_licences_are_removed_paragraph_by_paragraph() -> None:
    text = (
        f"{TITLE}\n\n```c\n/* Copyright (c) 2019 The Shop Authors.\n"
        " * Licensed under the Apache License, Version 2.0.\n *\n"
        " * Unless required by law, it is provided WITHOUT WARRANTIES of\n * any kind. */\n\n"
        "int place(void);\n```\n"
    )
    rest = remove_lines(text)
    assert "int place(void);" in rest
    for gone in ("Authors", "Apache", "Unless", "any kind"):
        assert gone not in rest
    assert remove_lines("Add an SPDX-License-Identifier: line\nto every file") != ""


def test_images_and_folds_are_removed_outside_of_code() -> None:
    text = (
        f"{TITLE}\n<details><summary>Log</summary>\n![Image](https://example.org/1.png)\n"
        '<img width="560" alt="Screen">\nThe `<details>` of an order\n```\n<summary>\n```'
    )
    rest = remove_lines(text)
    assert rest.split() == (f"{TITLE} Log The `<details>` of an order ``` <summary> ```".split())


PIECES = [
    *("a", " ", "-", "1.", "1.2.3", ": ", "==", "@", "|", "version", "os", "[e.g.", "(", ")", "]"),
    *("![", "](", "<img ", ">", "```\n", "\n", "*", "│", "A b", "Copyright (c)", "é", "  ", '"'),
]


def test_hostile_texts_take_linear_time() -> None:
    """With quadratic time, this takes minutes."""
    random = Random(1)
    begun = time.process_time()
    for piece in PIECES:
        remove_lines(TITLE + "\n" + piece * (50_000 // len(piece)))
        remove_lines(TITLE + "\n" + (piece * 380)[:380].replace("\n", " ") + "\n" * 100)
    for _ in range(30):
        chosen = random.choices(PIECES, k=3)
        line = "".join(random.choices(chosen, k=400))[:399].replace("\n", " ")
        remove_lines("\n".join([TITLE, *[line] * 50]))
    assert time.process_time() - begun < 10


@given(st.lists(st.sampled_from([*PIECES, *string.ascii_letters]), max_size=80))
def test_only_whole_lines_and_markup_are_removed(pieces: list[str]) -> None:
    text = "".join(pieces)
    first = next((line for line in text.split("\n") if line.strip()), "")
    rest = remove_lines(text)
    assert len(rest) <= len(text)
    if "<" not in first and "!" not in first:
        assert first in rest
