"""Reads the memory of other programs as drafts of nodes.

    foreign_items      the items that readers return; parses their text, times and lists
    foreign_database   opens another program's SQLite file without changing it
    go_ctx             the `store.db` of the Go program of the same name
    claude_mem         the database of claude-mem, in all its schema versions
    claude_code        CLAUDE.md files and Claude Code's own notes
    instruction_files  AGENTS.md, `.cursorrules` and the like, of other agents
    basic_memory       the notes of Basic Memory
    mcp_memory         the graph of the MCP reference memory server
    project_pages      finds and reads the text files of a project
    markdown_sections  splits Markdown into sections
    jsonl              one JSON object per line, for everything else
    detect_format      detects the format of a file

A reader handles one format, and does not use our tables. It never writes, never follows a link that
was not passed to it, and never fails because of one bad row: it returns a `SkippedItem` with the
reason. If the source itself is damaged, it raises an error and nothing is imported.

The id of a draft is derived from its name in the source, so reading it again gives the same id.
`importer` gives a time to an id without one, and decides whether a draft is added, merged or
skipped.
"""
