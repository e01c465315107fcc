"""The agents that ctx supports: how each is installed, and how its hooks and files are read.

One folder per agent, and what they share:

    runtime           the hook process
    host_setup        how ctx is installed, and how files of other programs are edited
    known_hosts       the agents that ctx knows
    known_setups      how each of them is installed
    mcp_sessions      which session asks the MCP server
    stored_events     how the events of some agents are stored
    line_transcripts  transcripts with one JSON object per line

A folder knows its agent's payloads, files and settings. The hooks of Codex, Gemini CLI and Qwen
Code extend those of Claude Code; otherwise it knows nothing about other agents. `operations`
decides what events mean for memory. Every hook loads this file, so it contains no code.
"""
