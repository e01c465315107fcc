"""The index of a project's code: where it lies, and how whoever needs it comes by it.

    code_index        brought up to date, opened, and how old it is
    index_state       what an answer says about it
    code_at_hand      what there is of it for a question that somebody waits for
    code_background   brought up to date behind the back of an answer
    code_left_behind  indexes that nobody is led to any more
    code_items        what a person means by a word about code
    code_names        the one item that has a name
    extracting        what files define, import and call, read while they are taken in

`code` knows files and grammars; here is where in a user's home, or in a git folder, that lies.
"""
