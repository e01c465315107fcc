"""GitHub Copilot CLI: its hooks, tool calls and transcripts.

    entry                the registered script; it starts a hook of `runtime`
    copilot_hooks        what a hook process knows about the client
    copilot_adapter      the host adapter that the registry loads
    copilot_tools        what its tools are called for
    copilot_transcripts  reads `events.jsonl`
    copilot_setup        how ctx is installed for it

Every hook loads this file, so it contains no code.
"""
