"""Prompts: what a person can start from a menu, where the host shows them."""

from typing import NamedTuple

from ctx.errors import UsageError
from ctx.mcp import resources
from ctx.mcp.agent_place import AgentPlace
from ctx.mcp.call_thread import RunningCall


class ServerPrompt(NamedTuple):
    name: str
    description: str
    argument: str = ""
    """The name of its only argument; empty if it takes none."""
    text: str = ""
    """What the agent is told, with the argument at `{}`; empty for the context."""


PROMPTS = {
    prompt.name: prompt
    for prompt in (
        ServerPrompt("context", "What is known about this project"),
        ServerPrompt(
            "recall",
            "Answer a question from memory",
            "question",
            "Call the tool `recall` for this question, read the results that matter with `ids`,"
            " and answer from them with the ids that you used. Say so if memory has no answer."
            "\n\nQuestion: {}",
        ),
        ServerPrompt(
            "wrap-up",
            "Keep what this session decided and learned",
            "",
            "Look back at this session. For each decision, rule of the user, cause of a failure"
            " and dead end that a later session needs, call `recall` to see whether memory has"
            " it already, then `remember` it in one self-contained sentence, with `rationale` for"
            " a decision and `supersedes` for what it replaces. Leave out what the code says.",
        ),
    )
}


def text(place: AgentPlace, name: str, argument: str, call: RunningCall) -> str:
    """The text of a prompt."""
    prompt = PROMPTS.get(name)
    if prompt is None:
        raise UsageError(
            f"There is no prompt {name[:40]!r}.", hint=f"There are {', '.join(PROMPTS)}."
        )
    if prompt.argument and not argument.strip():
        raise UsageError(f"The prompt {name} needs the argument {prompt.argument}.")
    if not prompt.text:
        return resources.read(place, resources.CONTEXT, call)
    return prompt.text.replace("{}", argument)
