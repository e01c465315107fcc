"""Uses the Claude Code program as a model, with the user's login.

The program is an agent, but here it only gives access to its model. So all features of the agent
are off: tools, hooks, servers, skills, instruction files and thinking. The question leaves no
trace: the program runs in a temporary folder and stores no session if it supports that. Otherwise
all files with the session's id are removed.

ctx does not control the program, so its usage is limited from outside. It would continue by itself
if an answer is too long or refused; a budget that the first answer uses up prevents that. Clients
without such a budget send a second request if the stream fails (`_Client.requests`). Before the
first question they also warm up two of their agents; `CLAUDE_CODE_SUBAGENT_MODEL` is set to a model
name that no server knows, so these requests fail.

A client silently ignores settings that it cannot read, and then hooks would run. So only two
settings are used, which every client supports, and `CTX_OFF` is set as well.
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
from ctx.llm import event_stream
from ctx.llm.claude_cli import child_process
from ctx.llm.claude_cli.child_process import scratch_folder
from ctx.llm.claude_cli.stream_json import Reply
from ctx.llm.event_stream import AnswerCollector, StreamError
from ctx.llm.protocol import Answer, BackendName, Capabilities, Meter, OnToken, Request
from ctx.llm.retry import AttemptFailed, Backoff, RetryPolicy, with_cause
from ctx.tokens import estimate

OVERHEAD = 4_096
"""Bytes that the client adds to a request: at most 2,200 observed (2.1.325, with a language
setting), 540 with an older client (2.0.47)."""

_LARGEST = 8_000_000
_LARGEST_FRAME = 1_000
"""Bytes of framing that a client may print per token."""
_SLOWEST = 10
"""The whole may take this many times the longest silence."""
_STARTS_WITHIN_S = 20.0
"""Older clients take two seconds to print their version, more under load."""

_REQUIRED = (
    *("--print", "--output-format", "--include-partial-messages", "--system-prompt", "--tools"),
    *("--strict-mcp-config", "--setting-sources", "--settings", "--session-id"),
)
_NO_PERSISTENCE = "--no-session-persistence"
_SAFE_MODE = "--safe-mode"
_OPTIONAL = {
    _NO_PERSISTENCE: (_NO_PERSISTENCE,),
    _SAFE_MODE: (_SAFE_MODE,),
    "--disable-slash-commands": ("--disable-slash-commands",),
    "--max-budget-usd": ("--max-budget-usd", "0.000001"),
}
_LOGIN_STATUS_SINCE = (2, 1, 325)
"""The first version known to report whether the user is logged in."""

_SETTINGS = {"disableAllHooks": True, "outputStyle": "default"}
_ENVIRONMENT = {
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
"""Prefixes of the variables that hold the user's identity. Other Claude Code variables describe the
current session or its behaviour."""
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD")
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_LOG_IN = "Run `claude` and log in there with `/login`; ctx uses that login."


class _Client(NamedTuple):
    """An installed client and the options it supports."""

    program: str
    options: tuple[str, ...]

    @property
    def requests(self) -> int:
        """How many requests it may send to the model per question."""
        return 1 if _SAFE_MODE in self.options else 2


class ClaudeCli:
    def __init__(
        self,
        command: str,
        model: str,
        folder: str,
        variables: Mapping[str, str],
        policy: RetryPolicy,
    ) -> None:
        """`variables` is the whole environment; `folder` is private to this backend."""
        self._command = command
        self._model = model
        self._folder = folder
        self._variables = variables
        self._policy = policy
        self._client: _Client | None = None
        self._running: child_process.ChildProcess | None = None
        self._is_closed = False

    @property
    def name(self) -> BackendName:
        return "claude_cli"

    @property
    def where(self) -> str:
        return child_process.find_program(self._command, self._variables) or self._command

    @property
    def model(self) -> str:
        return self._model

    @property
    def is_free(self) -> bool:
        return False

    def ask(self, request: Request, meter: Meter, on_token: OnToken) -> Answer:
        client = self._installed_client()
        backoff = Backoff(self._policy)
        failure: ModelFailure | None = None
        while not self._is_closed:
            try:
                return self._attempt(client, request, meter, on_token)
            except BudgetExceeded as error:
                raise with_cause(error, failure) from failure
            except AttemptFailed as failed:
                failure = failed.failure
                pause_s = backoff.pause_after(failed)
                if pause_s is None:
                    break
            clock.sleep(pause_s)
        raise failure or self._failure("was closed")

    def probe(self) -> Capabilities:
        """Its version, and whether the user is logged in, as far as it reports that for free."""
        match = _VERSION.search(self._info("--version"))
        if match is None:
            raise self._failure("does not say its version, so it may be another program")
        version = tuple(int(number) for number in match[0].split("."))
        if version >= _LOGIN_STATUS_SINCE:
            with contextlib.suppress(ValueError, RecursionError):
                state = json.loads(self._info("auth", "status"))
                if isinstance(state, dict) and state.get("loggedIn") is False:
                    raise self._failure("is not logged in", _LOG_IN)
        model = "" if self._model == "default" else self._model
        return Capabilities(model, detail=f"Claude Code {match[0]}")

    def close(self) -> None:
        """Close it. This also ends a request that another thread is waiting for."""
        self._is_closed = True
        if self._running is not None:
            self._running.kill()

    # One request

    def _attempt(
        self, client: _Client, request: Request, meter: Meter, on_token: OnToken
    ) -> Answer:
        prompt = _prompt_text(request)
        sent = json.dumps([_clean(request.system), prompt], ensure_ascii=False).encode()
        most = client.requests * (len(sent) + OVERHEAD + request.max_tokens)
        with scratch_folder(self._folder, self._variables) as folder:
            reservation = meter.reserve(most, estimate(request.system) + estimate(prompt))
            collector = AnswerCollector(request.max_tokens, on_token)
            try:
                with self._running_child(client, request, prompt, folder) as running:
                    answer = self._answer(client, running, collector)
            except AttemptFailed as failed:
                if not failed.counts:
                    reservation.release()
                raise
            finally:
                if collector.excess:
                    reservation.exceed(collector.excess)
            if answer.usage and not collector.contradicts(answer.usage):
                reservation.settle(answer.usage, answer.model)
            return answer

    def _answer(
        self, client: _Client, running: child_process.ChildProcess, collector: AnswerCollector
    ) -> Answer:
        began = clock.monotonic()
        reply = Reply(collector)
        broken: StreamError | None = None
        try:
            for line in running.lines():
                if reply.take(line):
                    running.note_activity()
                if reply.is_enough or reply.has_ended:
                    break
            if not reply.is_enough:
                running.wait()
        except StreamError as error:
            broken = error
        answer = Answer(
            collector.text,
            reply.model or self._model,
            reply.usage,
            reply.stop,
            duration_ms=round((clock.monotonic() - began) * 1000),
        )
        if reply.is_whole:
            return answer
        broken = broken or _diagnose(reply, running)
        if not answer.text:
            raise self._failed_attempt(client, reply, running, broken)
        return answer._replace(stop="cut", problem=self._failure(broken.what).message)

    @contextlib.contextmanager
    def _running_child(
        self, client: _Client, request: Request, prompt: str, folder: str
    ) -> Iterator[child_process.ChildProcess]:
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
        silence_s = self._policy.silence_s
        largest = _LARGEST + _LARGEST_FRAME * request.max_tokens
        limits = child_process.ProcessLimits(silence_s, silence_s * _SLOWEST, largest)
        try:
            disk.replace(settings, json.dumps(_SETTINGS).encode(), durable_name=False)
            running = child_process.ChildProcess(words, variables, folder, prompt.encode(), limits)
        except OSError as error:
            raise self._start_failure(error) from error
        self._running = running
        try:
            yield running
        finally:
            running.end()
            self._running = None

    def _failed_attempt(
        self,
        client: _Client,
        reply: Reply,
        running: child_process.ChildProcess,
        broken: StreamError,
    ) -> AttemptFailed:
        status = reply.status
        hint = broken.hint
        is_unknown = "unknown option" in running.stderr_text
        if reply.is_logged_out or status in (401, 403):
            hint = _LOG_IN
        elif status == 404:
            hint = "`ctx config set llm.model NAME` names a model; `default` is the client's own."
        elif is_unknown:
            hint = "It may be too old: update Claude Code."
        # With several requests only the last status is known; an earlier one may have succeeded.
        final = range(400, 500) if client.requests == 1 else (401, 403, 404)
        not_carried_out = (
            *(reply.is_logged_out, reply.is_unreachable, is_unknown),
            status in final and status != 408,
        )
        return AttemptFailed(
            self._failure(broken.what, hint),
            counts=not any(not_carried_out),
            may_repeat=status in event_stream.BUSY_STATUSES,
        )

    # The client

    def _installed_client(self) -> _Client:
        if self._client is None:
            can = self._info("--help")
            missing = [option for option in _REQUIRED if option not in can]
            if missing:
                raise self._failure(
                    f"does not know {missing[0]}, so it is too old or another program",
                    "Update Claude Code, or name its program: `ctx config set llm.command PATH`.",
                )
            options = [words for option, words in _OPTIONAL.items() if option in can]
            self._client = _Client(self.where, tuple(word for words in options for word in words))
        return self._client

    def _info(self, *words: str) -> str:
        """The output of an option such as `--version`, which uses no tokens."""
        path = child_process.find_program(self._command, self._variables)
        if path is None:
            raise ModelFailure(
                f"There is no program {event_stream.shorten(self._command)} on the PATH.",
                hint=("Install Claude Code, or set its path: `ctx config set llm.command PATH`."),
            )
        limits = child_process.ProcessLimits(_STARTS_WITHIN_S, _STARTS_WITHIN_S, _LARGEST)
        with tempfile.TemporaryDirectory(prefix="ctx-", ignore_cleanup_errors=True) as folder:
            try:
                running = child_process.ChildProcess(
                    [path, *words], self._environment(folder), folder, b"", limits
                )
            except OSError as error:
                raise self._start_failure(error).failure from error
            try:
                lines = list(running.lines())
                running.wait()
            except StreamError as broken:
                raise self._failure(broken.what, broken.hint) from broken
            finally:
                running.end()
        return b"\n".join(lines).decode("utf-8", "replace")

    def _environment(self, folder: str) -> dict[str, str]:
        """The user's environment without the variables of a running session."""
        kept = {
            name: value
            for name, value in self._variables.items()
            if not name.startswith("CLAUDE") or name.startswith(_KEPT_VARIABLES)
        }
        return {
            **kept,
            **_ENVIRONMENT,
            # A file name, in spite of the variable's name.
            "CLAUDE_CODE_DEBUG_LOGS_DIR": os.path.join(folder, "debug.txt"),
            "CLAUDE_CODE_TMPDIR": folder,
        }

    def _start_failure(self, error: OSError) -> AttemptFailed:
        reason = error.strerror or type(error).__name__
        failure = self._failure(f"cannot be started: {reason}")
        return AttemptFailed(failure, counts=False, may_repeat=False)

    def _failure(self, what: str, hint: str | None = None) -> ModelFailure:
        for name, value in self._variables.items():
            if _SECRET.search(name) and len(value) > 3:
                what = what.replace(value, "…")
        what = event_stream.shorten(what).rstrip(".")
        return ModelFailure(f"Claude Code at {self.where} {what}.", hint=hint)


def _diagnose(reply: Reply, running: child_process.ChildProcess) -> StreamError:
    """Why there is no answer, from everything that the program printed."""
    if reply.complaint:
        return StreamError(f"refused: {reply.complaint}")
    if reply.has_ended:
        return StreamError("answered with nothing")
    output = running.stderr_text.strip() or reply.noise
    last = output.splitlines()[-1] if output else ""
    how = f"ended without an answer (exit code {running.exit_code})"
    return StreamError(f"{how}: {last}".removesuffix(": "))


def _prompt_text(request: Request) -> str:
    """The prompt as it is sent. A leading slash would be read as a command."""
    prompt = _clean(request.prompt)
    return f"Question:\n{prompt}" if prompt.lstrip().startswith("/") else prompt


def _clean(text: str) -> str:
    """Text that a program accepts: without lone surrogates and NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
