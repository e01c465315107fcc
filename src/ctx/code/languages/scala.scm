(package_clause name: (_) @namespace)

(class_definition) @item.class
(object_definition) @item.class
(trait_definition) @item.trait
(enum_definition) @item.enum
(package_object) @item.module
(function_definition) @item.function
(function_declaration) @item.function
(type_definition) @item.type_alias
(given_definition) @item.static

; Values of a file and of an object.
(compilation_unit (val_definition pattern: (identifier)) @item.static)
(compilation_unit (var_definition pattern: (identifier)) @item.static)
(object_definition body: (_ (val_definition pattern: (identifier)) @item.static))
(object_definition body: (_ (var_definition pattern: (identifier)) @item.static))
(package_object body: (_ (val_definition pattern: (identifier)) @item.static))

(comment) @comment
(block_comment) @comment
