"""The MCP server: an agent asks in the middle of its turn, and is answered in the same turn.

    tools        the five tools: their arguments, their descriptions, and their answers
    results      the JSON objects of answers
    resources    nodes, sessions and the context, by address
    prompts      what a person can start from a menu of the host
    agent_place  where a call works: the folder, the session, and the memory there
    call_thread  a thread in which calls run one after the other, with progress and cancellation
    lifetime     when the process ends: with its input, with its parent, at a signal
    server       the protocol: what the SDK is told, and errors as answers

The SDK takes more than a second to import, so `ctx mcp` alone imports this package. Everything that
a tool does is an operation that the command line has too: nothing is decided here. The code is
asynchronous only as far as the SDK is.

What holds for hooks holds here: nothing of a store that is not trusted, nothing of other projects,
no pins and nothing for all projects without the user's approval, no secrets, and a receipt for
everything that was given.
"""
