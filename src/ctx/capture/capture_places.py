"""Where agents work, and the capture rules there. Each folder is looked up once."""

import os
import re
from contextlib import suppress

from ctx import checkouts, layout, repository_names
from ctx.capture import capture_pauses, capture_rules, excluded_text
from ctx.capture.capture_rules import CaptureRules
from ctx.capture.steps import Step
from ctx.hosts.events import Event
from ctx.layout import Place, Project
from ctx.project import trust_check
from ctx.workspace import Memory

# Clients and people make working trees in these folders, and remove them later.
_REMOVED_TREE = re.compile(r"(?:\.claude/worktrees|\.worktrees)/[^/]+/(?=.)")


class CapturePlaces:
    def __init__(self, memory: Memory, home: str) -> None:
        self._memory = memory
        self._home = home
        self._config = memory.environment.user_config
        self._places: dict[str, Place] = {}
        self._rules: dict[Place, CaptureRules] = {}
        self._main_trees: dict[str, str] = {}

    def at(self, folder: str) -> Place:
        if folder not in self._places:
            place = Place(folder, None, "current_task")
            if os.path.isabs(folder) and "\0" not in folder:
                place = layout.place(folder, self._home, self._trusts)
                self._record(place)
            self._places[folder] = place
        return self._places[folder]

    def rules(self, place: Place) -> CaptureRules:
        if place not in self._rules:
            person = self._memory.environment.variables.get("HOME", "")
            self._rules[place] = capture_rules.rules(self._config, place, self._home, person)
        return self._rules[place]

    def is_paused(self, folder: str, at_ms: int) -> bool:
        """Whether capture was paused in a folder or in its whole repository.

        A pause of a repository lists its working trees, but not those added later.
        """
        if capture_pauses.is_paused(self._home, folder, at_ms):
            return True
        main = self._main_tree(folder)
        return bool(main) and capture_pauses.is_paused(self._home, main, at_ms)

    def _main_tree(self, folder: str) -> str:
        """The main working tree of a repository, seen from another one; else empty."""
        if folder not in self._main_trees:
            place = self.at(folder)
            checkout = (
                checkouts.find_checkout(place.folder) if os.path.isabs(place.folder) else None
            )
            above, last = os.path.split(os.path.realpath(checkout.common_dir) if checkout else "")
            is_other = last == ".git" and above != place.folder
            self._main_trees[folder] = above if is_other else ""
        return self._main_trees[folder]

    def allowed(self, event: Event) -> Event:
        """An event as it may be stored: an excluded one is reduced to the fact that it happened."""
        host = self._memory.environment.hosts.named(event.host)
        if self.rules(self.at(event.folder)).closed:
            return event._replace(payload=host.outline(event, ""))
        if self.leaves_out(event):
            return event._replace(payload=host.outline(event, event.path))
        return event

    def leaves_out(self, event: Event) -> bool:
        """Whether the file of an event is excluded, by the rules where the agent works or there."""
        path = event.path
        if not path or "\0" in path:
            return False
        here = self.at(event.folder)
        if excluded_text.is_excluded(self.rules(here), path, event.folder, here.folder):
            return True
        _, full = excluded_text.locate(path, event.folder, here.folder)
        is_inside = here.project and full.startswith(f"{here.folder.rstrip('/')}/")
        if is_inside or not os.path.isabs(full):
            return False
        there = self.at(os.path.dirname(full))
        rules = self.rules(there)
        return bool(rules.closed) or excluded_text.is_excluded(
            rules, full, there.folder, there.folder
        )

    def in_project(self, step: Step, place: Place) -> Step:
        """A step with paths relative to the working tree of the project that contains them."""
        findings = tuple(
            each._replace(path=self._path_in_tree(each.path, place)) for each in step.findings
        )
        return step._replace(path=self._path_in_tree(step.path, place), findings=findings)

    def _path_in_tree(self, path: str, place: Place) -> str:
        is_elsewhere = os.path.isabs(path) or "worktree" in path
        if not is_elsewhere or place.project is None or "\0" in path:
            return path
        full = os.path.join(place.folder, path)
        there = self.at(os.path.dirname(full))
        if there.project == place.project:
            path, _ = excluded_text.locate(full, "", there.folder)
        return _REMOVED_TREE.sub("", path, count=1) if _REMOVED_TREE.match(path) else path

    def _trusts(self, project: Project) -> bool:
        return trust_check.verify(self._home, project).is_trusted

    def _record(self, place: Place) -> None:
        """Record the name of the repository, so that it survives a move."""
        checkout = checkouts.find_checkout(place.folder)
        if checkout and not self._memory.environment.is_single_store:
            with suppress(OSError):
                name = repository_names.name_of(self._home, checkout.common_dir)
                name = name or layout.new_name(self._home, checkout)
                repository_names.record(self._home, checkout.common_dir, name)
