"""A llama.cpp server, by its own protocol.

server   the backend: a question, its answer, what it cost
prompts  a question as such a server reads it: tokens, in the frame of the model's template
slots    what it has read before, kept between calls on its own disk
"""
