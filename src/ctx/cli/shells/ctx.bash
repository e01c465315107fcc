# Completion of the words of ctx, for bash 3.2 and newer.

_ctx() {
    COMPREPLY=()
    local how='' value description
    local -a descriptions
    while IFS=$'\t' read -r value description; do
        if [[ -z $how ]]; then
            how=$value
        else
            COMPREPLY+=("$value")
            descriptions+=("$description")
        fi
    done < <(command ctx __complete bash "$COMP_WORDBREAKS" "${COMP_LINE:0:$COMP_POINT}" 2> /dev/null)

    if type compopt &> /dev/null; then
        case $how in
            files) compopt -o default ;;
            folders) compopt -o dirnames ;;
        esac
        compopt -o nosort 2> /dev/null
    fi

    # While bash only lists what there is (63 is `?`), it can list descriptions too.
    if [[ ${COMP_TYPE:-} == 63 && ${#COMPREPLY[@]} -gt 1 ]]; then
        local number longest=0
        for value in "${COMPREPLY[@]}"; do
            ((${#value} > longest)) && longest=${#value}
        done
        for number in "${!COMPREPLY[@]}"; do
            if [[ -n ${descriptions[number]} ]]; then
                printf -v "COMPREPLY[$number]" "%-${longest}s  (%s)" \
                    "${COMPREPLY[number]}" "${descriptions[number]}"
            fi
        done
    fi
}

# Older ones can be told about files only here, and offer them also where nothing else fits.
if type compopt &> /dev/null; then
    complete -F _ctx ctx
else
    complete -o default -F _ctx ctx
fi
