"""The prompt cache of a llama.cpp server, saved between calls on the server's disk.

A server keeps the state of its model after a prompt in a slot. A server that was started with
`--slot-save-path` can save this state to its disk and restore it. ctx knows the saved states by
hashes, one at the end of each part of a prompt: the next prompt is compared part by part, and if
enough of its beginning is known, the state is restored.

All of this only saves time. The server itself compares the tokens, so a file with another prompt
than expected makes an answer slower, but not wrong. Requests that the server refuses are not
repeated.
"""

import json
import os
import re
import struct
from collections.abc import Sequence
from glob import escape, glob
from hashlib import blake2b
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from ctx import clock, disk
from ctx.errors import ModelFailure
from ctx.llm import event_stream
from ctx.llm.http_client import HttpClient

_FILES = 4
"""Files per server and user. They cannot be deleted there, so they are reused."""
_WORTH = 32
"""Tokens. Shorter prompts are neither saved nor restored."""
_RESTORE_FACTOR = 4
"""Restore a file only if at least a quarter of it is useful: states of large models are large."""
_MOST_MISSES = 3
_RETRY_AFTER_MS = 24 * 60 * 60 * 1000
_LARGEST_STATE = 256 * 1024
_VERSION = 2
_COUNTED = {"save": ("n_saved", "n_written"), "restore": ("n_restored", "n_read")}
_DAMAGED = (OSError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError)
"""The errors that reading a damaged file can raise."""
_NAME = re.compile(r"ctx-[0-9a-f]{16}-\d\.bin")


class SlotFile(NamedTuple):
    """A file that a server wrote; it contains the tokens of a prompt."""

    where: str
    """The URL of the server."""
    file: str


class Boundary(NamedTuple):
    """The end of a part of a prompt."""

    digest: str
    """A hash of all tokens up to here and of the part boundaries before."""
    tokens: int


class SavedState(NamedTuple):
    """A saved model state on the server's disk."""

    file: str
    boundaries: tuple[Boundary, ...]
    used_ms: int
    held: tuple[int, ...] = ()
    """Where it is in the server's memory: slot, last task, tokens. If the server reports the same,
    nobody used the slot since."""


class SlotState(NamedTuple):
    """What is known about one server."""

    model: str
    """A hash of everything that must match for a state to be useful."""
    saved: tuple[SavedState, ...] = ()
    misses: int = 0
    """How many restored states in a row were useless. Some models cannot continue from one."""
    missed_ms: int = 0
    """The time of the last miss."""

    @property
    def is_useless(self) -> bool:
        """Whether restored states are useless. Other users of the slots may have caused the misses,
        so it is tried again later."""
        return (
            self.misses >= _MOST_MISSES and abs(clock.now_ms() - self.missed_ms) < _RETRY_AFTER_MS
        )


class RecalledSlot(NamedTuple):
    slot: int | None
    """The slot for the request; None to let the server choose."""
    known: Boundary | None = None
    """The part of the prompt that the slot should have."""
    is_restored: bool = False


class SlotUsage(NamedTuple):
    """The token counts of a finished request."""

    cached: int
    """Prompt tokens that were in the slot."""
    answered: int


class Slots:
    """The slots of one server."""

    def __init__(
        self, http: HttpClient, model_fields: dict[str, str], folder: str, model: str
    ) -> None:
        """`model` identifies everything that a state depends on."""
        self._http = http
        self._fields = model_fields
        self._model = _digest(model.encode())
        named = "\0".join((http.display_url, *model_fields.values(), folder))
        self._key = _digest(named.encode("utf-8", "surrogateescape"))[:16]
        self._folder = folder
        self._path = os.path.join(folder, f"slots-{self._key}.json")

    def recall(self, prompt: Sequence[Boundary]) -> RecalledSlot:
        """Restore the slot that has the longest prefix of a prompt."""
        state = self._state()
        best = _best(state.saved, prompt)
        if best is None or state.is_useless:
            return RecalledSlot(None)
        saved, known = best
        slots = self._slots()
        for slot in slots:
            if slot.is_idle and slot.held == saved.held and min(slot.held) >= 0:
                return RecalledSlot(slot.number, known)
        if known.tokens * _RESTORE_FACTOR < saved.boundaries[-1].tokens:
            return RecalledSlot(None)
        idle = [slot for slot in slots if slot.is_idle]
        if slots and not idle:
            return RecalledSlot(None)
        # The least recently used slot; slot 0 if the server does not list them.
        number = min(idle, key=lambda slot: slot.held[1]).number if idle else 0
        if self._act(number, "restore", saved.file) is None:
            self._write(state._replace(saved=_without_file(state.saved, saved.file)))
            return RecalledSlot(None)
        return RecalledSlot(number, known, is_restored=True)

    def keep(
        self, slot: int, prompt: Sequence[Boundary], recalled: RecalledSlot, usage: SlotUsage
    ) -> bool:
        """Save the slot; whether it can be restored next time."""
        state = self._without_misses(self._state(), recalled, usage)
        whole = prompt[-1].tokens
        if state.is_useless or whole < _WORTH:
            self._write(state)
            return False
        best = _best(state.saved, prompt)
        if best is not None and whole - best[1].tokens < _WORTH:
            kept = best[0]
            others = _without_file(state.saved, kept.file)
        else:
            kept = SavedState(self._file_for(state.saved, best), tuple(prompt), 0)
            others = _without_file(state.saved, kept.file)
            # A server that stops while it writes leaves a partial file, and restoring that can
            # crash it. So the file is forgotten until it is complete.
            if not self._write(state._replace(saved=others)):
                return False
            tokens = self._act(slot, "save", kept.file)
            # Another client may have used the slot meanwhile.
            if tokens is None or not whole <= tokens <= whole + usage.answered:
                return False
        held = next((entry.held for entry in self._slots() if entry.number == slot), ())
        kept = kept._replace(used_ms=clock.now_ms(), held=held)
        return self._write(state._replace(saved=(kept, *others)[:_FILES]))

    def _without_misses(
        self, state: SlotState, recalled: RecalledSlot, usage: SlotUsage
    ) -> SlotState:
        """The state without saved files that turned out to be useless."""
        if not recalled.is_restored or recalled.known is None:
            return state
        # The last token of a prompt is always evaluated.
        if usage.cached >= recalled.known.tokens - 1:
            return state._replace(misses=0)
        saved = tuple(entry for entry in state.saved if recalled.known not in entry.boundaries)
        return state._replace(saved=saved, misses=state.misses + 1, missed_ms=clock.now_ms())

    def _file_for(
        self, saved: Sequence[SavedState], best: tuple[SavedState, Boundary] | None
    ) -> str:
        """The file of a prompt that this one extends, else a free one, else the oldest."""
        if best is not None and best[1].tokens * 2 > best[0].boundaries[-1].tokens:
            return best[0].file
        taken = {entry.file for entry in saved}
        names = (f"ctx-{self._key}-{number}.bin" for number in range(_FILES))
        free = next((name for name in names if name not in taken), None)
        return free or min(saved, key=lambda entry: entry.used_ms).file

    def _act(self, slot: int, action: Literal["save", "restore"], file: str) -> int | None:
        """Save or restore a slot; the number of tokens, or None if the server refused."""
        body = {"filename": file, **self._fields}
        try:
            answer = self._http.post(f"/slots/{slot}?action={action}", body)
        except ModelFailure:
            return None
        tokens, size = (
            answer.get(name) if isinstance(answer, dict) else None for name in _COUNTED[action]
        )
        # On a full disk the server writes an empty file and reports no error.
        return tokens if isinstance(tokens, int) and tokens > 0 and size != 0 else None

    def _slots(self) -> list["_Slot"]:
        """The server's slots; empty if it does not list them."""
        query = "".join(f"?model={quote(name, safe='')}" for name in self._fields.values())
        try:
            answer = self._http.get(f"/slots{query}")
        except ModelFailure:
            return []
        slots = [_slot(entry) for entry in answer] if isinstance(answer, list) else []
        return [slot for slot in slots if slot is not None]

    def _state(self) -> SlotState:
        """The stored state, if it is valid and for this model."""
        try:
            state = _slot_state(json.loads(disk.read_plain(self._path, _LARGEST_STATE)))
        except _DAMAGED:
            return SlotState(self._model)
        return state if state.model == self._model else SlotState(self._model)

    def _write(self, state: SlotState) -> bool:
        saved = [[entry.file, entry.boundaries, entry.used_ms, entry.held] for entry in state.saved]
        whole = [
            _VERSION,
            self._http.display_url,
            state.model,
            saved,
            state.misses,
            state.missed_ms,
        ]
        text = json.dumps(whole, separators=(",", ":"))
        try:
            disk.make_folder(self._folder)
            disk.replace(self._path, text.encode())
        except OSError:
            # A full disk is reported where it matters.
            return False
        return True


def forget(folder: str) -> list[SlotFile]:
    """Forget all saved states; returns the files on the servers' disks."""
    files = []
    for path in sorted(glob(os.path.join(escape(folder), "slots-*.json"))):
        try:
            state = json.loads(disk.read_plain(path, _LARGEST_STATE))
            files += [
                SlotFile(event_stream.shorten(str(state[1])), entry.file)
                for entry in _slot_state(state).saved
            ]
        except _DAMAGED:
            pass
        disk.discard(path)
    return files


class _Slot(NamedTuple):
    number: int
    is_idle: bool
    held: tuple[int, int, int]


def boundaries(parts: Sequence[Sequence[int]]) -> tuple[Boundary, ...]:
    """The boundaries of a prompt whose parts are given as tokens."""
    result: list[Boundary] = []
    digest, tokens = "", 0
    for part in parts:
        digest = _digest(digest.encode() + struct.pack(f"<{len(part)}q", *part))
        tokens += len(part)
        result.append(Boundary(digest, tokens))
    return tuple(result)


def known_part(prompt: Sequence[Boundary], tokens: int) -> str:
    """The hash of the parts within the first tokens of a prompt."""
    return next((boundary.digest for boundary in reversed(prompt) if boundary.tokens <= tokens), "")


def _best(
    saved: Sequence[SavedState], prompt: Sequence[Boundary]
) -> tuple[SavedState, Boundary] | None:
    """The saved state with the longest prefix of a prompt, and where that ends."""
    matches = []
    for entry in saved:
        theirs = set(entry.boundaries)
        known = next((one for one in reversed(prompt) if one in theirs), None)
        if known is not None and known.tokens >= _WORTH:
            matches.append((entry, known))
    return max(matches, key=lambda pair: (pair[1].tokens, pair[0].used_ms), default=None)


def _without_file(saved: Sequence[SavedState], file: str) -> tuple[SavedState, ...]:
    return tuple(entry for entry in saved if entry.file != file)


def _slot(info: Any) -> _Slot | None:
    if not isinstance(info, dict) or not isinstance(info.get("id"), int):
        return None
    task, tokens = (
        value if isinstance(value, int) else -1
        for value in (info.get("id_task"), info.get("n_prompt_tokens"))
    )
    is_idle = info.get("is_processing") is False
    return _Slot(info["id"], is_idle, (info["id"], task, tokens))


def _slot_state(value: Any) -> SlotState:
    version, _, model, saved, misses, missed_ms = value
    if version != _VERSION:
        raise ValueError("It was written by another ctx.")
    states = []
    for file, ends, used_ms, held in saved[:_FILES]:
        if not _NAME.fullmatch(file) or not ends:
            raise ValueError("That is no file of ours.")
        marks = tuple(Boundary(str(digest), int(tokens)) for digest, tokens in ends)
        states.append(SavedState(file, marks, int(used_ms), tuple(map(int, held))))
    return SlotState(str(model), tuple(states), int(misses), int(missed_ms))


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
