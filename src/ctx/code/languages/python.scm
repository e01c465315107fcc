; Items
(function_definition) @item.function
(class_definition) @item.class
(type_alias_statement) @item.type_alias
(module (expression_statement (assignment left: (identifier)) @item.static))
(class_definition body: (block (expression_statement (assignment left: (identifier) type: (type)) @item.static)))

(decorated_definition definition: (_) @inner) @outer

; Imports
(import_statement) @import
(import_from_statement) @import

; Calls. A decorator is a call of its function.
(call function: (_) @call)
(decorator (identifier) @call)
(decorator (attribute) @call)

; Names with known values. `self.x = x` passes on the type of a parameter.
(assignment type: (type)) @bind
(assignment right: (call)) @bind
(assignment right: (await (call))) @bind
(assignment left: (attribute) right: (identifier)) @bind
(assignment left: (identifier) right: (identifier)) @bind
(class_definition body: (block (expression_statement (assignment left: (identifier) right: (attribute)) @bind)))
(typed_parameter) @bind
(typed_default_parameter) @bind
(as_pattern alias: (as_pattern_target (identifier))) @bind

(type) @type

; Names that are passed as values, and names before a dot.
(argument_list (identifier) @reference)
(keyword_argument value: (identifier) @reference)
(default_parameter value: (identifier) @reference)
(typed_default_parameter value: (identifier) @reference)
(pair (identifier) @reference)
(list (identifier) @reference)
(set (identifier) @reference)
(tuple (identifier) @reference)
(expression_list (identifier) @reference)
(return_statement (identifier) @reference)
(assignment right: (identifier) @reference)
(comparison_operator (identifier) @reference)
(boolean_operator (identifier) @reference)
(binary_operator (identifier) @reference)
(for_statement right: (identifier) @reference)
(subscript (identifier) @reference)
(except_clause value: (identifier) @reference)
(attribute object: (identifier) @reference)
