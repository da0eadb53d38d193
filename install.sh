#!/bin/sh
# Install Hermes into a virtual environment of its own, from a wheel or a source folder on this machine.
#
#   sh install.sh [--prefix DIR] [--bin DIR] [--python PYTHON] [--extras NAMES] [WHEEL|FOLDER]
#
# Without WHEEL or FOLDER it installs the folder of this script. The packages for Telegram, Slack and PDFs are included;
# --extras "" leaves them out. Running it again updates the installation.
set -eu

prefix="${XDG_DATA_HOME:-$HOME/.local/share}/hermes-venv"
bin="$HOME/.local/bin"
python=python3
extras="[images,slack,telegram,web]"
source=""

fail() { echo "install.sh: $1" >&2; exit 1; }

while [ $# -gt 0 ]; do
    case "$1" in
        --prefix|--bin|--python|--extras)
            [ $# -ge 2 ] || fail "$1 needs a value"
            case "$1" in
                --prefix) prefix=$2 ;;
                --bin) bin=$2 ;;
                --python) python=$2 ;;
                --extras) extras=${2:+"[$2]"} ;;
            esac
            shift ;;
        -h|--help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
        -*) fail "unknown option $1 (see --help)" ;;
        *) [ -z "$source" ] || fail "name one wheel or folder, not two"; source=$1 ;;
    esac
    shift
done

source=${source:-$(dirname "$0")}
[ -e "$source" ] || fail "there is no $source"
source=$(cd "$(dirname "$source")" && pwd)/$(basename "$source")
if [ -d "$source" ]; then
    [ -f "$source/pyproject.toml" ] || fail "$source is not the source folder of Hermes"
fi
command -v "$python" >/dev/null || fail "there is no $python; install Python 3.11 or newer, or set --python"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
    || fail "Hermes needs Python 3.11 or newer; set --python python3.x"
"$python" -c 'import venv, ensurepip' 2>/dev/null \
    || fail "$python has no venv module; on Debian and Ubuntu: apt install python3-venv"

mkdir -p "$(dirname "$prefix")" "$bin"
prefix=$(cd "$(dirname "$prefix")" && pwd)/$(basename "$prefix")  # the link needs a path that is valid everywhere
bin=$(cd "$bin" && pwd)
[ ! -e "$prefix" ] || [ -f "$prefix/pyvenv.cfg" ] || fail "$prefix exists and is not a virtual environment"
"$python" -m venv "$prefix"
"$prefix/bin/pip" install --quiet --disable-pip-version-check --upgrade "$source$extras"
[ ! -e "$bin/hermes" ] || [ -L "$bin/hermes" ] || fail "$bin/hermes exists and is not a link; remove it first"
ln -sf "$prefix/bin/hermes" "$bin/hermes"

echo "Installed $("$prefix/bin/hermes" --version) as $bin/hermes"
case ":$PATH:" in
    *":$bin:"*) ;;
    *) echo "Add $bin to PATH: export PATH=\"$bin:\$PATH\"" ;;
esac
echo "Next: hermes setup"
