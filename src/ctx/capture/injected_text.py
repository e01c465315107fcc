"""What ctx itself put before an agent, recognised where it comes back.

Contexts and what a question found go into a conversation, and conversations are taken in. What
memory said once must not become memory a second time, so whoever takes in a text asks here first:

    <!-- ctx: 3 nodes, 120 tokens -->  …  <!-- ctx:end -->     a context
    # Context for `…`                                          a pack
    ## Recall Results, ## Memory status, …                     what was asked for in an answer
    <ctx:remember …>…</ctx:remember>                           a command, which was done already
    <system-reminder>…</system-reminder>                       where the client puts all of it
"""

import re

_OPENING = re.compile(r"<!-- ctx: |<system-reminder>")
_CLOSING = {"<!-- ctx: ": "<!-- ctx:end -->", "<system-reminder>": "</system-reminder>"}
_COMMAND = "<ctx:"

# How each block begins that hooks give beside a context, and the line with which it ends; where
# that is missing, it goes on to the end.
_BLOCKS = (
    ("## Recall Results\n\nQuery: ", "\n---"),
    ("## Memory status\n\n```", "\n```"),
    ("## Expanded\n\nWhat the summary was made from", None),
    ("## A memory command was not done\n\n", None),
    ("## A secret was not kept\n\n", "\n\n"),
    ("## Proposed to the user\n\n", "\n\n"),
    ("# Context for `", None),
)
_HEADING = re.compile(
    "^(?:" + "|".join(re.escape(begins) for begins, _ in _BLOCKS) + ")", re.MULTILINE
)


def without_injected(text: str) -> str:
    """A text without what ctx put there, or was asked for in it."""
    if "ctx" not in text and "#" not in text and "<system-reminder>" not in text:
        return text
    return _without_commands(_without_blocks(_without_frames(text)))


def is_all_injected(text: str) -> bool:
    """Whether there was something, and nothing of it is left."""
    return bool(text.strip()) and not without_injected(text).strip()


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
