"""What a model reads of the server in every session is short, and says what it is for."""

import json

from ctx import tokens
from ctx.mcp import prompts, server
from ctx.mcp.tools import TOOLS

LIMIT = 1_500


def test_all_descriptions_and_schemas_of_arguments_are_small() -> None:
    """A model does not read the schemas of answers."""
    described = [
        server._described(tool, is_typed=False).model_dump(by_alias=True, exclude_none=True)
        for tool in TOOLS.values()
    ]
    menu = [[each.name, each.description, each.argument] for each in prompts.PROMPTS.values()]
    text = json.dumps([described, menu, server.INSTRUCTIONS], separators=(",", ":"))
    assert tokens.estimate(text) < LIMIT


def test_there_are_five_tools_with_short_names() -> None:
    assert list(TOOLS) == ["recall", "remember", "pack", "timeline", "forget"]
    assert {tool.name for tool in TOOLS.values() if tool.is_read_only} == {
        "recall",
        "pack",
        "timeline",
    }


def test_the_first_sentence_says_what_the_server_is_for() -> None:
    first = server.INSTRUCTIONS.partition(". ")[0]
    assert first.startswith("Durable memory of this project")
    assert len(first) < 120


def test_schemas_have_no_references_and_no_unknown_arguments() -> None:
    for tool in TOOLS.values():
        schema = tool.input_schema
        assert "$ref" not in json.dumps(schema)
        assert schema["additionalProperties"] is False
        assert set(schema["properties"]) == set(tool.arguments.__struct_fields__)
        assert "$ref" not in json.dumps(tool.output_schema)


def test_closed_sets_are_enums_and_limits_are_named() -> None:
    properties = TOOLS["remember"].input_schema["properties"]
    assert "decision" in properties["type"]["enum"]
    assert properties["scope"]["enum"] == ["project", "user"]
    assert "10,000 characters" in properties["text"]["description"]
    found = TOOLS["recall"].output_schema["properties"]["results"]["items"]
    assert found["properties"]["title"] == {"type": "string"}
