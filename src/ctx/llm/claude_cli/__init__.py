"""The Claude Code program as a backend, with the user's login.

claude_backend  the backend: the options that make the program answer once
stream_json     what it prints
child_process   a child process with time and size limits, in a temporary folder
"""
