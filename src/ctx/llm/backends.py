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
from ctx.llm.addresses import checked, is_encrypted, is_on_this_machine, same_server, shown
from ctx.llm.anthropic import Anthropic
from ctx.llm.claude_cli import program
from ctx.llm.claude_cli.client import ClaudeCli
from ctx.llm.llama_cpp.server import LlamaCpp
from ctx.llm.model import Backend, BackendName
from ctx.llm.openai import OpenAi
from ctx.llm.tries import Patience
from ctx.llm.wire import Refused, Wire

NAMES: tuple[BackendName, ...] = ("llama_cpp", "openai", "anthropic", "claude_cli")
"""Those that a person can name."""

_ANTHROPIC = "https://api.anthropic.com"
_USUAL_KEYS: Mapping[str, str] = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_GLANCE = Patience(silence_s=0.5, retries=0, connect_s=0.5)
"""To find out what a server speaks: one on this machine answers at once."""
_LOOK = Patience(silence_s=1.5, retries=0, connect_s=1.0)
"""For whoever only wants to know whether it is there."""
_REMEMBERED_S = 60.0

_glances: dict[str, tuple[float, BackendName | None]] = {}
"""What servers were found to speak, and when."""


class Chosen(NamedTuple):
    """A backend, and who says that it is the one."""

    name: str
    by: Literal["person", "server"]


class Survey(NamedTuple):
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


def configured(config: Config, variables: Mapping[str, str], home: str) -> Backend | None:
    """The model that a person's settings name; None where they name none, or `auto` finds none.

    `variables` is the whole environment: a program is run with it, and a key may be in it.
    """
    match config.choice("llm.backend"):
        case "off":
            return None
        case "auto":
            found, _ = _found(config)
            if found is None:
                return None
            chosen, patience = Chosen(found, "server"), _patience(config)
            return _made(chosen, "", config, variables, home, patience)
        case name:
            return named(name, "", config, variables, home)


def named(name: str, url: str, config: Config, variables: Mapping[str, str], home: str) -> Backend:
    """A backend that somebody named, an address, or both; the rest is as the settings say.

    Where only an address is named, its server is asked what it speaks.
    """
    chosen = Chosen(name, "person") if name else Chosen(_spoken_at(url), "server")
    return _made(chosen, url, config, variables, home, _patience(config))


def survey(config: Config, variables: Mapping[str, str], home: str) -> Survey:
    """A look at everything, which spends nothing. Only a program that hangs takes long.

    Where no model is to be asked, no connection is made either.
    """
    setting = config.choice("llm.backend")
    others = tuple(_others(setting, variables, config.text("llm.command")))
    if setting == "off":
        return Survey(setting, "off", others=others)
    chosen = Chosen(setting, "person")
    if setting == "auto":
        found, why = _found(config)
        if found is None:
            return Survey(setting, "none", problem=why, others=others)
        chosen = Chosen(found, "server")
    name = chosen.name
    backend: Backend | None = None
    try:
        backend = _made(chosen, "", config, variables, home, _LOOK)
        seen = backend.look()
    except CtxError as error:
        where = backend.where if backend else ""
        return Survey(
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
    model = seen.model or backend.model
    return Survey(
        *(setting, "answers", name, backend.where, model, seen.context_tokens, seen.detail),
        others=others,
    )


def _patience(config: Config) -> Patience:
    return Patience(config.number("llm.timeout_seconds"), config.integer("llm.retries"))


def _made(
    chosen: Chosen,
    url: str,
    config: Config,
    variables: Mapping[str, str],
    home: str,
    patience: Patience,
) -> Backend:
    name, model = chosen.name, config.text("llm.model")
    if name == "claude_cli":
        if url:
            raise ConfigInvalid(
                "claude_cli is a program, and has no address.", hint="Leave out --server."
            )

        folder = os.path.join(home, "llm", "claude")
        return ClaudeCli(config.text("llm.command"), model, folder, variables, patience)
    address = checked(url, "What --server names") if url else _address(name, config)
    key = key_for(chosen, address, config, variables)
    match name:
        case "llama_cpp":
            return LlamaCpp(address, model, key, patience, os.path.join(home, "llm"))
        case "openai":
            return OpenAi(address, model, key, patience)
        case "anthropic":
            return Anthropic(address, model, key, patience)
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
    return checked(config.text("llm.server_url"))


def key_for(chosen: Chosen, address: str, config: Config, variables: Mapping[str, str]) -> str:
    """The key that is sent to a server; empty where none is for it."""
    name, own = chosen.name, config.text("llm.api_key_env")
    if own and _is_the_configured(name, address, config):
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


def _is_the_configured(name: str, address: str, config: Config) -> bool:
    """Whether this is the server that the settings are about."""
    if config.choice("llm.backend") not in (name, "auto", "off"):
        return False
    if name == "anthropic" and config.choice("llm.backend") != name:
        return False
    return same_server(address, _address(name, config))


def _found(config: Config) -> tuple[BackendName | None, str]:
    """What `auto` chooses, or why nothing: a model on this machine, or none."""
    address = config.text("llm.server_url")
    try:
        checked(address)
    except ConfigInvalid as error:
        return None, error.message
    if not is_on_this_machine(address):
        return None, "llm.server_url is on another machine, which may cost money."
    spoken = _glance(address)
    # What listens at the default address by chance is not taken for a model.
    if spoken == "llama_cpp" or (spoken and _is_set("llm.server_url", config)):
        return spoken, ""
    return None, f"no model answers at {shown(address)}."


def _spoken_at(url: str) -> BackendName:
    """What a server speaks that a person has named. It is asked without a key."""
    checked(url, "What --server names")
    if spoken := _glance(url):
        return spoken
    raise ModelFailure(
        f"Nothing at {shown(url)} says what it speaks.",
        detail=_why_not(url),
        hint="Start it, or say what it is: `--backend openai`, `anthropic` or `llama_cpp`.",
    )


def _glance(url: str) -> BackendName | None:
    """What the server at an address speaks; remembered for a minute."""
    at, spoken = _glances.get(url, (0.0, None))
    if url not in _glances or clock.monotonic() - at > _REMEMBERED_S:
        spoken = _spoken(url)
        _glances[url] = clock.monotonic(), spoken
    return spoken


def _spoken(url: str) -> BackendName | None:
    wire = Wire("The server", url.rstrip("/").removesuffix("/v1"), {}, _GLANCE)
    try:
        if _is_llama_cpp(_said(wire, "/props")):
            return "llama_cpp"
        models = _said(wire, "/v1/models")
        is_list = isinstance(models, dict) and isinstance(models.get("data"), list)
        return "openai" if is_list else None
    finally:
        wire.close()


def _why_not(url: str) -> str:
    """What keeps a server from saying it, if it is more than that it does not know the question."""
    wire = Wire("The server", url, {}, _GLANCE)
    try:
        wire.get("")
    except Refused:
        return ""
    except ModelFailure as failure:
        return failure.message
    finally:
        wire.close()
    return ""


def _said(wire: Wire, path: str) -> Any:
    try:
        return wire.get(path)
    except ModelFailure:
        return None


def _is_llama_cpp(props: Any) -> bool:
    return isinstance(props, dict) and {"default_generation_settings", "total_slots"} <= set(props)


def _is_set(name: str, config: Config) -> bool:
    return len(config.explain(name)) > 1


def _others(setting: str, variables: Mapping[str, str], command: str) -> list[str]:
    found = []
    if setting != "claude_cli" and program.found(command, variables):
        found.append("claude_cli (Claude Code is on the PATH)")
    for name, variable in _USUAL_KEYS.items():
        if setting != name and variables.get(variable):
            found.append(f"{name} ({variable} is set)")
    return found
