; Functions and methods with a body, at any depth.
(function_definition) @item.function

; Variables and prototypes of a file or a namespace, and constructors of a class, also inside
; preprocessor conditions.
(translation_unit (declaration) @item.static)
(declaration_list (declaration) @item.static)
(field_declaration_list (declaration) @item.static)
(template_declaration (declaration) @item.static)
(preproc_ifdef (declaration) @item.static)
(preproc_if (declaration) @item.static)
(preproc_else (declaration) @item.static)
(preproc_elif (declaration) @item.static)
(linkage_specification body: (declaration) @item.static)
(ERROR (declaration declarator: (function_declarator)) @item.static)

; The declarations of a class: methods and static members.
(field_declaration declarator: (function_declarator)) @item.method
(field_declaration declarator: (pointer_declarator declarator: (function_declarator))) @item.method
(field_declaration declarator: (reference_declarator (function_declarator))) @item.method
(field_declaration (storage_class_specifier)) @item.method

(namespace_definition) @item.module
(class_specifier name: (_) body: (_)) @item.class
(struct_specifier name: (_) body: (_)) @item.struct
(union_specifier name: (_) body: (_)) @item.struct
(enum_specifier name: (_) body: (_)) @item.enum
(concept_definition) @item.trait
(type_definition) @item.type_alias
(alias_declaration) @item.type_alias
(preproc_def) @item.macro
(preproc_function_def) @item.macro

; The parameters of a template belong to its definition. Each template has one.
(template_declaration
  [(function_definition) (declaration) (class_specifier) (struct_specifier) (union_specifier)
   (alias_declaration) (concept_definition)] @inner .) @outer

(preproc_include) @import
(using_declaration) @import

; Calls by name, of a member, or of a constructor.
(call_expression function: (identifier) @call)
(call_expression function: (field_expression) @call)
(call_expression function: (qualified_identifier) @call)
(call_expression function: (template_function) @call)
(new_expression type: (_) @call)
(compound_literal_expression type: (_) @call)

; Names with a known type.
(declaration type: (type_identifier)) @bind
(declaration type: (qualified_identifier)) @bind
(declaration type: (placeholder_type_specifier)) @bind
(for_range_loop type: (type_identifier)) @bind
(for_range_loop type: (qualified_identifier)) @bind
(parameter_declaration type: (type_identifier)) @bind
(parameter_declaration type: (qualified_identifier)) @bind
(field_declaration type: (type_identifier)) @bind
(field_declaration type: (qualified_identifier)) @bind

; Comments that can document an item; those inside functions cannot.
(translation_unit (comment) @comment)
(declaration_list (comment) @comment)
(field_declaration_list (comment) @comment)
(preproc_ifdef (comment) @comment)
(preproc_if (comment) @comment)
(preproc_else (comment) @comment)
(preproc_elif (comment) @comment)
