(function_definition) @item.function

; Variables that are declared for the whole script. Others are temporary.
(program (declaration_command) @item.static)

(comment) @comment
