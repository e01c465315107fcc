(module) @item.module
(class) @item.class
(method) @item.method
(singleton_method) @item.method
(assignment left: (constant)) @item.const
(comment) @comment
