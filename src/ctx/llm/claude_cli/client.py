"""Claude Code's own program as a model, with the login that a person has there.

It is an agent, and here it is to be nothing but a way to its model. So everything is off that makes
it one: tools, hooks, servers, skills, the files with a person's instructions, thinking. What was
asked is left nowhere: it works in a folder of its own that is gone afterwards, keeps no session
where it can do without, and otherwise whatever it wrote under the session's id is removed.

It is a stranger's program, so what it can use is bounded from outside. It would go on by itself
where an answer is cut off for its length, or refused; a budget that the first answer uses up
prevents that. Clients that have no such budget answer a failure of the stream with a second request
(`_Client.requests`); and before the first question they ask two of their agents to warm up, by a
model's name that `CLAUDE_CODE_SUBAGENT_MODEL` gives and that no server knows.

Settings that a client cannot read are passed over in silence, and then hooks run. So there are two
of them, which every client knows, and `CTX_OFF` is set beside.
"""

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ctx import clock, disk
from ctx.errors import BudgetExceeded, ModelFailure
from ctx.llm import stream
from ctx.llm.claude_cli import program
from ctx.llm.claude_cli.place import place
from ctx.llm.claude_cli.reply import Reply
from ctx.llm.model import Answer, BackendName, Hear, Meter, Request, Seen
from ctx.llm.stream import Broken, Heard
from ctx.llm.tries import Failed, Patience, Waits, not_allowed
from ctx.tokens import estimate

OVERHEAD = 4_096
"""Bytes that a client puts around what it is asked: 2,200 were seen at most (2.1.325, with a
person's language set), 540 with an older one (2.0.47)."""

_LARGEST = 8_000_000
_LARGEST_FRAME = 1_000
"""Bytes that a client may put around each token of an answer."""
_SLOWEST = 10
"""The whole may take so many times the longest silence."""
_STARTS_WITHIN_S = 20.0
"""Older clients take two seconds to say their version, and more where much else is going on."""

_NEEDED = (
    *("--print", "--output-format", "--include-partial-messages", "--system-prompt", "--tools"),
    *("--strict-mcp-config", "--setting-sources", "--settings", "--session-id"),
)
_KEEPS_NOTHING = "--no-session-persistence"
_IS_SPARING = "--safe-mode"
_WHERE_KNOWN = {
    _KEEPS_NOTHING: (_KEEPS_NOTHING,),
    _IS_SPARING: (_IS_SPARING,),
    "--disable-slash-commands": ("--disable-slash-commands",),
    "--max-budget-usd": ("--max-budget-usd", "0.000001"),
}
_TELLS_LOGIN = (2, 1, 325)
"""The first client that is known to say whether somebody is logged in."""

_SETTINGS = {"disableAllHooks": True, "outputStyle": "default"}
_SURROUNDINGS = {
    "CTX_OFF": "1",
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    "CLAUDE_CODE_DISABLE_THINKING": "1",
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "CLAUDE_CODE_SUBAGENT_MODEL": "none",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_COMPACT": "1",
    "MAX_THINKING_TOKENS": "0",
}
_KEPT_VARIABLES = (
    *("CLAUDE_CONFIG_DIR", "CLAUDE_SECURESTORAGE_CONFIG_DIR", "CLAUDE_API_KEY"),
    *("CLAUDE_CODE_API_", "CLAUDE_CODE_CERT_", "CLAUDE_CODE_CLIENT_", "CLAUDE_CODE_OAUTH_TOKEN"),
    *("CLAUDE_CODE_PROXY_", "CLAUDE_CODE_SKIP_", "CLAUDE_CODE_USE_"),
)
"""How those variables of Claude Code begin that say who one is. The others tell of the session
that somebody is in, or how it is to behave."""
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD")
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_LOG_IN = "Run `claude` and log in there with `/login`; ctx uses that login."


class _Client(NamedTuple):
    """An installed client, and what it can do."""

    program: str
    options: tuple[str, ...]

    @property
    def requests(self) -> int:
        """How many it may send for one question."""
        return 1 if _IS_SPARING in self.options else 2


class ClaudeCli:
    def __init__(
        self,
        command: str,
        model: str,
        folder: str,
        variables: Mapping[str, str],
        patience: Patience,
    ) -> None:
        """`variables` is the whole environment; `folder` is for nobody else."""
        self._command = command
        self._model = model
        self._folder = folder
        self._variables = variables
        self._patience = patience
        self._client: _Client | None = None
        self._running: program.Running | None = None
        self._is_closed = False

    @property
    def name(self) -> BackendName:
        return "claude_cli"

    @property
    def where(self) -> str:
        return program.found(self._command, self._variables) or self._command

    @property
    def model(self) -> str:
        return self._model

    @property
    def is_free(self) -> bool:
        return False

    def ask(self, request: Request, meter: Meter, hear: Hear) -> Answer:
        client = self._known_client()
        waits = Waits(self._patience)
        failure: ModelFailure | None = None
        while not self._is_closed:
            try:
                return self._tried(client, request, meter, hear)
            except BudgetExceeded as error:
                raise not_allowed(error, failure) from failure
            except Failed as failed:
                failure = failed.failure
                pause_s = waits.after(failed)
                if pause_s is None:
                    break
            clock.sleep(pause_s)
        raise failure or self._failure("was closed and cannot be asked any more")

    def look(self) -> Seen:
        """Its version, and whether somebody is logged in, as far as it tells without asking."""
        found = _VERSION.search(self._told("--version"))
        if found is None:
            raise self._failure("does not say its version, so it may be another program")
        version = tuple(int(number) for number in found[0].split("."))
        if version >= _TELLS_LOGIN:
            with contextlib.suppress(ValueError, RecursionError):
                state = json.loads(self._told("auth", "status"))
                if isinstance(state, dict) and state.get("loggedIn") is False:
                    raise self._failure("is not logged in", _LOG_IN)
        model = "" if self._model == "default" else self._model
        return Seen(model, detail=f"Claude Code {found[0]}")

    def close(self) -> None:
        """Also ends what is under way, for another thread that waits for it."""
        self._is_closed = True
        if self._running is not None:
            self._running.stop()

    # One question

    def _tried(self, client: _Client, request: Request, meter: Meter, hear: Hear) -> Answer:
        said = _said(request)
        sent = json.dumps([_clean(request.system), said], ensure_ascii=False).encode()
        most = client.requests * (len(sent) + OVERHEAD + request.max_tokens)
        with place(self._folder, self._variables) as folder:
            reservation = meter.reserve(most, estimate(request.system) + estimate(said))
            heard = Heard(request.max_tokens, hear)
            try:
                with self._started(client, request, said, folder) as running:
                    answer = self._answer(client, running, heard)
            except Failed as failed:
                if not failed.counts:
                    reservation.release()
                raise
            finally:
                if heard.excess:
                    reservation.exceed(heard.excess)
            if answer.usage and not heard.belies(answer.usage):
                reservation.settle(answer.usage, answer.model)
            return answer

    def _answer(self, client: _Client, running: program.Running, heard: Heard) -> Answer:
        began = clock.monotonic()
        reply = Reply(heard)
        broken: Broken | None = None
        try:
            for line in running.lines():
                if reply.take(line):
                    running.heard()
                if reply.is_enough or reply.has_ended:
                    break
            if not reply.is_enough:
                running.wait()
        except Broken as error:
            broken = error
        answer = Answer(
            heard.text,
            reply.model or self._model,
            reply.usage,
            reply.stop,
            duration_ms=round((clock.monotonic() - began) * 1000),
        )
        if reply.is_whole:
            return answer
        broken = broken or _went_wrong(reply, running)
        if not answer.text:
            raise self._refused(client, reply, running, broken)
        return answer._replace(stop="cut", problem=self._failure(broken.what).message)

    @contextlib.contextmanager
    def _started(
        self, client: _Client, request: Request, said: str, folder: str
    ) -> Iterator[program.Running]:
        settings = os.path.join(folder, "settings.json")
        words = [client.program, "--print", "--verbose", "--output-format", "stream-json"]
        words += ["--include-partial-messages", "--tools", "", "--strict-mcp-config"]
        words += ["--setting-sources", "user", "--settings", settings, *client.options]
        words += ["--session-id", os.path.basename(folder)]
        words += ["--system-prompt", _clean(request.system)]
        if self._model not in ("", "default"):
            words += ["--model", _clean(self._model)]
        variables = self._environment(folder)
        variables["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = str(request.max_tokens)
        silence_s = self._patience.silence_s
        largest = _LARGEST + _LARGEST_FRAME * request.max_tokens
        limits = program.Limits(silence_s, silence_s * _SLOWEST, largest)
        try:
            disk.replace(settings, json.dumps(_SETTINGS).encode(), durable_name=False)
            running = program.Running(words, variables, folder, said.encode(), limits)
        except OSError as error:
            raise self._not_started(error) from error
        self._running = running
        try:
            yield running
        finally:
            running.end()
            self._running = None

    def _refused(
        self, client: _Client, reply: Reply, running: program.Running, broken: Broken
    ) -> Failed:
        status = reply.status
        hint = broken.hint
        is_unknown = "unknown option" in running.complaints
        if reply.is_logged_out or status in (401, 403):
            hint = _LOG_IN
        elif status == 404:
            hint = "`ctx config set llm.model NAME` names a model; `default` is the client's own."
        elif is_unknown:
            hint = "It may be too old: update Claude Code."
        # Of several requests the last one's fate is told, and another may have been carried out.
        told = range(400, 500) if client.requests == 1 else (401, 403, 404)
        not_carried_out = (
            *(reply.is_logged_out, reply.is_unreachable, is_unknown),
            status in told and status != 408,
        )
        return Failed(
            self._failure(broken.what, hint),
            counts=not any(not_carried_out),
            may_repeat=status in stream.BUSY,
        )

    # The client

    def _known_client(self) -> _Client:
        if self._client is None:
            can = self._told("--help")
            missing = [option for option in _NEEDED if option not in can]
            if missing:
                raise self._failure(
                    f"does not know {missing[0]}, so it is too old or another program",
                    "Update Claude Code, or name its program: `ctx config set llm.command PATH`.",
                )
            options = [words for option, words in _WHERE_KNOWN.items() if option in can]
            self._client = _Client(self.where, tuple(word for words in options for word in words))
        return self._client

    def _told(self, *words: str) -> str:
        """What it answers to a question about itself, which spends nothing."""
        path = program.found(self._command, self._variables)
        if path is None:
            raise ModelFailure(
                f"There is no program {stream.shown(self._command)} on the PATH.",
                hint="Install Claude Code, or say where it is: `ctx config set llm.command PATH`.",
            )
        limits = program.Limits(_STARTS_WITHIN_S, _STARTS_WITHIN_S, _LARGEST)
        with tempfile.TemporaryDirectory(prefix="ctx-", ignore_cleanup_errors=True) as folder:
            try:
                running = program.Running(
                    [path, *words], self._environment(folder), folder, b"", limits
                )
            except OSError as error:
                raise self._not_started(error).failure from error
            try:
                lines = list(running.lines())
                running.wait()
            except Broken as broken:
                raise self._failure(broken.what, broken.hint) from broken
            finally:
                running.end()
        return b"\n".join(lines).decode("utf-8", "replace")

    def _environment(self, folder: str) -> dict[str, str]:
        """A person's variables, but for those that say that one is inside a session."""
        kept = {
            name: value
            for name, value in self._variables.items()
            if not name.startswith("CLAUDE") or name.startswith(_KEPT_VARIABLES)
        }
        return {
            **kept,
            **_SURROUNDINGS,
            # The name of a file, in spite of its name.
            "CLAUDE_CODE_DEBUG_LOGS_DIR": os.path.join(folder, "debug.txt"),
            "CLAUDE_CODE_TMPDIR": folder,
        }

    def _not_started(self, error: OSError) -> Failed:
        reason = error.strerror or type(error).__name__
        failure = self._failure(f"cannot be started: {reason}")
        return Failed(failure, counts=False, may_repeat=False)

    def _failure(self, what: str, hint: str | None = None) -> ModelFailure:
        for name, value in self._variables.items():
            if _SECRET.search(name) and len(value) > 3:
                what = what.replace(value, "…")
        what = stream.shown(what).rstrip(".")
        return ModelFailure(f"Claude Code at {self.where} {what}.", hint=hint)


def _went_wrong(reply: Reply, running: program.Running) -> Broken:
    """Why there is no answer, by all that the program said."""
    if reply.complaint:
        return Broken(f"refused: {reply.complaint}")
    if reply.has_ended:
        return Broken("answered with nothing")
    said = running.complaints.strip() or reply.noise
    last = said.splitlines()[-1] if said else ""
    how = f"ended without an answer (exit code {running.exit_code})"
    return Broken(f"{how}: {last}".removesuffix(": "))


def _said(request: Request) -> str:
    """The question as it is sent. One that begins with a slash would be taken for a command."""
    said = _clean(request.prompt)
    return f"Question:\n{said}" if said.lstrip().startswith("/") else said


def _clean(text: str) -> str:
    """A text that can be given to a program: a lone surrogate cannot, nor a NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
