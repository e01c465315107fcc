"""The server: one ASGI app that gives this user's programs access to the operations.

The worker serves it on a Unix socket. It does not know who serves it and contains no logic of its
own: each route opens the memory in a thread, calls an operation, and returns JSON.

Only this package, `page`, `worker` and `mcp` use async.
"""
