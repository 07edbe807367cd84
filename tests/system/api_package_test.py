#!/usr/bin/env python3
"""The wheel of python/ and the Debian package: built, installed elsewhere, and used by ranks without the checkout.

    api_package_test.py wheel
    api_package_test.py deb        as root: installed by dpkg over a copy of /usr, /etc and /var that only the test sees; the whole
                                   build has to be there
"""
import os
import re
import shutil
import subprocess
import sys

import harness
from api_test import ENVIRONMENT, ROOT, mpiexec, said
from harness import BUILD, Scratch, check

PYTHON = "/usr/bin/python3"
VERSION = re.search(r"^project\(fermata VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]


def wheel(cwd):
    shutil.copytree(ROOT / "python", cwd / "source", ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]
    subprocess.run([*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "-w", "wheels", "./source"], cwd=cwd, check=True, timeout=120,
                   env=dict(os.environ, FERMATA_BUILD=str(BUILD)))
    built = list((cwd / "wheels").iterdir())
    check(len(built) == 1 and built[0].name.startswith(f"fermata-{VERSION}-py3-none-linux"), f"{built}")
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", "--target", "site", built[0]], cwd=cwd, check=True, timeout=120)
    ENVIRONMENT.update(PYTHONPATH=str(cwd / "site"))
    ENVIRONMENT.pop("FERMATA_LIBRARY")
    shutil.copy(ROOT / "examples" / "api" / "heat.py", cwd)
    where = "import fermata; print(fermata._load()._name)"
    said(mpiexec("openmpi", 1, PYTHON, "-c", where, cwd=cwd), 0, f"{cwd}/site/fermata/libfermata.so.1")
    said(mpiexec("openmpi", 3, PYTHON, "heat.py", 60, cwd=cwd), 0, "step 60")
    said(mpiexec("openmpi", 2, PYTHON, "heat.py", 80, cwd=cwd), 0, "step 80")


# In a mount namespace of its own: what dpkg writes goes to a tmpfs. $1: the package, $2: a scratch folder.
INSTALL = """set -e
mount -t tmpfs none "$2/over"
for folder in usr etc var; do
    mkdir -p "$2/over/$folder.new" "$2/over/$folder.work"
    mount -t overlay -o "lowerdir=/$folder,upperdir=$2/over/$folder.new,workdir=$2/over/$folder.work" none "/$folder"
done
dpkg -i "$1"
cd "$2/work"
bash -e quick_start
/usr/bin/python3 -c "import fermata; print(fermata._load()._name)"
dpkg -r fermata
"""


def deb(cwd):
    subprocess.run(["cpack", "--config", BUILD / "CPackConfig.cmake", "-B", cwd / "packages"], cwd=cwd, check=True, timeout=300, stdout=subprocess.DEVNULL)
    package = next((cwd / "packages").glob("fermata_*_amd64.deb"))
    page = (ROOT / "docs" / "api.md").read_text()
    (cwd / "over").mkdir()
    (cwd / "work").mkdir()
    (cwd / "work" / "quick_start").write_text(re.sub(r"^    ", "", re.search(r"## Quick start\n\n((?:    .*\n|\n)+)", page)[1], flags=re.M))
    environment = {name: value for name, value in ENVIRONMENT.items() if name not in ("PYTHONPATH", "FERMATA_LIBRARY")}
    run = subprocess.run(["unshare", "-m", "--propagation", "private", "bash", "-c", INSTALL, "bash", package, cwd], cwd=cwd, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, stdin=subprocess.DEVNULL,
                         env=dict(environment, OMPI_MCA_rmaps_base_oversubscribe="1", LC_ALL="C"))
    said(run, 0, "own state, step 200", "libfermata.so.1", "Removing fermata")
    check(run.stdout.count("x[500] is 150000") == 2, run.stdout)


def case(name):
    with Scratch(f"package-{name}") as cwd:
        {"wheel": wheel, "deb": deb}[name](cwd)
    return "right"


if __name__ == "__main__":
    sys.exit(harness.main(case, ("wheel", "deb")))
