; Elements, in JavaScript and in TypeScript.

; An element is a call of the component that it names; those of the page begin with a small letter.
((jsx_opening_element name: (identifier) @call) (#match? @call "^[A-Z]"))
((jsx_self_closing_element name: (identifier) @call) (#match? @call "^[A-Z]"))
(jsx_opening_element name: (member_expression) @call)
(jsx_self_closing_element name: (member_expression) @call)
(jsx_expression (identifier) @reference)
