(class_declaration "class") @item.class
(class_declaration "actor") @item.class
(class_declaration "struct") @item.struct
(class_declaration "enum") @item.enum
(class_declaration "extension") @item.impl
(protocol_declaration) @item.interface

(function_declaration) @item.function
(protocol_function_declaration) @item.function
(init_declaration) @item.method
(deinit_declaration) @item.method
(subscript_declaration) @item.method
(typealias_declaration) @item.type_alias

; Values of a file, and static values of a type.
(source_file (property_declaration) @item.static)
(property_declaration (modifiers (property_modifier))) @item.static

; Computed properties, which look like values but are code.
(property_declaration computed_value: (_)) @item.method

(comment) @comment
(multiline_comment) @comment
