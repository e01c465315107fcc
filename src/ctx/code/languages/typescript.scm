; Definitions. A signature alone counts too: in an ambient declaration, and before an overload.
(function_declaration) @item.function
(generator_function_declaration) @item.function
(function_signature) @item.function
(class_declaration) @item.class
(abstract_class_declaration) @item.class
(interface_declaration) @item.interface
(enum_declaration) @item.enum
(type_alias_declaration) @item.type_alias
(internal_module) @item.module
(module) @item.module

; Members.
(class_body (method_definition) @item.method)
(class_body (abstract_method_signature) @item.method)
(method_signature) @item.method
(property_signature type: (type_annotation (function_type))) @item.method
(public_field_definition value: [(arrow_function) (function_expression)]) @item.method
(public_field_definition "static" value: (_)) @item.field

; Variables at file level. The first one of a declaration includes its `const`, the others follow.
(program (lexical_declaration . (variable_declarator) @inner @item.variable) @outer)
(program (variable_declaration . (variable_declarator) @inner @item.variable) @outer)
(export_statement (lexical_declaration . (variable_declarator) @inner @item.variable)) @outer
(export_statement (variable_declaration . (variable_declarator) @inner @item.variable)) @outer
(ambient_declaration (lexical_declaration . (variable_declarator) @inner @item.variable)) @outer
(ambient_declaration (variable_declaration . (variable_declarator) @inner @item.variable)) @outer
(lexical_declaration (variable_declarator) . (variable_declarator) @item.further)
(variable_declaration (variable_declarator) . (variable_declarator) @item.further)

; Functions and classes that are assigned to a variable, at any depth.
(variable_declarator
  value: [(arrow_function) (function_expression) (generator_function) (class)
          (call_expression arguments: (arguments . [(arrow_function) (function_expression)]))])
@item.held

; The members of an object literal in a variable.
(variable_declarator
  value: [(object [(method_definition) (pair value: [(arrow_function) (function_expression)])] @item.member)
          (as_expression
            (object [(method_definition) (pair value: [(arrow_function) (function_expression)])] @item.member))
          (satisfies_expression
            (object [(method_definition) (pair value: [(arrow_function) (function_expression)])] @item.member))])

; The members of an object literal that a function returns.
(return_statement
  (object [(method_definition) (pair value: [(arrow_function) (function_expression)])] @item.returned))

; Default exports, and their CommonJS form.
(export_statement value: (_)) @item.default @import
(export_statement
  value: [(object [(method_definition) (pair value: [(arrow_function) (function_expression)])] @item.member)
          (as_expression
            (object [(method_definition) (pair value: [(arrow_function) (function_expression)])] @item.member))
          (satisfies_expression
            (object [(method_definition) (pair value: [(arrow_function) (function_expression)])] @item.member))])
(program (expression_statement (assignment_expression left: (member_expression)) @item.assigned @import))
(assignment_expression
  left: (member_expression property: (property_identifier) @_exports)
  right: (object [(method_definition) (pair value: [(arrow_function) (function_expression)])] @item.exported)
  (#eq? @_exports "exports"))

; Nodes before a definition that belong to it.
(export_statement
  declaration: [
    (function_declaration) (generator_function_declaration) (function_signature)
    (class_declaration) (abstract_class_declaration) (interface_declaration)
    (enum_declaration) (type_alias_declaration) (internal_module) (module)] @inner) @outer
(ambient_declaration
  [(function_signature) (class_declaration) (abstract_class_declaration) (interface_declaration)
   (enum_declaration) (type_alias_declaration) (internal_module) (module)] @inner) @outer
(class_body
  [(method_definition) (public_field_definition) (method_signature) (comment) "{" ";"]
  .
  (decorator) @outer
  .
  (decorator)*
  .
  [(method_definition) (public_field_definition)] @inner)

; Imports and re-exports.
(import_statement) @import
(import_alias) @import
(export_statement source: (_)) @import
(export_statement !source (export_clause)) @import
(export_statement "default" declaration: (_)) @import
(export_statement "=" (identifier)) @import
(call_expression function: (identifier) arguments: (arguments . (string) .)) @import
(call_expression function: (import)) @import
(variable_declarator value: (assignment_expression)) @import

; Calls. A decorator is a call of its function.
(call_expression function: (_) @call)
(new_expression constructor: (_) @call)
(decorator [(identifier) (member_expression)] @call)

; Names with known values.
(variable_declarator type: (type_annotation)) @bind
(variable_declarator
  !type
  value: [(call_expression) (new_expression) (await_expression) (member_expression) (identifier)
          (as_expression) (non_null_expression) (this)]) @bind
(arrow_function parameters: (formal_parameters (_ type: (_)) @bind))
(function_declaration parameters: (formal_parameters (_ type: (_)) @bind))
(function_expression parameters: (formal_parameters (_ type: (_)) @bind))
(generator_function parameters: (formal_parameters (_ type: (_)) @bind))
(generator_function_declaration parameters: (formal_parameters (_ type: (_)) @bind))
(method_definition parameters: (formal_parameters (_ type: (_)) @bind))
(required_parameter !type value: (new_expression)) @bind
(public_field_definition type: (_)) @bind
(public_field_definition !type value: [(new_expression) (call_expression)]) @bind
(property_signature type: (_)) @bind
(type_parameter constraint: (_)) @bind
(assignment_expression
  left: (member_expression object: (this))
  right: [(new_expression) (call_expression) (await_expression) (identifier)]) @bind
(variable_declarator value: (object [(pair value: [(identifier) (new_expression) (member_expression)])
                                     (shorthand_property_identifier)] @bind))

; Types in all positions. The last part of a qualified name is not a separate name.
(type_annotation (type_identifier) @type)
(type_arguments (type_identifier) @type)
(generic_type name: (type_identifier) @type)
(union_type (type_identifier) @type)
(intersection_type (type_identifier) @type)
(array_type (type_identifier) @type)
(tuple_type (type_identifier) @type)
(lookup_type (type_identifier) @type)
(conditional_type (type_identifier) @type)
(index_type_query (type_identifier) @type)
(mapped_type_clause type: (type_identifier) @type)
(function_type return_type: (type_identifier) @type)
(constructor_type type: (type_identifier) @type)
(type_predicate type: (type_identifier) @type)
(type_alias_declaration value: (type_identifier) @type)
(as_expression (type_identifier) @type)
(satisfies_expression (type_identifier) @type)
(constraint (type_identifier) @type)
(default_type (type_identifier) @type)
(extends_type_clause (type_identifier) @type)
(implements_clause (type_identifier) @type)
(nested_type_identifier) @type

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
(required_parameter value: (identifier) @reference)
(public_field_definition value: (identifier) @reference)
(arrow_function body: (identifier) @reference)
(binary_expression (identifier) @reference)
(unary_expression (identifier) @reference)
(ternary_expression (identifier) @reference)
(parenthesized_expression (identifier) @reference)
(template_substitution (identifier) @reference)
(subscript_expression (identifier) @reference)
(member_expression object: (identifier) @reference)
(for_in_statement right: (identifier) @reference)
(as_expression (identifier) @reference)
(non_null_expression (identifier) @reference)
(extends_clause value: (identifier) @reference)
(type_query (identifier) @reference)
(export_statement value: (identifier) @reference)
(export_specifier name: (identifier) @reference)

(comment) @comment
