"""OpenCode: a plugin in place of hooks, its tool calls, and its database of sessions.

    ctx.js                the plugin, which runs in OpenCode and starts `entry` for each event
    entry                 the script that the plugin runs; it starts a hook of `runtime`
    hooks        what a hook process knows about the plugin
    adapter      the host adapter that the registry loads
    tools        what its tools are called for
    storage      the sessions, messages and parts in its database
    transcripts  reads sessions from the database
    setup        how ctx is installed for it

OpenCode has no hooks that are commands. The plugin passes its events on as payloads of our own, so
only `hooks` and `adapter` know their keys. An exception in the plugin would fail
the user's turn, so it catches everything. Every hook loads this file, so it contains no code.
"""
