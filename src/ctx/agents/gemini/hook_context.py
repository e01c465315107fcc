"""Removes the context of hooks from texts.

Gemini CLI wraps it and stores it with the text that it belongs to: in front of the first prompt,
after a prompt, after the result of a tool. It comes back in later payloads and in the transcript.

    <hook_context>&lt;!-- ctx: 3 nodes, 120 tokens --&gt;…</hook_context>
"""

import re

_CONTEXT = re.compile(r"\s*<hook_context>(.*?)</hook_context>\s*", re.DOTALL)


def without_context(text: str) -> str:
    """A text without the context of any hook."""
    if "<hook_context>" not in text:
        return text
    return _CONTEXT.sub("\n\n", text).strip()


def contexts_in(text: str) -> list[str]:
    """The contexts in a text, as hooks gave them."""
    found = _CONTEXT.findall(text) if "<hook_context>" in text else []
    return [each.replace("&lt;", "<").replace("&gt;", ">") for each in found]
