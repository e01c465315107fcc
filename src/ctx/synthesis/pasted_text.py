"""Tells what a user typed from what they pasted.

Plans, diffs, logs, reviews, issue texts and code in a prompt are not the user's own statements.
They are recognised by their form, and by having been printed in the session before.
"""

import re
from collections.abc import Collection

_MOST_LINES = 12
_LONGEST = 1_500
_WORDS_WITHOUT_A_PERSON = 25
_SHORTEST_LINE = 30

_MARKUP = re.compile(r"^\s{0,3}#{1,6}\s|^\s{0,3}(?:```|~~~)|^[ \t]*\|.*\|[ \t]*$", re.MULTILINE)
_FENCED = re.compile(r"^\s{0,3}(```|~~~).*?(?:^\s{0,3}\1\s*$|\Z)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s", re.MULTILINE)
_PARAGRAPHS = re.compile(r"\n\s*\n")
_LOG_LINE = re.compile(
    r"^[ \t]*(?:at \S+ \(|File \"|Traceback|\d{2}:\d{2}:\d{2}|\d{4}-\d\d-\d\d|\[\w+\]|[✓✗×✘❯>$%]"
    r"|[\w./-]+:\d+|[+-]{1,3} ?\w|(?:error|warning|info|debug|warn)\b[:\[])",
    re.IGNORECASE | re.MULTILINE,
)
_PERSON = re.compile(
    r"\b(?:i|i['’]m|i['’]d|i['’]ve|we|you|your|my|our|me|us|please|let['’]?s|ich|wir|du|bitte|je|nous"
    r"|yo)\b|\?",
    re.IGNORECASE,
)
_ITEM = re.compile(r"\d{1,2}[.)] |[❯$%] ")
_EXPLAIN = re.compile(
    r"(?:(?:ok|yes|and|so|now),? )*(?:(?:can|could|would) you |please )?"
    r"(?:explain|clarify|elaborate|describe)\b",
    re.IGNORECASE,
)
_REVIEW = re.compile(
    r"\b(?:high|medium|low|critical|major|minor) severity\b|\bcoderabbit|\bnitpick|\bcopilot\b"
    r"|\bbugbot\b|prompt for ai agents|\bactionable comments\b"
    r"|\bconsider (?:adding|testing|using|extracting|moving|renaming|refactoring|handling)\b",
    re.IGNORECASE,
)


def split_pasted(prompt: str, printed: Collection[str] = ()) -> tuple[str, str]:
    """The user's own words, and the pasted text.

    `printed` are lines, as `line_keys` has them, that the session showed before. Below a heading or
    the beginning of a review, everything is pasted.
    """
    if _is_printed(prompt, printed):
        return "", prompt
    if not _looks_pasted(prompt):
        return prompt, ""
    starts = [mark.start() for mark in (_HEADING.search(prompt), _REVIEW.search(prompt)) if mark]
    start = min(starts, default=len(prompt))
    paragraphs = _PARAGRAPHS.split(_FENCED.sub("\n\n", prompt[:start]))
    if start < len(prompt) and not _HEADING.match(prompt, start):
        # The review begins in the middle of a paragraph.
        paragraphs.pop()
    own = [paragraph.strip() for paragraph in paragraphs if _is_own(paragraph, printed)]
    pasted = [paragraph.strip() for paragraph in paragraphs if paragraph.strip() not in own]
    return "\n\n".join(own), "\n\n".join([*filter(None, pasted), prompt[start:].strip()]).strip()


def is_fragment(passage: str) -> bool:
    """Whether a passage of a prompt states nothing by itself.

    It only introduces what follows, asks for an explanation, or is an item of a list or a line of a
    terminal in which no person speaks.
    """
    passage = passage.strip()
    is_item = _ITEM.match(passage) is not None and not _PERSON.search(passage)
    return is_item or passage.endswith(":") or _EXPLAIN.match(passage) is not None


def line_keys(text: str) -> set[str]:
    """The long lines of a text, in a form in which copies are equal."""
    lines = (" ".join(line.split()).strip("-*•> ") for line in text.splitlines())
    return {line for line in lines if len(line) >= _SHORTEST_LINE}


def _is_own(paragraph: str, printed: Collection[str]) -> bool:
    words = paragraph.split()
    if not words or _looks_pasted(paragraph) or _is_printed(paragraph, printed):
        return False
    return len(words) <= _WORDS_WITHOUT_A_PERSON or _PERSON.search(paragraph) is not None


def _is_printed(text: str, printed: Collection[str]) -> bool:
    lines = line_keys(text)
    return bool(lines) and sum(line in printed for line in lines) * 2 > len(lines)


def _looks_pasted(text: str) -> bool:
    if _MARKUP.search(text) or _REVIEW.search(text):
        return True
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > _MOST_LINES or len(text) > _LONGEST:
        return True
    if len(lines) > 2 and len(_LOG_LINE.findall(text)) * 2 > len(lines):
        return True
    return len(text.split()) > _WORDS_WITHOUT_A_PERSON and not _PERSON.search(text)
