"""What an agent asked for in an answer: which commands, each under a name that is its own.

A command is named by its session, the message that it stands in, and its place there. The
transcript names messages; where it does not have one, prompt and words stand for its name.
"""

import hashlib
from collections.abc import Sequence

from ctx import clock
from ctx.memory import claims, pending
from ctx.memory.claims import Claim
from ctx.sessions import commands as grammar
from ctx.sessions import spool, transcript
from ctx.sessions.events import Event
from ctx.sqlite.connection import transaction
from ctx.workspace import Memory

Asked = tuple[str, grammar.Command | grammar.Wrong]
"""A command, under its name."""

# How long the end of an answer is waited for.
_LATE_S = 0.8
_POLL_S = 0.02


def asked_in(memory: Memory, event: Event, name: str, deadline: float) -> tuple[list[Asked], str]:
    """The commands of an answer, and why it could not be read as a whole, if so."""
    said = event.said
    response = said.get("response")
    if isinstance(response, str):
        # Whoever tries it by hand may try it twice.
        return _found(f"{event.session} {event.id}", response), ""
    last = said.get("last_assistant_message")
    last = last.strip() if isinstance(last, str) else ""
    turn = _turn(memory, event, name, last, deadline)
    _name(memory, event.session, turn)
    asked: list[Asked] = []
    for message in turn.messages:
        asked += _found(f"{event.session} {message.id}", message.text)
    if last and not transcript.has_final(turn, last):
        asked += _found(_unnamed(event, last), last)
        with transaction(memory.graph.connection):
            pending.put(memory.graph, f"unnamed_answer:{event.session}", last)
    return asked, turn.problem


def _turn(memory: Memory, event: Event, name: str, last: str, deadline: float) -> transcript.Turn:
    """What the agent said since the last Stop, as the transcript has it.

    The client may write the end of it down only while the hook runs, so it is waited for: what
    the transcript has is named, and can be told from the same words said again.
    """
    path = event.said.get("transcript_path")
    if not isinstance(path, str) or not path:
        return transcript.Turn((), "")
    start, end = spool.span_of(name)
    before = transcript.Turn((), "")
    if start is None:
        # Nothing was seen of it yet: its last turn, and what came after.
        before, start = transcript.last_turn(path, end, deadline), end or 0
    patience = min(deadline, clock.monotonic() + _LATE_S)
    while True:
        after = transcript.since(path, start, None, deadline)
        turn = _joined([before, after])
        is_late = last and not _has_new(memory, event, turn, last)
        if not is_late or clock.monotonic() > patience:
            return turn
        clock.sleep(_POLL_S)


def _has_new(memory: Memory, event: Event, turn: transcript.Turn, last: str) -> bool:
    """Whether the answer is there that the client calls its last, and not only one like it."""
    if not transcript.has_final(turn, last):
        return False
    final = f"{event.session} {turn.messages[-1].id} 0" if turn.messages else ""
    return not claims.is_taken(memory.graph.connection, final)


def _name(memory: Memory, session: str, turn: transcript.Turn) -> None:
    """Claim what was done by its words alone, now that the transcript has it and names it."""
    key = f"unnamed_answer:{session}"
    done = pending.get(memory.graph, key)
    if done is None:
        return
    count = len(grammar.parse(done))
    for message in turn.messages:
        if transcript.has_final(transcript.Turn((message,), ""), done):
            found = _found(f"{session} {message.id}", message.text)
            with transaction(memory.graph.connection):
                # The client calls only the end of a message its last.
                for claim, _ in found[len(found) - count :]:
                    if not claims.is_taken(memory.graph.connection, claim):
                        claims.take(memory.graph.connection, Claim(claim, session, "?"))
                pending.take(memory.graph, key)
            return


def _joined(turns: Sequence[transcript.Turn]) -> transcript.Turn:
    """Several readings as one. A message may begin in one and end in the next."""
    texts: dict[str, str] = {}
    for message in (message for turn in turns for message in turn.messages):
        known = texts.get(message.id)
        texts[message.id] = f"{known}\n\n{message.text}" if known else message.text
    messages = tuple(transcript.Message(*each) for each in texts.items())
    return transcript.Turn(messages, next((t.problem for t in turns if t.problem), ""))


def _unnamed(event: Event, text: str) -> str:
    """What names an answer where the transcript does not."""
    digest = hashlib.blake2b(text.strip().encode("utf-8", "replace"), digest_size=16).hexdigest()
    return f"{event.session} {event.said.get('prompt_id', '')} {digest}"


def _found(identity: str, text: str) -> list[Asked]:
    return [(f"{identity} {found.position}", found) for found in grammar.parse(text)]
