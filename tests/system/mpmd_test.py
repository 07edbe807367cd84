#!/usr/bin/env python3
"""Several programs in one job, as mpiexec's colon makes it: `fermata run -n 1 -- ./atm … : -n 2 ./ocn …`.

    mpmd_test.py CASE [MPI [OTHER]]
"""
import json
import os
import sys

import harness
from harness import PROGRAMS, Job, Scratch, call, check

STEPS, PAUSE_MS = 120, 20


def words(mpi, steps, ocean=None):
    """What stands behind `-n 1`: one atmosphere, two oceans, each with arguments of its own."""
    return [PROGRAMS / f"atm.{mpi}", steps, PAUSE_MS, "wind speed", ":", "-n", 2, PROGRAMS / f"ocn.{ocean or mpi}", steps, PAUSE_MS,
            "salt", "x:y"]


def native(mpi, cwd, steps):
    """Lines of the undisturbed run. The models print as they come."""
    done = harness.native(words(mpi, steps), 1, mpi, cwd)
    said = sorted(done)
    check(len(said) == 2 + 2 * steps // 10 and "atm app 0: 1 of 3, arguments 'wind speed'" in said and
          "ocn app 1: 2 of 3, arguments 'salt' 'x:y'" in said, f"native: {said}")
    return said


def wait_step(job, step):
    job.wait_until(lambda: all(any(line.startswith(f"{model} ") and f" step {step}:" in line for line in job.lines())
                               for model in ("atm", "ocn")), f"step {step} of both")


def resumed(cwd, mpi):
    """The lines are the native ones, also when a checkpoint comes between them; the manifest says who ran what."""
    with Job.run(words(mpi, STEPS), 1, cwd, mpi=mpi) as job:
        wait_step(job, 10)
        job.checkpoint()
        status = job.status()
        check(status["size"] == status["expected"] == 3 and status["command"].count(":") == 1, f"{status}")
        check(sorted(job.finish()) == native(mpi, cwd, STEPS), f"{job.lines()}")
    manifest = json.loads((cwd / "ckpt/gen-000001/manifest.json").read_text().split("xxh3")[0])
    atm, ocn = manifest["segments"]
    check((atm["first_rank"], atm["ranks"], ocn["first_rank"], ocn["ranks"]) == (0, 1, 1, 2), f"{manifest['segments']}")
    check(manifest["command"] == atm["command"] and ocn["command"][0].endswith(f"ocn.{mpi}") and ocn["command"][-1] == "x:y",
          f"{manifest}")
    for verb in ("list", "inspect"):
        said = call(verb, "--ckpt-dir", "ckpt", cwd=cwd).stdout
        check(f"-n 1 {PROGRAMS}/atm.{mpi}" in said and f": -n 2 {PROGRAMS}/ocn.{mpi} {STEPS}" in said, said)
        as_json = json.loads(call(verb, "--json", "--ckpt-dir", "ckpt", cwd=cwd).stdout)
        one = as_json[0] if verb == "list" else as_json
        check(one["segments"] == manifest["segments"], f"{as_json}")


def restarted(cwd, mpi, other):
    """Stopped, continued on the other library by `restart`, and on the first one by the same command again."""
    expected = native(mpi, cwd, STEPS)
    with Job.run(words(mpi, STEPS), 1, cwd, mpi=mpi) as job:
        wait_step(job, 10)
        job.checkpoint("--stop")
        lines = job.finish(expected=85)
    with Job.restart(cwd, mpi=other) as job:
        # The end of the first part is the beginning of the second.
        lines += job.finish()
        check(sorted(lines) == expected, f"{sorted(lines)}\nexpected: {expected}")
    other_counts = [*words(mpi, STEPS)]
    other_counts[6] = 3
    (cwd / "ckpt").glob(".ended-*").__next__().unlink()
    done = call("run", "--continue", "-n", 1, "--ckpt-dir", "ckpt", "--", *other_counts, cwd=cwd)
    check(done.returncode == 2 and "of another command" in done.stderr and ": -n 2 " in done.stderr, f"{done}")
    with Job.run(words(mpi, STEPS), 1, cwd, extra=["--continue"]) as job:
        again = job.finish()
        check(again and set(again) < set(expected) and "restarting from gen-000001" in job.errors(), f"{again}\n{job.errors()}")
    done = call("run", "--continue", "-n", 1, "--ckpt-dir", "ckpt", "--", *words(mpi, STEPS), cwd=cwd)
    check(done.returncode == 0 and "has ended" in done.stderr, f"{done}")


def mixed(cwd, mpi, other):
    """Programs built for different libraries, in one world on one of them."""
    with Job.run(words(mpi, STEPS, ocean=other), 1, cwd, mpi=mpi) as job:
        wait_step(job, 10)
        job.checkpoint("--stop")
        lines = job.finish(expected=85)
    with Job.restart(cwd, mpi=other) as job:
        lines += job.finish()
    check(sorted(lines) == native(mpi, cwd, STEPS), f"{sorted(lines)}")


def options(cwd, mpi):
    """mpiexec's options of one program, and its place, are that one's; `--` may stand before each."""
    (cwd / "there").mkdir()
    os.symlink(PROGRAMS / f"ocn.{mpi}", cwd / "there" / "prog")
    env = ["-x", "MODEL=ocn"] if mpi == "openmpi" else ["-env", "MODEL", "ocn"]
    show = ["sh", "-c", 'echo "<$MODEL> ${PWD##*/}"']
    done = call("run", "--mpi", mpi, "-n1", "--", *show, ":", "-np", 2, *env, "-wdir", "there", "--", *show, cwd=cwd)
    if harness.LAUNCHER == "srun":  # which has one set of options for all
        check(done.returncode == 2 and f"--launcher mpiexec --mpi {mpi}" in done.stderr and not done.stdout, f"{done}")
        done = call("run", "--launcher", "mpiexec", "--mpi", mpi, "-n1", "--", *show, ":", "-np", 2, *env, "-wdir", "there", "--", *show, cwd=cwd)
    check(sorted(done.stdout.splitlines()) == sorted([f"<> {cwd.name}"] + 2 * ["<ocn> there"]), f"{done}")
    done = call("run", "--check", "-n", 1, "--", PROGRAMS / f"atm.{mpi}", ":", "-n", 1, "-wdir", "there", "./prog", cwd=cwd)
    check(done.returncode == 0 and "atm." in done.stdout and "there/prog" in done.stdout, f"{done}")
    done = call("run", "--check", "--json", "-n", 1, "--", PROGRAMS / f"atm.{mpi}", ":", "./none", cwd=cwd)
    check(done.returncode == 1 and [one["ok"] for one in json.loads(done.stdout)] == [True, False], f"{done}")


def mistakes(cwd):
    """One line, before anything starts."""
    atm, ocn = PROGRAMS / "atm.openmpi", PROGRAMS / "ocn.openmpi"

    def wrong(*rest, has, code=2):
        done = call("run", "--ckpt-dir", "ckpt", *rest, cwd=cwd)
        check(done.returncode == code and len(done.stderr.splitlines()) == 1 and has in done.stderr and not done.stdout, f"{done}")

    wrong("-n", 1, atm, 1, 1, ":", has="one of them is missing")
    wrong("-n", 1, ":", "-n", 1, ocn, has="one of them is missing")
    wrong("-n", 1, atm, ":", "-n", 1, ":", ocn, has="one of them is missing")
    wrong("-n", 1, atm, ":", "-n", has="-n needs a value")
    wrong("-n", 1, atm, ":", "-n", "x", ocn, has="1 to 10000000, not 'x'")
    wrong("-n", 1, atm, ":", "--interval", "5s", ocn, has="--interval is for the whole job")
    wrong("-n", 1, atm, ":", "--wrong", ocn, has="--wrong after a ':'")
    wrong("-n", 1, atm, ":", "-n", 1, "-env", "A", "1", ocn, has="an option of MPICH's mpiexec")
    wrong("-n", 1, atm, 1, 1, ":", ocn, 1, 1, has="give each its number")
    wrong("-n", 1, atm, ":", "-n", 1, "./none", has="/none does not exist", code=1)
    wrong("-configfile", "file", has="-configfile is not read")
    wrong("--app", "file", has="--app is not read")
    wrong("--mpiexec-args", "-n 1 ./a :", atm, has=": in --mpiexec-args")
    check(not (cwd / "ckpt").exists(), "something has started")


CASES = {function.__name__: function for function in (resumed, restarted, mixed, options, mistakes)}


def run(name, *rest):
    with Scratch("mpmd") as cwd:
        return CASES[name](cwd, *rest)


if __name__ == "__main__":
    sys.exit(harness.main(run, CASES))
