(file_scoped_namespace_declaration name: (_) @namespace)
(namespace_declaration) @item.module

(class_declaration) @item.class
(record_declaration) @item.class
(struct_declaration) @item.struct
(interface_declaration) @item.interface
(enum_declaration) @item.enum
(delegate_declaration) @item.type_alias

(method_declaration) @item.method
(constructor_declaration) @item.method
(destructor_declaration) @item.method
(operator_declaration) @item.method
(conversion_operator_declaration) @item.method
(local_function_statement) @item.function

; Properties, which look like values but are code.
(property_declaration) @item.method

(field_declaration) @item.static

(comment) @comment
