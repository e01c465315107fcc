"""What an agent asked for in an answer: which commands, each under a name that is its own.

A command is named by its session, the message that it stands in, and its place there. The
transcript names messages; where it does not have one, prompt and words stand for its name.
"""

import hashlib
import json
from collections.abc import Sequence

from ctx import clock
from ctx.memory import claims, pending
from ctx.memory.claims import Claim
from ctx.sessions import commands as grammar
from ctx.sessions import spool, transcript
from ctx.sessions.events import Event
from ctx.sessions.transcript import Message, Turn
from ctx.sqlite.connection import transaction
from ctx.workspace import Memory

Asked = tuple[str, grammar.Command | grammar.Wrong]
"""A command, under its name."""

# How long the end of an answer is waited for.
_LATE_S = 0.8
_POLL_S = 0.02
_MOST_PARAGRAPHS = 200


def asked_in(memory: Memory, event: Event, name: str, deadline: float) -> tuple[list[Asked], str]:
    """The commands of an answer, and why it could not be read as a whole, if so."""
    said = event.said
    response = said.get("response")
    if isinstance(response, str):
        # Whoever tries it by hand may try it twice.
        return _found(f"{event.session} {event.id}", transcript.storable(response)), ""
    last = said.get("last_assistant_message")
    last = transcript.storable(last).strip() if isinstance(last, str) else ""
    turn = _turn(event, name, last, deadline)
    _name(memory, event.session, turn)
    asked: list[Asked] = []
    for message in turn.messages:
        asked += _found(f"{event.session} {message.id}", message.text)
    if last and not transcript.has_final(turn, last):
        asked += _found(_unnamed(event, last), last)
        with transaction(memory.graph.connection):
            # Its words may hold secrets: what is kept only tells whether others are the same.
            done = json.dumps([_digest(last), len(grammar.parse(last))])
            pending.put(memory.graph, f"unnamed_answer:{event.session}", done)
    return asked, turn.problem


def _turn(event: Event, name: str, last: str, deadline: float) -> Turn:
    """What the agent said since the last Stop, as the transcript has it.

    The client may write the end of it down only while the hook runs, so it is waited for: what
    the transcript has is named, and can be told from the same words said again.
    """
    path = event.said.get("transcript_path")
    if not isinstance(path, str) or not path:
        return Turn((), "")
    start, end = spool.span_of(name)
    turn = transcript.last_turn(path, end, deadline)
    # A Stop may be the second one for the same answer, and another may have been missed.
    read = turn if start is None else _joined([transcript.since(path, start, end, deadline), turn])
    if not last or end is None or transcript.has_final(turn, last):
        return read
    patience = min(deadline, clock.monotonic() + _LATE_S)
    while True:
        late = _up_to(transcript.since(path, end, None, deadline), last)
        if late is not None:
            return _continued(read, late)
        if clock.monotonic() > patience:
            return read
        clock.sleep(_POLL_S)


def _up_to(turn: Turn, last: str) -> Turn | None:
    """What was said up to the answer that the client calls its last; None where it is not there."""
    for count, message in enumerate(turn.messages, 1):
        if transcript.has_final(Turn((message,), ""), last):
            return Turn(turn.messages[:count], turn.problem)
    return None


def _joined(turns: Sequence[Turn]) -> Turn:
    """Several readings as one. Of a message in two of them, the later has more."""
    texts = {message.id: message.text for turn in turns for message in turn.messages}
    messages = tuple(Message(*each) for each in texts.items())
    return Turn(messages, next((turn.problem for turn in turns if turn.problem), ""))


def _continued(turn: Turn, late: Turn) -> Turn:
    """Two readings of which the second begins where the first ends, maybe inside a message."""
    texts = {message.id: message.text for message in turn.messages}
    for message in late.messages:
        known = texts.get(message.id)
        texts[message.id] = f"{known}\n\n{message.text}" if known else message.text
    return Turn(tuple(Message(*each) for each in texts.items()), turn.problem or late.problem)


def _name(memory: Memory, session: str, turn: Turn) -> None:
    """Claim what was done by its words alone, now that the transcript has it and names it."""
    key = f"unnamed_answer:{session}"
    done = pending.get(memory.graph, key)
    if done is None:
        return
    digest, count = json.loads(done)
    for message in turn.messages:
        # As many of its last paragraphs as the client may have called its last words.
        blocks = message.text.rsplit("\n\n", _MOST_PARAGRAPHS)
        if digest in (_digest("\n\n".join(blocks[at:])) for at in range(len(blocks))):
            found = _found(f"{session} {message.id}", message.text)
            with transaction(memory.graph.connection):
                # The client calls only the end of a message its last.
                for claim, _ in found[len(found) - count :]:
                    if not claims.is_taken(memory.graph.connection, claim):
                        claims.take(memory.graph.connection, Claim(claim, session, "?"))
                pending.take(memory.graph, key)
            return


def _unnamed(event: Event, text: str) -> str:
    """What names an answer where the transcript does not."""
    return f"{event.session} {event.said.get('prompt_id', '')} {_digest(text)}"


def _digest(text: str) -> str:
    words = " ".join(text.split()).encode("utf-8", "replace")
    return hashlib.blake2b(words, digest_size=16).hexdigest()


def _found(identity: str, text: str) -> list[Asked]:
    return [(f"{identity} {found.position}", found) for found in grammar.parse(text)]
