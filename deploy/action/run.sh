# Run `truename lint` or `truename lock --check`: annotations for the workflow, and the outputs of the step.
set -uo pipefail

truename="$RUNNER_TEMP/truename/bin/truename"
sources=()
while IFS= read -r line; do
  [[ -z "${line//[[:space:]]/}" ]] || sources+=("$line")
done <<< "$INPUT_SOURCES"

fail() {
  echo "::error title=Truename::$1"
  echo "exit-status=2" >> "$GITHUB_OUTPUT"
  exit 2
}

options=()
case "$INPUT_COMMAND" in
  lint)
    options+=(--github)
    case "$INPUT_STRICT" in
      true) options+=(--strict) ;;
      false) ;;
      *) fail "strict must be true or false" ;;
    esac
    ;;
  lock) options+=(--check) ;;
  *) fail "command must be lint or lock" ;;
esac
if [[ -n "$INPUT_SARIF_FILE" ]]; then
  [[ "$INPUT_COMMAND" == lint ]] || fail "sarif-file is for the command lint"
  # A line break would write another output.
  [[ "$INPUT_SARIF_FILE" != *[$'\n\r']* ]] || fail "sarif-file must be one path"
  [[ "$INPUT_SARIF_FILE" == /* ]] || INPUT_SARIF_FILE="$PWD/$INPUT_SARIF_FILE"
  options+=("--sarif=$INPUT_SARIF_FILE")
fi
cd -- "$INPUT_CONFIG" || fail "config must be a directory"

# -- ends the options: a source that begins with a hyphen is a path.
"$truename" "$INPUT_COMMAND" "${options[@]}" -- "${sources[@]}"
status=$?
echo "exit-status=$status" >> "$GITHUB_OUTPUT"
if [[ -n "$INPUT_SARIF_FILE" && -f "$INPUT_SARIF_FILE" ]]; then
  echo "sarif-file=$INPUT_SARIF_FILE" >> "$GITHUB_OUTPUT"
fi
exit "$status"
