"""The choice of a backend: by settings, by `auto`, and which key is sent where."""

import json
from pathlib import Path
from typing import Any

import pytest

from ctx.config import schema
from ctx.config.resolve import Config, load
from ctx.errors import CtxError, ModelFailure
from ctx.llm import backends
from ctx.llm.backends import (
    BackendChoice,
    BackendSurvey,
    ask,
    configured_backend,
    key_for,
    named_backend,
    survey_backends,
)
from ctx.llm.ledger import Caps, Ledger, ModelTarget, Purpose
from ctx.llm.prices import prices
from ctx.llm.protocol import Request
from tests.llm import model_server
from tests.llm.model_server import Server
from tests.llm.protocols import MODEL

NO_ADDRESS = "What --server names is not the address of a server."
HERE = "http://127.0.0.1:8080"
KEYS = {"OPENAI_API_KEY": "sk-openai-1", "ANTHROPIC_API_KEY": "sk-ant-1", "OWN": "own-key-1"}


@pytest.fixture
def home(tmp_path: Path) -> str:
    return str(tmp_path / "store")


def settings(**values: str) -> Config:
    """The settings of a user, such as `backend="openai"`."""
    return load("", None, {}, [f"llm.{name}={value}" for name, value in values.items()])


def at_the_default_address(url: str) -> Config:
    """Settings with only `auto`, and another default address."""
    auto = settings(backend="auto")
    return auto._replace(values={**auto.values, "llm.server_url": url})


def only_openai(server: Server) -> Server:
    for page in ("GET /props", "GET /health", "GET /slots"):
        del server.pages[page]
    return server


def keys_sent_to(
    server: Server, home: str, config: Config, name: str = "", url: str = ""
) -> set[str]:
    """Ask a question, and return the keys that the server received."""
    backend = (
        named_backend(name, url, config, KEYS, home)
        if name
        else configured_backend(config, KEYS, home)
    )
    assert backend is not None
    to = ModelTarget(backend.name, backend.where, backend.model)
    with Ledger(f"{home}/ledger.db") as ledger:
        meter = ledger.meter(Purpose("llm"), to, Caps(100_000), prices([]))
        assert ask(backend, Request("", ("Hello?",), 20), meter).text == "Hello, you."
    backend.close()
    sent = json.dumps([dict(asked.headers) for asked in server.received])
    return {key for key in KEYS.values() if key in sent}


def test_off_gives_no_backend(server: Server, home: str) -> None:
    config = settings(backend="off", server_url=server.url)
    assert configured_backend(config, KEYS, home) is None
    assert survey_backends(config, {"PATH": ""}, home) == BackendSurvey("off", "off")
    assert configured_backend(settings(), KEYS, home) is None
    assert server.received == []


@pytest.mark.parametrize("name", ["llama_cpp", "openai", "anthropic"])
def test_a_configured_server_is_used(server: Server, home: str, name: str) -> None:
    model = "default" if name == "llama_cpp" else MODEL
    config = settings(backend=name, server_url=server.url, model=model)
    backend = configured_backend(config, KEYS, home)
    assert backend is not None
    assert (backend.name, backend.is_free) == (name, name != "anthropic")
    assert backend.where.startswith(server.url)
    backend.close()
    # Many have such a key for other programs: what listens here is not given it.
    assert keys_sent_to(server, home, config) == set()
    own = settings(backend=name, server_url=server.url, model=model, api_key_env="OWN")
    assert keys_sent_to(server, home, own) == {"own-key-1"}


def test_a_backend_can_be_chosen_for_one_call(server: Server, home: str) -> None:
    config = settings(server_url="http://127.0.0.1:9", api_key_env="OWN")
    assert keys_sent_to(server, home, config, "openai", server.url) == set()
    backend = named_backend("", server.url, config, KEYS, home)
    assert backend.name == "llama_cpp"
    backend.close()
    with model_server.serve() as other:
        backend = named_backend("", f"{only_openai(other).url}/v1", config, KEYS, home)
        assert backend.name == "openai"
        backend.close()


OPENAI, ANTHROPIC = "https://api.openai.com/v1", "https://api.anthropic.com"


@pytest.mark.parametrize(
    ("name", "address", "config", "key"),
    [
        # The usual names: over https, to the backend that was named.
        ("openai", OPENAI, settings(backend="openai", server_url=OPENAI), "sk-openai-1"),
        ("openai", OPENAI, settings(), "sk-openai-1"),
        ("anthropic", ANTHROPIC, settings(backend="anthropic"), "sk-ant-1"),
        ("anthropic", ANTHROPIC, settings(backend="llama_cpp"), "sk-ant-1"),
        ("llama_cpp", "https://gpu.example", settings(), ""),
        ("openai", HERE, settings(backend="openai"), ""),
        ("openai", "http://gpu.example", settings(backend="openai"), ""),
        ("anthropic", "http://127.0.0.1:4000", settings(backend="anthropic"), ""),
        ("openai", "https://127.0.0.1:8443", settings(backend="openai"), ""),
        ("openai", "https://localhost", settings(backend="openai"), ""),
        ("anthropic", "https://[::1]:4000", settings(backend="anthropic"), ""),
        # The one that is named: to the server of the settings alone.
        ("openai", f"{HERE}/v1", settings(backend="openai", api_key_env="OWN"), "own-key-1"),
        ("llama_cpp", HERE, settings(backend="auto", api_key_env="OWN"), "own-key-1"),
        ("llama_cpp", "http://127.0.0.1:8081", settings(backend="auto", api_key_env="OWN"), ""),
        ("llama_cpp", "https://127.0.0.1:8080", settings(backend="auto", api_key_env="OWN"), ""),
        ("openai", OPENAI, settings(backend="openai", api_key_env="OWN"), "sk-openai-1"),
        ("openai", HERE, settings(backend="anthropic", api_key_env="OWN"), ""),
        ("anthropic", ANTHROPIC, settings(backend="anthropic", api_key_env="OWN"), "own-key-1"),
        ("anthropic", ANTHROPIC, settings(api_key_env="OWN"), "sk-ant-1"),
        (
            "anthropic",
            ANTHROPIC,
            settings(backend="anthropic", server_url="http://127.0.0.1:4000", api_key_env="OWN"),
            "sk-ant-1",
        ),
    ],
)
def test_a_key_is_sent_only_to_its_own_server(
    name: str, address: str, config: Config, key: str
) -> None:
    assert key_for(BackendChoice(name, "person"), address, config, KEYS) == key
    # A server that says by itself what it speaks is given only a key that was meant for it.
    own = key if key == KEYS["OWN"] else ""
    if (name, own) != ("anthropic", ""):
        assert key_for(BackendChoice(name, "server"), address, config, KEYS) == own


@pytest.mark.parametrize(
    ("name", "url", "config", "message"),
    [
        ("openai", "http://", settings(), NO_ADDRESS),
        ("", "nonsense", settings(), NO_ADDRESS),
        (
            "openai",
            "http://[::1",
            settings(),
            "What --server names is not the address of a server.",
        ),
        ("openai", "", settings(server_url="http://:80"), "llm.server_url is not the address"),
        ("claude_cli", "http://127.0.0.1:1", settings(), "claude_cli is a program"),
        ("gpt", "", settings(), "'gpt' is not a backend."),
        ("anthropic", "", settings(), "ANTHROPIC_API_KEY is not set here."),
        ("openai", "", settings(backend="openai", api_key_env="NONE"), "NONE is not set here"),
        ("", "http://name:secret-1@127.0.0.1:9/", settings(), "Nothing at http://127.0.0.1:9/"),
    ],
)
def test_invalid_backends_are_refused(
    home: str, name: str, url: str, config: Config, message: str
) -> None:
    with pytest.raises(CtxError) as failed:
        named_backend(name, url, config, {}, home)
    assert message in failed.value.message
    assert failed.value.hint
    assert "secret-1" not in str(failed.value)


def test_an_unreachable_server_is_an_error_with_its_reason(home: str) -> None:
    nobody = model_server.closed_url()
    with pytest.raises(ModelFailure) as failed:
        named_backend("", nobody, settings(), {}, home)
    why = str(failed.value.detail)
    assert why.startswith(f"The server at {nobody} cannot be reached: ")
    assert "refused" in why


# What `auto` finds


def test_auto_uses_a_llama_cpp_server_at_any_address(server: Server, home: str) -> None:
    for config in (
        at_the_default_address(server.url),
        settings(backend="auto", server_url=server.url),
    ):
        backend = configured_backend(config, KEYS, home)
        assert backend is not None
        assert backend.name == "llama_cpp"
        backend.close()
    # What was found is remembered.
    assert [asked.path for asked in server.received] == ["/props"]


def test_auto_uses_another_server_only_at_a_configured_address(server: Server, home: str) -> None:
    only_openai(server)
    assert configured_backend(at_the_default_address(server.url), KEYS, home) is None
    backend = configured_backend(settings(backend="auto", server_url=server.url), KEYS, home)
    assert backend is not None
    assert backend.name == "openai"
    backend.close()
    assert not any(key in str(asked.headers) for asked in server.received for key in KEYS.values())


@pytest.mark.parametrize(
    "pages",
    [
        {},
        {"GET /props": [], "GET /v1/models": {"data": "x"}},
        {"GET /props": {"total_slots": 1}, "GET /v1/models": "hello"},
    ],
)
def test_auto_ignores_unknown_servers(server: Server, home: str, pages: dict[str, Any]) -> None:
    server.pages = pages
    assert configured_backend(settings(backend="auto", server_url=server.url), KEYS, home) is None


def test_auto_without_a_local_server_gives_no_backend(home: str) -> None:
    config = settings(backend="auto", server_url=model_server.closed_url())
    assert configured_backend(config, KEYS, home) is None
    for address in ("https://models.example", "http://10.0.0.7:8080"):
        config = settings(backend="auto", server_url=address)
        assert configured_backend(config, KEYS, home) is None
        assert survey_backends(config, {}, home) == BackendSurvey(
            "auto", "none", problem="llm.server_url is on another machine, which may cost money."
        )


def test_auto_does_not_wait_for_a_server_that_hangs(home: str) -> None:
    """Also if a process at the port never answers."""
    import socket

    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        config = settings(backend="auto", server_url=f"http://127.0.0.1:{mute.getsockname()[1]}")
        assert configured_backend(config, KEYS, home) is None


# What the doctor is told


def test_a_survey_describes_a_server_that_answers(server: Server, home: str) -> None:
    found = survey_backends(settings(backend="llama_cpp", server_url=server.url), {}, home)
    assert found == BackendSurvey(
        *("llama_cpp", "answers", "llama_cpp", server.url, MODEL, 32_768), detail=found.detail
    )
    chosen = survey_backends(settings(backend="auto", server_url=server.url), {}, home)
    assert chosen == found._replace(setting="auto")
    assert server.questions == []
    assert server.spent == 0


def test_a_survey_describes_an_unreachable_server(server: Server, home: str) -> None:
    away = model_server.closed_url()
    found = survey_backends(settings(backend="openai", server_url=away), {}, home)
    assert (found.state, found.backend) == ("silent", "openai")
    assert away in found.problem
    assert found.advice
    other = survey_backends(
        settings(backend="openai", server_url=server.url, model="other"), {}, home
    )
    assert (other.state, other.where) == ("silent", f"{server.url}/v1")
    assert "has no model `other`" in other.problem
    keyless = survey_backends(settings(backend="anthropic"), {}, home)
    assert (keyless.state, keyless.problem) == (
        "silent",
        "Anthropic needs a key, and ANTHROPIC_API_KEY is not set here.",
    )


def test_a_survey_lists_other_available_backends(tmp_path: Path, home: str) -> None:
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    variables = {**KEYS, "PATH": str(tmp_path)}
    assert survey_backends(settings(), variables, home).others == (
        "claude_cli (Claude Code is on the PATH)",
        "openai (OPENAI_API_KEY is set)",
        "anthropic (ANTHROPIC_API_KEY is set)",
    )
    assert "sk-" not in repr(survey_backends(settings(), variables, home))
    # What would not be run is not named.
    assert survey_backends(settings(), {"PATH": "."}, home).others == ()


def test_the_settings_list_the_same_backends() -> None:
    assert schema.SETTINGS["llm.backend"].choices == ("off", "auto", *backends.NAMES)
