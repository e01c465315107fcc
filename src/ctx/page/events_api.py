"""The HTTP API for observing: what an agent saw and did, as one step of its session."""

from collections.abc import Sequence
from contextlib import closing
from typing import Annotated

import msgspec

from ctx.ids import session_id
from ctx.operations import observe
from ctx.operations.observe import (
    Observation,
    ObservedCommand,
    ObservedNote,
    ObserveResult,
    RejectedObservation,
)
from ctx.page.api import PlaceQuery
from ctx.page.endpoints import ApiEndpoint
from ctx.page.requests import PageRequest
from ctx.workspace import Environment, open_project

EventPath = Annotated[str, msgspec.Meta(min_length=1, max_length=4_000)]
EventText = Annotated[str, msgspec.Meta(min_length=1, max_length=2_000_000)]
EventOutput = Annotated[str, msgspec.Meta(max_length=2_000_000)]
ExitCode = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class ObservedEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """Something that an agent saw or did."""


class FileReadEvent(ObservedEvent, frozen=True, tag="file_read"):
    """A file was read. It is kept as it is now."""

    path: EventPath


class FileWriteEvent(ObservedEvent, frozen=True, tag="file_write"):
    """A file was written with this content."""

    path: EventPath
    content: EventOutput


class CommandEvent(ObservedEvent, frozen=True, tag="command"):
    """A command was run."""

    command: EventText
    output: EventOutput = ""
    exit_code: ExitCode | None = None


class NoteEvent(ObservedEvent, frozen=True, tag="note"):
    """Something to keep in mind."""

    text: EventText


SentEvent = FileReadEvent | FileWriteEvent | CommandEvent | NoteEvent


class EventsBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    events: Annotated[tuple[SentEvent, ...], msgspec.Meta(min_length=1, max_length=200)]
    session: Annotated[str, msgspec.Meta(max_length=128)] = ""
    """The session that they belong to; empty: the one that a command in this folder would join."""


def observe_events(request: PageRequest, query: PlaceQuery, body: EventsBody) -> ObserveResult:  # noqa: ARG001
    """Store what an agent saw and did: files, commands and notes, as one step."""
    session = session_id(body.session) if body.session else None
    files = [each for each in body.events if isinstance(each, FileReadEvent | FileWriteEvent)]
    seen = _files(request.environment, files) if files else {}
    observed: list[Observation] = []
    rejected: list[RejectedObservation] = []
    for each in body.events:
        match each:
            case FileReadEvent() | FileWriteEvent():
                file = seen[id(each)]
                if isinstance(file, RejectedObservation):
                    rejected.append(file)
                else:
                    observed.append(file)
            case CommandEvent():
                output = each.output.encode()
                observed.append(ObservedCommand(each.command, output, each.exit_code))
            case NoteEvent():
                observed.append(ObservedNote(each.text))
    with request.writing(session) as memory:
        kept = observe.keep(memory, observed)
    return kept._replace(not_kept=(*rejected, *kept.not_kept))


def _files(
    environment: Environment, files: Sequence[FileReadEvent | FileWriteEvent]
) -> dict[int, observe.ObservedFile | RejectedObservation]:
    """The files of a project. E012 if the folder is not in one."""
    project = open_project(environment)
    with closing(project.memory):
        return {
            id(each): observe.observe_file(project, environment.folder, each.path)
            if isinstance(each, FileReadEvent)
            else observe.take(project, environment.folder, each.path, each.content.encode())
            for each in files
        }


ENDPOINTS = [ApiEndpoint("POST", "/events", observe_events)]
