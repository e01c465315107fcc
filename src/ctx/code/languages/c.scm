; Functions at any depth, because they may follow code that the grammar cannot parse.
(function_definition) @item.function

; Variables and prototypes at file level, also inside preprocessor conditions.
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

; Calls of functions by name. The target of a function pointer is unknown.
(call_expression function: (identifier) @call)

; Functions that are passed as values, and tables of functions.
(initializer_list (identifier) @reference)
(initializer_pair value: (identifier) @reference)
(argument_list (identifier) @reference)
(assignment_expression right: (identifier) @reference)

; Comments that can document an item; those inside functions cannot.
(translation_unit (comment) @comment)
(preproc_ifdef (comment) @comment)
(preproc_if (comment) @comment)
(preproc_else (comment) @comment)
(preproc_elif (comment) @comment)
(declaration_list (comment) @comment)
