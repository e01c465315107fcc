; Functions are taken wherever they stand: after something that is not understood, too.
(function_definition) @item.function

; Variables and prototypes of the whole file. Conditions of the preprocessor are looked through.
(translation_unit (declaration) @item.static)
(preproc_ifdef (declaration) @item.static)
(preproc_if (declaration) @item.static)
(preproc_else (declaration) @item.static)
(preproc_elif (declaration) @item.static)
(declaration_list (declaration) @item.static)
(ERROR (declaration declarator: (function_declarator)) @item.static)

(struct_specifier name: (_) body: (_)) @item.struct
(union_specifier name: (_) body: (_)) @item.struct
(enum_specifier name: (_) body: (_)) @item.enum
(type_definition) @item.type_alias

(preproc_def) @item.macro
(preproc_function_def) @item.macro

(preproc_include) @import

; Functions that are called by their name. Whatever a pointer leads to is not known.
(call_expression function: (identifier) @call)

; Functions that are handed on, and tables of them.
(initializer_list (identifier) @reference)
(initializer_pair value: (identifier) @reference)
(argument_list (identifier) @reference)
(assignment_expression right: (identifier) @reference)

; Comments that can belong to an item; those in the body of a function cannot.
(translation_unit (comment) @comment)
(preproc_ifdef (comment) @comment)
(preproc_if (comment) @comment)
(preproc_else (comment) @comment)
(preproc_elif (comment) @comment)
(declaration_list (comment) @comment)
