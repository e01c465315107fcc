"""Who said it: the source of a node.

    user          a person said or typed it
    agent         an agent said it, or it was inferred from what agents did
    repository    the text of a file that was ingested, or a thing in the code
    tool output   what a command printed
    web           a page that was fetched

The sources are ordered by how much they count. Sources below `agent` are data: agents get them as
quotations, and only a person can pin them. The source is in the metadata `source`. A node without
it has the source that its type, its other metadata or the author of its text imply, so old nodes
need no change.

Hooks load this module, so it reads the tables directly.
"""

from collections.abc import Mapping, Sequence
from sqlite3 import Connection
from typing import Any

USER, AGENT, REPOSITORY, TOOL_OUTPUT, WEB = "user", "agent", "repository", "tool output", "web"
SOURCES = (USER, AGENT, REPOSITORY, TOOL_OUTPUT, WEB)
"""From the source that counts most to the one that counts least."""
KEY = "source"
"""The key of the metadata."""

_TYPES = {
    "file": REPOSITORY,
    "item": REPOSITORY,
    "package": REPOSITORY,
    "diagnostic": TOOL_OUTPUT,
}
_WRITERS = (
    ("source", "url", WEB),
    ("source", "hash", REPOSITORY),
    ("source", "answer", AGENT),
    ("observation", "command", TOOL_OUTPUT),
)
"""Types and keys of metadata that show what wrote a node."""
_SOURCE_BY_ROLE = {"user": USER, "agent": AGENT, "model": AGENT}
_ORIGINS = {"human": USER, "inferred": AGENT}
_PEOPLE = frozenset({"cli", "page"})
"""The authors of what people change: on the command line, and on the page."""
_DOCUMENT = "narrative/"
_IMPORT = "import:"
_OWN_FORMATS = frozenset({"ctx"})
_PART = 500


def is_data(source: str) -> bool:
    """Whether a text ranks below what agents say: it is quoted, and never a rule."""
    return source not in (USER, AGENT)


def mark(source: str) -> tuple[str, bool]:
    """How a context marks a text, empty for the user's, and whether it quotes the text."""
    return "" if source == USER else source, is_data(source)


def source_of(node_type: str, metadata: Mapping[str, Any], author: str) -> str:
    """The source of a node, and of an old one the source that its author implies."""
    return stated_source(node_type, metadata) or source_of_author(author)


def stated_source(node_type: str, metadata: Mapping[str, Any]) -> str:
    """The source as far as the node itself shows it; empty if only its author does."""
    if not metadata:
        return _TYPES.get(node_type, "")
    stated = metadata.get(KEY)
    if stated in SOURCES:
        return str(stated)
    if node_type in _TYPES:
        return _TYPES[node_type]
    for written_type, key, source in _WRITERS:
        if node_type == written_type and key in metadata:
            return source
    said_by, origin = metadata.get("said_by"), metadata.get("origin")
    if isinstance(said_by, str) and said_by in _SOURCE_BY_ROLE:
        return _SOURCE_BY_ROLE[said_by]
    return _ORIGINS.get(origin, "") if isinstance(origin, str) else ""


def source_of_author(author: str) -> str:
    """The source that the author of a record implies."""
    if author in _PEOPLE or author.startswith(_DOCUMENT):
        # People write the documents of the narrative; a context names those of others.
        return USER
    if author.startswith(_IMPORT):
        programs = author.removeprefix(_IMPORT).split(",")
        return USER if _OWN_FORMATS.issuperset(programs) else AGENT
    return AGENT


def metadata_of_author(author: str, *, in_agents_shell: bool) -> dict[str, str]:
    """The metadata that states the source of a new node; a person's needs none."""
    source = AGENT if in_agents_shell else source_of_author(author)
    return {} if source == USER else {KEY: source}


def of_nodes(
    connections: Sequence[Connection], nodes: Mapping[str, tuple[str, str, Mapping[str, Any]]]
) -> dict[str, str]:
    """The sources of nodes, given by type, content and metadata. The first store that has a node
    counts."""
    by_node = {
        node_id: stated_source(node_type, metadata)
        for node_id, (node_type, _, metadata) in nodes.items()
    }
    unstated = {node_id: nodes[node_id][1] for node_id, source in by_node.items() if not source}
    if unstated:
        authors: dict[str, str] = {}
        for connection in reversed(connections):
            authors |= _authors_of_text(connection, unstated)
        by_node |= {node_id: source_of_author(authors.get(node_id, "")) for node_id in unstated}
    return by_node


def _authors_of_text(connection: Connection, contents: Mapping[str, str]) -> dict[str, str]:
    """The author who first wrote each node's text as it is now."""
    first: dict[str, tuple[int, str, str]] = {}
    node_ids = list(contents)
    for start in range(0, len(node_ids), _PART):
        part = node_ids[start : start + _PART]
        # Records about tags and edges have a key. A join with `nodes` would read each node again.
        rows = connection.execute(
            "SELECT subject, json_extract(body, '$.content'), stamp, id, author FROM records"
            f" WHERE subject IN ({', '.join('?' * len(part))}) AND key = '' AND kind = 'node.put'",
            part,
        )
        for node_id, content, stamp, record, author in rows:
            if content == contents[node_id]:
                written = stamp, record, author
                first[node_id] = min(first.get(node_id, written), written)
    return {node_id: author for node_id, (_, _, author) in first.items()}
