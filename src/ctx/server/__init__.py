"""The server: one ASGI app that answers programs of this user with what the operations know.

The worker serves it on a Unix socket. It must not know who serves it, nor decide anything that an
operation could: each route opens the memory in a thread, asks, and writes the answer as JSON.

Async lives here and in `worker` alone.
"""
