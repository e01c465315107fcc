"""The llama.cpp server of a test run, where it is installed (`make clients`)."""

from collections.abc import Iterator

import pytest

from tests import installed
from tests.llm import llama


@pytest.fixture(scope="session")
def llama_is_there() -> None:
    if llama.missing():
        installed.skip_without("llama.cpp")


@pytest.fixture(scope="session")
def llama_run(llama_is_there: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps the server up from the first test that needs it to the last."""
    with llama.used(llama.place(tmp_path_factory)):
        yield


@pytest.fixture
def llama_server(
    llama_run: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[llama.Server]:
    """The server, for this test alone. What others asked before may be in its memory."""
    with llama.shared(llama.place(tmp_path_factory)) as server:
        yield server
