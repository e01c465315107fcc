"""Installing ctx for Codex: `hooks.json` and `config.toml` in `~/.codex`.

Codex runs a hook of the user only after the user has reviewed it. It keeps a hash of the reviewed
hook in `config.toml`, under the path of the file, the event, and the position in the list. ctx
reads these hashes and never writes one: the review is the user's. So our hooks are added behind all
others, and their command lines stay the same from one release to the next.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ctx.agents.claude_code import payloads
from ctx.agents.host_setup import edited_file, host_files, json_entries, toml_tables
from ctx.agents.host_setup.hook_trials import EDITED
from ctx.agents.host_setup.host_setups import HookSpec, HostFile, HostSetup, Machine
from ctx.errors import CtxError
from ctx.hook_files.spool import PRE_EDIT
from ctx.hosts.json_fields import fields_of
from ctx.operations.store_checks import DoctorCheck, ok
from ctx.sqlite.connection import path_text


def _advice(count: int) -> str:
    """What the user sees at the next start, and what to choose."""
    noun = "hook is" if count == 1 else "hooks are"
    return (
        f'Start `codex`. It shows "Hooks need review", "{count} {noun} new or changed", and "Hooks'
        ' can run outside the sandbox after you trust them". Choose "Review hooks" to read them, or'
        ' "Trust all and continue". `/hooks` shows them later.'
    )


class HookReview(NamedTuple):
    """Our hooks by the state of their review."""

    trusted: tuple[str, ...]
    changed: tuple[str, ...]
    """Reviewed in another form."""
    new: tuple[str, ...]
    disabled: tuple[str, ...]


class CodexSetup(HostSetup):
    name = "codex"
    title = "Codex"
    program = "codex"
    after_update = " Codex then asks you to review the changed hooks again."
    # In seconds. Codex allows three for the end of a session, and warns at every start about more.
    hooks = (
        HookSpec("SessionStart", "session-start", 10),
        HookSpec("UserPromptSubmit", "prompt-submit", 10),
        HookSpec("PostToolUse", "post-tool-use", 10),
        HookSpec("PreCompact", "pre-compact", 10),
        HookSpec("Stop", "stop", 10),
        HookSpec("SessionEnd", "session-end", 3),
        HookSpec("PreToolUse", PRE_EDIT, 10, "apply_patch"),
    )

    def files(self, machine: Machine) -> tuple[HostFile, ...]:
        folder = self.folder(machine)
        return (
            host_files.settings_hooks(os.path.join(folder, "hooks.json"), self),
            host_files.toml_server(os.path.join(folder, "config.toml"), "mcp_servers"),
        )

    def sample_payload(self, word: str, folder: str) -> Mapping[str, Any]:
        return payloads.sample(
            self.event_of(word), folder, tool_input={"command": f"*** Update File: {EDITED}\n"}
        )

    def notes(self, machine: Machine) -> Iterator[str]:
        review = read_review(self.folder(machine))
        if waiting := len(review.new) + len(review.changed):
            again = f" Review again, because they changed: {', '.join(review.changed)}."
            yield (
                "Codex runs no hook that you have not reviewed, and `codex exec` skips it without"
                f" a message.{again if review.changed else ''} {_advice(waiting)}"
            )

    def checks(self, machine: Machine) -> Iterator[DoctorCheck]:
        folder = self.folder(machine)
        review = read_review(folder)
        waiting = {"Not reviewed": review.new, "Changed after your review": review.changed}
        for why, events in waiting.items():
            if events:
                seen = f"{why}, so Codex skips them: {', '.join(events)}."
                yield DoctorCheck(self.name, "problem", seen, _advice(len(events)))
        if review.disabled:
            seen = f"Disabled in Codex: {', '.join(review.disabled)}."
            yield DoctorCheck(self.name, "warning", seen, "`/hooks` in Codex enables them.")
        if review.trusted and not (review.new or review.changed or review.disabled):
            yield ok(self.name, f"{len(review.trusted)} hooks, reviewed and trusted")
        yield from self._doubled_hooks(folder)

    def _doubled_hooks(self, folder: str) -> Iterator[DoctorCheck]:
        """Hooks may also be in `config.toml`: then both run."""
        path = os.path.join(folder, "config.toml")
        named = json.dumps(_tables(path).get("hooks", {}), default=str)
        if "/ctx/agents/codex/entry.py" in named or re.search(r"\bctx hook\b", named):
            seen = f"{path_text(path)} runs hooks of ctx too, so each runs twice."
            yield DoctorCheck(self.name, "warning", seen, "Remove them there.")


def read_review(folder: str) -> HookReview:
    """The review of our hooks, as far as the files can be read."""
    path = os.path.join(folder, "hooks.json")
    states = _tables(os.path.join(folder, "config.toml")).get("hooks", {})
    states = states.get("state", {}) if isinstance(states, dict) else {}
    groups: dict[str, list[str]] = {"trusted": [], "changed": [], "new": [], "disabled": []}
    for event, key, digest in _our_hooks(path):
        found = [
            state
            for place in (path, os.path.realpath(path))
            if isinstance(state := states.get(f"{place}:{key}"), dict)
        ]
        state = found[0] if found else {}
        if state.get("enabled") is False:
            groups["disabled"].append(event)
        elif (trusted := state.get("trusted_hash")) is None:
            groups["new"].append(event)
        else:
            groups["trusted" if trusted == digest else "changed"].append(event)
    return HookReview(*(tuple(groups[name]) for name in HookReview._fields))


def _our_hooks(path: str) -> Iterator[tuple[str, str, str]]:
    """The event, the key of the review, and the hash of each of our hooks."""
    for event, groups in fields_of(json_entries.read_object(path).get("hooks")).items():
        for number, group in enumerate(groups if isinstance(groups, list) else ()):
            listed = fields_of(group).get("hooks")
            for position, hook in enumerate(listed if isinstance(listed, list) else ()):
                if isinstance(hook, dict) and SETUP.word_of(hook.get("command")):
                    label = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
                    digest = hook_hash(label, group.get("matcher"), hook)
                    yield event, f"{label}:{number}:{position}", digest


def hook_hash(label: str, matcher: Any, hook: Mapping[str, Any]) -> str:
    """The hash of a reviewed hook, as Codex computes it."""
    default = 1 if label == "session_end" else 600
    handler = {
        "type": "command",
        "command": hook.get("command"),
        "timeout": hook.get("timeout", default),
        "async": hook.get("async", False),
    }
    for key in ("statusMessage", "additionalContextLimit"):
        if hook.get(key) is not None:
            handler[key] = hook[key]
    identity: dict[str, Any] = {"event_name": label, "hooks": [handler]}
    if isinstance(matcher, str) and label not in ("user_prompt_submit", "stop", "session_end"):
        identity["matcher"] = matcher
    data = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(data.encode()).hexdigest()}"


def _tables(path: str) -> dict[str, Any]:
    try:
        return toml_tables.read_tables(edited_file.read(path))
    except (CtxError, OSError):
        return {}


SETUP = CodexSetup()
