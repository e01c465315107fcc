"""A llama.cpp server, by its own protocol.

llama_backend  the backend: a request, its answer and its usage
prompt_tokens  a request as tokens, framed by the model's chat template
slots          the prompt cache, saved between calls on the server's disk
"""
