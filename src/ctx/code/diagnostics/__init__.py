"""Read diagnostics and test results from the output of compilers, linters and test runners.

An output is stored text: it may be cut in the middle, come from several tools in sequence, or from
none that is known here. So nothing in this package fails. `tool_output.read` goes through the lines
once; at each line, the first reader that recognises it consumes the lines that belong to it. Each
line is matched by few expressions, each of which takes linear time.

The outcome of a run is what the tools report last, not what their lines look like.

This package only handles text. It does not check which paths exist, nor how the results are used.
"""
