#compdef ctx
# Completion of the words of ctx, for zsh 5 and newer.

_ctx() {
    local how line
    local -a lines values shown
    local -i longest=0
    # The words are without their quotes; of the last one, what stands before the cursor.
    lines=("${(@f)$(command ctx __complete zsh \
        "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2> /dev/null)}")
    how=$lines[1]
    shift lines

    case $how in
        files) compset -P '--*='; _files; return ;;
        folders) compset -P '--*='; _files -/; return ;;
    esac

    for line in "${lines[@]}"; do
        values+=("${line%%$'\t'*}")
        (($#values[-1] > longest)) && longest=$#values[-1]
    done
    (($#values)) || return 1

    for line in "${lines[@]}"; do
        if [[ $line == *$'\t'* ]]; then
            shown+=("${(r:$longest:)${line%%$'\t'*}} -- ${line#*$'\t'}")
        else
            shown+=("$line")
        fi
    done
    local -a options=(-V ctx -M 'm:{a-zA-Z}={A-Za-z}')
    [[ "$lines" == *$'\t'* ]] && options+=(-l)
    compadd "${options[@]}" -d shown -a values
}

# As a file of a folder in fpath this is the function itself; otherwise it is made known.
if [[ $funcstack[1] == _ctx ]]; then
    _ctx "$@"
else
    compdef _ctx ctx
fi
