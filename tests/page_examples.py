"""Examples on documentation pages: run, compared with what the page shows, and renewed on request.

`make docs` renews every page: it runs the tests called `test_page_examples…` with
`CTX_TEST_RENEW=1`. A page whose examples are still right is not touched. Otherwise all of its
outputs are replaced, so that ids and times on a page always come from one run.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path

RENEW = os.environ.get("CTX_TEST_RENEW") == "1"

_CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
_PYTHON = re.compile(r"```python\n(.*?)```\n+```text\n(.*?)```", re.DOTALL)
_SIZE = re.compile(r" \d+$", re.MULTILINE)
_NODE_ID = re.compile(r"\b01[0-9A-Z]{10,24}\b")
_SHOP = "/home/you/shop"


def without_ids(text: str) -> str:
    """Replace what differs from run to run: ids, times, random names, the folder."""
    text = re.sub(r"\b\d{13}-\d+-[0-9a-f]{8}\b", "RECEIPT", text)
    text = re.sub(r"\b[0-9a-f]{12,64}\b", "ID", _NODE_ID.sub("ID", text))
    text = re.sub(r"\d\d\d\d-\d\d-\d\dT[\d:]+Z", "TIME", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d\b", "TIME", text)
    text = re.sub(r"\b\d{8}T\d{6}Z", "TIME", text)
    text = re.sub(r"log/\d{4}-\d\d-\d\d-\d{4}-", "log/TIME-", text)
    text = re.sub(r"-[0-9a-z]{4}\.md\b", "-END.md", text)
    text = re.sub(r"\b\d{4}-\d\d-\d\d\b", "DAY", text)
    text = re.sub(r"\btask-0001-[0-9a-f]{6}\b", "task-0001-END", text)
    # An age, and the column width that it causes.
    text = re.sub(r" +\d+ (s|min)\b *", " AGE ", text)
    return re.sub(r"\S*/shop\b", "SHOP", text)


def commands(block: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with its output."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(command, output) for command, _, output in (part.partition("\n") for part in parts)]


def check_console(page: Path, shop: Path, run: Callable[[str], str], part: str = "") -> int:
    """Run all console blocks of a page in order, and return the number of commands.

    With `part`, only those from `<!-- examples: part -->` to the next such comment.
    """
    whole = page.read_text()
    start = whole.find(f"<!-- examples: {part} -->") + 1
    text = whole[start:].partition("<!-- examples: ")[0]
    page_ids: dict[str, str] = {}
    renewed: list[str] = []
    is_changed = False
    count = 0
    for block in _CONSOLE.findall(text):
        lines: list[str] = []
        for command, shown in commands(block):
            # The ids on the page are those of the run that it was written from.
            typed = _NODE_ID.sub(lambda match: page_ids[match[0]], command)
            output = run(typed)
            if not RENEW:
                assert without_ids(output) == without_ids(shown), command
            is_changed |= without_ids(output) != without_ids(shown)
            old, new = _NODE_ID.findall(shown), _NODE_ID.findall(output)
            page_ids.update(zip(old, new, strict=not RENEW))
            lines.append(f"$ {typed}\n{output.replace(str(shop), _SHOP)}")
            count += 1
        renewed.append("".join(lines))
    if is_changed:
        outputs = iter(renewed)
        written = _CONSOLE.sub(lambda _: f"```console\n{next(outputs)}```", text)
        page.write_text(whole.replace(text, written))
    return count


def check_python(page: Path, run: Callable[[str], str]) -> None:
    """Run the Python blocks of a page, each followed by a text block with its output."""
    text = page.read_text()
    renewed = text
    for code, shown in _PYTHON.findall(text):
        output = run(code)
        # The page may leave out lines at the end. The size of a chunk does not count.
        output = "".join(output.splitlines(keepends=True)[: shown.count("\n")])
        is_same = _SIZE.sub("", output) == _SIZE.sub("", shown)
        assert is_same or RENEW, code
        if not is_same:
            renewed = renewed.replace(f"```text\n{shown}```", f"```text\n{output}```", 1)
    if renewed != text:
        page.write_text(renewed)


def check_excerpt(page: Path, name: str, output: str) -> None:
    """Compare the text block behind `<!-- example: name -->` with an output."""
    text = page.read_text()
    block = re.compile(rf"(<!-- example: {re.escape(name)} -->\n+```text\n)(.*?)```", re.DOTALL)
    match = block.search(text)
    assert match, f"{page.name} has no example {name!r}"
    if RENEW and match[2] != output:
        page.write_text(text[: match.start(2)] + output + text[match.end(2) :])
    else:
        assert match[2] == output
