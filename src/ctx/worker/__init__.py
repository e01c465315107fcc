"""The worker: one process per `CTX_HOME` that processes the events in the spool.

A hook starts it if none is running, and wakes it through a pipe. The worker drains the spool before
it loads anything heavy, then serves `server.app` on a Unix socket, and exits when no session is
live. `operations.worker_round` defines a round; this package decides when rounds run and keeps
errors from ending the process.

    run             from its start to its end
    event_loop      rounds and requests, and the pipe through which hooks wake it
    worker          its state: its store, its rounds, its reasons to exit, its log
    model_thread,
    sync_thread     slow work that nothing waits for
    process_lock    one worker for each `CTX_HOME`
    spawn           how they start it

It also serves the page of `ctx ui`. Nothing depends on the worker. Without it, events wait in the
spool and `ctx hook apply` processes them. A worker can be killed at any time without loss, because
all its state is on disk.

Hooks load `spawn`, so it imports only what a hook can afford.
"""
