"""The `ctx` that is installed here: whether a shell finds it, and whether it will stay."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

import ctx
from ctx import __version__
from ctx.agents.host_setup import hook_commands, program_runs
from ctx.errors import HookFailed
from ctx.sqlite.connection import path_text

_COMPILING_S = 120.0
_VERSION_S = 5.0
_VERSION = re.compile(r"ctx \d+\.\d+\.\d+\S*")


class Program(NamedTuple):
    """The `ctx` that a shell finds. Hooks of projects and plugins run it, and so does Claude."""

    summary: str
    advice: str
    """What to do; empty if it is this ctx, or one of the same version."""


def program_on_path(variables: Mapping[str, str]) -> Program:
    ours = os.path.dirname(hook_commands.interpreter())
    first = next(program_runs.programs("ctx", variables.get("PATH", "").split(os.pathsep)), None)
    if first is None:
        return Program("`ctx` is not on the PATH.", f"Put {path_text(ours)} on it.")
    if os.path.dirname(os.path.realpath(first)) == os.path.realpath(ours):
        return Program(f"`ctx` is {path_text(first)}, this one", "")
    version = _version_of(first, variables)
    if version == f"ctx {__version__}":
        return Program(f"`ctx` is {path_text(first)}, of the same version as this one", "")
    is_older = _VERSION.fullmatch(version) is not None
    other = f"{version}; this is {__version__}." if is_older else "another program."
    advice = f"Put {path_text(ours)} before everything else on the PATH."
    return Program(f"`ctx` is {path_text(first)}, and that is {other}", advice)


def _version_of(program: str, variables: Mapping[str, str]) -> str:
    try:
        ended = program_runs.run([program, "--version"], variables, os.sep, seconds=_VERSION_S)
    except OSError:
        return ""
    return ended.out.decode("utf-8", "replace").strip() if ended else ""


_UV = re.compile(r"/(?:archive|builds|environments)-v\d+/")
_PIPX = re.compile(r"/(?:pipx/\.cache|(?:\.cache|Caches)/pipx)/(?!venvs/)")


def refuse_temporary_environment() -> None:
    """Raise HookFailed if ctx runs from the cache of `uvx` or `pipx run`, which gets deleted."""
    for path in (hook_commands.interpreter(), os.path.abspath(ctx.__file__)):
        for tool, cache, command in (
            ("uv", _UV, "uv tool install ctx-memory"),
            ("pipx", _PIPX, "pipx install ctx-memory"),
        ):
            if cache.search(path):
                raise HookFailed(
                    f"ctx runs from a temporary environment, which {tool} deletes:"
                    f" {path_text(path)}. Hooks would stop working.",
                    hint=f"Install ctx with `{command}`, then run `ctx install` again.",
                )


def compile_bytecode() -> None:
    """Compile the modules that hooks import.

    Otherwise a hook compiles its imports each time, which takes several times as long. It still
    works if the bytecode cannot be written.
    """
    package = os.path.dirname(os.path.abspath(ctx.__file__))
    words = [hook_commands.interpreter(), "-I", "-S", "-m", "compileall", "-q", package]
    with suppress(OSError):
        program_runs.run(words, {}, os.sep, seconds=_COMPILING_S)
