# Install Truename into an environment of its own, below the runner's directory of tools that end with the job.
set -euo pipefail

if [[ ! "$INPUT_PYTHON" =~ ^python3(\.[0-9]+)?$ ]]; then
  echo "::error title=Truename::python-version must be the name of a Python such as python3 or python3.13"
  exit 2
fi
case "$INPUT_VERSION" in
  "") package="$ACTION_PATH" ;;
  *[!0-9A-Za-z.+_:/@%~-]*)
    echo "::error title=Truename::version must be a version such as 0.1.0, or a path or URL of a wheel"
    exit 2
    ;;
  [0-9]*) package="truename==$INPUT_VERSION" ;;
  # ./ keeps a path from being an option, or a package of another name.
  /* | https://*) package="$INPUT_VERSION" ;;
  *) package="./$INPUT_VERSION" ;;
esac

environment="$RUNNER_TEMP/truename"
"$INPUT_PYTHON" -m venv "$environment"
constraints=()
[[ -n "$INPUT_VERSION" ]] || constraints=(--constraint "$ACTION_PATH/requirements/constraints.txt")
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check "${constraints[@]}" -- "$package"
"$environment/bin/truename" --version
