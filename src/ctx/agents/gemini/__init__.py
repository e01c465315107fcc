"""Gemini CLI: its hooks, tool calls and transcripts.

    entry            the registered script; it starts a hook of `runtime`
    hooks     what a hook process knows about Gemini CLI

    adapter   the host adapter that the registry loads
    payloads  turns hook payloads into events
    tools     what its tools are called for
    hook_context     removes the context of hooks from texts
    chat_files       where transcripts are, and to which session they belong
    chat_events      reads events, messages and texts from a transcript

    setup     how ctx is installed for it

Every hook loads this file, so it contains no code.
"""
