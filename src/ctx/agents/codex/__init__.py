"""Codex: its hooks, tool calls and transcripts.

    entry           the registered script; it starts a hook of `runtime`
    hooks     what a hook process knows about Codex

    adapter   the host adapter that the registry loads
    payloads  turns hook payloads into events
    tools     what its tools are called for
    patches         the files that a patch writes
    rollout_files   where transcripts are, and to which session they belong
    rollout_items   what the lines of a transcript contain
    rollout_events  reads events, messages and texts from a transcript

    setup     how ctx is installed for it

Codex copied the hooks of Claude Code: payloads and answers have the same fields. Its tools,
transcripts and limits are its own. Every hook loads this file, so it contains no code.
"""
