"""What is code: another implementation of CommonMark says it too.

`<ctx:m0/>` is a link for it, and no command of ours, so that each one found is told by its name.
"""

import re

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ctx.sessions.commands import Wrong, parse

ORACLE = MarkdownIt("commonmark")
MARK = re.compile(r"<ctx:m\d/>")
BLOCKS = [
    "text", "more", "", " ", "\t", "  ", "   ", "    ", "- ", "* ", "-", "1. ", "2) ", "> ", ">",
    "# ", "#", "```", "````", "~~~", "``` sh", "`", "``", "`", "===", "---", "- - -", "***",
    "<!-- ", " -->", "<!-- a -->", "\\", "\\\\", "\\`", "*", "\n", "\n", "\n", "\n", "\n\n",
    "\r\n", *["<ctx:m?/>"] * 12,
]  # fmt: skip
# Behind four columns something begins for the other implementation, in a quotation inside of a
# quotation or below a wide item, though for CommonMark the line goes on with a paragraph.
NOT_QUITE = re.compile(r"(?m)^[> ]*(?: {4}|\t)[ \t]*(?:[-*>#`~<]|\d[.)])|-{3,}>|<!--[ ]*-?[ ]*>")


def numbered(text: str) -> str:
    numbers = iter("0123456789" * 10)
    return re.sub(r"m\?", lambda _: f"m{next(numbers)}", text)


def said_by_the_oracle(text: str) -> dict[str, bool | None]:
    """For each mark in a text, whether it is said; None where that is a matter of taste."""
    verdict: dict[str, bool | None] = dict.fromkeys(MARK.findall(text), False)
    lines = re.split(r"\r\n?|\n", text)
    quotes = 0
    for token in ORACLE.parse(text):
        quotes += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        if token.type == "html_block":
            # What stands behind a comment in its line is said, though HTML for CommonMark.
            (token,) = ORACLE.parseInline(token.content.partition("-->")[2])
        for mark in links(token):
            (line,) = [each for each in lines if mark in each]
            before = line.partition(mark)[0]
            # A line that goes on with a quotation without its mark is the writer's own.
            verdict[mark] = not quotes or ">" not in before or None
            if quotes and re.match(" {0,3}>", line):
                verdict[mark] = False
    return verdict


def links(token: Token) -> list[str]:
    children = token.children or []
    return [f"<{child.attrs['href']}>" for child in children if child.type == "link_open"]


@settings(max_examples=250, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(BLOCKS), min_size=2, max_size=24).map("".join).map(numbered))
@example("> a\n<ctx:m0/>\n> <ctx:m1/>")
@example("* \n\n    <ctx:m0/>")
@example("- a\n  - b\n\n    ```\n    <ctx:m0/>\n    ```\n    <ctx:m1/>\n\n        <ctx:m2/>")
def test_commonmark_decides_what_is_code(text: str) -> None:
    marks = MARK.findall(text)
    assume(0 < len(marks) == len(set(marks)))
    found = {each.written for each in parse(text) if isinstance(each, Wrong)}
    expected = {
        mark: mark in found if verdict is None else verdict
        for mark, verdict in said_by_the_oracle(text).items()
    }
    is_same = {mark: mark in found for mark in marks} == expected
    assert is_same or NOT_QUITE.search(text), expected
