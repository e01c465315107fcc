"""The agents that ctx supports: how each is installed, and how its hooks and files are read.

One folder per agent, and what they share:

    known_hosts       finds the folders, and loads what is in them
    runtime           the hook process
    host_setup        how ctx is installed, and how files of other programs are edited
    stored_events     how the events of some agents are stored
    line_transcripts  transcripts with one JSON object per line

The folder of an agent has the same modules as the others, as far as it needs them:

    entry, hooks      the registered script, and what a hook process knows about the agent
    adapter           its name, and where it keeps its files
    payloads          turns the payloads of its hooks into events
    tools             what its tools are called for
    transcripts       where its transcripts are, and the events and messages in them
    setup             how ctx is installed for it, and what `ctx doctor` checks

A folder knows its agent's payloads, files and settings. Codex, Gemini CLI and Qwen Code copied the
hooks of Claude Code, so they extend what is in its folder; otherwise an agent knows nothing about
other agents. SpecStory is no agent: it records the sessions of agents, so it has an adapter only.
`operations` decides what events mean for memory. Every hook loads this file, so it
contains no code.
"""
