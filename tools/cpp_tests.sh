#!/usr/bin/env bash
# tools/cpp_tests.sh PROGRAM
# Runs a program of GoogleTest's in as many processes as there are cores, at most four, each with a part of the tests,
# and prints what they say one after the other and how many tests passed, failed and were skipped in all.
set -uo pipefail
[ $# -eq 1 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
shards=$(($(nproc) < 4 ? $(nproc) : 4)) running=() status=0
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
for ((shard = 0; shard < shards; shard++)); do
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard "$1" --gtest_brief=1 >"$logs/$shard" 2>&1 &
  running+=($!)
done
for process in "${running[@]}"; do wait "$process" || status=$?; done
cat "$logs"/*
for word in "PASSED " "SKIPPED" "FAILED "; do
  count=$(grep -hoE "^\[  $word \] [0-9]+" "$logs"/* | awk '{ sum += $NF } END { print sum + 0 }')
  [ "$count" -eq 0 ] || printf '[  %s ] %d tests in all.\n' "$word" "$count"
done
exit $status
