"""The settings that git is run with, so that a repository's own settings run no program.

A `.git/config` can come out of an archive. It can name programs: filters, monitors, hooks, pagers,
text converters, transports. Those under a fixed name are overridden in every command. Some carry a
name that the repository chooses (`filter.<name>.clean`). These are read from git itself, and each
one of the repository's is overridden with what the user has set for it, or with nothing. So a
filter from the user's own settings works as always.
"""

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ctx.errors import GitFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx.checkouts import Checkout

HOOKS = "core.hooksPath"
_NO_PROGRAM = "false"
_FIXED = {
    HOOKS: os.devnull,
    "core.alternateRefsCommand": _NO_PROGRAM,
    "core.askPass": _NO_PROGRAM,
    "core.editor": _NO_PROGRAM,
    "core.fsmonitor": "false",
    "core.gitProxy": _NO_PROGRAM,
    "core.pager": "cat",
    "core.sshCommand": _NO_PROGRAM,
    "diff.ignoreSubmodules": "all",
    "gpg.program": _NO_PROGRAM,
    "log.showSignature": "false",
    # A folder of the working tree may look like a repository, with settings of its own.
    "safe.bareRepository": "explicit",
    "submodule.recurse": "false",
}

LISTING = ("config", "--list", "-z", "--show-scope")
"""The git command that prints what `overrides` reads. It needs git 2.26."""

# Sections in which every program has one of the fixed names, or serves a transport, and these are
# off altogether.
_WITHOUT_OTHER_PROGRAMS = frozenset(
    b"branch color core extensions fetch gc lfs pull push remote submodule user".split()
)
_SECTION = re.compile(rb"\[\s*([^]\s\".]*)")
_LARGEST = 1024 * 1024

# The last parts of settings that name a program, in whatever section. What is not listed by its
# whole name is recognised by its ending, which is how git names such settings.
_PROGRAMS = frozenset(
    {
        *("clean", "smudge", "process", "required"),
        *("textconv", "external", "driver", "difffilter", "tunnel"),
        *("uploadpack", "receivepack", "vcs"),
    }
)
_ENDINGS = ("command", "cmd", "program", "helper", "hook", "editor", "pager", "proxy", "askpass")
_OF_THE_REPOSITORY = (b"local", b"worktree")

# What git sets for its hooks, and what changes how paths are read. A command that runs inside
# a hook of one repository must not be led to another one, or to a half-made index. What somebody
# gave to `git -c` is handed on: it is the user's word, and what is fixed here comes after it.
_REMOVED_VARIABLES = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_ATTR_SOURCE",
        "GIT_COMMON_DIR",
        # `git config` would read this file instead of what holds.
        "GIT_CONFIG",
        "GIT_DIR",
        "GIT_EXTERNAL_DIFF",
        "GIT_GLOB_PATHSPECS",
        "GIT_ICASE_PATHSPECS",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_LITERAL_PATHSPECS",
        "GIT_NAMESPACE",
        "GIT_NOGLOB_PATHSPECS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
    }
)


PRIVATE_OPTIONS = (
    "--no-pager",
    *("-c", f"{HOOKS}={os.devnull}"),
    *("-c", "gc.autoDetach=false", "-c", "maintenance.autoDetach=false"),
)
"""What a git command line begins with in a repository that ctx itself made."""


def private_environment(variables: "Mapping[str, str]") -> dict[str, str]:
    """The variables of a git command in such a repository. Its commits name nobody."""
    kept = {name: value for name, value in variables.items() if name not in _REMOVED_VARIABLES}
    names = {f"GIT_{role}_NAME": "ctx" for role in ("AUTHOR", "COMMITTER")}
    mails = {f"GIT_{role}_EMAIL": "ctx@localhost" for role in ("AUTHOR", "COMMITTER")}
    return {
        "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
        **kept,
        **names,
        **mails,
        "GIT_TERMINAL_PROMPT": "0",
    }


def environment(checkout: "Checkout", variables: "Mapping[str, str]") -> dict[str, str]:
    """The variables of a git command, made of those that ctx was started with."""
    kept = {name: value for name, value in variables.items() if name not in _REMOVED_VARIABLES}
    return {
        **kept,
        # The working tree is where it was found, whatever `core.worktree` and `core.bare` say,
        # and git looks for its repository nowhere else.
        "GIT_WORK_TREE": checkout.top,
        "GIT_CEILING_DIRECTORIES": os.path.dirname(checkout.top),
        # A partial clone would ask its server for what it does not have; an older git knows only
        # the second way to forbid it.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_TERMINAL_PROMPT": "0",
        # No object stands in for another, and no file of grafts gives a commit other parents:
        # commits are what their names say.
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_GRAFT_FILE": os.devnull,
        # Looking at a repository does not write into its index.
        "GIT_OPTIONAL_LOCKS": "0",
        # Otherwise git would write each line into a pipe by itself.
        "GIT_FLUSH": "0",
    }


def fixed_options(keep: str = "") -> list[str]:
    """What every git command line begins with. `keep` is a setting to leave as it is."""
    chosen = [("-c", f"{name}={value}") for name, value in _FIXED.items() if name != keep]
    return ["--no-pager", *(word for pair in chosen for word in pair)]


def may_name_programs(checkout: "Checkout") -> bool:
    """Whether the repository's settings have to be looked at more closely.

    Most have only sections that are known to be harmless: these need no further process.
    """
    return any(
        _has_other_sections(os.path.join(folder, name))
        for folder, name in (
            (checkout.common_dir, "config"),
            (checkout.git_dir, "config.worktree"),
        )
    )


def _has_other_sections(path: str) -> bool:
    try:
        # A pipe in its place must not keep anybody waiting.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            text = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    names = {name.lower() for name in _SECTION.findall(text)}
    return len(text) > _LARGEST or not names <= _WITHOUT_OTHER_PROGRAMS


def overrides(listed: bytes) -> list[str]:
    """The words of a command line that take the repository's programs out of what git lists."""
    users: dict[bytes, bytes] = {}
    repositorys: set[bytes] = set()
    for scope, name, value in _entries(listed):
        if _names_program(name):
            if scope in _OF_THE_REPOSITORY:
                repositorys.add(name)
            else:
                users[name] = value
    words = []
    for name in sorted(repositorys):
        # git takes what comes before the first `=` for the name, so this one cannot be overridden.
        if b"=" in name:
            raise GitFailure(
                f"This repository's settings name a program in a way that cannot be switched"
                f" off: {os.fsdecode(name)}.",
                hint="Remove it from the repository's `.git/config`.",
            )
        words += ["-c", os.fsdecode(name + b"=" + users.get(name, b""))]
    return words


def _entries(listed: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Scope, name and value of each setting."""
    fields = iter(listed.split(b"\0"))
    for scope in fields:
        name, mark, value = next(fields, b"").partition(b"\n")
        # A name without a value means yes.
        yield scope, name, value if mark else b"true"


def _names_program(name: bytes) -> bool:
    section, _, rest = name.decode("utf-8", "replace").partition(".")
    last = rest.rpartition(".")[2]
    return section == "pager" or last in _PROGRAMS or last.endswith(_ENDINGS)
