"""The hosts that ctx supports: each folder of `agents` with a `hooks.py` is one.

A host `claude-code` is the folder `claude_code`, and has one value in each of these modules, which
are loaded when they are needed:

    hooks.HOOKS      what a hook process knows about it
    adapter.HOST     its events and its transcripts
    setup.SETUP      how ctx is installed for it

A folder with an adapter and no hooks is a recorder: its files are imported by command only.
"""

import os
from functools import partial
from importlib import import_module

from ctx.hosts.host_registry import FIRST, Hosts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ctx.agents.host_setup.host_setups import HostSetup
    from ctx.agents.runtime.host_hooks import HostHooks

_FOLDER = os.path.dirname(__file__)


def _has(name: str, module: str) -> bool:
    return os.path.exists(f"{_FOLDER}/{name.replace('-', '_')}/{module}.py")


def _load(name: str, module: str) -> "Any":
    loaded = import_module(f"ctx.agents.{name.replace('-', '_')}.{module}")
    return getattr(loaded, {"hooks": "HOOKS", "adapter": "HOST", "setup": "SETUP"}[module])


_ADAPTERS = sorted(name.replace("_", "-") for name in os.listdir(_FOLDER) if _has(name, "adapter"))
NAMES = (FIRST, *(name for name in _ADAPTERS if name != FIRST and _has(name, "hooks")))
"""The hosts. The first one comes first."""

HOSTS = Hosts({name: partial(_load, name, "adapter") for name in _ADAPTERS})
"""The hosts and recorders. Entry points add them to the environment."""


def hooks_of(name: str) -> "HostHooks | None":
    """The hooks of a host, without its adapter, which takes longer to load; None: unknown host."""
    hooks: HostHooks | None = _load(name, "hooks") if name in NAMES else None
    return hooks


def all_hooks() -> "list[HostHooks]":
    return [_load(name, "hooks") for name in NAMES]


def setups() -> "list[HostSetup]":
    return [_load(name, "setup") for name in NAMES if _has(name, "setup")]


def session_in_environment(variables: "Mapping[str, str]") -> str:
    """The session of the host that started the MCP server; empty if it names none."""
    named = (variables.get(hooks.session_variable, "") for hooks in all_hooks())
    return next(filter(None, named), "")


def session_in_call(meta: "Mapping[str, Any]") -> str:
    """The session that the metadata of a call of the MCP server names; empty if there is none."""
    return next(filter(None, (hooks.session_in_call(meta) for hooks in all_hooks())), "")


def is_doubling_client(name: str) -> bool:
    """Whether an MCP client shows a model both forms of an answer."""
    every = tuple(hooks.doubling_client for hooks in all_hooks() if hooks.doubling_client)
    return name.startswith(every)


def without_sessions(environment: "Mapping[str, str]") -> dict[str, str]:
    """The environment without the variables of a session of any host."""
    kept = dict(environment)
    for hooks in all_hooks():
        kept = hooks.without_session(kept)
    return kept
