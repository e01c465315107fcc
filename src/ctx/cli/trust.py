"""`ctx trust`"""

import argparse
import os
import shlex
from collections.abc import Mapping

from ctx import layout
from ctx.cli import options as shared
from ctx.cli.opening import note_new_identity
from ctx.cli.output import Block, Line, Output, Table, age_text, count
from ctx.cli.settings import Settings
from ctx.errors import CtxError, UsageError
from ctx.operations.trust import (
    TrustContents,
    TrustedProjects,
    TrustResult,
    contents,
    remotes,
    revoke,
    revoke_folder,
    trust,
    trusted_projects,
)
from ctx.project import trust_check
from ctx.project import trust_list as trusting

EXAMPLES = """
ctx trust                     review the project store, and trust it
ctx trust --yes               without a prompt
ctx trust --remote upstream   give agents the branches of this remote instead of origin's
ctx trust --list              list trusted projects
ctx trust --revoke            stop trusting it
ctx trust --revoke ../gone    also for a folder that no longer exists
"""

_SHOWN_AUTHORS = 5


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path", nargs="?", metavar="DIR", help="the project's folder (default: this one)"
    )
    instead = parser.add_mutually_exclusive_group()
    shared.flag(instead, "--revoke", "stop trusting it")
    shared.flag(instead, "--list", "list trusted projects")
    parser.add_argument(
        "--remote",
        action="append",
        metavar="NAME",
        help="give agents the branches of this git remote; may be repeated (default: origin)",
    )
    shared.yes_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    home = settings.user_store.home
    folder = os.path.join(settings.folder, settings.expanded(options.path or ""))
    is_broken = trusting.is_broken(home)
    if options.list:
        if options.path:
            raise UsageError("--list takes no folder.")
        _refuse_remote(options, "--list")
        output.show(trusted_projects(home), render_list)
    elif options.revoke:
        _refuse_remote(options, "--revoke")
        output.show(_revoke_trust(folder, home), render)
    else:
        _trust(options, folder, home, output)
    note_new_identity(settings, output)
    if is_broken and trusting.is_broken(home):
        output.warn(f"{trusting.path_of(home)} cannot be read, so nothing is trusted.")


def _trust(options: argparse.Namespace, folder: str, home: str, output: Output) -> None:
    project = layout.require_project(folder, home)
    verdict = trust_check.verify(home, project)
    try:
        held = contents(project)
    except CtxError as error:
        if error.quotes_store and not verdict.is_trusted:
            raise error.unquoted() from error
        raise
    if not verdict.is_trusted and not options.yes:
        if verdict.differs:
            output.note(f"It was trusted as another repository: {' and '.join(verdict.differs)}.")
        # An agent may read the pipe, and names are untrusted text.
        output.preview(content_blocks(held, with_names=output.has_reader))
        output.confirm(
            f"Trust {project.store}? Agents that work here are shown its content.", yes=False
        )
        if options.remote is None:
            options.remote = _ask_for_remotes(remotes(project), output)
    answer = trust(home, project, options.remote)._replace(contents=held)
    output.show(answer, render)
    if answer.put_aside:
        output.warn(
            f"{trusting.path_of(home)} could not be read and is now {answer.put_aside}:"
            " projects trusted before are no longer trusted."
        )


def _refuse_remote(options: argparse.Namespace, other: str) -> None:
    if options.remote is not None:
        raise UsageError(f"{other} takes no --remote.")


def _ask_for_remotes(known: Mapping[str, str], output: Output) -> list[str] | None:
    """The remotes that a person names, where there are several; None: the usual one."""
    if len(known) < 2:
        return None
    rows = list(known.items())
    output.preview([Table(("remote", "URL"), rows, ("", "text"))])
    usual = " [origin]" if "origin" in known else ""
    while True:
        answer = output.ask(f"Which remotes' branches are given to agents?{usual}").split()
        if not answer:
            return None
        if unknown := [name for name in answer if name not in known]:
            output.note(f"There is no remote {', '.join(map(repr, unknown))}.")
        else:
            return answer


def _revoke_trust(folder: str, home: str) -> TrustResult:
    """Without a project store, the folder may still be a trusted one."""
    project = layout.find_project(folder, home)
    if project is None:
        gone = revoke_folder(home, os.path.realpath(folder))
        if gone.state == "revoked":
            return gone
        project = layout.require_project(folder, home)
    return revoke(home, project)


def content_blocks(held: TrustContents, *, with_names: bool = True) -> list[Block]:
    """The content of a project store, for the decision to trust it."""
    commits = ("" if held.complete else "at least ") + count(held.commits, "commit")
    if held.last_commit:
        commits += f", the last one of {held.last_commit[:10]}"
    authors = [count(held.author_count, "author")]
    if with_names:
        authors = [
            f'"{author.name}" ({author.commits:,})' for author in held.authors[:_SHOWN_AUTHORS]
        ]
        if held.author_count > len(authors):
            authors.append(f"… and {held.author_count - len(authors):,} more")
    rows = [
        ("commits", commits),
        *(("by", author) for author in authors),
        ("narrative", count(held.narrative_files, "file")),
    ]
    return [Table(("what", "how much"), rows, ("field", ""))]


def render(answer: TrustResult) -> list[Block]:
    match answer.state:
        case "trusted":
            who = f", as {answer.identity}" if answer.identity else ""
            blocks: list[Block] = [Line(f"Trusted: {answer.root}{who}.")]
            if answer.differed:
                was = " and ".join(answer.differed)
                blocks.append(Line(f"  It was trusted as another repository: {was}."))
            if answer.remotes:
                named = " and ".join(f"{name} ({url})" for name, url in answer.remotes.items())
                blocks.append(Line(f"  Branches of {named} are given to agents too."))
            return [*blocks, *(content_blocks(answer.contents) if answer.contents else [])]
        case "already trusted":
            return [Line(f"{answer.root} is already trusted, since {answer.at[:10]}.")]
        case "revoked":
            return [Line(f"No longer trusted: {answer.root}.")]
        case "not trusted":
            return [Line(f"{answer.root} was not trusted; nothing changed.")]


def render_list(trusted: TrustedProjects) -> list[Block]:
    if not trusted.projects:
        return [Line("No trusted projects.")]
    rows = [
        (each.root, age_text(each.at), each.identity, "" if each.state == "trusted" else each.state)
        for each in trusted.projects
    ]
    blocks: list[Block] = [
        Table(("project", "trusted for", "by", "state"), rows, ("", "age", "", ""))
    ]
    for each in trusted.projects:
        again = shlex.join(["ctx", "-C", each.root, "trust"])
        blocks += [
            Line(f"{each.root}: {why}. To trust it again: `{again}`") for why in each.differs
        ]
    return blocks
