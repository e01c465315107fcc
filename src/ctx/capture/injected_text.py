"""Removes text that ctx itself gave to an agent.

Contexts and recall results become part of a conversation, and conversations are captured. Memory
must not be captured a second time, so every captured text passes through this module:

    <!-- ctx: 3 nodes, 120 tokens -->  …  <!-- ctx:end -->     a context
    # Context for `…`                                          a pack
    ## Recall Results, ## Memory status, …                     the result of a command in an answer
    <ctx:remember …>…</ctx:remember>                           a command, which is already done
    <system-reminder>…</system-reminder>                       the client's wrapper around it
"""

import re

SIGNS = (b"<!-- ctx", b"(ctx)", b"`ctx ", b"<ctx:")
"""Parts of every context that ctx gives."""

_OPENING = re.compile(r"<!-- ctx: |<system-reminder>")
_CLOSING = {"<!-- ctx: ": "<!-- ctx:end -->", "<system-reminder>": "</system-reminder>"}
_COMMAND = "<ctx:"

# The start of each block that hooks add besides a context, and its last line. A block without one
# extends to the end of the text.
_BLOCKS = (
    ("## Recall Results\n\nQuery: ", "\n---"),
    ("## Memory status\n\n```", "\n```"),
    *(
        (f"## From earlier sessions\n\n{who}", "\n\n")
        for who in ("The user, ", "The agent, ", "- [")
    ),
    ("## Before you edit ", "\n\n"),
    ("## Expanded\n\nThe nodes that the summary was made from", None),
    ("## A memory command failed\n\n", None),
    ("## A secret was not stored\n\n", "\n\n"),
    ("## Proposed to the user\n\n", "\n\n"),
    ("# Context for `", None),
    # Older versions; a conversation may still contain them.
    ("## Expanded\n\nWhat the summary was made from", None),
    ("## A memory command was not done\n\n", None),
    ("## A secret was not kept\n\n", "\n\n"),
)
_HEADING = re.compile(
    "^(?:" + "|".join(re.escape(begins) for begins, _ in _BLOCKS) + ")", re.MULTILINE
)


def without_injected(text: str) -> str:
    """A text without what ctx added to it, and without commands for ctx."""
    if "ctx" not in text and "#" not in text and "<system-reminder>" not in text:
        return text
    return _without_commands(_without_blocks(_without_frames(text)))


def _without_frames(text: str) -> str:
    kept: list[str] = []
    at = 0
    while opening := _OPENING.search(text, at):
        kept.append(text[at : opening.start()])
        closing = _CLOSING[opening[0]]
        end = text.find(closing, opening.end())
        at = len(text) if end < 0 else end + len(closing)
    return "".join([*kept, text[at:]])


def _without_blocks(text: str) -> str:
    kept: list[str] = []
    at = 0
    while heading := _HEADING.search(text, at):
        kept.append(text[at : heading.start()])
        closing = next(ends for begins, ends in _BLOCKS if begins == heading[0])
        end = text.find(closing, heading.end()) if closing else -1
        at = len(text) if closing is None or end < 0 else end + len(closing)
    return "".join([*kept, text[at:]])


def _without_commands(text: str) -> str:
    if _COMMAND not in text:
        return text
    from ctx.agent_commands import command_parser

    kept: list[str] = []
    at = 0
    for start, end in command_parser.spans(text):
        kept.append(text[at:start])
        at = end
    return "".join([*kept, text[at:]])
