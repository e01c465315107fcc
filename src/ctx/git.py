"""The only module that runs `git`.

`checkouts` finds repositories without a process.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ctx import checkouts, disk, git_settings
from ctx.checkouts import Checkout
from ctx.errors import GitFailure

if TYPE_CHECKING:
    import subprocess
    from typing import BinaryIO


_COMMITTED = re.compile(rb"[0-9a-f]+ commit( \((initial|amend)\))?: ")


class Addition(NamedTuple):
    """The newest commit that added a file: the blob and the time."""

    blob: str
    time: int


class Remote(NamedTuple):
    """A remote as the repository's config describes it."""

    url: str
    fetch: tuple[str, ...]
    """The refspecs that `git fetch` uses."""


class Difference(NamedTuple):
    """How one file differs from a commit."""

    status: str
    """`A` added, `M` modified, `D` deleted, `T` turned into something else."""
    path: str
    """Relative to the top."""
    blob: str
    """The blob in the commit; empty or zeros if it was not a plain file there."""


def run(
    checkout: Checkout,
    *arguments: str,
    stdin: bytes = b"",
    fine: tuple[int, ...] = (0,),
    keep: str = "",
) -> bytes:
    """The output of a git command; `fine` lists the exit codes that are not failures."""
    return _run(checkout, [*_command_prefix(checkout, keep), *arguments], stdin, fine)


def _command_prefix(checkout: Checkout, keep: str = "") -> list[str]:
    """The program and the settings that keep a repository from running anything.

    `keep` names a setting to leave as the repository has it.
    """
    words = [_program(), *git_settings.fixed_options(keep)]
    if git_settings.may_name_programs(checkout):
        words += git_settings.overrides(_run(checkout, [*words, *git_settings.LISTING]))
    return words


def _program() -> str:
    import shutil

    # A relative folder on PATH could be inside the repository.
    folders = filter(os.path.isabs, os.environ.get("PATH", os.defpath).split(os.pathsep))
    program = shutil.which("git", path=os.pathsep.join(folders))
    if program is None:
        raise GitFailure("git is not on this machine's PATH.", hint="Install git.")
    return program


def _run(
    checkout: Checkout, command: list[str], stdin: bytes = b"", fine: tuple[int, ...] = (0,)
) -> bytes:
    import subprocess

    with _explain_start_errors():
        done = subprocess.run(
            command,
            # git finds the repository from its folder, so that its ownership check applies.
            cwd=checkout.top,
            env=git_settings.environment(checkout, os.environ),
            input=stdin,
            capture_output=True,
            check=False,
        )
    if done.returncode not in fine:
        raise _failure(command, done.stderr)
    return done.stdout


def run_private(
    git_dir: str, *arguments: str, stdin: bytes = b"", seconds: float | None = None
) -> bytes:
    """The output of a git command in a bare repository of ctx itself, which may use the network.

    The settings of the user apply, such as keys and proxies. Nothing is asked on the terminal.
    """
    import subprocess

    command = [_program(), *git_settings.PRIVATE_OPTIONS, f"--git-dir={git_dir}", *arguments]
    with _explain_start_errors():
        try:
            done = subprocess.run(
                command,
                cwd=os.path.dirname(git_dir),
                env=git_settings.private_environment(os.environ),
                input=stdin,
                capture_output=True,
                check=False,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            raise GitFailure(f"The git server did not answer within {seconds:.0f} s.") from None
    if done.returncode:
        raise _failure(command, done.stderr)
    return done.stdout


@contextmanager
def _explain_start_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise GitFailure(f"git could not be started: {error.strerror}.") from error


_TRUSTING = "git config --global --add safe.directory "


def _failure(command: list[str], complaint: bytes) -> GitFailure:
    said = complaint.decode("utf-8", "replace").strip().splitlines() or ["no message"]
    verb = next(word for word in command[1:] if word[0] != "-" and "=" not in word)
    # git prints the command that makes a repository of another owner safe.
    advice = next((line.strip() for line in said if line.strip().startswith(_TRUSTING)), "")
    hint = f"If you trust whoever owns it: `{advice}`." if advice else None
    return GitFailure(f"`git {verb}` failed: {said[0]}", hint=hint)


class BackgroundProcess:
    """A git command that reads history in the background.

    It prints into an unnamed file: a pipe would block it until somebody reads, and the output may
    not fit into memory.
    """

    def __init__(self, checkout: Checkout, *arguments: str, stdin: bytes) -> None:
        import subprocess
        import tempfile

        self._command = [*_command_prefix(checkout), *arguments]
        self._printed, self._complaint = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        with tempfile.TemporaryFile() as asked, _explain_start_errors():
            asked.write(stdin)
            asked.seek(0)
            self._process = subprocess.Popen(
                self._command,
                cwd=checkout.top,
                env=git_settings.environment(checkout, os.environ),
                stdin=asked,
                stdout=self._printed,
                stderr=self._complaint,
            )

    def printed(self) -> "BinaryIO":
        """Its whole output, after it has succeeded."""
        if self._process.wait() != 0:
            self._complaint.seek(0)
            raise _failure(self._command, self._complaint.read(4096))
        self._printed.seek(0)
        return self._printed

    def close(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()
        self._printed.close()
        self._complaint.close()


def rev_parse_head(checkout: Checkout) -> str | None:
    """The commit of HEAD; None before the first commit."""
    asked = ("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    return run(checkout, *asked, fine=(0, 1)).decode().strip() or None


def commit_named(checkout: Checkout, name: str) -> str | None:
    """The commit for a user's name: a branch, a tag, `HEAD~3`; None if there is none."""
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    try:
        said = run(checkout, *asked, fine=(0, 1))
    except GitFailure:
        return None
    return said.decode("utf-8", "replace").strip() or None


def differences(checkout: Checkout, commit: str, folder: str) -> list[Difference]:
    """How the tracked files under a folder differ from a commit."""
    # A plumbing command: it ignores user settings and does not write the index.
    arguments = ("-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
    names = (commit, "--", _literal_pathspec(checkout, folder))
    output = run(checkout, "diff-index", "--raw", "--no-abbrev", *arguments, *names)
    fields = iter(output.split(b"\0"))
    differences = []
    is_unsure = False
    for field in fields:
        if not field:
            continue
        old_mode, _, blob, new_blob, status = field.decode().removeprefix(":").split(" ")
        path = os.fsdecode(next(fields))
        is_file = old_mode.startswith("100")
        differences.append(Difference(status[0], path, blob if is_file else ""))
        is_unsure = is_unsure or (status == "M" and not new_blob.strip("0"))
    if not is_unsure:
        return differences
    # A file that was written again with the same content is listed until git looks at the content.
    output = run(checkout, "diff-index", "--numstat", *arguments, *names)
    changed = {os.fsdecode(line.split(b"\t", 2)[2]) for line in output.split(b"\0") if line}
    return [each for each in differences if each.path in changed]


def newest_commits(checkout: Checkout, tip: str, most: int) -> list[str]:
    """A commit and its ancestors, newest first."""
    return run(checkout, "rev-list", f"--max-count={most}", tip, "--").decode().split()


def shallow_edge(checkout: Checkout) -> frozenset[str]:
    """The boundary commits of a shallow clone, which look like root commits."""
    listed = disk.read_or_none(os.path.join(checkout.common_dir, "shallow")) or b""
    return frozenset(listed.decode("ascii", "replace").split())


def head_commit(checkout: Checkout) -> str | None:
    """The current commit, read from plain files if git stores it in them."""
    if os.path.isdir(os.path.join(checkout.common_dir, "reftable")):
        return rev_parse_head(checkout)
    return checkouts.branch_and_commit(checkout)[1]


def root_commits(checkout: Checkout, tip: str) -> tuple[str, ...]:
    """The root commits of a commit's history, sorted.

    The whole history is walked. Empty for a shallow clone, which does not know them.
    """
    if shallow_edge(checkout):
        return ()
    found = run(checkout, "rev-list", "--max-parents=0", tip, "--")
    return tuple(sorted(found.decode().split()))


def remotes(checkout: Checkout) -> dict[str, Remote]:
    """The remotes in the repository's own config, by name."""
    asked = ("config", "--local", "-z", "--get-regexp", r"^remote\..*\.(url|fetch)$")
    # 1: there is none.
    found: dict[str, Remote] = {}
    for entry in run(checkout, *asked, fine=(0, 1)).decode("utf-8", "replace").split("\0"):
        key, _, value = entry.partition("\n")
        name, _, what = key.removeprefix("remote.").rpartition(".")
        if what:
            url, refspecs = found.get(name, Remote("", ()))
            # Of several URLs, git fetches from the first.
            is_url = what == "url"
            found[name] = (
                Remote(url or value.strip(), refspecs)
                if is_url
                else Remote(url, (*refspecs, value.strip()))
            )
    return found


def remote_refs(checkout: Checkout) -> dict[str, str]:
    """The refs under `refs/remotes/`, each with its commit."""
    listed = run(checkout, "for-each-ref", "--format=%(objectname) %(refname)", "refs/remotes/")
    lines = listed.decode("utf-8", "surrogateescape").splitlines()
    return {name: commit for commit, _, name in (line.partition(" ") for line in lines)}


def commits_made_here(checkout: Checkout) -> set[str]:
    """The commits that `git commit` made in this repository, as far as its reflogs know them."""
    lines = run(checkout, "log", "--walk-reflogs", "--all", "--format=%H %gs").splitlines()
    return {line.partition(b" ")[0].decode() for line in lines if _COMMITTED.match(line)}


def introducing(checkout: Checkout, path: str, blobs: Sequence[str]) -> set[str]:
    """The commits in which a file gets the content of one of these blobs, of all refs and reflogs.

    Merges are left out: what they have comes from their parents.
    """
    listed = run(
        checkout, "-c", "log.showRoot=true", "log", "--all", "--reflog", "--full-history",
        "--no-merges", "--no-renames", "-z", "--raw", "--no-abbrev", "--no-ext-diff",
        "--no-textconv", "--format=%x01%H", "--", _literal_pathspec(checkout, path),
    )  # fmt: skip
    wanted = {blob.encode() for blob in blobs}
    found: set[str] = set()
    commit = ""
    for field in listed.split(b"\0"):
        if field.startswith(b"\x01"):
            commit = field[1:].decode()
        elif field.lstrip(b"\n").startswith(b":") and field.split(b" ")[3] in wanted:
            found.add(commit)
    return found


def ids_of(checkout: Checkout, names: Sequence[str]) -> list[str]:
    """The ids of objects with names such as `main:path`, in order; empty where there is none.

    A name contains no line break.
    """
    if not names:
        return []
    asked = b"".join(os.fsencode(name) + b"\n" for name in names)
    # After a name that is not found, git repeats the name.
    said = run(checkout, "cat-file", "--batch-check=%(objectname)", stdin=asked).splitlines()
    known = zip(names, said, strict=True)
    return [
        "" if line.endswith((b" missing", b" ambiguous")) else line.decode() for _, line in known
    ]


def tracked_files(checkout: Checkout, folder: str) -> list[str]:
    """The tracked files under a folder, relative to the top."""
    return _paths(
        run(checkout, "ls-files", "-z", "--cached", "--", _literal_pathspec(checkout, folder))
    )


def belonging_files(checkout: Checkout, folder: str) -> list[str]:
    """Tracked files and untracked files that are not ignored, relative to the top."""
    arguments = ("-z", "--cached", "--others", "--exclude-standard", "--")
    return sorted(
        set(_paths(run(checkout, "ls-files", *arguments, _literal_pathspec(checkout, folder))))
    )


def ignored_files(checkout: Checkout, paths: Iterable[str]) -> set[str]:
    """Which of these paths git ignores. Tracked files are never ignored."""
    # After `./`, a name that starts with a colon is not pathspec magic.
    wanted = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
    if not wanted:
        return set()
    # Exit code 1 means that nothing is ignored.
    found = run(checkout, "check-ignore", "-z", "--stdin", stdin=wanted, fine=(0, 1))
    return {path.removeprefix("./") for path in _paths(found)}


def unknown_files(checkout: Checkout, folder: str) -> list[str]:
    """Files under a folder that differ from git's index: new, changed or removed."""
    arguments = (
        "status",
        "--porcelain",
        "-z",
        "--untracked-files=all",
        "--no-renames",
        "--ignore-submodules=all",
        "--",
    )
    found = run(checkout, *arguments, _literal_pathspec(checkout, folder))
    entries = (entry for entry in found.split(b"\0") if entry)
    # The second status letter is about the working tree; a space means unchanged from the index.
    return sorted(os.fsdecode(entry[3:]) for entry in entries if entry[1:2] != b" ")


def hooks_folder(checkout: Checkout) -> str:
    """Where git looks for the hooks of a repository: its own folder, or `core.hooksPath`."""
    said = run(checkout, "rev-parse", "--git-path", "hooks", keep=git_settings.HOOKS)
    return os.path.normpath(os.path.join(checkout.top, os.fsdecode(said.removesuffix(b"\n"))))


def add(checkout: Checkout, folder: str) -> None:
    """Add a folder to git's index, without submodules.

    git would look for changes inside them and run what their settings name.
    """
    inside = _literal_pathspec(checkout, folder)
    listed = run(checkout, "ls-files", "-z", "--stage", "--", inside).split(b"\0")
    submodules = (entry.partition(b"\t")[2] for entry in listed if entry.startswith(b"160000 "))
    left_out = (f":(exclude,literal){os.fsdecode(path)}" for path in submodules)
    run(checkout, "add", "--", inside, *left_out)


def additions(checkout: Checkout, folder: str, *more: str) -> dict[str, Addition]:
    """Every file that any commit of any ref has added under a folder, relative to the top."""
    options = ("--raw", "--no-abbrev", "--diff-filter=A", "--format=%x01%ct")
    listed = _log(checkout, folder, *options, *more)
    found: dict[str, Addition] = {}
    time = 0
    fields = iter(listed.split(b"\0"))
    for field in fields:
        if field.startswith(b"\x01"):
            time = int(field[1:])
        elif field.lstrip(b"\n").startswith(b":"):
            blob = field.split(b" ")[3].decode()
            # The newest commit comes first and wins.
            found.setdefault(os.fsdecode(next(fields)), Addition(blob, time))
    return found


def names_since(checkout: Checkout, folder: str, days: int) -> set[str]:
    """The names that a folder contained at any time in the last days, on any ref."""
    listed = _log(checkout, folder, f"--since={days}.days.ago", "--name-only", "--format=")
    touched = {os.path.basename(path.lstrip("\n")) for path in _paths(listed)}
    tips = run(checkout, "rev-list", "--no-walk", "--all", *_worktree_commits(checkout)).split()
    inside = os.fsencode(os.path.relpath(folder, checkout.top))
    asked = b"".join(b"%s:%s\n" % (tip, inside) for tip in tips)
    answers = run(checkout, "cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked)
    for tree in {line.split()[0] for line in answers.splitlines() if line.endswith(b" tree")}:
        touched.update(_paths(run(checkout, "ls-tree", "-z", "--name-only", tree.decode())))
    return touched


def has_seen(checkout: Checkout, path: str) -> bool:
    """Whether any commit of a ref or reflog has a file."""
    return bool(_log(checkout, path, "--reflog", "--max-count=1", "--format=%H"))


def names_in(checkout: Checkout, commit: str, folder: str) -> list[str]:
    """The names in a folder of a commit; empty if it has no such folder."""
    asked = ("ls-tree", "-z", "--name-only", f"{commit}:{os.path.relpath(folder, checkout.top)}")
    return _paths(run(checkout, *asked, fine=(0, 128)))


def adders(
    checkout: Checkout, folder: str, after: str | None = None, *, in_refs: bool = False
) -> dict[str, str]:
    """Files under a folder that were added by commits of any ref but the stash, each with such a
    commit. Ancestors of the commit `after` are left out; with `in_refs`, also the commits that only
    working trees without a branch have."""
    # `--all` includes what is checked out.
    every = ["--glob=refs/*"] if in_refs else ["--all", *_worktree_commits(checkout)]
    reachable = ("--exclude=refs/stash", *every)
    return _adders(checkout, folder, *reachable, *(("--not", after) if after else ()))


def reflog_adders(checkout: Checkout, folder: str, *more: str) -> dict[str, str]:
    """The same for commits that only reflogs have, and for `more` and their ancestors."""
    stashed = run(checkout, "stash", "list", "--format=%H").decode("ascii", "replace").split()
    living = ("--not", "--all", *_worktree_commits(checkout), *stashed)
    return _adders(checkout, folder, "--reflog", *more, *living)


def branch_adders(checkout: Checkout, folder: str) -> dict[str, str]:
    """The same for the ancestors of HEAD."""
    return _adders(checkout, folder, "HEAD")


def stash_adders(checkout: Checkout, folder: str) -> dict[str, str]:
    """The same for everything in the stash, which is a ref and its reflog."""
    listed = run(checkout, "stash", "list", "--format=%H")
    stashed = listed.decode("ascii", "replace").split()
    others = ("--not", "--exclude=refs/stash", "--all")
    return _adders(checkout, folder, *stashed, *others) if stashed else {}


def _adders(checkout: Checkout, folder: str, *revisions: str) -> dict[str, str]:
    listed = run(
        checkout, "-c", "log.showRoot=true",
        "log", "-m", "--full-history", "--no-renames", "--diff-filter=A", "-z", "--name-only",
        "--format=%x01%H", "--ignore-missing", *revisions, "--",
        _literal_pathspec(checkout, folder),
    )  # fmt: skip
    found: dict[str, str] = {}
    commit = ""
    for field in listed.split(b"\0"):
        text = os.fsdecode(field).lstrip("\n")
        if text.startswith("\x01"):
            commit = text[1:]
        elif text:
            found.setdefault(os.path.join(checkout.top, text), commit)
    return found


def commits_outside(checkout: Checkout, commits: Iterable[str], *revisions: str) -> list[str]:
    """Those of some commits that git has, and that are not in the history of `revisions`."""
    wanted = dict.fromkeys(commits)
    if not wanted:
        return []
    asked = ("rev-list", "--ignore-missing", *wanted, "--not", *revisions)
    # git may have pruned an ancestor.
    listed = run(checkout, *asked, fine=(0, 128)).decode("ascii", "replace").split()
    return [commit for commit in listed if commit in wanted]


def ref_names(checkout: Checkout) -> list[str]:
    """Every ref except the stash, branches first, and the commits of other working trees."""
    listed = run(checkout, "for-each-ref", "--format=%(refname)", "--sort=-creatordate")
    names = [name for name in listed.decode("utf-8", "replace").split() if name != "refs/stash"]
    return [*sorted(names, key=lambda name: not name.startswith("refs/heads/")),
            *_worktree_commits(checkout)]  # fmt: skip


def missing_files(checkout: Checkout, wanted: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """The pairs of a commit and a file for which the commit does not have the file."""
    names = [f"{commit}:{os.path.relpath(path, checkout.top)}" for commit, path in wanted]
    found = zip(wanted, ids_of(checkout, names), strict=True)
    return {pair for pair, blob in found if not blob}


def _log(checkout: Checkout, folder: str, *options: str) -> bytes:
    """The log of a folder over all refs and working trees, with merges compared to each parent and
    full history."""
    return run(
        checkout, "-c", "log.showRoot=true", "-c", "log.diffMerges=separate",
        "log", "--all", *_worktree_commits(checkout), "-m", "--full-history", "--no-renames", "-z",
        "--no-ext-diff", "--no-textconv", *options, "--", _literal_pathspec(checkout, folder),
    )  # fmt: skip


def _worktree_commits(checkout: Checkout) -> list[str]:
    """The commits of all working trees, also without a branch."""
    lines = run(checkout, "worktree", "list", "--porcelain").decode("utf-8", "replace").splitlines()
    commits = {line.removeprefix("HEAD ") for line in lines if line.startswith("HEAD ")}
    return sorted(commit for commit in commits if commit.strip("0"))


class Blobs:
    """Reads blobs from one running `git cat-file`."""

    def __init__(self, checkout: Checkout) -> None:
        self._checkout = checkout
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, blob: str) -> bytes:
        import subprocess

        if self._process is None:
            self._process = subprocess.Popen(
                [*_command_prefix(self._checkout), "cat-file", "--batch"],
                cwd=self._checkout.top,
                env=git_settings.environment(self._checkout, os.environ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(blob.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise GitFailure("`git cat-file` ended early.") from error
        answer = self._process.stdout.readline().split()
        if len(answer) != 3:
            raise GitFailure(f"git does not have the blob {blob}.")
        return self._process.stdout.read(int(answer[2]) + 1)[:-1]

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None


def identity(checkout: Checkout | None) -> str:
    """`Name <mail>` as git would write it into a commit; empty if git has none."""
    if checkout is None:
        return ""
    try:
        line = run(checkout, "var", "GIT_AUTHOR_IDENT").decode("utf-8", "replace")
    except GitFailure:
        return ""
    name, mark, _ = line.rpartition(">")
    return name + mark


def exclude(checkout: Checkout, folder: str) -> None:
    """Add a folder to the repository's exclude file, once."""
    inside = os.fsencode(os.path.relpath(folder, checkout.top))
    for special in (b"\\", b"*", b"?", b"["):
        inside = inside.replace(special, b"\\" + special)
    pattern = b"/%s/" % inside
    path = os.path.join(checkout.common_dir, "info", "exclude")
    present = disk.read_or_none(path) or b""
    if pattern in present.splitlines():
        return
    if present and not present.endswith(b"\n"):
        present += b"\n"
    disk.make_folder(os.path.dirname(path))
    disk.replace(path, present + pattern + b"\n")


def _literal_pathspec(checkout: Checkout, path: str) -> str:
    """A folder as a literal pathspec."""
    return ":(literal)" + os.path.relpath(path, checkout.top)


def _paths(listed: bytes) -> list[str]:
    return [os.fsdecode(path) for path in listed.split(b"\0") if path]
