"""`ctx view`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli import options as shared
from ctx.cli.compose import budget, projects, show
from ctx.cli.output import Block, Line, Output, Table
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.memory.graph import PROJECT, USER
from ctx.operations import view as views
from ctx.operations.view import ViewList, ViewResult

EXAMPLES = """
ctx view create shop "tag:project:shop" --budget=8000
ctx view render shop                   its context
ctx view update default --budget=80000
"""

ALONE = "list"

CREATE_EXAMPLES = """
ctx view create shop "tag:project:shop" --budget=8000
ctx view create decisions "type:decision OR type:pattern"
ctx view create notes "tag:note" --user    for all projects
"""

RENDER_EXAMPLES = """
ctx view render default
ctx view render shop --budget=3000
ctx view render shop --format json
"""

UPDATE_EXAMPLES = """
ctx view update default --budget=80000
ctx view update default --budget=default    the configured one again
ctx view update shop "tag:project:shop AND created:>30d"
"""


def configure(parser: argparse.ArgumentParser) -> None:
    group = shared.subcommands(parser)
    create = shared.add_subcommand(group, "create", "create a view", CREATE_EXAMPLES)
    create.add_argument("name", metavar="NAME", help="the name")
    arguments.query(create, "which nodes it shows", required=False)
    budget(create)
    _user(create)
    shared.session_option(create)
    shared.add_subcommand(group, "list", "list views", "ctx view list")
    render = shared.add_subcommand(
        group, "render", "compose the context of a view", RENDER_EXAMPLES
    )
    _name(render)
    budget(render)
    projects(render)
    arguments.superseded(render)
    update = shared.add_subcommand(
        group, "update", "change a view's query or budget", UPDATE_EXAMPLES
    )
    _name(update)
    arguments.query(update, "which nodes it shows", required=False)
    update.add_argument(
        "--budget", type=_new_budget, metavar="N", help="tokens; `default`: the configured ones"
    )
    _user(update)
    shared.session_option(update)
    delete = shared.add_subcommand(group, "delete", "delete a view", "ctx view delete shop")
    _name(delete)
    _user(delete)
    shared.session_option(delete)


def _name(parser: argparse.ArgumentParser) -> None:
    shared.complete_with(parser.add_argument("name", metavar="NAME", help="the view"), "view")


def _user(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--user",
        dest="scope",
        action="store_const",
        const=USER,
        help="the one in your own store, not that of the project you are in",
    )


def _new_budget(word: str) -> int | str:
    return word if word == "default" else arguments.whole_number(word)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if options.subcommand in ("list", "render"):
        with opening.reading(settings, output) as memory:
            if options.subcommand == "list":
                output.show(views.list_views(memory), render_views)
            else:
                show(
                    views.render(memory, options.name, options.budget, arguments.visible(options)),
                    output,
                )
        return
    query = arguments.query_of(options) if options.subcommand != "delete" else None
    if options.subcommand == "create" and query is None:
        hint = f'`ctx view create {options.name} "type:decision"`'
        raise UsageError("The query is missing.", hint=hint)
    with opening.adding(settings, output) as memory:
        match options.subcommand:
            case "create":
                wanted = options.name, query or "", options.budget
                done = views.create(memory, *wanted, options.scope)
                verb = "Created" if done.changed else "Unchanged"
            case "update":
                if query is None and options.budget is None:
                    raise UsageError("Nothing to change.", hint="Give a query or --budget.")
                changed = options.name, query, options.budget
                done = views.update(memory, *changed, options.scope)
                verb = "Updated" if done.changed else "Unchanged"
            case _:
                done = views.delete(memory, options.name, options.scope)
                verb = "Deleted"
    output.show(done, lambda viewed: render_viewed(verb, viewed))


def render_viewed(verb: str, viewed: ViewResult) -> list[Block]:
    view = viewed.view
    tokens = f", {view.budget:,} tokens" if view.budget is not None else ""
    return [Line(f"{verb} view: {view.name} ({view.query}{tokens})")]


def render_views(shown: ViewList) -> list[Block]:
    rows = [
        (
            view.name,
            f"{view.budget:,}"
            if view.budget is not None
            else f"{shown.default_budget:,} (default)",
            view.query + (" (user)" if _is_beside(shown, view.name) else ""),
        )
        for view in shown.views
    ]
    return [Table(("name", "budget", "query"), rows, ("id", "", "text"))]


def _is_beside(shown: ViewList, name: str) -> bool:
    """Whether a view is in the user store while a project is open."""
    return shown.scopes[name] == USER and PROJECT in shown.scopes.values()
