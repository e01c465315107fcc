"""A project's store: what is stated about a project, beside its code.

    project_memory          what is known in a project: committed, staged, and in documents
    index                   the tables of a project; `bringing`, `held`: how batches make them
    batches                 records as objects
    present, staged         what a project is at, as the names of files say it, and what no commit
                            holds yet; `withheld`: what of that is private
    documents, anchors      what documents say, and what stands in the graph for a thing in the code
    staging, chains         a session's work in a project; joining, waiting, mending: its life
    surveys, reports        what programs said about the code, in a step
    printed, diagnosed      what a command printed, and what it found wrong with the code
    compaction              the commit that it becomes; changelog, relations: what that tells
    past                    a project's memory as a commit has it
    authors                 who wrote what was not written here
    transaction             the one way to change memory: over the stores a command needs
    recover_commits         commits that git threw away, brought back
    trust, trust_check,
    repository_identity     whose store is trusted, and whether it is still the same repository

It knows objects, the graph and the narrative. It does not know what an agent is given of it.
"""
