"""Asking a model, wherever it runs, and what that costs.

    model       what is asked and what is answered: one shape for every backend
    asking      the one door: takes secrets out of what is asked, then lets a backend ask it
    answers     what stands in an answer beside its words: code, decisions, names
    ledger      every call, what it may cost at most before it is sent, and what it did cost
    accounts    what is in it, added up
    prices      money for tokens
    addresses   of servers: whether they are any, and whose
    tries       asking again where that may help
    wire        HTTP as backends need it: time limits, streams, sentences for failures
    exchange    one request and its answer as bytes, within the time that they may take
    stream      an answer as it comes: bytes, lines, events
    llama_cpp   a llama.cpp server, by its own protocol
    thoughts    what a model thinks aloud, which is not its answer
    openai      whatever speaks OpenAI's chat protocol: Ollama, vLLM, LM Studio, services
    anthropic   Anthropic's Messages
    claude_cli  Claude Code's own program, with the login that a person has there
    scripted    a model that says what a test wrote down
    backends    which of them a person has configured, and what `auto` finds

Nothing here knows memory, sessions or packs: it takes texts and gives texts. Nothing is sent that
`asking` has not passed and `ledger` has not allowed. Without a configured backend neither the
worker nor what remembers and finds loads anything of it.
"""
