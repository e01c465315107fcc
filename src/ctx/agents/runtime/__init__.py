"""The hook process: what it does whichever agent calls it, with the standard library alone.

    hook             one run of a hook: it keeps what the agent's client reports, and its own time
    answers          the answers of the hooks that have one
    session_context  the context that a session is given when it starts
    waiting          what waits for a session, taken once
    given            receipts of what sessions were given
    notices          what a person reads when a session starts
    applying         starting the process that does what an agent asked for
    asking           asking the worker over its socket
    store            the store as a hook opens it

Hooks load this file, so it holds nothing.
"""
