"""Qwen Code: its hooks, tool calls and transcripts.

    entry             the registered script; it starts a hook of `runtime`
    qwen_hooks        what a hook process knows about the client
    qwen_adapter      the host adapter that the registry loads
    qwen_tools        what its tools are called for
    qwen_transcripts  reads the files in `chats`
    qwen_setup        how ctx is installed for it

Its hooks are Claude Code's in most respects, and its tools are Gemini CLI's. Every hook loads this
file, so it contains no code.
"""
