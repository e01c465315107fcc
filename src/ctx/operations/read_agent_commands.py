"""What an agent asked for in an answer: which commands, each under a name that is its own.

A command is named by its session, the message that it stands in, what it says, and how often the
message has said that before. So it is the same one however much of the message a reading has. The
transcript names messages; where it does not have one yet, prompt and words stand for its name.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable

from ctx import clock
from ctx.agent_commands import command_parser as grammar
from ctx.agent_commands.command_parser import Command, CommandProblem
from ctx.hook_files import spool
from ctx.hosts.events import Event
from ctx.hosts.host_adapter import Host
from ctx.hosts.transcripts import Message, Turn, has_final, storable
from ctx.memory import idempotency_keys
from ctx.memory.idempotency_keys import Claim
from ctx.sqlite.connection import transaction
from ctx.workspace import Memory

NamedCommand = tuple[str, Command | CommandProblem]
"""A command, under its name."""

# How long the end of an answer is waited for.
_LATE_S = 0.8
_POLL_S = 0.02
_MOST_PARAGRAPHS = 200
_UNNAMED = "~"


def commands_in_answer(
    memory: Memory, event: Event, name: str, deadline: float
) -> tuple[list[NamedCommand], str]:
    """The commands of an answer, and why it could not be read as a whole, if so."""
    if event.response is not None:
        # A hook that is run by hand may run twice.
        return _named_commands(f"{event.session} {event.id}", storable(event.response)), ""
    last = storable(event.text or "").strip()
    turn = _turn(memory.environment.hosts.named(event.host), event, name, last, deadline)
    if last and turn.messages and last.startswith(turn.messages[-1].text.strip()):
        # The client has sent more of the message than it has written to the transcript.
        told = turn.messages[-1]._replace(text=last)
        turn = turn._replace(messages=(*turn.messages[:-1], told))
    _name(memory, event.session, turn)
    asked = [
        each
        for message in turn.messages
        for each in _named_commands(f"{event.session} {message.id}", message.text)
    ]
    if not last or has_final(turn, last) or _is_error(turn, last):
        return asked, turn.problem
    return asked + _named_commands(
        f"{event.session} {_UNNAMED}{event.prompt} {_digest(last)}", last
    ), ""


def _turn(host: Host, event: Event, name: str, last: str, deadline: float) -> Turn:
    """The agent's text since the last Stop, from the transcript.

    The client may write the end of it only while the hook runs, so this waits for it: messages in
    the transcript have names, which distinguish them from repeated text.
    """
    path, transcript = event.transcript, host.transcripts
    if not path:
        return Turn((), "")
    start, end = spool.span_of(name)
    turn = transcript.last_turn(path, end, deadline)
    read = turn
    if start is not None:
        # Another Stop may have been missed. What is read twice has the same name twice.
        before = transcript.since(path, start, end, deadline)
        known = set(turn.messages)
        earlier = (message for message in before.messages if message not in known)
        read = turn._replace(
            messages=(*earlier, *turn.messages), problem=turn.problem or before.problem
        )
    if not last or end is None or has_final(turn, last) or _is_error(turn, last):
        return read
    patience = min(deadline, clock.monotonic() + _LATE_S)
    while True:
        late = transcript.since(path, end, None, deadline)
        if _is_error(late, last):
            return read._replace(errors=late.errors)
        until_last = _turn_up_to(late, last)
        if until_last is not None:
            return _join_turns(read, until_last)
        if clock.monotonic() > patience:
            return read
        clock.sleep(_POLL_S)


def _is_error(turn: Turn, last: str) -> bool:
    """Whether what the client calls the agent's last words is its own report of an error."""
    return any(error.split() == last.split() for error in turn.errors)


def _turn_up_to(turn: Turn, last: str) -> Turn | None:
    """The text up to the answer that the client calls its last; None if it is not there."""
    for count, message in enumerate(turn.messages, 1):
        if has_final(Turn((message,), ""), last):
            return Turn(turn.messages[:count], turn.problem)
    return None


def _join_turns(turn: Turn, late: Turn) -> Turn:
    """Two readings of which the second begins where the first ends, maybe inside a message."""
    first, rest = turn.messages[-1:], late.messages
    if first and rest and first[0].id == rest[0].id:
        joined = Message(first[0].id, f"{first[0].text}\n\n{rest[0].text}")
        return Turn((*turn.messages[:-1], joined, *rest[1:]), turn.problem or late.problem)
    return Turn((*turn.messages, *rest), turn.problem or late.problem)


def _name(memory: Memory, session: str, turn: Turn) -> None:
    """Claim what was done by its words alone, now that the transcript has it and names it."""
    unnamed: dict[str, list[str]] = {}
    for claim in idempotency_keys.with_prefix(memory.local, session, f"{session} {_UNNAMED}"):
        unnamed.setdefault(claim.split(" ")[-3], []).append(claim)
    for message in turn.messages if unnamed else ():
        # The client calls only the end of a message its last words.
        paragraphs = message.text.rsplit("\n\n", _MOST_PARAGRAPHS)
        ends = ("\n\n".join(paragraphs[at:]) for at in range(len(paragraphs)))
        digest = next((each for each in map(_digest, ends) if each in unnamed), None)
        if digest is not None:
            with transaction(memory.local):
                for claim in unnamed.pop(digest):
                    _claim_named(memory, session, message, claim)


def _claim_named(memory: Memory, session: str, message: Message, claim: str) -> None:
    """Give a claim the name that its command has in the message."""
    what = claim.split(" ")[-2]
    for name, _ in reversed(_named_commands(f"{session} {message.id}", message.text)):
        if name.split(" ")[-2] == what and not idempotency_keys.is_taken(memory.local, name):
            idempotency_keys.claim_command(memory.local, Claim(name, session, "?"))
            break
    idempotency_keys.drop(memory.local, claim)


def _named_commands(identity: str, text: str) -> list[NamedCommand]:
    return list(_numbered_commands(identity, grammar.parse(text)))


def _numbered_commands(
    identity: str, found: Iterable[Command | CommandProblem]
) -> Iterable[NamedCommand]:
    said: Counter[str] = Counter()
    for each in found:
        what = _digest(repr(each._replace(position=0)))
        yield f"{identity} {what} {said[what]}", each
        said[what] += 1


def _digest(text: str) -> str:
    words = " ".join(text.split()).encode("utf-8", "replace")
    return hashlib.blake2b(words, digest_size=12).hexdigest()
