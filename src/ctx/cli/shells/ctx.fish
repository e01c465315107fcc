# Completion of the words of ctx, for fish 3 and newer.

function __ctx_complete
    set -l words (commandline -opc)
    set -l raw (commandline -ct)
    # A quote that is still open keeps the word from being read as a whole.
    set -l typed (string unescape -- $raw; or string replace -r '^["\']' '' -- $raw)
    set -l lines (command ctx __complete fish $words "$typed" 2>/dev/null)
    switch "$lines[1]"
        case files
            __fish_complete_path "$raw"
        case folders
            __fish_complete_directories "$raw"
        case '*'
            printf '%s\n' $lines[2..-1]
    end
end

complete -c ctx -f -k -a '(__ctx_complete)'
