"""Works on a team's PostgreSQL server itself, without a store on this machine.

`CTX_DB=postgresql://…` makes commands read the server's tables and write to them, for containers
that cannot hold a replica. The rest of ctx sees a graph as it sees any other: `team_graph_store`
opens a connection with the part of SQLite's interface that `memory/` uses. `translation` spells its
statements for PostgreSQL. `send_records` writes records as `ctx sync` does: as batches, which
replicas receive, and as rows of nodes, tags and edges.

Sessions, receipts and everything else that belongs to one machine are not on a server. They are in
an empty store in memory, and end with the process.
"""
