"""What an agent's program reports, in words that no program owns, and what an adapter must answer.

A host is the program that an agent runs in, such as Claude Code. Its adapter, in `agents/<host>/`,
reads the host's payloads and transcripts and makes an `Event` of each thing that happened. Nothing
outside of an adapter reads a payload: capture, synthesis and the worker see events alone.

    payload, transcript ──► adapter ──► Event ──► capture
                                         │ payload: what is stored, and read by the same adapter
    payload ──► adapter ──► HookEvent ──► hook ──► HookAnswer ──► adapter

An entry point passes the hosts that it knows along with the environment (`workspace`), so that
this module knows none of them.

    events         an event, and what it consists of
    hook_events    what a hook process receives and answers
    tool_calls     what tools are called for
    transcripts    what transcripts say
    transcript_reader, turn_lines
                   how adapters read transcripts with one JSON object per line
    json_fields    reads fields of JSON that a host wrote, without failing
    host_adapter   the protocol that an adapter follows
    host_registry  the hosts that an entry point knows
"""
