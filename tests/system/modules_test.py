#!/usr/bin/env python3
"""MPI as RHEL, Fedora and SUSE keep it: /usr/lib64/openmpi/bin and lib, in nobody's PATH and unknown to the loader until a module
is loaded. Here Debian's own files, moved there in a namespace of mounts. Needs root.

    modules_test.py openmpi|mpich
"""
import json
import os
import pathlib
import subprocess
import sys

import harness
from harness import PROGRAMS, Job, Scratch, call, check

LIB = pathlib.Path("/usr/lib/x86_64-linux-gnu")
LAUNCHERS = [f"{name}{end}" for name in ("mpiexec", "mpirun") for end in ("", ".openmpi", ".mpich", ".hydra")]
MOVED = {"openmpi": (["orterun", "mpiexec.openmpi", "mpirun.openmpi"], ["libmpi*.so.40*", "libopen-*.so.*"]),
         "mpich": (["mpiexec.hydra", "mpiexec.mpich", "hydra_pmi_proxy"], ["libmpi*.so.12*"])}


def arrange(cwd):
    """Of what /usr has, for this process and its children."""
    layer = cwd / "layer"
    layer.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", layer], check=True)
    for name in ("up", "work"):
        (layer / name).mkdir()
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/usr,upperdir={layer}/up,workdir={layer}/work", "/usr"], check=True)
    for mpi, (programs, libraries) in MOVED.items():
        root = pathlib.Path("/usr/lib64") / mpi
        for folder in ("bin", "lib"):
            (root / folder).mkdir(parents=True)
        for name in programs:
            if os.path.lexists(there := pathlib.Path("/usr/bin") / name):
                there.rename(root / "bin" / name)
        (root / "bin" / "mpiexec").symlink_to(f"mpiexec.{mpi}")
        for file in [file for pattern in libraries for file in LIB.glob(pattern)]:
            file.rename(root / "lib" / file.name)
    for name in LAUNCHERS:
        (pathlib.Path("/usr/bin") / name).unlink(missing_ok=True)


def loaded(mpi):
    """As `module load mpi/NAME-x86_64` leaves the environment."""
    return dict(os.environ, PATH=f"/usr/lib64/{mpi}/bin:{os.environ['PATH']}", LD_LIBRARY_PATH=f"/usr/lib64/{mpi}/lib")


def right(lines, native, what):
    check(lines[-1] == native[-1], f"{what}: {lines[-1]}, native {native[-1]}")


def inside(mpi):
    cwd = pathlib.Path.cwd()
    arrange(cwd)
    program, root = [PROGRAMS / f"random.{mpi}", "3", "200", "4000"], f"/usr/lib64/{mpi}"
    words = [f"{root}/bin/mpiexec", "-n", "2", *(["--oversubscribe"] if mpi == "openmpi" else []), *program]
    native = subprocess.run([str(word) for word in words], env=loaded(mpi), capture_output=True, text=True, check=True).stdout.splitlines()

    # No module: a line that says where there is one, and that one serves.
    found = harness.doctor(mpi)
    check(not found["ok"] and f"--mpi {root}" in found["found"], f"doctor: {found}")
    done = call("run", "-n", 2, "--mpi", mpi, "--", *program, cwd=cwd)
    check(done.returncode == 1 and f"--mpi {root}" in done.stderr, f"without a module: {done.returncode} {done.stderr}")
    with Job.run(program, 2, cwd, mpi=root) as job:
        job.wait_until(job.lines, "a line")
        job.checkpoint("--stop")
        check(job.end() == 85, f"not stopped: {job.errors()}")

    # The module, and neither a place nor a library named.
    env = loaded(mpi)
    check(next(one for one in json.loads(call("doctor", "--json", env=env).stdout) if one["what"] == mpi)["ok"], "doctor with a module")
    with Job.restart(cwd, env=env) as job:
        right(job.finish(), native, "continued with a module")


def run(mpi):
    with Scratch(f"modules-{mpi}") as cwd:
        done = subprocess.run(["unshare", "--mount", "--propagation", "private", sys.executable, __file__, "inside", mpi], cwd=cwd,
                              capture_output=True, text=True, timeout=harness.PATIENCE, check=False)
        check(done.returncode == 0, done.stdout + done.stderr)


if __name__ == "__main__":
    if sys.argv[1] == "inside":
        sys.exit(harness.verdict("inside", lambda: inside(sys.argv[2])))
    sys.exit(harness.verdict("modules", lambda: run(sys.argv[1])))
