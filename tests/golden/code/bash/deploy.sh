#!/usr/bin/env bash
set -euo pipefail

# Where it goes.
readonly TARGET="/srv/app"
export MODE=fast LEVEL=2
declare -r LIMIT=3
count=0

source ./common.sh

# Say something.
# To the log.
log() {
    local message=$1
    echo "$(date): $message" >&2
}

function build {
    log "building"
    make -C "$TARGET" all
}

function clean() (
    rm -rf "$TARGET/build"
)

main() {
    inner() { :; }
    build && clean
}

main "$@"
