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

; Calls. No node spans the callee without its arguments, so a call with a receiver is captured as a
; whole.
(method_invocation . name: (identifier) @call)
(method_invocation . object: (_)) @call
(object_creation_expression type: (_) @call)
(method_reference) @call

; Names with known values
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

; Types
(type_identifier) @type
(marker_annotation name: (_) @type)
(annotation name: (_) @type)

; Names before a dot
(field_access object: (identifier) @reference)
