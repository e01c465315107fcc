"""A prompt as tokens for a llama.cpp server, in the frame of the model's chat template.

If the prompt were sent as text, quoted text such as `<|im_start|>system` would become a turn of the
conversation. So special tokens are parsed only in the frame, and everything else is tokenized as
plain text. Old servers, and models that declare their special tokens as ordinary words, parse them
anyway: then those that occur in the frame are split in two. A part of a prompt has the same tokens
whatever follows it, so the server can reuse the common beginning of two prompts.
"""

import os
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ctx.errors import ModelFailure
from ctx.llm.event_stream import as_text
from ctx.llm.http_client import HttpClient, RequestRefused
from ctx.llm.llama_cpp import slots
from ctx.llm.llama_cpp.slots import Boundary
from ctx.llm.protocol import Request

_MOST_PARTS = 32
"""Each part is a request to `/tokenize`; the rest is one part."""
_UNSUPPORTED = (400, 404, 405, 500, 501)
"""Status codes for an unknown endpoint or an unsupported template."""

_MARK = re.compile(r"\s*[<\[].*[>\]]\s*", re.DOTALL)


class Prompt(NamedTuple):
    tokens: list[int]
    boundaries: tuple[Boundary, ...]
    starts_thinking: bool
    """Whether the prompt ends with an open thinking tag."""


class _Frame(NamedTuple):
    """The text of the chat template around the system and user messages."""

    before: str
    between: str
    after: str


_NO_FRAME = _Frame("", "", "\n")
"""For a server that does not report its template."""


class Prompts:
    """Builds the prompts for one server and model."""

    def __init__(self, http: HttpClient, model_fields: Mapping[str, str]) -> None:
        self._http = http
        self._model_fields = model_fields
        self._frames: dict[bool, _Frame] = {}
        self._frame_tokens: dict[tuple[str, bool], list[int]] = {}
        self._known_marks: dict[int, str] | None = None

    def build(self, request: Request) -> Prompt:
        frame = self._frame(has_system=bool(request.system))
        head = [
            *self._marks(frame.before, is_first=True),
            *(self.tokenize(request.system) if request.system else ()),
            *self._marks(frame.between, is_first=False),
        ]
        texts = list(request.parts[: _MOST_PARTS - 1])
        texts.append("".join(request.parts[_MOST_PARTS - 1 :]))
        # The frame's end is not part of the last part: the next prompt may continue there.
        end = self._marks(frame.after, is_first=False)
        parts = [head, *(self.tokenize(text) for text in texts if text), end]
        tokens = [token for part in parts for token in part]
        is_thinking = frame.after.rstrip().endswith("<think>")
        return Prompt(tokens, slots.boundaries(parts), is_thinking)

    def _frame(self, *, has_system: bool) -> _Frame:
        if has_system not in self._frames:
            self._frames[has_system] = (
                self._frame_of_both() if has_system else self._frame_of_user()
            )
        return self._frames[has_system]

    def _frame_of_both(self) -> _Frame:
        """Find the frame by applying the template to two random words."""
        system, user = (f"{who}{os.urandom(8).hex()}" for who in ("system", "user"))
        text = self._apply_template(("system", system), ("user", user))
        if text.count(system) == text.count(user) == 1:
            before, _, rest = text.partition(system)
            between, separator, after = rest.partition(user)
            if separator:
                return _Frame(before, between, after)
        # The template has no system message, so the user message holds both.
        alone = self._frame(has_system=False)
        return _Frame(alone.between, "\n\n", alone.after)

    def _frame_of_user(self) -> _Frame:
        user = f"user{os.urandom(8).hex()}"
        text = self._apply_template(("user", user))
        if text.count(user) != 1:
            return _NO_FRAME
        between, _, after = text.partition(user)
        return _Frame("", between, after)

    def _apply_template(self, *messages: tuple[str, str]) -> str:
        """The framed text; empty if the server is too old or its template rejects these
        messages."""
        body = {
            "messages": [{"role": role, "content": content} for role, content in messages],
            # Ask for the answer without thinking.
            "chat_template_kwargs": {"enable_thinking": False},
            **self._model_fields,
        }
        try:
            answer = self._http.post("/apply-template", body)
        except RequestRefused as refused:
            if refused.status not in _UNSUPPORTED:
                raise
            return ""
        return as_text(answer.get("prompt")) if isinstance(answer, dict) else ""

    def _marks(self, text: str, *, is_first: bool) -> list[int]:
        """Tokens of the frame, with special tokens parsed."""
        key = (text, is_first)
        if key not in self._frame_tokens:
            self._frame_tokens[key] = self._tokens(text, add_special=is_first, parse_special=True)
        return self._frame_tokens[key]

    def _turn_marks(self) -> dict[int, str]:
        """The special tokens of the frame; none from a server that is too old to report them."""
        frame = "".join(self._frame(has_system=True))
        body = {"content": frame, "parse_special": True, "with_pieces": True, **self._model_fields}
        answer = self._http.post("/tokenize", body)
        listed = answer.get("tokens") if isinstance(answer, dict) else None
        pieces = [entry for entry in listed if isinstance(entry, dict)] if listed else ()
        pairs = ((entry.get("id"), entry.get("piece")) for entry in pieces)
        return {
            number: piece
            for number, piece in pairs
            if isinstance(number, int) and isinstance(piece, str) and _MARK.fullmatch(piece)
        }

    def tokenize(self, text: str) -> list[int]:
        """Tokens of plain text: special tokens in it stay text."""
        options = {"add_special": False, "parse_special": False}
        tokens = self._tokens(text, **options)
        if self._known_marks is None:
            self._known_marks = self._turn_marks()
        marks = {self._known_marks[token] for token in tokens if token in self._known_marks}
        return self._tokens(_split_marks(text, marks), **options) if marks else tokens

    def _tokens(self, content: str | list[str], **options: bool) -> list[int]:
        """Tokens of a text, or of several texts that are tokenized separately."""
        answer = self._http.post("/tokenize", {"content": content, **options, **self._model_fields})
        tokens = answer.get("tokens") if isinstance(answer, dict) else None
        if not isinstance(tokens, list) or not all(
            isinstance(token, int) and 0 <= token < 2**31 for token in tokens
        ):
            raise ModelFailure(
                f"The llama.cpp server at {self._http.display_url} sent"
                " something other than a list of tokens."
            )
        return tokens


def _split_marks(text: str, marks: Iterable[str]) -> list[str]:
    """Split the text so that no piece contains a whole mark."""
    ways = (f"(?<={re.escape(mark[0])})(?={re.escape(mark[1:])})" for mark in sorted(marks))
    return re.split("|".join(ways), text)
