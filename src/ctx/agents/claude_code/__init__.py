"""Claude Code: its hooks, settings, skills and plugins.

    entry              the registered script; it starts a hook of `runtime`
    hooks       what a hook process knows about the client
    session_lineage    which session continues which
    agent_teams        which session leads the team of another one

    adapter     the host adapter that the registry loads
    payloads           turns hook payloads into events
    tool_inputs        what its tools are called for
    file_edits         a file before and after a write
    transcript_files   where transcripts are, and to which session they belong
    transcript_events  reads events from a transcript
    transcript_turns   reads messages from a transcript
    transcript_texts   reads from a transcript what the agent has read

    clients            installed clients, their versions, and the events that they know
    registration       which hooks are registered, and their command lines
    install            installs and uninstalls all of this
    plugin             the same as a plugin
    projection         a block in AGENTS.md, for agents without hooks
    settings           the state that the doctor checks
    doctor             checks whether everything works

The client's files belong to the user: everything that ctx writes there is recognizable and can be
removed without a trace. `operations` decides what events mean for memory. Every hook loads this
file, so it contains no code.
"""
