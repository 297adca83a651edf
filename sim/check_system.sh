# Says in one line what the system lacks, before anything is installed.
missing=
for tool in g++ make perl python3; do
    command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
done
if [ -n "$missing" ]; then
    echo "OpenNeuronCore needs$missing: on Debian or Ubuntu, apt install g++ make perl python3 python3-venv" >&2
    exit 1
fi
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "OpenNeuronCore needs Python 3.11 or later as python3, not $(python3 --version 2>&1)" >&2
    exit 1
}
python3 -c 'import ensurepip, venv' 2>/dev/null || {
    echo "OpenNeuronCore needs Python's venv: on Debian or Ubuntu, apt install python3-venv" >&2
    exit 1
}
