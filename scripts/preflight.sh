#!/bin/sh
# Print the Python to use, or one line that says what is missing. Exit code 2 when nothing fits.
set -u

fail() {
    echo "two-workers: $1" >&2
    exit 2
}

case "$(uname -s)" in
    Linux | Darwin) ;;
    *) fail "expected Linux or macOS, found $(uname -s); the server wheels exist for those two" ;;
esac

found=""
for name in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    version=$("$name" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    found="$found $name=$version"
    case "$version" in
        3.11 | 3.12 | 3.13)
            "$name" -c 'import ensurepip, venv' 2>/dev/null ||
                fail "$name $version has no venv module; install it (Debian, Ubuntu: apt install python$version-venv)"
            echo "$name"
            exit 0
            ;;
    esac
done
fail "expected Python 3.11, 3.12 or 3.13, found:${found:- none}; install one, or name it: make PYTHON=/path/to/python3.12"
