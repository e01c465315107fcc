"""Which lines of a file a chunk of a pack shows."""

import pytest

from bench.pack_lines import lines_of
from ctx.packs.prompt_pack import Chunk

LINES = """\
class Queue:
    def add(self, item):
        self.items.append(item)

        return item

    def take(
        self, wait=0
    ):
        item = self.items.pop()
        log(item)
        # Long enough.
        return item


class Stack:
    def take(self):
        return self.items.pop()
""".split("\n")


@pytest.mark.parametrize(
    ("first_line", "last_line", "snippet", "shown"),
    [
        (
            7,
            13,
            "class Queue:\n    …\n    def take(\n        …\n        return item",
            {1, 7, 13},
        ),
        (2, 5, "\n".join(LINES[1:5]), {2, 3, 4, 5}),
        (7, 13, "def take(self, wait=0)\nTake the last item.", {7, 8, 9}),
        (7, 13, "    def take(\n        …\n        # Long…\n        return item", {7, 12, 13}),
        (17, 18, "class Stack:\n    def take(self):", {16, 17}),
    ],
    ids=["excerpt", "whole", "signature", "long line", "class above"],
)
def test_the_lines_of_a_snippet_are_found_in_its_file(
    first_line: int, last_line: int, snippet: str, shown: set[int]
) -> None:
    chunk = Chunk(
        *("queue.py: take", "", snippet, 1.0, "FileContent", 0, "queue.py"),
        *(first_line, last_line, "take", (), ()),
    )
    assert lines_of(chunk, LINES) == shown
