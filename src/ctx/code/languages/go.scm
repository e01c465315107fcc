; Items
(package_clause (package_identifier) @namespace)
(function_declaration) @item.function
(method_declaration) @item.method
(method_elem) @item.method
(type_spec) @item.type
(type_alias) @item.type_alias
(const_spec) @item.const
(var_spec) @item.static

; Without parentheses, the keyword belongs to the single declaration.
(type_declaration . "type" . (_) @inner .) @outer
(const_declaration . "const" . (const_spec) @inner .) @outer
(var_declaration . "var" . (var_spec) @inner .) @outer

; Imports
(import_spec) @import

; Calls. A generic function with one argument looks like a conversion.
(call_expression function: (identifier) @call)
(call_expression function: (selector_expression) @call)
(call_expression function: (parenthesized_expression) @call)
(call_expression function: (index_expression) @call)
(type_conversion_expression type: (generic_type type: (_) @call))

; Names with known values. In a list, each name has its own value.
(function_declaration parameters: (parameter_list [(parameter_declaration) (variadic_parameter_declaration)] @bind))
(function_declaration result: (parameter_list (parameter_declaration . name: (_)) @bind))
(method_declaration receiver: (parameter_list (parameter_declaration) @bind))
(method_declaration parameters: (parameter_list [(parameter_declaration) (variadic_parameter_declaration)] @bind))
(method_declaration result: (parameter_list (parameter_declaration . name: (_)) @bind))
(func_literal parameters: (parameter_list [(parameter_declaration) (variadic_parameter_declaration)] @bind))
(type_spec type: (struct_type (field_declaration_list (field_declaration) @bind)))
(var_spec) @bind
(type_spec type: (slice_type) @bind)
(type_spec type: (map_type) @bind)
(type_spec type: (array_type) @bind)
(type_spec type: (channel_type) @bind)
(type_spec type: (pointer_type) @bind)
(type_spec type: (type_identifier) @bind)
(type_spec type: (qualified_type) @bind)
(short_var_declaration) @bind
(range_clause left: (_)) @bind

; Types. The parts of a function type, a struct or an interface are captured separately.
(parameter_declaration type: (_) @type)
(variadic_parameter_declaration type: (_) @type)
(function_declaration result: (_) @type)
(method_declaration result: (_) @type)
(method_elem result: (_) @type)
(func_literal result: (_) @type)
(function_type result: (_) @type)
(field_declaration type: (_) @type)
(interface_type (type_elem) @type)
(type_constraint) @type
(type_spec type: (_) @type)
(type_alias type: (_) @type)
(var_spec type: (_) @type)
(const_spec type: (_) @type)
(composite_literal . type: (_) @type)
(type_conversion_expression type: (_) @type)
(type_assertion_expression type: (_) @type)
(type_case type: (_) @type)
(call_expression type_arguments: (_) @type)
(argument_list . (type_identifier) @type)
(argument_list . (qualified_type) @type)
(argument_list . (pointer_type) @type)
(argument_list . (slice_type) @type)
(argument_list . (map_type) @type)
(argument_list . (channel_type) @type)
(argument_list . (generic_type) @type)

; Names that are passed as values, and names before a dot.
(selector_expression operand: (identifier) @reference)
(argument_list (identifier) @reference)
(literal_value (literal_element (identifier) @reference))
(keyed_element value: (literal_element (identifier) @reference))
(return_statement (expression_list (identifier) @reference))
(assignment_statement (expression_list (identifier) @reference))
(short_var_declaration right: (expression_list (identifier) @reference))
(var_spec value: (expression_list (identifier) @reference))
(const_spec value: (expression_list (identifier) @reference))
(expression_case value: (expression_list (identifier) @reference))
(binary_expression (identifier) @reference)
(unary_expression operand: (identifier) @reference)
(index_expression (identifier) @reference)
(range_clause right: (identifier) @reference)
