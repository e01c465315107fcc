"""The hosts that an entry point knows. Every command loads this module, and no adapter."""

from ctx.errors import ContentRefused

# Type checkers know this name from anywhere; importing it from `typing` takes longer.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ctx.hosts.host_adapter import Host

FIRST = "claude-code"
"""The host of an event that names none: version 0.1.0 knew no other."""


class Hosts:
    """Hosts by name. An adapter is loaded when it is needed."""

    def __init__(self, loaders: "Mapping[str, Callable[[], Host]]") -> None:
        self._loaders = loaders
        self._loaded: dict[str, Host] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._loaders)

    def named(self, name: str) -> "Host":
        """`ContentRefused` where there is no such host."""
        if name not in self._loaded:
            loader = self._loaders.get(name)
            if loader is None:
                raise ContentRefused(f"ctx has no adapter for {name}.")
            self._loaded[name] = loader()
        return self._loaded[name]


NO_HOSTS = Hosts({})
