"""OpenCode: a plugin in place of hooks, and a database of sessions in place of transcripts.

OpenCode has no hooks that are commands. The plugin, `ctx.js`, runs in OpenCode and starts `entry`
for each event, with a payload of our own, so only `hooks` and `adapter` know their keys. An
exception in the plugin would fail the user's turn, so it catches everything. `storage` reads the
database. Every hook loads this file, so it contains no code.
"""
