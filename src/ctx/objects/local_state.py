"""Local state that is not in the folder of this working tree, and is moved into it.

A project that becomes a git checkout has staged work in `.ctx/local/`, where `git clean` would
delete it. A removed working tree leaves its staged work, and commits that git does not have, in the
git folder.
"""

import os
import shutil

from ctx import disk
from ctx.layout import Project

# Objects before the refs that point to them: a crash in between breaks no chain.
_FIRST = ("stage",)
_LOCKS = ("LOCK", "PUBLISHING", "untracked.places")


def removed_worktrees(project: Project) -> list[str]:
    """The local folders of removed working trees that have state for this project."""
    if project.checkout is None:
        return []
    together, part = os.path.dirname(project.local), project.part
    removed = []
    for name in disk.names(together):
        worktree = name.removeprefix("worktree-").removesuffix(part)
        if f"worktree-{worktree}{part}" != name or (not part and "+" in name):
            continue
        is_there = os.path.exists(os.path.join(project.checkout.common_dir, "worktrees", worktree))
        folder = os.path.join(together, name)
        pointers = (os.path.join(folder, *parts) for parts in (("refs", "work"), ("untracked",)))
        if not is_there and any(disk.names(pointer) for pointer in pointers):
            removed.append(folder)
    return removed


def adopt_local_state(project: Project, folder: str) -> None:
    """Move everything except locks and indexes into this working tree's folder, and remove the
    rest.

    If a session has two chains, the incoming one gets another name.
    """
    with disk.explain_errors("moving staged work"):
        tops = sorted(disk.names(folder), key=lambda name: (name not in _FIRST, name))
        for top in (name for name in tops if name not in ("index", *_LOCKS)):
            path = os.path.join(folder, top)
            for here, _, names in os.walk(path) if os.path.isdir(path) else [(folder, [], [top])]:
                for name in names:
                    _move(project, folder, os.path.join(here, name))
        shutil.rmtree(folder)


def _move(project: Project, folder: str, source: str) -> None:
    target = os.path.join(project.local, os.path.relpath(source, folder))
    if os.path.exists(target) and os.path.dirname(source).endswith(os.path.join("refs", "work")):
        target = f"{target}-{disk.read(source).decode('ascii', 'replace')[:12]}"
    if os.path.basename(source) == "mine" and os.path.exists(target):
        disk.replace(target, disk.read(target) + disk.read(source))
    if not os.path.exists(target):
        disk.make_folder(os.path.dirname(target))
        shutil.move(source, target)
        disk.sync_folder(os.path.dirname(target))
