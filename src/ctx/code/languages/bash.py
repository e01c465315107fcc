"""Shell scripts: functions and declarations."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ctx.code.language import HASH_COMMENT
from ctx.code.languages.definitions import Definitions, children

if TYPE_CHECKING:
    from tree_sitter import Node


class Bash(Definitions):
    name = "bash"
    query_file = "bash.scm"
    comment = HASH_COMMENT
    constants = re.compile(rb"readonly|-\w*r")

    def names(self, node: "Node") -> Iterable["Node"]:
        if node.type == "declaration_command":
            named = (
                child.child_by_field_name("name") for child in children(node, "variable_assignment")
            )
            return [name for name in named if name]
        return super().names(node)


LANGUAGE = Bash()
