"""Servers for a test: a scripted one, and llama.cpp where it is installed (`make clients`)."""

from collections.abc import Iterator

import pytest

from tests import installed
from tests.llm import llama, model_server


@pytest.fixture
def server() -> Iterator[model_server.Server]:
    with model_server.serve() as server:
        yield server


@pytest.fixture(scope="session")
def llama_is_there() -> None:
    if llama.missing():
        installed.skip_without("llama.cpp")


@pytest.fixture(scope="session")
def llama_run(llama_is_there: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the server running from the first test that needs it to the last."""
    with llama.server_in(llama.place(tmp_path_factory)):
        yield


@pytest.fixture
def llama_server(
    llama_run: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[llama.Server]:
    """The server, for this test alone. Its memory may contain earlier prompts."""
    with llama.shared(llama.place(tmp_path_factory)) as server:
        yield server
