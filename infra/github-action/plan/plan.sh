#!/usr/bin/env bash
# The step Plan of action.yml. Inputs come as variables, so that no input becomes a part of the script.
set -euo pipefail

root="$GITHUB_ACTION_PATH/../../.."
export PATH="$root/node_modules/.bin:$PATH"
if [ -n "$KUBECONFIG_FILE" ]; then export KUBECONFIG="$KUBECONFIG_FILE"; fi

arguments=()
while IFS= read -r file; do
  if [ -n "$file" ]; then arguments+=("--filename=$file"); fi
done <<<"$FILES"

comment="$(mktemp)"
trap 'rm -f "$comment"' EXIT
code=0
node "$root/functions/cli.mjs" plan ${arguments[@]+"${arguments[@]}"} "--ready-after=$READY_AFTER" -o markdown \
  >"$comment" || code=$?

cat "$comment" >>"$GITHUB_STEP_SUMMARY"
if [ -n "$PULL_REQUEST" ]; then
  printf '%s' "$TOKEN" |
    node "$GITHUB_ACTION_PATH/comment.mjs" "$comment" "$GITHUB_API_URL" "$GITHUB_REPOSITORY" "$PULL_REQUEST"
fi

# 3: pods would be left behind. The comment says so, and the reviewer decides.
if [ "$code" = 3 ]; then code=0; fi
exit "$code"
