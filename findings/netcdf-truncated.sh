#!/usr/bin/env bash
# netCDF's classic formats (CDF-1, CDF-2, CDF-5): a file that has lost its end is opened and read without an error. The
# header says how large the variables are, nobody compares that with the file, and what is missing is made up: zeros,
# and now and then a piece of what the library has read from elsewhere in the file.
#
# The guess: NC_ETRUNC, or another error; netCDF has that code, and HDF5 (so netCDF-4) refuses a truncated file.
#
# Where it matters: restart files of climate and weather codes, which are classic as a rule: after a full disk, a job
# killed while it wrote, or a copy that was interrupted, the model goes on from fields of zeros. Compare the size with
# what was written, or keep a checksum.
#
# Seen with netCDF4 1.6.5 of PyPI (netCDF-C 4.9.3-development; x86-64).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv venv
venv/bin/pip -q install netCDF4==1.6.5 numpy==1.26.4 cftime==1.6.3 2>/dev/null
cat >cut.py <<'P'
import os
import sys

import netCDF4
import numpy

print("netCDF4", netCDF4.__version__, "netCDF-C", netCDF4.__netcdf4libversion__)
changed = False
for kind in ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA", "NETCDF4"):
    with netCDF4.Dataset("restart.nc", "w", format=kind) as data:
        data.createDimension("x", 100_000)
        data.createDimension("time", None)
        data.createVariable("u", "f8", ("time", "x"))
        for step in range(3):
            data["u"][step, :] = step + 1.0
    size = os.path.getsize("restart.nc")
    os.truncate("restart.nc", size // 2)
    try:
        with netCDF4.Dataset("restart.nc") as data:
            data.set_auto_mask(False)
            u = data["u"][:]
        wrong = numpy.array([numpy.count_nonzero(u[step] != step + 1.0) for step in range(3)])
        print(f"{kind}: {size // 2} of {size} bytes: read, wrong values of 100000 at each step: {wrong}, "
              f"of them zeros: {numpy.count_nonzero(u == 0)}")
        changed |= kind == "NETCDF4" or wrong[2] < 90_000
    except OSError as error:
        print(f"{kind}: {size // 2} of {size} bytes: {str(error)[:60]}")
        changed |= kind != "NETCDF4"
sys.exit(int(bool(changed)))
P
venv/bin/python cut.py || { echo "changed: the classic formats were read, netCDF-4 refused"; exit 1; }
