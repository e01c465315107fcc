"""Requests to a model, wherever it runs, and their cost.

    protocol           requests, answers, and what a backend implements
    answer_parts       code blocks, decisions and names in an answer
    ledger             every call: tokens reserved before it, tokens used after it
    ledger_totals      sums over the ledger
    prices             dollars per million tokens
    server_url         validation and display of server URLs
    retry              when to retry, and how long to wait
    http_client        HTTP for the backends: time limits, retries, streams, errors
    http_exchange      one request and its response as bytes, within a time limit
    event_stream       a streamed answer: bytes, lines, events, without the thinking before it
    llama_cpp          a llama.cpp server, by its own protocol
    openai_backend     any server with OpenAI's chat protocol: Ollama, vLLM, LM Studio, services
    anthropic_backend  Anthropic's Messages API
    claude_cli         the Claude Code program, with the user's login
    scripted_backend   a backend with scripted answers, for tests
    backends           chooses the configured backend, and sends it redacted requests

This package contains nothing about memory, sessions or packs: text in, text out. Every request
passes `backends.ask` and is reserved in `ledger`. Without a configured backend, nothing is loaded
that can open a connection.
"""
