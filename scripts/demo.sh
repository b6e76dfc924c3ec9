#!/bin/sh
# The main job, in a home of its own that is gone afterwards: some weeks of conversation are taken in,
# and a new session asks about them.
set -eu

for name in $(env | sed -n 's/^\(HERMES[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$name"; done
HERMES_HOME=$(mktemp -d "${TMPDIR:-/tmp}/hermes-demo.XXXXXX")
export HERMES_HOME
trap 'rm -rf "$HERMES_HOME"' EXIT
trap 'exit 130' INT TERM

run() {
    printf '\n$ %s\n' "$1"
    eval "$1"
}

echo "A home for this demonstration only: $HERMES_HOME"
run 'hermes profile create work'
run 'hermes --profile work memory ingest examples/conversation.jsonl'
run 'hermes --profile work memory recall "When is the export audit, and at what time does the auditor arrive?"'
run 'hermes --profile work memory recall "Which host does cellar_logger run on now that pve-02 has a new name?"'
run 'hermes --profile work memory status'
