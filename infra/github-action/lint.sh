#!/usr/bin/env bash
# The step Lint of action.yml. Inputs come as FILES, FAIL_ON and SARIF, so that no input becomes a part of the script.
set -euo pipefail

root="$GITHUB_ACTION_PATH/../.."
export PATH="$root/node_modules/.bin:$PATH"

case "$FAIL_ON" in error | warning) ;; *)
  echo "::error::fail-on: $FAIL_ON: write error or warning"
  exit 2
  ;;
esac

arguments=()
while IFS= read -r file; do
  if [ -n "$file" ]; then arguments+=("--filename=$file"); fi
done <<<"$FILES"

lint() { node "$root/functions/cli.mjs" lint ${arguments[@]+"${arguments[@]}"} "$@"; }

code=0
lint -o github || code=$?
if [ -n "$SARIF" ] && [ "$code" != 2 ]; then lint -o sarif >"$SARIF" || true; fi

# 3: warnings, and no error.
if [ "$code" = 3 ] && [ "$FAIL_ON" = error ]; then code=0; fi
exit "$code"
