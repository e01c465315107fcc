"""What a hostile client of the port can do: be refused or served, and nothing else."""

import os
import socket
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPConnection
from urllib.parse import urlsplit

import httpx

from ctx.page import listening
from tests.page.served import Served
from tests.page.visits import base_of

_PARALLEL = 1_000
_HUGE = 100 * 1024 * 1024


def is_alive(served: Served) -> bool:
    with served.program() as client:
        return client.get("/api/v1/nodes").status_code == 200


def connect(served: Served) -> socket.socket:
    host, _, port = urlsplit(served.origin).netloc.partition(":")
    return socket.create_connection((host, int(port)), 60)


def test_a_thousand_requests_at_once(served: Served) -> None:
    with served.program() as client:
        token = {"Authorization": client.headers["authorization"]}

    def ask(number: int) -> int:
        connection = HTTPConnection(urlsplit(served.origin).netloc, timeout=120)
        try:
            connection.request("GET", "/api/v1/nodes", headers=token if number % 2 else {})
            return connection.getresponse().status
        finally:
            connection.close()

    with ThreadPoolExecutor(200) as pool:
        answers = Counter(pool.map(ask, range(_PARALLEL)))
    assert set(answers) <= {200, 401, 503}
    assert answers[200] > 0
    assert is_alive(served)


def test_a_huge_body_is_not_read(served: Served) -> None:
    with served.visitor() as visitor:
        path = visitor.base_url.join(f"{base_of(visitor)}/undo").path
    lines = [f"POST {path} HTTP/1.1", f"Host: {urlsplit(served.origin).netloc}"]
    lines += [f"Origin: {served.origin}"]
    for size in (f"Content-Length: {_HUGE}", "Transfer-Encoding: chunked"):
        with connect(served) as connection:
            connection.sendall("\r\n".join([*lines, size, "", ""]).encode())
            part = b"x" * 65536
            sent = 0
            try:
                while sent < _HUGE:
                    data = part if size.startswith("C") else b"10000\r\n" + part + b"\r\n"
                    connection.sendall(data)
                    sent += len(part)
            except OSError:
                # The server has answered and closed the connection.
                pass
            assert sent < _HUGE
    assert is_alive(served)


def test_a_client_that_says_nothing_is_not_waited_for(served: Served) -> None:
    silent = [connect(served) for _ in range(50)]
    slow = [connect(served) for _ in range(50)]
    for connection in slow:
        connection.sendall(b"GET / HTT")
    assert is_alive(served)
    for connection in [*silent, *slow]:
        connection.settimeout(listening.HEADERS_S + 60)
        assert connection.recv(1) == b"", "the server has closed it"
        connection.close()
    assert is_alive(served)


def test_a_second_request_that_never_ends_is_not_waited_for(served: Served) -> None:
    host = urlsplit(served.origin).netloc
    with connect(served) as connection:
        connection.sendall(f"GET /static/icon.svg HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET / HT")
        connection.settimeout(listening.HEADERS_S + 60)
        while connection.recv(65536):
            pass
    assert is_alive(served)


RAW = [
    b"\0\0\0\0\r\n\r\n",
    b"GET /\xff HTTP/1.1\r\n\r\n",
    b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
    b"GET " + b"/a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20_000 + b"\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]


def test_what_is_no_request_is_refused(served: Served) -> None:
    for raw in RAW:
        with connect(served) as connection:
            try:
                connection.sendall(raw)
                # The server may have closed the connection already.
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_WR)
                answer = connection.recv(65536)
            except ConnectionError:
                answer = b""
        assert answer == b"" or answer.split()[1][:1] == b"4", raw[:80]
        assert is_alive(served)


PATHS = [
    "/static/../../../../../../etc/passwd",
    "/static/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "/static/..%2f..%2f..%2fetc/passwd",
    "/static//etc/passwd",
    "/p/../../etc/passwd/now",
    "/p/%2e%2e%2fetc/now",
    "/static/\\..\\..\\etc\\passwd",
]


def test_no_path_leads_out(served: Served) -> None:
    """The path goes over the wire as it is: clients would shorten it."""
    with served.program() as client:
        token = client.headers["authorization"]
    for path in PATHS:
        with connect(served) as connection:
            host = urlsplit(served.origin).netloc
            head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: {token}\r\n"
            connection.sendall(f"{head}Connection: close\r\n\r\n".encode())
            answer = b""
            while part := connection.recv(65536):
                answer += part
        assert b"root:" not in answer, path
        assert answer.split()[1] in (b"400", b"404"), path


def test_the_process_ends_with_open_pages(served: Served) -> None:
    """Pages that listen do not keep the server from ending."""
    with served.visitor() as visitor:
        base = base_of(visitor)
        received = threading.Event()

        def listen() -> None:
            try:
                with visitor.stream("GET", f"{base}/live") as answer:
                    for _ in answer.iter_raw():
                        received.set()
            except httpx.TransportError:
                pass

        thread = threading.Thread(target=listen)
        thread.start()
        assert received.wait(60)
        assert served.stop() == 0
        thread.join(60)
        assert not thread.is_alive()
    assert not os.path.exists(f"/proc/{served.pid}/stat")
