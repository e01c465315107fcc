"""The worker: one process for each `CTX_HOME` that looks after what hooks leave in the spool.

A hook starts it when there is none, and rings its bell when there is something to do. It empties
the spool before it loads anything heavy, then serves `server.app` on a socket of the user's, and
goes when no session is live any more. `operations.worker_round` does the work of a
round; this package decides when, and keeps running when a round fails.

Nothing depends on it. Without a worker everything waits in the spool, and `ctx hook apply` does the
same; a worker that is killed at any moment loses nothing, because all it knows is on the disk.

`starting` is loaded by hooks, and keeps to what they can afford.
"""
