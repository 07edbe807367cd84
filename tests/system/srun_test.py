#!/usr/bin/env python3
"""The launcher srun where there is no Slurm: with a stand-in (standin_srun.py) in PATH. tests/suites/slurm.py has the
same, and more, under a real one.

    srun_test.py CASE
"""
import os
import pathlib
import shutil
import signal
import subprocess
import time

import harness
from harness import PROGRAMS, Job, Scratch, check

STEPS, MIB, PAUSE = 400, 1, 3000
HERE = pathlib.Path(__file__).resolve().parent


class Place:
    """A directory with the stand-in, and what is around a job in an allocation."""

    def __init__(self, cwd, **more):
        self.cwd = cwd
        binaries = cwd / "bin"
        binaries.mkdir()
        (binaries / "srun").write_text(f"#!/bin/sh\nexec python3 {HERE}/standin_srun.py \"$@\"\n")
        (binaries / "srun").chmod(0o755)
        self.env = dict(os.environ, PATH=f"{binaries}:{os.environ['PATH']}", STANDIN_DIR=str(cwd), SLURM_JOB_ID="1",
                        STEADY_PAUSE=str(PAUSE), **more)
        for name in ("SLURM_JOB_NODELIST", "SLURM_JOB_CPUS_PER_NODE"):
            self.env.setdefault(name, {"SLURM_JOB_NODELIST": "here", "SLURM_JOB_CPUS_PER_NODE": "4"}[name])

    def run(self, *extra, steps=STEPS, ranks=2):
        return Job.run([PROGRAMS / "steady.mpich", steps, MIB], ranks, self.cwd, mpi="mpich", env=self.env, extra=extra)

    def restart(self, *extra):
        return Job.restart(self.cwd, mpi="mpich", env=self.env, extra=extra)

    def words(self):
        return (self.cwd / "words").read_text().split("\n")

    def signal(self, number):
        """To all ranks, as slurmstepd sends it. Written elsewhere first: it is looked for all the time."""
        (self.cwd / "signal.new").write_text(str(int(number)))
        (self.cwd / "signal.new").rename(self.cwd / "signal")

    def wanted(self):
        return harness.native([PROGRAMS / "steady.mpich", STEPS, MIB], 2, "mpich", self.cwd)


def some(job):
    job.wait_until(lambda: len(job.lines()) > 30, "30 lines")


def same_lines(lines, wanted):
    at = next((i for i, (one, other) in enumerate(zip(lines, wanted)) if one != other), min(len(lines), len(wanted)))
    check(lines == wanted, f"{len(lines)} lines of two lives, natively {len(wanted)}; from {at} on {lines[at:at + 3]} for {wanted[at:at + 3]}")


def silent(job):
    """Nothing but Fermata's own lines."""
    foreign = [line for line in job.errors().splitlines() if not line.startswith("fermata: ")]
    check(not foreign, f"said at a stop: {foreign}")


def life(cwd):
    """In an allocation srun is the launcher; a stop is silent."""
    place = Place(cwd)
    with place.run() as job:
        some(job)
        job.checkpoint("--stop")
        lines = job.finish(expected=85)
        silent(job)
    check("--mpi=pmi2" in place.words() and "--kill-on-bad-exit=0" in place.words(), f"srun was given {place.words()}")
    with place.restart() as job:
        lines += job.finish()
    same_lines(lines, place.wanted())


def programs(cwd):
    """Several programs: srun takes them as one, and yet MPI_APPNUM says which is whose, also behind a shell."""
    place = Place(cwd)
    for shell in ([], ["sh", "-c", '"$0" "$@"; exit $?']):
        with Job.run([PROGRAMS / "atm.mpich", 10, 1, "wind", ":", "-n", 2, *shell, PROGRAMS / "ocn.mpich", 10, 1], 1, cwd, mpi="mpich",
                     env=place.env) as job:
            apps = sorted(line[:9] for line in job.finish() if " of 3" in line)
        check(apps == ["atm app 0", "ocn app 1"], job.output())
    check("--parts" in place.words(), f"srun was given {place.words()}")


def warned(cwd):
    """SIGTERM of the batch system's to the ranks is held back, and the job stops behind a checkpoint; SIGUSR1 is a
    checkpoint. The same signals of anybody else are the program's."""
    place = Place(cwd)
    with place.run(steps=4000) as job:
        some(job)
        place.signal(signal.SIGUSR1)
        job.wait_until(lambda: len(list((cwd / "ckpt").glob("gen-*/manifest.json"))) == 1, "a checkpoint")
        time.sleep(1)
        place.signal(signal.SIGTERM)
        job.finish(expected=85)
        silent(job)
        check(len(list((cwd / "ckpt").glob("gen-*/manifest.json"))) == 2, "not two generations")
    with place.restart() as job:
        some(job)
        place.signal(signal.SIGTERM)
        job.finish(expected=85)
    with place.restart() as job:
        some(job)
        os.kill(job.rank_pids()[0], signal.SIGTERM)
        check(job.end() not in (0, 85), f"a SIGTERM that was not the batch system's: {job.errors()}")


def refused(cwd):
    """What cannot be is one line, before anything starts; N worlds of one are recognised."""
    place = Place(cwd)

    def line(expected, *extra, code=2, ranks=2):
        (cwd / "words").unlink(missing_ok=True)
        with place.run(*extra, ranks=ranks) as job:
            ended = job.end()
            check(ended == code and expected in job.errors(), f"{extra}: {ended}, {job.errors()}")
            return job.errors()

    line("srun has no plugin pmix_v9", "--launcher", "srun", "--srun-args", "--mpi=pmix_v9")
    line("--export=NONE would keep", "--launcher", "srun", "--srun-args", "--export=NONE")
    line("is an option of Open MPI's mpiexec", "--launcher", "srun", "--map-by", "core")
    line("choose that one with --launcher mpiexec --mpi openmpi", "--launcher", "srun", "--map-by", "core")
    line("9 ranks do not fit on the 4 processors of here", "--launcher", "srun", code=1, ranks=9)
    check(not (cwd / "words").exists(), "srun was started")
    line("it needs --mpi=pmi2", "--srun-args", "--mpi=none", code=1)
    with place.run("--launcher", "mpiexec") as job:
        (cwd / "words").unlink(missing_ok=True)
        job.finish()
    check(not (cwd / "words").exists(), "--launcher mpiexec started srun")


def no_program(cwd):
    """A shell that starts no MPI program, whose node daemon goes a moment before srun does, as with proctrack/cgroup: the job
    has the shell's exit code."""
    script = cwd / "ends.sh"
    script.write_text("""for process in /proc/[0-9]*; do
    [ "$(cat $process/comm 2>&1)" = noded ] && grep -qz "^FERMATA_JOB=$1$" $process/environ && kill -9 ${process#/proc/} && touch killed && break
done
sleep 0.5
exit 7
""")
    place = Place(cwd)
    with Job(["run", "-n", 1, "--mpi", "mpich", "--ckpt-dir", "ckpt", "--", "sh", script, "lost"], cwd, name="lost", env=place.env) as job:
        code = job.end()
        check((cwd / "killed").exists(), f"no node daemon: {job.errors()}")
        check(code == 7 and "start it again" not in job.errors(), f"{code}: {job.errors()}")


class ByPlugin(Job):
    """srun with Slurm's plugin (src/spank) in it, and these options; what it becomes."""

    def __init__(self, place, *options, program, name="plugin", plugin=harness.BUILD / "lib" / "fermata" / "slurm" / "fermata_spank.so",
                 **variables):
        self.on, self.name = (), name
        self.out_path, self.err_path = place.cwd / f"{name}.out", place.cwd / f"{name}.err"
        env = dict(place.env, STANDIN_PLUGIN=str(plugin),
                   STANDIN_SRUN=shutil.which("srun", path=place.env["PATH"]), **variables)
        with open(self.out_path, "w") as out, open(self.err_path, "w") as err:
            self.process = subprocess.Popen([str(word) for word in (PROGRAMS / "plugin_srun", *options, *program)], stdout=out, stderr=err,
                                            stdin=subprocess.DEVNULL, cwd=place.cwd, env=env)


def plugin(cwd):
    """srun --fermata=DIR is `fermata run`: stopped, and continued by the same line, which a job may have inherited; without the
    option, with `off` and for a shell it is srun. Wrong words are one line, before anything starts."""
    place = Place(cwd)
    steady = [PROGRAMS / "steady.mpich", STEPS, MIB]
    words = ["-ln2", "--nodes", 1, "--fermata", "ckpt-%j", "--fermata-options=--mpi mpich --job plugin"]
    with ByPlugin(place, *words, program=steady) as job:
        some(job)
        job.checkpoint("--stop")
        lines = job.finish(expected=85)
    given = place.words()
    check(not [word for word in given if word.startswith("--fermata")], f"srun was given {given}")
    check({"-l", "--nodes=1", "-n"} <= set(given) and "--ntasks=2" not in given, f"srun was given {given}")
    # As docs/install.md has it for another release of Slurm; it does not lie in an installation.
    source = HERE.parents[1] / "src"
    subprocess.run(["cc", "-O2", "-fPIC", "-shared", "-I", source, *(source / "spank").glob("*.c"), "-o", cwd / "own.so"], check=True)
    place.env["PATH"] += f":{harness.FERMATA.parent}"
    inherited = {f"SLURM_SPANK__SLURM_SPANK_OPTION_fermata_fermata{at}": word for at, word in
                 (("", "ckpt-%j"), ("_options", "--mpi mpich --job plugin"))}
    with ByPlugin(place, "-ln2", "--nodes", 1, program=steady, plugin=cwd / "own.so", **inherited) as job:
        lines += job.finish()
    same_lines(lines, place.wanted())
    check((cwd / "ckpt-1").is_dir(), "no directory with the job's number")

    def left_alone(*options, **variables):
        (cwd / "words").unlink(missing_ok=True)
        with ByPlugin(place, *options, program=["sh", "-c", "exit 3"], **variables) as job:
            # MPICH 4.2.1's mpiexec, which stands for srun, may end by SIGPIPE where its ranks end at once.
            ends = (3, 141) if harness.version("mpich") >= (4, 2) else (3,)
            check(job.end() in ends, f"{job.process.returncode}: {job.errors()}")
        check("--" not in place.words(), f"srun was given {place.words()}")

    for options in ([], ["--fermata=off"], ["--pty"]):
        left_alone(*options, **(inherited if options else {}))

    def line(expected, *options, code=2, program=steady, **variables):
        (cwd / "words").unlink(missing_ok=True)
        with ByPlugin(place, *options, program=program, **variables) as job:
            ended = job.end()
        check(ended == code and expected in job.errors() and job.errors().count("\n") == 1, f"{options}: {ended}, {job.errors()}")
        check(not (cwd / "words").exists(), "srun was started")

    line("Invalid --fermata argument", "--fermata=", code=255)
    line("goes with --fermata=DIR", "--fermata-options=-v")
    line("an unclosed '", "--fermata=x", "--fermata-options='")
    line("takes no --launcher", "--fermata=x", "--fermata-options=--launcher own")
    line("there are %j", "--fermata=x%z")
    line("is no option of `fermata run`", "--fermata=x", "--fermata-options=--nonsense")
    line("-n takes a number of ranks, not 'x'", "--fermata=x", "-nx")
    line("several programs in one step", "--fermata=x", program=["true", ":", "true"])


CASES = {f.__name__: f for f in (life, programs, warned, refused, no_program, plugin)}


def case(name):
    with Scratch(f"srun-{name}") as cwd:
        CASES[name](cwd)


if __name__ == "__main__":
    raise SystemExit(harness.main(case, CASES))
