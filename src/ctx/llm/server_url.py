"""Server URLs: validation, comparison and display."""

import ipaddress
from urllib.parse import SplitResult, urlsplit

from ctx.errors import ConfigInvalid

_PORTS = {"http": 80, "https": 443}


def check(url: str, what: str = "llm.server_url") -> str:
    """Return a valid URL or raise. `what` names its source in the message."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise ConfigInvalid(
            f"{what} is not the address of a server.", hint="It looks like http://127.0.0.1:8080."
        )
    return url


def is_on_this_machine(url: str) -> bool:
    """Whether the URL points to this machine. Any host name but `localhost` may point elsewhere."""
    host = _split(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def same_server(one: str, other: str) -> bool:
    """Whether both URLs have the same origin, so that a key for one may be sent to the other."""
    return _origin(one) == _origin(other)


def is_encrypted(url: str) -> bool:
    return _split(url).scheme == "https"


def display(url: str) -> str:
    """The URL without user name, password and query."""
    parts = _split(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = _split(url)
    return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme)


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.hostname, parts.port
    except ValueError:
        return urlsplit("")
    return parts
