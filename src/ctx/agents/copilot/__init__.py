"""GitHub Copilot CLI: its hooks, tool calls and transcripts.

    entry                the registered script; it starts a hook of `runtime`
    copilot_hooks        what a hook process knows about the client
    copilot_adapter      the host adapter that the registry loads
    copilot_tools        what its tools are called for
    copilot_transcripts  reads `events.jsonl`

The hooks that ctx registers, and the words of `entry` that they run, are in `copilot_hooks`. A hook
before a tool is never registered: if it fails, the client refuses the tool. Every hook loads this
file, so it contains no code.
"""
