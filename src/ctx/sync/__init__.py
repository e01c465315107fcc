"""Exchanges the graph of the user store with other machines.

    sync_batch       a batch: records, their versions, and what its replica has applied
    batch_files      a batch as the bytes of a file: named by a hash, encrypted
    batch_target     where batches are: what a folder, a git remote or a server must offer
    folder_target    batches as files of a shared folder
    git_target       batches as files on a branch of a git repository
    outgoing         to which project of a server a record is sent
    team_target      batches as rows of a PostgreSQL server
    team_graph       the nodes, edges and tags on that server
    team_schema,
    team_store_schema
                     its tables, who may read and write them, and migrations
    team_connection  connects to it, with TLS
    target_settings  the targets that the user has added, and their keys
    replicate        receives the batches that the store lacks, and sends those that a target lacks

A replica is one store on one machine. Batches are immutable, and no two replicas write a batch with
the same name, so targets never have conflicts. Which batches the store has is stored in the store
itself (`memory/replicas.py`), in the transaction that applies them: a crash, a repeated batch or a
restored backup loses nothing and applies nothing twice.

Only the graph is exchanged: sessions, events, receipts and everything else that belongs to one
machine stay there. A project's store is exchanged through git, by the project itself.
"""
