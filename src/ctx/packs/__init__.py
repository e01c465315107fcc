"""Packs: what to read for a task, within a token budget. `pack_pipeline` shows the steps.

    file_ranking, item_ranking  the files that match the task, then the parts of them to read
    file_weights                the weights of the signals of files
    task_words                  the words of the task in the lines of a file
    node_ranking                the nodes of memory that answer it
    node_query, node_times      the words of a question by their rarity, and the time that it names
    node_vectors                the similarity of nodes by meaning
    seeds, expand               what the task names, and what must be read with each hit
    code_candidates,
    memory_candidates           everything that may go into the pack, with the reason
    chunks, file_excerpts       the text of each candidate, and its cost
    recent_work                 the active task and the recent log
    budget                      chooses what is worth its tokens
    prompt_pack, pack_text      the pack as a value, and as markdown for an agent
    prompt                      the pack as a prompt for a model

Nothing here prints. Only `node_vectors` writes, and only to a derived file.
"""
