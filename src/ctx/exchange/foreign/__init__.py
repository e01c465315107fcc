"""What other programs remember, read as nodes of ours.

    incoming     what every reader hands on, and how it takes text, times and lists as it finds them
    database     another program's SQLite file, read without leaving a trace
    go_ctx       the `store.db` of the Go program of the same name
    claude_mem   the database of claude-mem, in every generation of its tables
    claude_code  CLAUDE.md files and the notes that Claude Code keeps for itself
    markdown     as much of it as telling sections apart takes
    jsonl        one JSON object a line, for everything else
    recognise    which of these a file is

A reader knows one format and nothing of our tables. It never writes, never follows a link that
it was not given, and never gives up because of one bad row: what cannot be taken is handed on as
`Skipped`, with the reason. Where the source itself is damaged, it says so and nothing comes in.

The id of a draft follows from what the source calls the thing, so that reading it again gives
the same id; one without a time is given it by `intake`, where it is also decided what is done
with drafts (added, merged, left out).
"""
