; Definitions.
(function_declaration) @item.function
(generator_function_declaration) @item.function
(class_declaration) @item.class

; Members.
(class_body (method_definition) @item.method)
(field_definition value: [(arrow_function) (function_expression)]) @item.method
(field_definition "static" value: (_)) @item.field

; Variables at file level. The first one of a declaration includes its `const`, the others follow.
(program (lexical_declaration . (variable_declarator) @inner @item.variable) @outer)
(program (variable_declaration . (variable_declarator) @inner @item.variable) @outer)
(export_statement (lexical_declaration . (variable_declarator) @inner @item.variable)) @outer
(export_statement (variable_declaration . (variable_declarator) @inner @item.variable)) @outer
(lexical_declaration (variable_declarator) . (variable_declarator) @item.further)
(variable_declaration (variable_declarator) . (variable_declarator) @item.further)

; Functions and classes that are assigned to a variable, at any depth.
(variable_declarator
  value: [(arrow_function) (function_expression) (generator_function) (class)
          (call_expression arguments: (arguments . [(arrow_function) (function_expression)]))])
@item.held

; The members of an object literal in a variable.
(variable_declarator
  value: [(object [(method_definition) (pair value: [(arrow_function) (function_expression)])] @item.member)])

; The members of an object literal that a function returns.
(return_statement
  (object [(method_definition) (pair value: [(arrow_function) (function_expression)])] @item.returned))

; Default exports, and their CommonJS form.
(export_statement value: (_)) @item.default @import
(export_statement
  value: [(object [(method_definition) (pair value: [(arrow_function) (function_expression)])] @item.member)])
(program (expression_statement (assignment_expression left: (member_expression)) @item.assigned @import))
(assignment_expression
  left: (member_expression property: (property_identifier) @_exports)
  right: (object [(method_definition) (pair value: [(arrow_function) (function_expression)])] @item.exported)
  (#eq? @_exports "exports"))

; Nodes before a definition that belong to it.
(export_statement
  declaration: [(function_declaration) (generator_function_declaration) (class_declaration)] @inner) @outer

; Imports and re-exports.
(import_statement) @import
(export_statement source: (_)) @import
(export_statement !source (export_clause)) @import
(export_statement "default" declaration: (_)) @import
(call_expression function: (identifier) arguments: (arguments . (string) .)) @import
(call_expression function: (import)) @import
(variable_declarator value: (assignment_expression)) @import

; Calls. A decorator is a call of its function.
(call_expression function: (_) @call)
(new_expression constructor: (_) @call)
(decorator [(identifier) (member_expression)] @call)

; Names with known values.
(variable_declarator
  value: [(call_expression) (new_expression) (await_expression) (member_expression) (identifier)
          (this)]) @bind
(assignment_pattern left: (identifier) right: (new_expression)) @bind
(field_definition value: [(new_expression) (call_expression)]) @bind
(assignment_expression
  left: (member_expression object: (this))
  right: [(new_expression) (call_expression) (await_expression) (identifier)]) @bind
(variable_declarator value: (object [(pair value: [(identifier) (new_expression) (member_expression)])
                                     (shorthand_property_identifier)] @bind))

; Names that are passed as values, and names before a dot.
(arguments (identifier) @reference)
(pair value: (identifier) @reference)
(shorthand_property_identifier) @reference
(array (identifier) @reference)
(return_statement (identifier) @reference)
(spread_element (identifier) @reference)
(variable_declarator value: (identifier) @reference)
(assignment_expression right: (identifier) @reference)
(assignment_pattern right: (identifier) @reference)
(field_definition value: (identifier) @reference)
(arrow_function body: (identifier) @reference)
(binary_expression (identifier) @reference)
(unary_expression (identifier) @reference)
(ternary_expression (identifier) @reference)
(parenthesized_expression (identifier) @reference)
(template_substitution (identifier) @reference)
(subscript_expression (identifier) @reference)
(member_expression object: (identifier) @reference)
(for_in_statement right: (identifier) @reference)
(class_heritage (identifier) @reference)
(export_statement value: (identifier) @reference)
(export_specifier name: (identifier) @reference)

(comment) @comment
