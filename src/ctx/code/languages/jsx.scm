; Elements, in JavaScript and in TypeScript.

; An element calls the component that it names. Names in lower case are HTML elements.
((jsx_opening_element name: (identifier) @call) (#match? @call "^[A-Z]"))
((jsx_self_closing_element name: (identifier) @call) (#match? @call "^[A-Z]"))
(jsx_opening_element name: (member_expression) @call)
(jsx_self_closing_element name: (member_expression) @call)
(jsx_expression (identifier) @reference)
