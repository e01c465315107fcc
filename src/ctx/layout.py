"""Where things lie: the user store, a project store, and a project's local folder.

The user store is `CTX_HOME`. A project store is a `.ctx/` whose `config.toml` names `[repo]`, or
one that has commits of memory: what is wrong with the file must not hide them.
What a project keeps on this machine only (refs, staging, indexes, the lock) lies in the git
folder, one place per working tree, where `git clean` and `git add -A` do not reach; without
git it lies in `.ctx/local/`.

Nothing here reads more than it needs to find a place, and nothing writes.
"""

import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ctx import checkouts, disk, repository_names
from ctx.errors import NotAProject, PathRefused

STORE_NAME = ".ctx"
CONFIG_NAME = "config.toml"
CODE_INDEX = "code.db"
VECTORS = "vectors.db"
SYNC = "sync"
"""The folder of the targets of `ctx sync`."""
INDEX_KEY = 32
"""Characters of the name of an index."""

_LARGEST_CONFIG = 256 * 1024
_HEAD_NAME = 64
_HEX_DIGITS = "0123456789abcdef"
_NOT_IN_TAGS = "\"'`,;()"
_LONGEST_NAME = 100
# Linux takes 107 bytes, macOS 103.
_LONGEST_SOCKET = 100


class UserStore(NamedTuple):
    """The store of one person on one machine."""

    home: str

    @property
    def config_file(self) -> str:
        return os.path.join(self.home, CONFIG_NAME)

    @property
    def database(self) -> str:
        return os.path.join(self.home, "store.db")

    @property
    def vectors(self) -> str:
        """The vectors of the nodes in it."""
        return os.path.join(self.home, VECTORS)

    @property
    def ledger(self) -> str:
        """What models were asked, and what that cost, whichever store is in use."""
        return os.path.join(self.home, "ledger.db")

    @property
    def sync(self) -> str:
        """The targets of `ctx sync`, their keys, and private clones."""
        return os.path.join(self.home, SYNC)

    @property
    def worker_lock(self) -> str:
        """Held by the worker as long as it lives; it says who that is."""
        return os.path.join(self.home, "worker.lock")

    @property
    def worker_wake(self) -> str:
        """The pipe on which hooks tell the worker that there is something to do."""
        return os.path.join(self.home, "worker.wake")

    @property
    def worker_log(self) -> str:
        return os.path.join(self.home, "worker.log")

    @property
    def worker_socket(self) -> str:
        """Where the worker listens. Systems refuse long names for that, so it may lie elsewhere.

        Whoever asks finds the same place whatever their variables say: a worker outlives the
        session that has started it.
        """
        path = os.path.join(self.home, "worker.sock")
        if len(os.fsencode(path)) < _LONGEST_SOCKET:
            return path
        user = os.getuid()
        folder = f"/run/user/{user}"
        # Who uses it looks whose folder it is.
        folder = f"{folder}/ctx" if os.path.isdir(folder) else f"/tmp/ctx-{user}"  # noqa: S108
        return f"{folder}/{digest(os.fsencode(self.home), 8)}.sock"

    @property
    def page_token(self) -> str:
        """The token with which programs use the page's HTTP API."""
        return os.path.join(self.home, "page.token")

    @property
    def code(self) -> str:
        """The folder of the indexes of code that lies in no project."""
        return os.path.join(self.home, "code")

    def code_of(self, root: str) -> "CodePlace":
        """The code of a folder that has no store of its own."""
        from hashlib import blake2b

        key = blake2b(os.fsencode(root), digest_size=INDEX_KEY // 2).hexdigest()
        local = os.path.join(self.code, key)
        return CodePlace(
            root, checkouts.find_checkout(root), os.path.join(local, CODE_INDEX), local
        )


class CodePlace(NamedTuple):
    """The code of one working tree, and where what is derived from it lies."""

    root: str
    checkout: checkouts.Checkout | None
    database: str
    local: str

    @property
    def lock(self) -> str:
        """Held by whoever brings the index up to date."""
        return f"{self.database}.lock"

    @property
    def derived(self) -> str:
        """The folder of what follows from the index."""
        return os.path.join(self.local, "DERIVED")


class Place(NamedTuple):
    """Where somebody works, as far as memory is concerned."""

    folder: str
    """The top of the working tree; outside of git the folder itself."""
    project: str | None
    """The name of the project, which all working trees of a repository share."""
    task_key: str
    """Under which `pending` keeps what is worked on: one for each working tree."""


class Project(NamedTuple):
    """A folder with a project store, or one that is about to get it."""

    root: str
    checkout: checkouts.Checkout | None

    @property
    def store(self) -> str:
        return os.path.join(self.root, STORE_NAME)

    @property
    def config_file(self) -> str:
        return os.path.join(self.store, CONFIG_NAME)

    @property
    def objects(self) -> str:
        return os.path.join(self.store, "objects")

    @property
    def heads(self) -> str:
        return os.path.join(self.store, "heads")

    @property
    def narrative(self) -> str:
        return os.path.join(self.store, "narrative")

    @property
    def replaced(self) -> str:
        """Which objects were scrubbed, and what stands in for them."""
        return os.path.join(self.store, "replaced")

    @property
    def local(self) -> str:
        """What stays on this machine, one folder per working tree and project store."""
        if self.checkout is None:
            return os.path.join(self.store, "local")
        return os.path.join(self.checkout.common_dir, "ctx", self.checkout.worktree + self.part)

    @property
    def local_before_git(self) -> str | None:
        """The local folder from before the project became a git checkout, if it is still there."""
        folder = os.path.join(self.store, "local")
        is_there = self.checkout is not None and os.path.isdir(folder)
        return folder if is_there and not os.path.islink(folder) else None

    @property
    def part(self) -> str:
        """Tells the project stores of one working tree apart; empty for the one at its top."""
        assert self.checkout is not None
        inside = os.path.relpath(self.root, self.checkout.top)
        if inside == ".":
            return ""
        import hashlib

        mark = hashlib.blake2s(os.fsencode(inside), digest_size=4).hexdigest()
        return f"+{os.path.basename(inside)}-{mark}"

    @property
    def staged_objects(self) -> str:
        return os.path.join(self.local, "stage", "objects")

    @property
    def refs(self) -> str:
        return os.path.join(self.local, "refs")

    @property
    def indexes(self) -> str:
        return os.path.join(self.local, "index")

    def index_of(self, heads: Iterable[str]) -> str:
        """Where the indexes of a set of heads lie. The key needs no third-party hash."""
        key = digest("\n".join(sorted(heads)).encode(), INDEX_KEY // 2)
        return os.path.join(self.indexes, key)

    @property
    def stage(self) -> str:
        """The file that names the session which commands join."""
        return os.path.join(self.local, "STAGE")

    @property
    def own(self) -> str:
        """The file that names the commits which were made here, and git commits with them."""
        return os.path.join(self.local, "mine")

    @property
    def given(self) -> str:
        """A file that changes when agents are given more of what is in the working tree."""
        return os.path.join(self.local, "given")

    @property
    def lock(self) -> str:
        return os.path.join(self.local, "LOCK")

    @property
    def narrative_index(self) -> str:
        return os.path.join(self.indexes, "narrative.db")

    @property
    def vectors(self) -> str:
        """The vectors of the nodes of this project's memory, whatever its heads are."""
        return os.path.join(self.indexes, VECTORS)

    @property
    def code(self) -> CodePlace:
        database = os.path.join(self.indexes, CODE_INDEX)
        return CodePlace(self.root, self.checkout, database, self.local)


def digest(data: bytes, size: int) -> str:
    """A hash of some bytes, in twice as many characters as its size."""
    try:
        # A hook asks too, and hashlib with all its hashes costs more than the rest of it.
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b

    return blake2b(data, digest_size=size).hexdigest()


def project_at(root: str) -> Project:
    """The project that a folder would be the root of, whether or not it has a store."""
    top = os.path.realpath(root)
    return Project(top, checkouts.find_checkout(top))


def find_project(start: str, home: str) -> Project | None:
    """The project store that a folder belongs to: the nearest one upward.

    The search ends at the top of the git checkout; outside git at the home folder, and where
    another file system begins.
    """
    here = os.path.realpath(start)
    user_home = os.path.realpath(os.path.expanduser("~"))
    checkout = checkouts.find_checkout(here)
    try:
        device = os.stat(here).st_dev
        while True:
            if is_project_store(os.path.join(here, STORE_NAME), home):
                return Project(here, checkout)
            parent = os.path.dirname(here)
            beyond = here == checkout.top if checkout else here == user_home
            if beyond or parent == here or os.stat(parent).st_dev != device:
                return None
            here = parent
    except OSError:
        return None


def code_at(start: str, user_store: UserStore) -> CodePlace:
    """The code that a folder belongs to: the project's, else the checkout's, else the folder's."""
    project = find_project(start, user_store.home)
    if project is not None:
        refuse_links(project)
        if os.path.exists(project.code.database) or _can_hold_files(project.indexes):
            return project.code
        # Somebody else's checkout, or one on a disk that is read-only: it can be read all the same.
        return user_store.code_of(project.root)
    here = os.path.realpath(start)
    too_much = {os.path.realpath(os.path.expanduser("~")), os.path.abspath(os.sep)}
    checkout = checkouts.find_checkout(here)
    # Somebody's home may be a repository of settings: nobody means all that lies in it.
    root = checkout.top if checkout and checkout.top not in too_much else here
    if root in too_much:
        raise PathRefused(
            f"{root} is not a project: it contains all of somebody's files.",
            hint="Run this in the folder of a project, or name it with `-C DIR`.",
        )
    return user_store.code_of(root)


def _can_hold_files(folder: str) -> bool:
    """Whether somebody may write into a folder, or make it where it is not there yet."""
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def place(folder: str, home: str, trusts: Callable[[Project], bool] | None = None) -> Place:
    """Where a folder is. A project is called what its user says, else what its store says, else
    what its repository was called first, wherever that lies now (`new_name`).

    Whoever asks on behalf of an agent says which stores are trusted: a stranger's could take the
    name of another project, to be told what is known about that one.
    """
    folder = os.path.realpath(folder)
    checkout = checkouts.find_checkout(folder)
    store = find_project(folder, home)
    called = _chosen_name(home, folder, checkout)
    if not called and store and (trusts is None or trusts(store)):
        called = _declared_name(store.config_file) or os.path.basename(store.root)
    if not called and checkout:
        called = repository_names.name_of(home, checkout.common_dir) or new_name(home, checkout)
    name = tag_name(called) if called else None
    top = checkout.top if checkout else store.root if store else folder
    if name is None or checkout is None:
        return Place(top, name, "current_task")
    return Place(top, name, f"current_task:{name}:{checkout.worktree}")


def repository_name(checkout: checkouts.Checkout) -> str:
    """What a repository is called by where it lies: all of its working trees share the name."""
    above, last = os.path.split(checkout.common_dir)
    if last in (".git", ".bare"):
        return os.path.basename(above)
    # Of a bare repository there are only further working trees. A submodule is one of its own.
    is_shared = checkout.git_dir != checkout.common_dir
    return last.removesuffix(".git") if is_shared else os.path.basename(checkout.top)


def new_name(home: str, checkout: checkouts.Checkout) -> str:
    """What a repository is called that has no name yet.

    Where another one has its name, the folder that it lies in is named too: what somebody does for
    one customer must not be told to another because both call their repository `api`.
    """
    name = repository_name(checkout)
    taken = set(map(tag_name, repository_names.taken_names(home, checkout.common_dir)))
    if not taken or tag_name(name) not in taken:
        return name
    is_shared = checkout.git_dir != checkout.common_dir
    root = checkout.common_dir if is_shared else checkout.top
    if os.path.basename(root) in (".git", ".bare"):
        root = os.path.dirname(root)
    outer = f"{os.path.basename(os.path.dirname(root))}-{name}".lstrip("-")
    numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return next(each for each in (outer, *numbered) if tag_name(each) not in taken)


def _chosen_name(home: str, folder: str, checkout: checkouts.Checkout | None) -> str:
    """What a person's own configuration calls the folder, or the nearest one above it that it
    names; of a further working tree, what it calls the first."""
    try:
        text = disk.read_plain(os.path.join(home, CONFIG_NAME), _LARGEST_CONFIG)
        if b"project_names" not in text:
            return ""
        # A hook has no time for a parser where there is nothing to find.
        import tomllib

        found = tomllib.loads(text.decode("utf-8-sig")).get("capture", {}).get("project_names", ())
        pairs = [str(each).rpartition("=") for each in found]
    except (OSError, ValueError, AttributeError, TypeError):
        return ""
    names = {os.path.realpath(os.path.expanduser(path)): name for path, _, name in pairs if path}
    first = os.path.dirname(checkout.common_dir) if checkout else folder
    for start in dict.fromkeys((folder, os.path.realpath(first))):
        here = start
        while here not in names and here != os.path.dirname(here):
            here = os.path.dirname(here)
        if name := names.get(here, "").strip():
            return name
    return ""


def tag_name(name: str) -> str | None:
    """The name as it can stand in `project:<name>`; None where nothing is left of it."""
    if not name.isascii():
        import unicodedata

        # Some file systems write an accent as a character of its own.
        name = unicodedata.normalize("NFC", name)
    kept = "".join(c if c.isprintable() and c not in _NOT_IN_TAGS else " " for c in name)
    return "-".join(kept.split()).rstrip(":*")[:_LONGEST_NAME] or None


def _declared_name(config_file: str) -> str:
    """The name that a project's configuration gives it, if any."""
    try:
        text = disk.read_plain(config_file, _LARGEST_CONFIG).decode("utf-8")
        if name := _name_in_first_section(text):
            return name
        import tomllib

        said = tomllib.loads(text.removeprefix("\ufeff")).get("repo", {}).get("id", "")
    except (OSError, ValueError, AttributeError):
        return ""
    return said if isinstance(said, str) else ""


def _name_in_first_section(text: str) -> str:
    """The same where it stands as `ctx init` writes it: a hook has no time for a parser."""
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    if next(lines, "") != "[repo]":
        return ""
    key, _, value = next(lines, "").partition(" = ")
    name = value[1:-1]
    is_plain = value == f'"{name}"' and name.isprintable() and not {'"', "\\"} & set(name)
    return name if key == "id" and is_plain else ""


def is_server(database: str) -> bool:
    """Whether a database is the address of a team's PostgreSQL server, and not a file."""
    return database.startswith(("postgresql://", "postgres://"))


def server_text(address: str) -> str:
    """The address of a server for people: without the user, the password and other options."""
    scheme, mark, rest = address.partition("?")[0].partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"


def require_project(start: str, home: str) -> Project:
    project = find_project(start, home)
    if project is None:
        raise NotAProject(f"No project store in {start} or a folder above it.")
    refuse_links(project)
    return project


def refuse_links(project: Project) -> None:
    """A project store must be plain folders.

    What came with a clone or an archive could otherwise lead us to a person's own files, to
    take copies of them or to write over them.
    """
    local = os.path.join(project.store, "local")
    places = (project.store, project.objects, project.heads, project.narrative, project.replaced)
    inside = [
        os.path.join(local, name)
        for name in ("DERIVED", "LOCK", "PUBLISHING", "index", "mine", "refs", "stage")
    ]
    pointers = [os.path.join(local, "refs", name) for name in ("work", "aborted", "damaged")]
    for place in (*places, local, *inside, *pointers, project.config_file):
        if os.path.islink(place):
            raise PathRefused(
                f"{place} is a symbolic link.", hint="A project store must be plain folders."
            )


def is_project_store(store: str, ctx_home: str) -> bool:
    """Whether a folder is a project store rather than a user store or something else."""
    if not os.path.isdir(store) or os.path.realpath(store) == os.path.realpath(ctx_home):
        return False
    return names_repo(os.path.join(store, CONFIG_NAME)) or _has_memory(store)


def _has_memory(store: str) -> bool:
    """Whether a folder has commits of memory. Other programs also call a folder `.ctx`.

    Where git has switched to a branch without a store, commits that it does not have stay behind,
    but neither of the two files.
    """
    if not any(os.path.lexists(os.path.join(store, name)) for name in (CONFIG_NAME, ".gitignore")):
        return False
    try:
        names = os.listdir(os.path.join(store, "heads"))
    except OSError:
        return False
    has_heads = any(len(name) == _HEAD_NAME and not name.strip(_HEX_DIGITS) for name in names)
    return has_heads and os.path.isdir(os.path.join(store, "objects"))


def names_repo(config_file: str) -> bool:
    """Whether a project's configuration has the section `[repo]`, which every project store has."""
    try:
        text = disk.read_plain(config_file, _LARGEST_CONFIG)
    except OSError:
        return False
    # A glance rather than a parse: this runs in every command, for every folder above.
    lines = (line.replace(b" ", b"").replace(b"\t", b"") for line in text.splitlines())
    return any(line.startswith((b"[repo]", b"repo.", b"repo=")) for line in lines)


def unfit_name(path: str) -> str | None:
    """Why a path cannot be written down, if so: every other name is fine, in any script."""
    import unicodedata

    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    if any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in path):
        return "its name has a control character in it"
    return None
