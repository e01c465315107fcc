(package_header (_) @namespace)

(class_declaration "class") @item.class
(class_declaration "interface") @item.interface
(object_declaration) @item.class
(function_declaration) @item.function
(type_alias) @item.type_alias

; Values of a file, of an object, and of a companion object.
(source_file (property_declaration) @item.static)
(object_declaration (class_body (property_declaration) @item.static))
(companion_object (class_body (property_declaration) @item.static))

; Properties with a getter, which look like values but are code.
(class_declaration (class_body (property_declaration (getter)) @item.method))

(line_comment) @comment
(block_comment) @comment
