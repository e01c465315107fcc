"""Connects to a team's PostgreSQL server, with TLS unless it is on this machine."""

import ipaddress
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ctx import clock
from ctx.errors import SyncFailure, UsageError

if TYPE_CHECKING:
    from psycopg import Connection

SCHEMES = ("postgresql", "postgres")
_ENOUGH_TLS = ("require", "verify-ca", "verify-full")
_STATEMENT_S = 100
_LOCK_S = 60
_KEEPALIVES = {
    "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}  # fmt: skip
_REFUSED = "The server refused it: you may not write to this project, or you are not a member."


class ServerWait(NamedTuple):
    """How long to wait for a server, in seconds: to accept, and to say anything at all.

    By default, a server cancels a statement itself before it has said nothing for too long.
    """

    connect_s: int = 10
    silence_s: float = 120.0


DEFAULT_WAIT = ServerWait()


def is_team(text: str) -> bool:
    """Whether a text is the address of a PostgreSQL server."""
    scheme, mark, _ = text.partition("://")
    return bool(mark) and scheme in SCHEMES


def connection_options(url: str, connect_s: int = DEFAULT_WAIT.connect_s) -> dict[str, Any]:
    """The options of a connection. A host that is not this machine gets TLS, or is refused."""
    psycopg = _psycopg()
    try:
        options: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise UsageError(f"The address is not valid: {_first_line(error)}.") from error
    if not options.get("host") or "service" in options:
        raise UsageError(
            "The address has no host.", hint="Write `postgresql://USER@HOST/DATABASE`."
        )
    hosts = [*str(options["host"]).split(","), *str(options.get("hostaddr") or "").split(",")]
    if not all(_is_local(host) for host in hosts if host):
        mode = options.setdefault("sslmode", "verify-full")
        if mode not in _ENOUGH_TLS:
            raise UsageError(
                f"sslmode={mode} may send your memory unencrypted.",
                hint="Leave it out. Only a server on this machine needs no TLS.",
            )
        if mode != "require":
            options.setdefault("sslrootcert", "system")
    options.setdefault("connect_timeout", connect_s * clock.patience)
    options.setdefault("application_name", "ctx")
    return _KEEPALIVES | options


def connect(url: str, wait: ServerWait = DEFAULT_WAIT) -> "Connection[Any]":
    """A new connection to a server."""
    options = connection_options(url, wait.connect_s)
    with explain_errors():
        connection = _connection_type().connect(**options, autocommit=True)
    connection.silence_s = wait.silence_s
    return connection  # type: ignore[no-any-return]


def limit_waiting(connection: "Connection[Any]") -> None:
    """Let the server cancel statements that take too long, inside a transaction.

    A setting of the session would stay in the connections of a pooler.
    """
    connection.execute(f"SET LOCAL statement_timeout = '{_STATEMENT_S}s'".encode())
    connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_S}s'".encode())


@cache
def _connection_type() -> Any:
    """Connections that give up a server which accepts requests and does not answer."""
    psycopg = _psycopg()

    class AnsweringConnection(psycopg.Connection):  # type: ignore[name-defined, misc]
        silence_s = DEFAULT_WAIT.silence_s

        def wait(self, steps: Generator[Any, Any, Any], *rest: Any, **options: Any) -> Any:
            return super().wait(self._answered(steps), *rest, **options)

        def _answered(self, steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
            """The same steps of a request, until nothing has arrived for too long."""
            is_time_left = clock.deadline(self.silence_s)
            try:
                wanted = next(steps)
                while True:
                    if ready := (yield wanted):
                        is_time_left = clock.deadline(self.silence_s)
                    elif not is_time_left():
                        self.pgconn.finish()
                        raise psycopg.OperationalError("the server does not answer")
                    wanted = steps.send(ready)
            except StopIteration as done:
                return done.value

    return AnsweringConnection


@contextmanager
def explain_errors() -> Iterator[None]:
    """Turn errors of the server and of the connection into sentences."""
    psycopg = _psycopg()
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise SyncFailure(
            _REFUSED, hint="Ask an owner of the project, or an administrator of the server."
        ) from error
    except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled) as error:
        raise SyncFailure(
            f"The server gave up waiting: {_first_line(error)}.",
            hint="Another member may be sending much. Try again later; nothing is lost.",
        ) from error
    except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure) as error:
        raise SyncFailure(
            "Another machine changed the same projects at the same time.",
            hint="Nothing was changed. Run the command again.",
        ) from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise SyncFailure(
            "The PostgreSQL server cannot be reached, or the connection was cut:"
            f" {_first_line(error)}.",
            hint="Try again later. Nothing is lost.",
        ) from error
    except psycopg.Error as error:
        raise SyncFailure(
            f"The server reports an error: {_first_line(error)}.",
            hint="Nothing was changed. If it happens again, ask the administrator of the server.",
        ) from error


def _is_local(host: str) -> bool:
    """Whether a host is a Unix socket or a loopback address."""
    if host.startswith(("/", "@")) or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0].rstrip(".")


def _psycopg() -> Any:
    try:
        import psycopg
        import psycopg.conninfo
    except ImportError as error:
        raise SyncFailure(
            "To sync with a PostgreSQL server, ctx needs psycopg.",
            hint="Install it: `pip install 'ctx-memory[team]'`",
        ) from error
    return psycopg
