(package_header (_) @namespace)

(class_declaration "class") @item.class
(class_declaration "interface") @item.interface
(object_declaration) @item.class
(function_declaration) @item.function
(type_alias) @item.type_alias

; Values of the whole file, of an object, and of all objects of a class.
(source_file (property_declaration) @item.static)
(object_declaration (class_body (property_declaration) @item.static))
(companion_object (class_body (property_declaration) @item.static))

; What looks like a value and is code.
(class_declaration (class_body (property_declaration (getter)) @item.method))

(line_comment) @comment
(block_comment) @comment
