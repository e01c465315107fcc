"""An embedder that uses OpenAI's protocol: `POST /v1/embeddings`.

llama.cpp, Ollama, vLLM and many services implement it. Texts leave this process, and this
machine if the server is elsewhere, so only the user's own configuration can name one.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ctx import clock
from ctx.errors import ConfigInvalid, ProgramFailure

if TYPE_CHECKING:
    import httpx

    from ctx.search.embedders import Matrix

_BATCH = 32
_LONGEST_TEXT = 8_000
_SHORTEST_TEXT = 250
"""In characters. If a server refuses even this, the length is not the reason."""
_CONNECT_S = 3.0
_ANSWER_S = 60.0
_LARGEST_ANSWER = 64 * 1024 * 1024
_LONGEST_MESSAGE = 200
_TOO_LONG = re.compile("(?i)too (?:long|large)|too many tokens|exceed|context length|batch size")


class EmbeddingServer:
    """A model on a server. It gets a few texts per request."""

    name = "openai"

    def __init__(
        self, url: str, model: str, api_key: str = "", patience_s: float | None = None
    ) -> None:
        """`patience_s` limits the total time in which requests are sent. The last request gets the
        same time again."""
        self._url = _endpoint(url)
        self._model = model
        self._api_key = api_key
        self._client: httpx.Client | None = None
        self._dimensions = 0
        self._answer_s = _ANSWER_S if patience_s is None else patience_s
        self._is_in_time = clock.deadline(patience_s) if patience_s is not None else lambda: True
        self._gone: ProgramFailure | None = None

    @property
    def version(self) -> str:
        """Vectors are comparable if the model is the same, wherever it runs."""
        return self._model

    @property
    def dimensions(self) -> int:
        if not self._dimensions:
            self._dimensions = len(self._ask(["dimensions"])[0])
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> "Matrix":
        import numpy

        vectors = numpy.zeros((len(texts), self.dimensions), numpy.float32)
        # Servers refuse empty texts, which have no meaning anyway.
        nonempty = [place for place, text in enumerate(texts) if text.strip()]
        for begin in range(0, len(nonempty), _BATCH):
            part = nonempty[begin : begin + _BATCH]
            answers = self._embed_shortened([texts[place] for place in part])
            for place, answer in zip(part, answers, strict=True):
                if len(answer) != self.dimensions:
                    raise self._invalid_answer_error("vectors of different lengths")
                vectors[place] = answer
        if not numpy.isfinite(vectors).all():
            raise self._invalid_answer_error("numbers that are none")
        lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
        unit: Matrix = vectors / numpy.maximum(lengths, 1e-12)
        return unit

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = None

    def _embed_shortened(self, texts: list[str]) -> list[list[float]]:
        """The vectors of texts, which are shortened until the server accepts them."""
        longest = _LONGEST_TEXT
        while True:
            try:
                return self._ask([text[:longest] for text in texts])
            except _TooLong:
                longest //= 2
                if longest < _SHORTEST_TEXT:
                    raise

    def _ask(self, texts: list[str]) -> list[list[float]]:
        import httpx

        if self._gone is not None:
            raise self._gone
        if not self._is_in_time():
            raise self._timeout_error()
        # A lone surrogate cannot be sent.
        sent = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        try:
            answer = self._http_client().post(
                self._url, json={"model": self._model, "input": sent, "encoding_format": "float"}
            )
        except httpx.TimeoutException as error:
            # After one timeout no further request is made.
            self._gone = self._timeout_error()
            raise self._gone from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            self._gone = ProgramFailure(
                f"The embedding server at {self._display_address} cannot be reached: {error}.",
                hint=_HINT,
            )
            raise self._gone from error
        if answer.status_code != httpx.codes.OK:
            raise self._refusal(answer)
        return self._rows(answer, len(texts))

    def _rows(self, answer: "httpx.Response", count: int) -> list[list[float]]:
        if len(answer.content) > _LARGEST_ANSWER:
            raise self._invalid_answer_error("more than it was asked for")
        try:
            listed = sorted(answer.json()["data"], key=lambda entry: entry["index"])
            rows = [[float(number) for number in entry["embedding"]] for entry in listed]
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise self._invalid_answer_error("something that is no list of vectors") from error
        if len(rows) != count or not all(rows):
            raise self._invalid_answer_error(f"{len(rows)} vectors for {count} texts")
        return rows

    def _refusal(self, answer: "httpx.Response") -> ProgramFailure:
        message = " ".join(_error_text(answer).split())[:_LONGEST_MESSAGE]
        if self._api_key:
            message = message.replace(self._api_key, "…")
        is_too_long = answer.status_code == 413 or (
            answer.status_code in (400, 422, 500) and _TOO_LONG.search(message)
        )
        kind = _TooLong if is_too_long else ProgramFailure
        hint = _HINT
        if answer.status_code in (401, 403):
            hint = "`search.api_key_env` names the environment variable that holds the key."
        return kind(
            f"The embedding server at {self._display_address} refused ({answer.status_code}):"
            f" {message}",
            hint=hint,
        )

    def _timeout_error(self) -> ProgramFailure:
        return ProgramFailure(
            f"The embedding server at {self._display_address} did not answer in time.", hint=_HINT
        )

    def _invalid_answer_error(self, what: str) -> ProgramFailure:
        return ProgramFailure(
            f"The embedding server at {self._display_address} answered with {what}.", hint=_HINT
        )

    def _http_client(self) -> "httpx.Client":
        import httpx

        if self._client is None:
            headers = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
            self._client = httpx.Client(
                headers=headers,
                timeout=httpx.Timeout(self._answer_s, connect=min(self._answer_s, _CONNECT_S)),
                # A proxy from the environment cannot reach servers on this machine.
                trust_env=urlsplit(self._url).hostname not in ("127.0.0.1", "localhost", "::1"),
            )
        return self._client

    @property
    def _display_address(self) -> str:
        """The address without credentials."""
        parts = urlsplit(self._url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


class _TooLong(ProgramFailure):
    """The server accepts only shorter texts."""


_HINT = (
    "`ctx config list search` shows what is set; `ctx config set search.embedder static` uses the"
    " table that comes with ctx."
)


def _endpoint(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise ConfigInvalid(
            "search.url is not the address of a server.",
            hint="It looks like http://127.0.0.1:8080/v1.",
        )
    path = parts.path.rstrip("/")
    if not path.endswith("/embeddings"):
        path += "/embeddings" if re.search(r"/v\d+$", path) else "/v1/embeddings"
    return parts._replace(path=path, fragment="").geturl()


def _error_text(answer: "httpx.Response") -> str:
    """The message of an error response, wherever the server puts it."""
    try:
        value: Any = answer.json()
    except (ValueError, RecursionError):
        return answer.text or "it gave no reason."
    for word in ("error", "message", "detail"):
        if isinstance(value, dict) and word in value:
            value = value[word]
    return str(value)
