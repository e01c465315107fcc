(function_declaration) @item.function

; Functions that are assigned to a name.
(variable_declaration
  (assignment_statement (expression_list . value: (function_definition)))) @item.function
(chunk (assignment_statement (expression_list . value: (function_definition))) @item.function)
(field name: (identifier) value: (function_definition)) @item.function

(comment) @comment
