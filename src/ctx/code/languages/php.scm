(namespace_definition name: (_) @namespace)

(function_definition) @item.function
(method_declaration) @item.method
(class_declaration) @item.class
(interface_declaration) @item.interface
(trait_declaration) @item.trait
(enum_declaration) @item.enum
(const_declaration) @item.const

(comment) @comment
