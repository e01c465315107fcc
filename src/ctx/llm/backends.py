"""Which model a person has configured, and what `auto` finds.

A key is sent only to the server that it is for. The one that `llm.api_key_env` names is for the
server that the settings name. `OPENAI_API_KEY` and `ANTHROPIC_API_KEY`, which many people have in
their environment for other programs, go only where a person named the backend, and only over
https to another machine: never to whatever listens on this one, nor to a server that itself says
what it speaks.
"""

import os
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from ctx import clock
from ctx.config.resolve import Config
from ctx.errors import ConfigInvalid, CtxError, ModelFailure
from ctx.llm.http_client import HttpClient, RequestRefused
from ctx.llm.protocol import Backend, BackendName
from ctx.llm.retry import RetryPolicy
from ctx.llm.server_url import check, display, is_encrypted, is_on_this_machine, same_server

NAMES: tuple[BackendName, ...] = ("llama_cpp", "openai", "anthropic", "claude_cli")
"""Those that a person can name."""

_ANTHROPIC = "https://api.anthropic.com"
_USUAL_KEYS: Mapping[str, str] = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_DETECTION = RetryPolicy(silence_s=0.5, retries=0, connect_s=0.5)
"""To find out what a server speaks: one on this machine answers at once."""
_PROBE = RetryPolicy(silence_s=1.5, retries=0, connect_s=1.0)
"""For whoever only wants to know whether it is there."""
_CACHE_S = 60.0

_protocols: dict[str, tuple[float, BackendName | None]] = {}
"""What servers were found to speak, and when."""


class BackendChoice(NamedTuple):
    """A backend, and who says that it is the one."""

    name: str
    by: Literal["person", "server"]


class BackendSurvey(NamedTuple):
    """Which model would be asked, whether it is there, and what else there would be."""

    setting: str
    """What `llm.backend` is."""
    state: Literal["off", "none", "answers", "silent"]
    """Nobody is to be asked; `auto` found none; it is there; it is not, or cannot be asked."""
    backend: str = ""
    where: str = ""
    model: str = ""
    context_tokens: int | None = None
    detail: str = ""
    problem: str = ""
    """Why it cannot be asked, or why `auto` found none."""
    advice: str = ""
    others: tuple[str, ...] = ()
    """What a person could name, in words. It is never used unless it is."""


def configured_backend(config: Config, variables: Mapping[str, str], home: str) -> Backend | None:
    """The model that a person's settings name; None where they name none, or `auto` finds none.

    `variables` is the whole environment: a program is run with it, and a key may be in it.
    """
    match config.choice("llm.backend"):
        case "off":
            return None
        case "auto":
            found, _ = _auto_backend(config)
            if found is None:
                return None
            chosen, policy = BackendChoice(found, "server"), _retry_policy(config)
            return _make_backend(chosen, "", config, variables, home, policy)
        case name:
            return named_backend(name, "", config, variables, home)


def named_backend(
    name: str, url: str, config: Config, variables: Mapping[str, str], home: str
) -> Backend:
    """A backend that somebody named, an address, or both; the rest is as the settings say.

    Where only an address is named, its server is asked what it speaks.
    """
    chosen = (
        BackendChoice(name, "person") if name else BackendChoice(_require_protocol(url), "server")
    )
    return _make_backend(chosen, url, config, variables, home, _retry_policy(config))


def survey_backends(config: Config, variables: Mapping[str, str], home: str) -> BackendSurvey:
    """A look at everything, which spends nothing. Only a program that hangs takes long.

    Where no model is to be asked, no connection is made either.
    """
    setting = config.choice("llm.backend")
    others = tuple(_others(setting, variables, config.text("llm.command")))
    if setting == "off":
        return BackendSurvey(setting, "off", others=others)
    chosen = BackendChoice(setting, "person")
    if setting == "auto":
        found, why = _auto_backend(config)
        if found is None:
            return BackendSurvey(setting, "none", problem=why, others=others)
        chosen = BackendChoice(found, "server")
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
    return RetryPolicy(config.number("llm.timeout_seconds"), config.integer("llm.retries"))


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
        f"{name!r} is no backend.", hint=f"There are {', '.join(NAMES)}; `off` asks nobody."
    )


def _address(name: str, config: Config) -> str:
    """Where a backend's server is, as far as the settings say."""
    if name == "anthropic" and not (
        config.choice("llm.backend") == "anthropic" and _is_set("llm.server_url", config)
    ):
        # The address that is set, or the default, is another server's.
        return _ANTHROPIC
    return check(config.text("llm.server_url"))


def key_for(
    chosen: BackendChoice, address: str, config: Config, variables: Mapping[str, str]
) -> str:
    """The key that is sent to a server; empty where none is for it."""
    name, own = chosen.name, config.text("llm.api_key_env")
    if own and _is_configured_server(name, address, config):
        if not variables.get(own):
            raise ModelFailure(
                f"{own} is not set here, and `llm.api_key_env` says that it holds the key.",
                hint=f"`export {own}=…`, or `ctx config unset llm.api_key_env`.",
            )
        return variables[own]
    key = ""
    if chosen.by == "person" and is_encrypted(address) and not is_on_this_machine(address):
        key = variables.get(_USUAL_KEYS.get(name, ""), "")
    if not key and name == "anthropic" and same_server(address, _ANTHROPIC):
        raise ModelFailure(
            "Anthropic wants a key, and ANTHROPIC_API_KEY is not set here.",
            hint="Set it, or name another variable: `ctx config set llm.api_key_env NAME`.",
        )
    return key


def _is_configured_server(name: str, address: str, config: Config) -> bool:
    """Whether this is the server that the settings are about."""
    if config.choice("llm.backend") not in (name, "auto", "off"):
        return False
    if name == "anthropic" and config.choice("llm.backend") != name:
        return False
    return same_server(address, _address(name, config))


def _auto_backend(config: Config) -> tuple[BackendName | None, str]:
    """What `auto` chooses, or why nothing: a model on this machine, or none."""
    address = config.text("llm.server_url")
    try:
        check(address)
    except ConfigInvalid as error:
        return None, error.message
    if not is_on_this_machine(address):
        return None, "llm.server_url is on another machine, which may cost money."
    protocol = _cached_protocol(address)
    # What listens at the default address by chance is not taken for a model.
    if protocol == "llama_cpp" or (protocol and _is_set("llm.server_url", config)):
        return protocol, ""
    return None, f"no model answers at {display(address)}."


def _require_protocol(url: str) -> BackendName:
    """What a server speaks that a person has named. It is asked without a key."""
    check(url, "What --server names")
    if protocol := _cached_protocol(url):
        return protocol
    raise ModelFailure(
        f"Nothing at {display(url)} says what it speaks.",
        detail=_connection_problem(url),
        hint="Start it, or say what it is: `--backend openai`, `anthropic` or `llama_cpp`.",
    )


def _cached_protocol(url: str) -> BackendName | None:
    """What the server at an address speaks; remembered for a minute."""
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
    """What keeps a server from saying it, if it is more than that it does not know the question."""
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


def _others(setting: str, variables: Mapping[str, str], command: str) -> list[str]:
    from ctx.llm.claude_cli import child_process

    found = []
    if setting != "claude_cli" and child_process.find_program(command, variables):
        found.append("claude_cli (Claude Code is on the PATH)")
    for name, variable in _USUAL_KEYS.items():
        if setting != name and variables.get(variable):
            found.append(f"{name} ({variable} is set)")
    return found
