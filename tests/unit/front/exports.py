"""Every function of the table is in the front of the standard ABI, of which no library is installed.

    exports.py FRONT

What installed libraries export is tools/exports.py's.
"""

import subprocess
import sys

from fmgen import table


def main(front):
    out = subprocess.run(["nm", "-D", "--defined-only", front], check=True, capture_output=True, text=True).stdout
    ours = {line.split()[-1] for line in out.splitlines()}
    missing = [p + f.name for f in table.functions() for p in ("", "P") if p + f.name not in ours]
    if missing:
        sys.exit("missing: " + " ".join(missing))


main(*sys.argv[1:])
