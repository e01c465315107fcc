"""basic-memory through the functions of its MCP server: a note for each text."""

import asyncio
from typing import Any

from basic_memory.config import init_mcp_logging  # type: ignore[import-not-found]
from basic_memory.mcp.tools import (  # type: ignore[import-not-found]
    search_notes,
    write_note,
)
from json_lines import serve  # type: ignore[import-not-found]

_TITLE = "turn "


def main() -> None:
    # As its server does; otherwise each step would be logged to stderr.
    init_mcp_logging()
    loop = asyncio.new_event_loop()

    def answer(request: dict[str, Any]) -> list[str]:
        return loop.run_until_complete(_answer(request))

    serve(answer)


async def _answer(request: dict[str, Any]) -> list[str]:
    if request["do"] == "add":
        # A title is a file name, and a bare number would be read as one.
        title = _TITLE + request["unit"].replace(":", "-")
        await write_note(title=title, content=request["text"], directory="turns", project="main")
        return []
    found = await search_notes(
        query=request["text"], page_size=request["limit"], output_format="json", project="main"
    )
    if isinstance(found, str):
        raise SystemExit(f"The search failed: {found[:500]}")
    titles = (each["title"] for each in found["results"])
    return [title.removeprefix(_TITLE).replace("-", ":") for title in titles]


if __name__ == "__main__":
    main()
