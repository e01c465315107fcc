; Items. The variants of an enum are bindings, and a union is a struct.
(function_item) @item.function
(function_signature_item) @item.function
(struct_item) @item.struct
(union_item) @item.struct
(enum_item) @item.enum
(trait_item) @item.trait
(impl_item) @item.impl
(const_item) @item.const
(static_item) @item.static
(type_item) @item.type_alias
(associated_type) @item.type_alias
(macro_definition) @item.macro
(mod_item body: (_)) @item.module

; The documentation of a file or a module is inside it.
(line_comment inner: (_)) @item.doc
(block_comment inner: (_)) @item.doc

; Attributes precede their item, one after the other.
((attribute_item) @outer . (_) @inner)

; Imports. A module in another file is declared by its name alone.
(use_declaration) @import
(extern_crate_declaration) @import
(mod_item !body) @import

; Calls.
(call_expression function: (_) @call)
(macro_invocation) @call

; Names with known values: parameters, fields, variants, the bounds of generic types.
(parameter pattern: (identifier)) @bind
(field_declaration) @bind
(struct_item body: (ordered_field_declaration_list) @bind)
(enum_variant) @bind
(type_parameter bounds: (_)) @bind
(where_predicate left: (type_identifier)) @bind
; Functions that return a tuple, and the names that a caller gives to its elements.
(function_item return_type: (tuple_type) @bind)
(function_item return_type: (generic_type (type_arguments . (tuple_type) @bind)))
(let_declaration pattern: (tuple_pattern)) @bind
(let_declaration pattern: (identifier)) @bind
(let_declaration pattern: (tuple_struct_pattern)) @bind
(let_condition pattern: (tuple_struct_pattern)) @bind

; Types.
(parameter type: (_) @type)
(function_item return_type: (_) @type)
(function_signature_item return_type: (_) @type)
(closure_expression return_type: (_) @type)
(field_declaration type: (_) @type)
(ordered_field_declaration_list type: (_) @type)
(const_item type: (_) @type)
(static_item type: (_) @type)
(type_item type: (_) @type)
(let_declaration type: (_) @type)
(impl_item trait: (_) @type)
(impl_item type: (_) @type)
(trait_bounds) @type
(generic_function type_arguments: (_) @type)
(scoped_identifier path: (generic_type type_arguments: (_) @type))
(type_cast_expression type: (type_identifier) @type)
(type_cast_expression type: (scoped_type_identifier) @type)
(struct_expression name: (_) @type)
(struct_pattern type: (_) @type)
(tuple_struct_pattern type: (scoped_identifier) @type)

; Names that are passed as values, and names before a dot.
(arguments (identifier) @reference)
(arguments (scoped_identifier path: (identifier) @reference))
(reference_expression value: (identifier) @reference)
(reference_expression value: (scoped_identifier path: (identifier) @reference))
(binary_expression (identifier) @reference)
(binary_expression (scoped_identifier path: (identifier) @reference))
(field_initializer value: (identifier) @reference)
(field_initializer value: (scoped_identifier path: (identifier) @reference))
(let_declaration value: (scoped_identifier path: (identifier) @reference))
(const_item value: (identifier) @reference)
(const_item value: (scoped_identifier path: (identifier) @reference))
(static_item value: (identifier) @reference)
(match_pattern (identifier) @reference)
(match_pattern (scoped_identifier path: (identifier) @reference))
(match_arm value: (scoped_identifier path: (identifier) @reference))
(array_expression (identifier) @reference)
(index_expression (identifier) @reference)
