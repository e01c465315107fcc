"""Connects to a team's PostgreSQL server, with TLS unless it is on this machine."""

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ctx.errors import SyncFailure, UsageError

if TYPE_CHECKING:
    from psycopg import Connection

SCHEMES = ("postgresql", "postgres")
_ENOUGH_TLS = ("require", "verify-ca", "verify-full")
_CONNECT_S = 10
_REFUSED = "The server refused it: you may not write to this project, or you are not a member."


def is_team(text: str) -> bool:
    """Whether a text is the address of a PostgreSQL server."""
    scheme, mark, _ = text.partition("://")
    return bool(mark) and scheme in SCHEMES


def connection_options(url: str) -> dict[str, Any]:
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
    options.setdefault("connect_timeout", _CONNECT_S)
    options.setdefault("application_name", "ctx")
    return options


def connect(url: str) -> "Connection[Any]":
    options = connection_options(url)
    with explain_errors():
        connection: Connection[Any] = _psycopg().connect(**options, autocommit=True)
        return connection


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
