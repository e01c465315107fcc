(function_definition) @item.function

; Variables that are declared for the whole script. Others come and go.
(program (declaration_command) @item.static)

(comment) @comment
