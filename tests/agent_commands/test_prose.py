"""Code and quotations: no rule of ours takes for a paragraph what CommonMark does not.

For it, `<ctx:m0/>` is a link; for us, it is an unknown command, which is reported by its name.
"""

import re

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ctx.agent_commands.command_parser import CommandProblem, parse
from tests import effort

ORACLE = MarkdownIt("commonmark")
MARK = re.compile(r"<ctx:m\d/>")
BLOCKS = [
    "text", "more", "", " ", "\t", "  ", "   ", "    ", "- ", "* ", "-", "1. ", "2) ", "> ", ">",
    "# ", "#", "```", "````", "~~~", "``` sh", "`", "``", "`", "===", "---", "- - -", "***",
    "<!-- ", " -->", "<!-- a -->", "\\", "\\\\", "\\`", "*", "\n", "\n", "\n", "\n", "\n\n",
    "\r\n", *["<ctx:m?/>"] * 12,
]  # fmt: skip


def numbered(text: str) -> str:
    numbers = iter("0123456789" * 10)
    return re.sub(r"m\?", lambda _: f"m{next(numbers)}", text)


def marks_in_paragraphs(text: str) -> set[str]:
    """The marks that the reference parser places in a paragraph outside of block quotes."""
    found: set[str] = set()
    quotes = 0
    tokens = ORACLE.parse(text)
    for before, token in zip(["", *(each.type for each in tokens)], tokens, strict=False):
        quotes += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        is_title = before == "heading_open" and token.markup == "#"
        if not quotes and not is_title:
            found.update(links(token))
    return found


def links(token: Token) -> list[str]:
    children = token.children or []
    return [f"<{child.attrs['href']}>" for child in children if child.type == "link_open"]


@settings(max_examples=effort.times(100), deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(BLOCKS), min_size=2, max_size=24).map("".join).map(numbered))
@example("> a\n<ctx:m0/>\n> <ctx:m1/>")
@example("* \n\n    <ctx:m0/>")
@example("- a\n  - b\n\n    ```\n    <ctx:m0/>\n    ```\n    <ctx:m1/>\n\n        <ctx:m2/>")
def test_no_command_is_code_or_quoted_for_commonmark(text: str) -> None:
    marks = MARK.findall(text)
    assume(0 < len(marks) == len(set(marks)))
    found = {each.written for each in parse(text) if isinstance(each, CommandProblem)}
    assert found <= marks_in_paragraphs(text)
