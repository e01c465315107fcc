"""What a repository was called first, so that it is called that wherever it lies.

    CTX_HOME/projects/<device>-<inode of the git folder>     name, git folder, and a stamp

The git folder keeps its inode when somebody renames the folder around it, and all working trees
share it. An inode may be used again for another repository, so there is a stamp beside it: when a
file was made that git puts there once and never touches. A copy is another repository, and so is
what was moved to another disk: these are called what their folder is called, until somebody says
otherwise (`capture.project_names`). Two that lie in folders of the same name are two projects, and
the second has to be called something else: `taken_names` lists the others.

Hooks read this with `os` alone; whoever takes in events writes it.
"""

import os

FOLDER = "projects"

_LARGEST = 16_384
# Created by `git init` and never changed.
_STAMPED = ("description", "info/exclude")


def name_of(home: str, common_dir: str) -> str:
    """The first name of a repository; empty if it has none."""
    key = _key(common_dir)
    name, was_at, stamp = _read_entry(os.path.join(home, FOLDER, key)) if key else ("", "", "")
    if not name or stamp != _stamp(common_dir):
        return ""
    # If the old path still exists, this is a different repository that looks alike.
    return name if was_at == common_dir or not _is_another(was_at, common_dir) else ""


def taken_names(home: str, common_dir: str) -> list[str]:
    """The names of other repositories that are still at their paths."""
    folder = os.path.join(home, FOLDER)
    try:
        files = os.listdir(folder)
    except OSError:
        return []
    found = []
    for file in files:
        name, was_at, stamp = _read_entry(os.path.join(folder, file))
        if name and was_at != common_dir and _key(was_at) == file and _stamp(was_at) == stamp:
            found.append(name)
    return found


def record(home: str, common_dir: str, name: str) -> None:
    """Record the name of a repository. An existing name is kept."""
    stamp = _stamp(common_dir)
    if not stamp or "\n" in name + common_dir:
        return
    told = f"{name_of(home, common_dir) or name}\n{common_dir}\n{stamp}\n"
    data = told.encode("utf-8", "surrogateescape")
    path = os.path.join(home, FOLDER, _key(common_dir))
    from ctx import disk

    if disk.read_or_none(path) != data:
        disk.make_folder(os.path.dirname(path))
        disk.replace(path, data)


def _read_entry(path: str) -> "tuple[str, str, str]":
    """The name, git folder and stamp in a file; empty strings if unreadable."""
    try:
        # A FIFO in its place must not block.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, ValueError):
        return "", "", ""
    try:
        told = os.read(fd, _LARGEST).decode("utf-8", "surrogateescape")
    except OSError:
        return "", "", ""
    finally:
        os.close(fd)
    name, _, rest = told.partition("\n")
    was_at, _, stamp = rest.rstrip("\n").partition("\n")
    return name, was_at, stamp


def _key(common_dir: str) -> str:
    """Identifies a git folder; empty if it does not exist."""
    try:
        found = os.stat(common_dir)
    except (OSError, ValueError):
        return ""
    return f"{found.st_dev:x}-{found.st_ino:x}"


def _stamp(common_dir: str) -> str:
    for name in _STAMPED:
        try:
            return f"{name} {os.stat(os.path.join(common_dir, name)).st_mtime_ns}"
        except OSError:
            continue
    return ""


def _is_another(was_at: str, common_dir: str) -> bool:
    try:
        return not os.path.samefile(was_at, common_dir)
    except OSError:
        return False
