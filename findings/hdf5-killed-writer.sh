#!/usr/bin/env bash
# HDF5 files made with the newer formats (libver "latest" or "v110": superblock 3) cannot be opened any more, not even
# for reading, after the program that wrote them was killed, although it had flushed all of it: a mark in the
# superblock says that somebody has them open. The older formats (the default, and up to "v108") have no such mark:
# the same file, of the same killed program, opens. h5clear -s takes the mark away.
#
# The guess: what H5Fflush has written can be read after kill -9; a lock would have gone with the process.
#
# Where it matters: whoever ends a job by a signal (preemption, a time limit, a checkpointer that stops a job) and
# looks at its results, or lets a new job append to them: the choice of the format, made for speed, decides. A
# program continued from an image with the file open is not concerned: it opens nothing.
#
# Seen with h5py 3.10.0 of PyPI (HDF5 1.14.2; x86-64).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv venv
venv/bin/pip -q install h5py==3.10.0 numpy==1.26.4 2>/dev/null
cat >write.py <<'P'
import os
import signal
import sys

import h5py

file = h5py.File(sys.argv[2], "w", libver=sys.argv[1])
file["x"] = list(range(1000))
file.flush()
os.fsync(file.id.get_vfd_handle())
os.kill(os.getpid(), signal.SIGKILL)
P
cat >read.py <<'P'
import sys

import h5py

try:
    with h5py.File(sys.argv[1], "r") as file:
        print("opened,", int((file["x"][:] == range(1000)).sum()), "of 1000 values")
except OSError as error:
    print("error:", error)
P
venv/bin/python -c 'import h5py; print("h5py", h5py.__version__, "HDF5", h5py.version.hdf5_version)'
changed=0
for libver in earliest v108 v110 latest; do
    (venv/bin/python write.py "$libver" "$libver.h5" || true) 2>/dev/null # the shell's "Killed"
    said=$(venv/bin/python read.py "$libver.h5")
    echo "libver $libver: $said"
    case $libver in
        earliest | v108) wanted="opened, 1000 of 1000 values" ;;
        *) wanted="file is already open for write" ;;
    esac
    [[ $said == *"$wanted"* ]] || { echo "changed: was '$wanted'"; changed=1; }
done
exit $changed
