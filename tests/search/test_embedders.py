"""The static table of ctx, and a server with the OpenAI protocol."""

import hashlib
import json
import os
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.config import resolve
from ctx.errors import ConfigInvalid, DiskFailure, IndexCorrupt, ProgramFailure
from ctx.search import embedders, static_embedder
from ctx.search.embedders import Embedder
from ctx.search.embedding_server import EmbeddingServer
from ctx.search.static_embedder import PieceVocabulary, StaticEmbedder
from tests import effort
from tests.contract.embedders import EmbedderContract

# The table


class TestTable(EmbedderContract):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return embedders.default()

    @pytest.mark.parametrize(
        ("asked", "right", "wrong"),
        [
            ("authentication", "users log in with a password", "parse a JSON file"),
            ("dessert", "she baked a cake for his birthday", "users log in with a password"),
            ("read the configuration", "def load_settings(path):", "def send_email(address):"),
            ("remove a directory", "shutil.rmtree(folder)", "socket.connect(address)"),
            ("the build is slow", "compiling takes ten minutes", "the logo is blue"),
        ],
    )
    def test_texts_with_similar_meaning_are_nearer(
        self, embedder: Embedder, asked: str, right: str, wrong: str
    ) -> None:
        question, near, far = embedder.embed([asked, right, wrong])
        assert question @ near > question @ far + 0.05

    def test_all_spellings_of_a_name_have_the_same_vector(self, embedder: Embedder) -> None:
        spellings = embedder.embed(["refresh token", "refreshToken", "refresh_token"])
        assert (spellings == spellings[0]).all()

    def test_the_beginning_of_a_text_counts_most(self, embedder: Embedder) -> None:
        cake = "bake the cake in the oven "
        code = "compile the kernel module "
        first, last, asked = embedder.embed([cake + code * 20, code * 20 + cake, "cake recipe"])
        assert asked @ first > asked @ last

    def test_the_table_is_small_and_has_the_expected_checksum(self) -> None:
        assert os.path.getsize(embedders.DATA) < 10_000_000
        assert embedders.CHECKSUM.startswith(embedders.default().version)


def write_table(path: Path, pieces: list[str], rows: list[list[float]]) -> str:
    path.write_bytes(static_embedder.pack_table("tiny", pieces, numpy.array(rows, numpy.float32)))
    return str(path)


def test_a_packed_table_is_read_back(tmp_path: Path) -> None:
    tiny = StaticEmbedder(
        write_table(tmp_path / "t", ["log", "##in", "cake"], [[3, 0], [0, 3], [-1, 0]])
    )
    assert (tiny.name, tiny.dimensions, len(tiny.version)) == ("tiny", 2, 16)
    rows = tiny.embed(["cake", "Log", "unknown", "cake log log"])
    assert rows[:3].tolist() == [[-1, 0], [1, 0], [0, 0]]
    assert rows[3].tolist() == [1, 0]
    both = tiny.embed(["login"])[0]
    assert both[0] > both[1] > 0


def test_a_damaged_table_is_refused(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t", ["a"], [[1.0]])
    with pytest.raises(IndexCorrupt, match="damaged") as refused:
        StaticEmbedder(path).expect("0" * 64)
    assert "search.vectors off" in str(refused.value.hint)
    whole = (tmp_path / "t").read_bytes()
    for size in range(len(whole)):
        (tmp_path / "cut").write_bytes(whole[:size])
        with pytest.raises(IndexCorrupt, match="damaged"):
            StaticEmbedder(str(tmp_path / "cut"))
    with pytest.raises(DiskFailure):
        StaticEmbedder(str(tmp_path / "missing"))


LETTERS = st.text("abc", min_size=1, max_size=6)


@given(st.lists(LETTERS, unique=True, max_size=20), st.lists(LETTERS, max_size=20), LETTERS)
@settings(max_examples=effort.times(100), deadline=None)
def test_the_pieces_of_a_word_join_to_the_word(
    starts: list[str], rests: list[str], word: str
) -> None:
    pieces = starts + [static_embedder.CONTINUES + rest for rest in dict.fromkeys(rests)]
    rows = PieceVocabulary(pieces).rows(word)
    if rows:
        assert "".join(pieces[row].removeprefix(static_embedder.CONTINUES) for row in rows) == word
        assert not pieces[rows[0]].startswith(static_embedder.CONTINUES)
        assert all(pieces[row].startswith(static_embedder.CONTINUES) for row in rows[1:])
    elif starts:
        assert word not in starts


@given(st.text(max_size=200))
@settings(max_examples=effort.times(60), deadline=None)
def test_one_text_has_the_same_vector_without_numpy(text: str) -> None:
    embedder = embedders.default()
    [row] = embedder.embed([text])
    assert numpy.isfinite(row).all()
    assert embedder.embed_one(text) == pytest.approx(row, abs=1e-6)


# A server


class Fake(ThreadingHTTPServer):
    """A server with the protocol; its vectors are hashes. `says` replaces its answer."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.says: tuple[int, bytes] | None = None
        self.longest = 10_000
        self.asked: list[tuple[str, str, dict[str, Any]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Answer(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        fake = self.server
        assert isinstance(fake, Fake)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fake.asked.append((self.path, self.headers.get("Authorization", ""), body))
        status, answer = fake.says or self.vectors(fake, body["input"])
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def vectors(self, fake: Fake, texts: list[str]) -> tuple[int, bytes]:
        if any(len(text) > fake.longest for text in texts):
            return 400, b'{"error": {"message": "input is too long"}}'
        if not all(text.strip() for text in texts):
            return 400, b'{"error": "empty input"}'
        hashes = ([byte - 127.5 for byte in hashlib.md5(t.encode()).digest()] for t in texts)
        data = [{"index": place, "embedding": row} for place, row in enumerate(hashes)]
        return 200, json.dumps({"data": data[::-1]}).encode()

    def log_message(self, *_words: object) -> None:
        pass


@pytest.fixture
def fake() -> Iterator[Fake]:
    with Fake() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def server(fake: Fake) -> Iterator[EmbeddingServer]:
    asked = EmbeddingServer(fake.url, "small-model", "s3cret")
    yield asked
    asked.close()


class TestServer(EmbedderContract):
    @pytest.fixture
    def embedder(self, server: EmbeddingServer) -> Embedder:
        return server


def test_requests_follow_the_openai_protocol(fake: Fake, server: EmbeddingServer) -> None:
    rows = server.embed([f"text {number}" for number in range(40)])
    assert (server.name, server.version, rows.shape) == ("openai", "small-model", (40, 16))
    [probe, first, second] = fake.asked
    assert probe[:2] == ("/v1/embeddings", "Bearer s3cret")
    assert first[2]["model"] == "small-model"
    assert first[2]["input"] + second[2]["input"] == [f"text {number}" for number in range(40)]


def test_a_text_that_is_too_long_is_cut_until_the_server_accepts_it(
    fake: Fake, server: EmbeddingServer
) -> None:
    fake.longest = 1_500
    assert server.embed(["word " * 10_000]).any()
    assert [len(body["input"][0]) for _, _, body in fake.asked[1:]] == [8000, 4000, 2000, 1000]
    fake.longest = 5
    with pytest.raises(ProgramFailure, match="too long"):
        server.embed(["longer than five"])


@pytest.mark.parametrize(
    ("status", "answer", "words"),
    [
        (401, b'{"error": {"message": "wrong key s3cret"}}', r"refused \(401\): wrong key …"),
        (429, b'{"error": {"message": "too many"}}', r"refused \(429\): too many"),
        (500, b"", "it gave no reason"),
        (302, b"elsewhere", r"refused \(302\)"),
        (200, b"<html>", "no list of vectors"),
        (200, b'{"data": [{"index": 0, "embedding": "x"}]}', "no list of vectors"),
        (200, b'{"data": [{"index": 0, "embedding": [NaN, 1]}]}', "numbers that are none"),
        (200, b'{"data": [{"index": 0, "embedding": []}]}', "1 vectors for 1 texts"),
        (200, b'{"data": []}', "0 vectors for 1 texts"),
        (200, b"[" * 100_000, "no list of vectors"),
    ],
)
def test_errors_of_the_server_are_reported(
    fake: Fake, server: EmbeddingServer, status: int, answer: bytes, words: str
) -> None:
    fake.says = (status, answer)
    with pytest.raises(ProgramFailure, match=words) as refused:
        server.embed(["text"])
    assert "s3cret" not in str(refused.value)
    assert refused.value.hint


def test_a_silent_server_is_waited_for_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        asked = EmbeddingServer(f"http://127.0.0.1:{silent.getsockname()[1]}", "m", patience_s=0.1)
        for _ in range(3):
            with pytest.raises(ProgramFailure, match="did not answer in time"):
                asked.embed(["text"])
        asked.close()
        silent.setblocking(False)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()


def test_an_unreachable_server_or_a_passed_time_limit_is_an_error(fake: Fake) -> None:
    with pytest.raises(ProgramFailure, match="cannot be reached"):
        # Nobody listens on the port that needs a privilege.
        EmbeddingServer("http://user:pass@127.0.0.1:1", "m").embed(["text"])
    asked = EmbeddingServer(fake.url, "m", patience_s=0)
    with pytest.raises(ProgramFailure, match="did not answer in time"):
        asked.embed(["text"])
    assert fake.asked == []


def test_an_invalid_address_is_refused() -> None:
    for url in ("", "ftp://x", "http://", "http://[", "http://x:99999", "x"):
        with pytest.raises(ConfigInvalid):
            EmbeddingServer(url, "m")


# The choice


def chosen(*overrides: str) -> Embedder | None:
    config = resolve.load("", None, {}, overrides)
    return embedders.configured_embedder(config, {"MY_KEY": "abc"})


def test_the_embedder_is_chosen_by_the_configuration(fake: Fake) -> None:
    assert chosen() is embedders.default()
    assert chosen("search.vectors=off") is None
    asked = chosen("search.embedder=openai", f"search.url={fake.url}", "search.api_key_env=MY_KEY")
    assert isinstance(asked, EmbeddingServer)
    assert asked.dimensions == 16
    assert fake.asked[0][1] == "Bearer abc"
    asked.close()
