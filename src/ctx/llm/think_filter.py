"""Models that think aloud: what they say between `<think>` and `</think>` is not their answer."""

from ctx.llm.protocol import OnToken

_BEGIN, _END = "<think>", "</think>"


class ThinkFilter:
    """Passes the pieces of an answer on, without the thoughts that stand before it."""

    def __init__(self, on_token: OnToken, *, is_thinking: bool) -> None:
        """`is_thinking`: the prompt itself has begun the thoughts."""
        self._hear = on_token
        self._said: list[str] = []
        self._held = ""
        self._is_thinking = is_thinking
        self._has_begun = False

    def feed(self, piece: str) -> None:
        if self._has_begun:
            self._pass_on(piece)
        elif self._is_thinking:
            self._think(piece)
        else:
            # As long as it may still become the mark.
            self._held += piece
            bare = self._held.lstrip()
            if bare.startswith(_BEGIN):
                self._is_thinking, self._held = True, ""
                self._think(bare.removeprefix(_BEGIN))
            elif not _BEGIN.startswith(bare):
                self._begin(self._held)

    def finish(self) -> str:
        """The whole answer. Thoughts that nothing followed are none."""
        if not self._has_begun and not self._is_thinking:
            self._begin(self._held)
        return "".join(self._said)

    def _think(self, piece: str) -> None:
        # Of what was thought only so much is held that the mark is seen across two pieces.
        thought = self._held + piece
        _, found, rest = thought.partition(_END)
        if not found:
            self._held = thought[-len(_END) :]
        elif rest.strip():
            self._begin(rest.lstrip())
        else:
            # The blanks between the thoughts and the answer are part of neither.
            self._held = f"{_END}{rest}"[: len(_END) + 1]

    def _begin(self, text: str) -> None:
        self._has_begun, self._is_thinking, self._held = True, False, ""
        self._pass_on(text)

    def _pass_on(self, piece: str) -> None:
        if piece:
            self._said.append(piece)
            self._hear(piece)
