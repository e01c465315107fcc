"""Chooses the configured backend, and finds one for `auto`.

A key is sent only to the server that it belongs to. The key that `llm.api_key_env` names belongs to
the configured server. `OPENAI_API_KEY` and `ANTHROPIC_API_KEY`, which many users set for other
programs, are sent only if the user named the backend, and only over https to another machine: never
to a server on this machine, nor to a server whose protocol was detected.
"""

import os
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from ctx import clock
from ctx.config.resolve import Config
from ctx.errors import ConfigInvalid, CtxError, ModelFailure
from ctx.llm.http_client import HttpClient, RequestRefused
from ctx.llm.protocol import Answer, Backend, BackendName, Meter, OnToken, Request, ignore
from ctx.llm.retry import RetryPolicy
from ctx.llm.server_url import check, display, is_encrypted, is_on_this_machine, same_server
from ctx.redaction import redact

NAMES: tuple[BackendName, ...] = ("llama_cpp", "openai", "anthropic", "claude_cli")
"""The backends that a user can name."""

_ANTHROPIC = "https://api.anthropic.com"
_USUAL_KEYS: Mapping[str, str] = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_DETECTION = RetryPolicy(silence_s=0.5, retries=0, connect_s=0.5)
"""For protocol detection: a server on this machine answers at once."""
_PROBE = RetryPolicy(silence_s=1.5, retries=0, connect_s=1.0)
"""For a check whether a server is up."""
_RETRIES = 3
_CACHE_S = 60.0

_protocols: dict[str, tuple[float, BackendName | None]] = {}
"""Detected protocols by URL, with the time of detection."""


class BackendChoice(NamedTuple):
    """A backend name, and whether the user or a detected server chose it."""

    name: str
    by: Literal["person", "server"]


class BackendSurvey(NamedTuple):
    """The backend that would be used, whether it works, and the alternatives."""

    setting: str
    """The value of `llm.backend`."""
    state: Literal["off", "none", "answers", "silent"]
    """Models are off; `auto` found none; the backend answers; it does not answer or cannot be used.
    """
    backend: str = ""
    where: str = ""
    model: str = ""
    context_tokens: int | None = None
    detail: str = ""
    problem: str = ""
    """Why the backend cannot be used, or why `auto` found none."""
    advice: str = ""
    others: tuple[str, ...] = ()
    """Other backends that the user could configure, as text. They are never used automatically."""


def configured_backend(
    config: Config, variables: Mapping[str, str], home: str, policy: RetryPolicy | None = None
) -> Backend | None:
    """The configured backend; None if models are off or `auto` finds none.

    `variables` is the whole environment: it may hold a key, and a child process inherits it. The
    `policy` is that of the settings, unless it is given.
    """
    policy = policy or _retry_policy(config)
    match config.choice("llm.backend"):
        case "off":
            return None
        case "auto":
            backend, _ = _auto_backend(config)
            if backend is None:
                return None
            chosen = BackendChoice(backend, "server")
        case name:
            chosen = BackendChoice(name, "person")
    return _make_backend(chosen, "", config, variables, home, policy)


def named_backend(
    name: str, url: str, config: Config, variables: Mapping[str, str], home: str
) -> Backend:
    """A backend by name, by URL, or both; the rest comes from the settings.

    With a URL alone, the server's protocol is detected.
    """
    chosen = (
        BackendChoice(name, "person") if name else BackendChoice(_require_protocol(url), "server")
    )
    return _make_backend(chosen, url, config, variables, home, _retry_policy(config))


def survey_backends(config: Config, variables: Mapping[str, str], home: str) -> BackendSurvey:
    """Check all backends, at no cost. Only a program that hangs can make this slow.

    No connection is made if models are off.
    """
    setting = config.choice("llm.backend")
    others = tuple(_other_backends(setting, variables, config.text("llm.command")))
    if setting == "off":
        return BackendSurvey(setting, "off", others=others)
    chosen = BackendChoice(setting, "person")
    if setting == "auto":
        local_backend, why = _auto_backend(config)
        if local_backend is None:
            return BackendSurvey(setting, "none", problem=why, others=others)
        chosen = BackendChoice(local_backend, "server")
    name = chosen.name
    backend: Backend | None = None
    try:
        backend = _make_backend(chosen, "", config, variables, home, _PROBE)
        capabilities = backend.probe()
    except CtxError as error:
        where = backend.where if backend else ""
        return BackendSurvey(
            setting,
            "silent",
            name,
            where,
            problem=error.message,
            advice=error.hint or "",
            others=others,
        )
    finally:
        if backend is not None:
            backend.close()
    model = capabilities.model or backend.model
    return BackendSurvey(
        *(
            setting,
            "answers",
            name,
            backend.where,
            model,
            capabilities.context_tokens,
            capabilities.detail,
        ),
        others=others,
    )


def _retry_policy(config: Config) -> RetryPolicy:
    return RetryPolicy(config.number("llm.timeout_seconds"), _RETRIES)


def _make_backend(
    chosen: BackendChoice,
    url: str,
    config: Config,
    variables: Mapping[str, str],
    home: str,
    policy: RetryPolicy,
) -> Backend:
    name, model = chosen.name, config.text("llm.model")
    if name == "claude_cli":
        if url:
            raise ConfigInvalid(
                "claude_cli is a program, and has no address.", hint="Leave out --server."
            )
        from ctx.llm.claude_cli.claude_backend import ClaudeCli

        folder = os.path.join(home, "llm", "claude")
        return ClaudeCli(config.text("llm.command"), model, folder, variables, policy)
    address = check(url, "What --server names") if url else _address(name, config)
    key = key_for(chosen, address, config, variables)
    match name:
        case "llama_cpp":
            from ctx.llm.llama_cpp.llama_backend import LlamaCpp

            return LlamaCpp(address, model, key, policy, os.path.join(home, "llm"))
        case "openai":
            from ctx.llm.openai_backend import OpenAi

            return OpenAi(address, model, key, policy)
        case "anthropic":
            from ctx.llm.anthropic_backend import Anthropic

            return Anthropic(address, model, key, policy)
    raise ConfigInvalid(
        f"{name!r} is not a backend.", hint=f"There are {', '.join(NAMES)}; `off` uses none."
    )


def _address(name: str, config: Config) -> str:
    """The URL of a backend's server, from the settings."""
    if name == "anthropic" and not (
        config.choice("llm.backend") == "anthropic" and _is_set("llm.server_url", config)
    ):
        # The configured or default URL belongs to another server.
        return _ANTHROPIC
    return check(config.text("llm.server_url"))


def key_for(
    chosen: BackendChoice, address: str, config: Config, variables: Mapping[str, str]
) -> str:
    """The key to send to a server; empty if none belongs to it."""
    name, own = chosen.name, config.text("llm.api_key_env")
    if own and _is_configured_server(name, address, config):
        if not variables.get(own):
            raise ModelFailure(
                f"{own} is not set here, but `llm.api_key_env` names it for the key.",
                hint=f"`export {own}=…`, or `ctx config unset llm.api_key_env`.",
            )
        return variables[own]
    key = ""
    if chosen.by == "person" and is_encrypted(address) and not is_on_this_machine(address):
        key = variables.get(_USUAL_KEYS.get(name, ""), "")
    if not key and name == "anthropic" and same_server(address, _ANTHROPIC):
        raise ModelFailure(
            "Anthropic needs a key, and ANTHROPIC_API_KEY is not set here.",
            hint="Set it, or name another variable: `ctx config set llm.api_key_env NAME`.",
        )
    return key


def _is_configured_server(name: str, address: str, config: Config) -> bool:
    """Whether this is the server that the settings describe."""
    if config.choice("llm.backend") not in (name, "auto", "off"):
        return False
    if name == "anthropic" and config.choice("llm.backend") != name:
        return False
    return same_server(address, _address(name, config))


def _auto_backend(config: Config) -> tuple[BackendName | None, str]:
    """The backend that `auto` chooses, or the reason why there is none."""
    address = config.text("llm.server_url")
    try:
        check(address)
    except ConfigInvalid as error:
        return None, error.message
    if not is_on_this_machine(address):
        return None, "llm.server_url is on another machine, which may cost money."
    protocol = _cached_protocol(address)
    # An unknown server at the default address is not taken for a model.
    if protocol == "llama_cpp" or (protocol and _is_set("llm.server_url", config)):
        return protocol, ""
    return None, f"no model answers at {display(address)}."


def _require_protocol(url: str) -> BackendName:
    """The protocol of a server that the user named, detected without a key."""
    check(url, "What --server names")
    if protocol := _cached_protocol(url):
        return protocol
    raise ModelFailure(
        f"Nothing at {display(url)} says what it speaks.",
        detail=_connection_problem(url),
        hint="Start it, or name its API: `--backend openai`, `anthropic` or `llama_cpp`.",
    )


def _cached_protocol(url: str) -> BackendName | None:
    """The protocol of the server at a URL; cached for a minute."""
    at, protocol = _protocols.get(url, (0.0, None))
    if url not in _protocols or clock.monotonic() - at > _CACHE_S:
        protocol = _detect_protocol(url)
        _protocols[url] = clock.monotonic(), protocol
    return protocol


def _detect_protocol(url: str) -> BackendName | None:
    http = HttpClient("The server", url.rstrip("/").removesuffix("/v1"), {}, _DETECTION)
    try:
        if _is_llama_cpp(_get_or_none(http, "/props")):
            return "llama_cpp"
        models = _get_or_none(http, "/v1/models")
        is_list = isinstance(models, dict) and isinstance(models.get("data"), list)
        return "openai" if is_list else None
    finally:
        http.close()


def _connection_problem(url: str) -> str:
    """Why a server cannot be reached; empty if it merely does not know the request."""
    http = HttpClient("The server", url, {}, _DETECTION)
    try:
        http.get("")
    except RequestRefused:
        return ""
    except ModelFailure as failure:
        return failure.message
    finally:
        http.close()
    return ""


def _get_or_none(http: HttpClient, path: str) -> Any:
    try:
        return http.get(path)
    except ModelFailure:
        return None


def _is_llama_cpp(props: Any) -> bool:
    return isinstance(props, dict) and {"default_generation_settings", "total_slots"} <= set(props)


def _is_set(name: str, config: Config) -> bool:
    return len(config.explain(name)) > 1


def _other_backends(setting: str, variables: Mapping[str, str], command: str) -> list[str]:
    from ctx.llm.claude_cli import child_process

    others = []
    if setting != "claude_cli" and child_process.find_program(command, variables):
        others.append("claude_cli (Claude Code is on the PATH)")
    for name, variable in _USUAL_KEYS.items():
        if setting != name and variables.get(variable):
            others.append(f"{name} ({variable} is set)")
    return others


def ask(backend: Backend, request: Request, meter: Meter, on_token: OnToken = ignore) -> Answer:
    """Ask a model, with the secrets in the request redacted."""
    return backend.ask(without_secrets(request), meter, on_token)


def without_secrets(request: Request) -> Request:
    parts = tuple(redact(part).text for part in request.parts)
    whole = redact(request.prompt).text
    if "".join(parts) != whole:
        # Only the whole text shows a secret that spans two parts.
        parts = (whole,)
    return request._replace(system=redact(request.system).text, parts=parts)
