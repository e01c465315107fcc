; Items
(package_declaration [(scoped_identifier) (identifier)] @namespace)
(class_declaration) @item.class
(record_declaration) @item.class
(interface_declaration) @item.interface
(annotation_type_declaration) @item.interface
(enum_declaration) @item.enum
(method_declaration) @item.method
(constructor_declaration) @item.method
(compact_constructor_declaration) @item.method
(annotation_type_element_declaration) @item.method
(enum_constant) @item.const
(field_declaration) @item.static
(constant_declaration) @item.static

; Imports
(import_declaration) @import

; What is called. No node spans what is called without its arguments, so a call that has a receiver
; is taken whole.
(method_invocation . name: (identifier) @call)
(method_invocation . object: (_)) @call
(object_creation_expression type: (_) @call)
(method_reference) @call

; Names whose values are known
(field_declaration) @bind
(formal_parameter) @bind
(spread_parameter) @bind
(catch_formal_parameter) @bind
(local_variable_declaration) @bind
(enhanced_for_statement) @bind
(resource) @bind
(instanceof_expression name: (identifier)) @bind
(record_pattern_component) @bind
(type_pattern) @bind

; Where types are written
(type_identifier) @type
(marker_annotation name: (_) @type)
(annotation name: (_) @type)

; Names that something is taken from
(field_access object: (identifier) @reference)
