"""GitHub Copilot CLI: its hooks, tool calls and transcripts.

    entry                the registered script; it starts a hook of `runtime`
    hooks        what a hook process knows about the client
    adapter      the host adapter that the registry loads
    tools        what its tools are called for
    transcripts  reads `events.jsonl`
    setup        how ctx is installed for it

Every hook loads this file, so it contains no code.
"""
