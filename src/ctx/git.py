"""The one place that runs the `git` program, and what ctx asks it.

Where a repository is, `checkouts` finds out without a process.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ctx import checkouts, disk, git_settings
from ctx.checkouts import Checkout
from ctx.errors import GitFailure

if TYPE_CHECKING:
    import subprocess
    from typing import BinaryIO


class Addition(NamedTuple):
    """A file as the newest commit that added it has it."""

    blob: str
    time: int


class Difference(NamedTuple):
    """How one file differs from a commit."""

    status: str
    """`A` added, `M` modified, `D` deleted, `T` turned into something else."""
    path: str
    """Relative to the top."""
    blob: str
    """What it held in the commit; empty or zeros where it was no plain file there."""


def run(
    checkout: Checkout,
    *arguments: str,
    stdin: bytes = b"",
    fine: tuple[int, ...] = (0,),
    keep: str = "",
) -> bytes:
    """What a git command prints; `fine` are the exit codes that mean no failure."""
    return _run(checkout, [*_beginning(checkout, keep), *arguments], stdin, fine)


def _beginning(checkout: Checkout, keep: str = "") -> list[str]:
    """The program, and the settings that keep a repository from running anything.

    `keep` is a setting that stays as the repository has it.
    """
    words = [_program(), *git_settings.fixed(keep)]
    if git_settings.may_name_programs(checkout):
        words += git_settings.overrides(_run(checkout, [*words, *git_settings.LISTING]))
    return words


def _program() -> str:
    import shutil

    # A relative folder on PATH would be one of the repository's.
    folders = filter(os.path.isabs, os.environ.get("PATH", os.defpath).split(os.pathsep))
    program = shutil.which("git", path=os.pathsep.join(folders))
    if program is None:
        raise GitFailure("git is not on this machine's PATH.", hint="Install git.")
    return program


def _run(
    checkout: Checkout, command: list[str], stdin: bytes = b"", fine: tuple[int, ...] = (0,)
) -> bytes:
    import subprocess

    with _starting():
        done = subprocess.run(
            command,
            # git finds the repository from its folder, so that its own check of who owns it holds.
            cwd=checkout.top,
            env=git_settings.environment(checkout, os.environ),
            input=stdin,
            capture_output=True,
            check=False,
        )
    if done.returncode not in fine:
        raise _failure(command, done.stderr)
    return done.stdout


@contextmanager
def _starting() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise GitFailure(f"git could not be started: {error.strerror}.") from error


_TRUSTING = "git config --global --add safe.directory "


def _failure(command: list[str], complaint: bytes) -> GitFailure:
    said = complaint.decode("utf-8", "replace").strip().splitlines() or ["no message"]
    verb = next(word for word in command[1:] if word[0] != "-" and "=" not in word)
    # A repository of somebody else is read by whoever says so to git, in the words that it prints.
    advice = next((line.strip() for line in said if line.strip().startswith(_TRUSTING)), "")
    hint = f"If you trust whoever owns it: `{advice}`." if advice else None
    return GitFailure(f"`git {verb}` failed: {said[0]}", hint=hint)


class Reading:
    """A git command that reads history while we do something else.

    It prints into a file without a name: a pipe would hold it up until somebody reads, and
    memory has no room for whatever a history may contain.
    """

    def __init__(self, checkout: Checkout, *arguments: str, stdin: bytes) -> None:
        import subprocess
        import tempfile

        self._command = [*_beginning(checkout), *arguments]
        self._printed, self._complaint = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        with tempfile.TemporaryFile() as asked, _starting():
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
        """All that it printed, once it has ended well."""
        if self._process.wait() != 0:
            self._complaint.seek(0)
            raise _failure(self._command, self._complaint.read(4096))
        self._printed.seek(0)
        return self._printed

    def close(self) -> None:
        """End it, wherever it is."""
        self._process.kill()
        self._process.wait()
        self._printed.close()
        self._complaint.close()


def checked_out(checkout: Checkout) -> str | None:
    """The commit that HEAD leads to; None before there is one."""
    asked = ("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    return run(checkout, *asked, fine=(0, 1)).decode().strip() or None


def commit_named(checkout: Checkout, name: str) -> str | None:
    """The commit that a person means: a branch, a tag, `HEAD~3`; None where there is none."""
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    try:
        said = run(checkout, *asked, fine=(0, 1))
    except GitFailure:
        return None
    return said.decode("utf-8", "replace").strip() or None


def differences(checkout: Checkout, commit: str, folder: str) -> list[Difference]:
    """How the tracked files under a folder differ from a commit, as they lie there now."""
    # A plumbing command: it takes nobody's settings, and leaves the index as it is.
    asked = (
        *("diff-index", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff"),
        *("--no-textconv", "--ignore-submodules=all", commit, "--"),
    )
    found = run(checkout, *asked, _inside(checkout, folder))
    fields = iter(found.split(b"\0"))
    differences = []
    for field in fields:
        if not field:
            continue
        old_mode, _, blob, _, status = field.decode().removeprefix(":").split(" ")
        path = os.fsdecode(next(fields))
        is_file = old_mode.startswith("100")
        differences.append(Difference(status[0], path, blob if is_file else ""))
    return differences


def newest_commits(checkout: Checkout, tip: str, most: int) -> list[str]:
    """A commit and what led to it, the newest first."""
    return run(checkout, "rev-list", f"--max-count={most}", tip, "--").decode().split()


def shallow_edge(checkout: Checkout) -> frozenset[str]:
    """The commits behind which a shallow clone has nothing: they look like first ones."""
    listed = disk.read_or_none(os.path.join(checkout.common_dir, "shallow")) or b""
    return frozenset(listed.decode("ascii", "replace").split())


def head_commit(checkout: Checkout) -> str | None:
    """The commit that is checked out, read from plain files where git keeps it in them."""
    if os.path.isdir(os.path.join(checkout.common_dir, "reftable")):
        return checked_out(checkout)
    return checkouts.standing(checkout)[1]


def root_commits(checkout: Checkout, tip: str) -> tuple[str, ...]:
    """The commits without a parent that a commit descends from, sorted.

    All of its history is walked. In a shallow clone they cannot be known: there are none.
    """
    if shallow_edge(checkout):
        return ()
    found = run(checkout, "rev-list", "--max-parents=0", tip, "--")
    return tuple(sorted(found.decode().split()))


def descends_from(checkout: Checkout, newer: str, older: str) -> bool:
    """Whether one commit is another one or leads back to it; False too where one is not here."""
    try:
        run(checkout, "merge-base", "--is-ancestor", older, newer)
    except GitFailure:
        return False
    return True


def origin_url(checkout: Checkout) -> str:
    """The URL of the remote `origin` in the repository's own config file; empty: none."""
    asked = ("config", "--local", "--get", "remote.origin.url")
    # 1: it is not set. 2: it is set several times, and git prints the last one.
    said = run(checkout, *asked, fine=(0, 1, 2)).decode("utf-8", "replace")
    return said.partition("\n")[0].strip()


def tracked_files(checkout: Checkout, folder: str) -> list[str]:
    """The files that git's index knows under a folder, relative to the top."""
    return _paths(run(checkout, "ls-files", "-z", "--cached", "--", _inside(checkout, folder)))


def belonging_files(checkout: Checkout, folder: str) -> list[str]:
    """Tracked files and those that git would offer to add, relative to the top."""
    arguments = ("-z", "--cached", "--others", "--exclude-standard", "--")
    return sorted(set(_paths(run(checkout, "ls-files", *arguments, _inside(checkout, folder)))))


def ignored_files(checkout: Checkout, paths: Iterable[str]) -> set[str]:
    """Which of these paths git ignores. Tracked files are never ignored."""
    # Behind `./` a name that begins with a colon is a name, not git's pathspec magic.
    wanted = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
    if not wanted:
        return set()
    # It exits with 1 where nothing is ignored.
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
    found = run(checkout, *arguments, _inside(checkout, folder))
    entries = (entry for entry in found.split(b"\0") if entry)
    # Of the two status letters the second speaks of the working tree; a space: same as the index.
    return sorted(os.fsdecode(entry[3:]) for entry in entries if entry[1:2] != b" ")


def hooks_folder(checkout: Checkout) -> str:
    """Where git looks for the hooks of a repository: its own folder, or `core.hooksPath`."""
    said = run(checkout, "rev-parse", "--git-path", "hooks", keep=git_settings.HOOKS)
    return os.path.normpath(os.path.join(checkout.top, os.fsdecode(said.removesuffix(b"\n"))))


def add(checkout: Checkout, folder: str) -> None:
    """Add what is under a folder to git's index, but for submodules.

    git would look for changes inside of them, and run what their own settings name.
    """
    inside = _inside(checkout, folder)
    listed = run(checkout, "ls-files", "-z", "--stage", "--", inside).split(b"\0")
    submodules = (entry.partition(b"\t")[2] for entry in listed if entry.startswith(b"160000 "))
    left_out = (f":(exclude,literal){os.fsdecode(path)}" for path in submodules)
    run(checkout, "add", "--", inside, *left_out)


def additions(checkout: Checkout, folder: str) -> dict[str, Addition]:
    """Every file that any commit of any ref has added under a folder, relative to the top."""
    listed = _log(checkout, folder, "--raw", "--no-abbrev", "--diff-filter=A", "--format=%x01%ct")
    found: dict[str, Addition] = {}
    time = 0
    fields = iter(listed.split(b"\0"))
    for field in fields:
        if field.startswith(b"\x01"):
            time = int(field[1:])
        elif field.lstrip(b"\n").startswith(b":"):
            blob = field.split(b" ")[3].decode()
            # The newest commit comes first, and is the one that counts.
            found.setdefault(os.fsdecode(next(fields)), Addition(blob, time))
    return found


def names_since(checkout: Checkout, folder: str, days: int) -> set[str]:
    """The names that were in a folder at any time of the last days, on any ref."""
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
    """Whether any commit that a ref names, or has named lately, has a file."""
    return bool(_log(checkout, path, "--reflog", "--max-count=1", "--format=%H"))


def names_in(checkout: Checkout, commit: str, folder: str) -> list[str]:
    """The names in a folder as a commit has it; none where it has no such folder."""
    asked = ("ls-tree", "-z", "--name-only", f"{commit}:{os.path.relpath(folder, checkout.top)}")
    return _paths(run(checkout, *asked, fine=(0, 128)))


def adders(checkout: Checkout, folder: str, after: str | None = None) -> dict[str, str]:
    """The files under a folder that commits have added which a ref other than the stash leads
    to, each with such a commit. What led to the commit `after` is left out."""
    reachable = ("--exclude=refs/stash", "--all", *_worktree_commits(checkout))
    return _adders(checkout, folder, *reachable, *(("--not", after) if after else ()))


def branch_adders(checkout: Checkout, folder: str) -> dict[str, str]:
    """The same for the commits that led to what is checked out."""
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
        "--format=%x01%H", "--ignore-missing", *revisions, "--", _inside(checkout, folder),
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


def missing(checkout: Checkout, wanted: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Of pairs of a commit and a file, those where the commit does not have the file."""
    if not wanted:
        return set()
    asked = b"".join(
        b"%s:%s\n" % (commit.encode(), os.fsencode(os.path.relpath(path, checkout.top)))
        for commit, path in wanted
    )
    said = run(checkout, "cat-file", "--batch-check", stdin=asked)
    answers = zip(wanted, said.splitlines(), strict=True)
    return {pair for pair, answer in answers if answer.endswith(b" missing")}


def _log(checkout: Checkout, folder: str, *options: str) -> bytes:
    """The log of a folder over every ref and every working tree, merges compared with each
    parent, and no branch left out because another one ended with the same files."""
    return run(
        checkout, "-c", "log.showRoot=true", "-c", "log.diffMerges=separate",
        "log", "--all", *_worktree_commits(checkout), "-m", "--full-history", "--no-renames", "-z",
        "--no-ext-diff", "--no-textconv", *options, "--", _inside(checkout, folder),
    )  # fmt: skip


def _worktree_commits(checkout: Checkout) -> list[str]:
    """What the working trees have checked out, also where no branch names it."""
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
                [*_beginning(self._checkout), "cat-file", "--batch"],
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
    """`Name <mail>` as git would write it into a commit; empty where git cannot say."""
    if checkout is None:
        return ""
    try:
        line = run(checkout, "var", "GIT_AUTHOR_IDENT").decode("utf-8", "replace")
    except GitFailure:
        return ""
    name, mark, _ = line.rpartition(">")
    return name + mark


def exclude(checkout: Checkout, folder: str) -> None:
    """List a folder in the repository's own exclude file, once."""
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


def _inside(checkout: Checkout, path: str) -> str:
    """A folder as git takes it literally, whatever characters its name has."""
    return ":(literal)" + os.path.relpath(path, checkout.top)


def _paths(listed: bytes) -> list[str]:
    return [os.fsdecode(path) for path in listed.split(b"\0") if path]
