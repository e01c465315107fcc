"""Removes the text between `<think>` and `</think>`, which is not part of the answer."""

from ctx.llm.protocol import OnToken

_BEGIN, _END = "<think>", "</think>"


class ThinkFilter:
    """Passes on the pieces of an answer without the thinking before it."""

    def __init__(self, on_token: OnToken, *, is_thinking: bool) -> None:
        """`is_thinking`: the prompt ends with an open `<think>`."""
        self._hear = on_token
        self._pieces: list[str] = []
        self._held = ""
        self._is_thinking = is_thinking
        self._has_begun = False

    def feed(self, piece: str) -> None:
        if self._has_begun:
            self._pass_on(piece)
        elif self._is_thinking:
            self._think(piece)
        else:
            # Wait while the text may still become the tag.
            self._held += piece
            bare = self._held.lstrip()
            if bare.startswith(_BEGIN):
                self._is_thinking, self._held = True, ""
                self._think(bare.removeprefix(_BEGIN))
            elif not _BEGIN.startswith(bare):
                self._begin(self._held)

    def finish(self) -> str:
        """The whole answer; empty if only thinking arrived."""
        if not self._has_begun and not self._is_thinking:
            self._begin(self._held)
        return "".join(self._pieces)

    def _think(self, piece: str) -> None:
        # Keep just enough text to recognise a tag that spans two pieces.
        thought = self._held + piece
        _, end_tag, rest = thought.partition(_END)
        if not end_tag:
            self._held = thought[-len(_END) :]
        elif rest.strip():
            self._begin(rest.lstrip())
        else:
            # Blanks between the thinking and the answer belong to neither.
            self._held = f"{_END}{rest}"[: len(_END) + 1]

    def _begin(self, text: str) -> None:
        self._has_begun, self._is_thinking, self._held = True, False, ""
        self._pass_on(text)

    def _pass_on(self, piece: str) -> None:
        if piece:
            self._pieces.append(piece)
            self._hear(piece)
