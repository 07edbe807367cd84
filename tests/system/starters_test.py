#!/usr/bin/env python3
"""The program given is not the MPI program: shells, env, timeout, scripts.

    starters_test.py CASE LIBRARY

forms: each form prints the native lines, once. resumed, redirected, restarted, replaced: with a checkpoint. codes: exit codes.
none: nothing of MPI is started. refused: forms that cannot work say so in one line.
"""
import os
import re
import shutil
import sys

import harness
from harness import PROGRAMS, Job, Scratch, call, check

STEPS = 40
FIRST, AFTER = "fermata: error: ", "what it does after the program is not run"


class Place:
    def __init__(self, cwd, mpi):
        self.cwd, self.mpi = cwd, mpi
        self.program = PROGRAMS / f"started.{mpi}"
        self.environment = os.environ | {"STARTED_PAUSE": "0"}

    def script(self, name, text):
        path = self.cwd / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def job(self, command, mpi=None, pause=0, env=None, ranks=2):
        environment = self.environment | {"STARTED_PAUSE": str(pause)} | (env or {})
        return Job.run(command, ranks, self.cwd, mpi=mpi or self.mpi, env=environment)

    def reference(self, *arguments):
        return sorted(harness.native([self.program, *arguments], 2, self.mpi, self.cwd, env=self.environment))


def finished(job, reference, what, code=0):
    got = sorted(job.finish(expected=code))
    check(got == reference, f"{what}: {got}, not {reference}; stderr:\n{job.errors()[-2000:]}")


def errors_of(job):
    return [line for line in job.errors().splitlines() if line.startswith(FIRST)]


def forms(place):
    program, few = place.program, 3
    reference = place.reference(few)
    tagged = [line.replace("tag -", "tag x") for line in reference]
    after = sorted(reference + ["after 0", "after 0"])
    words = f"{program} {few}"
    place.script("exec.sh", '#!/bin/bash\nexport STARTED_TAG=x\nexec "$@"\n')
    place.script("goes_on.sh", '#!/bin/sh\n"$@"\necho after $?\n')
    place.script("no_shebang", 'export STARTED_TAG=x\n"$@"\n')
    place.script("preloads.sh", '#!/bin/sh\nunset LD_PRELOAD\nexport LD_PRELOAD=\nexec "$@"\n')
    place.script("shebang", f"#!/usr/bin/env -S STARTED_TAG=x sh -e\nexec {program} {few}\n")
    (place.cwd / "bin").mkdir()
    (place.cwd / "bin" / program.name).symlink_to(program)
    path = {"PATH": f"{place.cwd / 'bin'}:{os.environ['PATH']}"}
    all_forms = [
        (["env", "STARTED_TAG=x", program, few], tagged, {}),
        (["./exec.sh", program, few], tagged, {}),
        (["./goes_on.sh", program, few], after, {}),
        (["sh", "goes_on.sh", program, few], after, {}),
        (["./no_shebang", program, few], tagged, {}),
        (["./shebang"], tagged, {}),
        (["./preloads.sh", program, few], reference, {}),
        # Without --wait setsid, which leads a group below Open MPI's mpiexec, ends at once with 0: natively, too, that is a
        # rank without MPI_Finalize where another one has begun by then.
        (["nice", "setsid", "--wait", "stdbuf", "-oL", "taskset", "-c", "0", "timeout", "60", program, few], reference, {}),
        (["sh", "-c", f"{words} | cat"], reference, {}),
        (["bash", "-c", f"time {words}"], reference, {}),
        (["bash", "-c", f"(exec -a {program.name} {words}) & wait $!"], reference, {}),
        (["env", program.name, few], reference, path),
        (["perl", "-e", f"exec '{program}', {few}"], reference, {}),
        (["perl", "-e", f"system('{words}'); print 'after ', $?, \"\\n\""], after, {}),
        (["/usr/bin/python3", "-c", f"import os; os.execv('{program}', ['{program}', '{few}'])"], reference,
         {"FERMATA_START": "native"}),
    ]
    for command, expected, env in all_forms:
        with place.job(command, env=env) as job:
            finished(job, expected, " ".join(map(str, command)))
    # The library that the program was built for is chosen, also behind a starter.
    with place.job(["env", program, few], mpi="auto") as job:
        finished(job, reference, "auto")
    done = call("run", "--check", "--", "env", program, cwd=place.cwd)
    check(done.returncode == 0 and f"built for {place.mpi}" in done.stdout, f"--check: {done.stdout}{done.stderr}")


def resumed(place):
    reference = place.reference(STEPS)
    place.script("goes_on.sh", '#!/bin/sh\n"$@"\necho after $?\n')
    with place.job(["./goes_on.sh", place.program, STEPS], pause=50000) as job:
        job.wait_until(lambda: len(job.lines()) >= 8, "some steps")
        job.checkpoint()
        finished(job, sorted(reference + ["after 0", "after 0"]), "resumed")


def stop_and_continue(place, command, waits):
    reference = place.reference(STEPS)
    with place.job(command, pause=50000) as job:
        job.wait_until(lambda: len(job.lines()) >= 8, "some steps")
        job.checkpoint("--stop")
        job.end(60)
        check(job.process.returncode == 85, f"stopped with {job.process.returncode}: {job.errors()}")
        first = [line for line in job.lines() if re.match("begin|step|end|after", line)]
    check("after" not in str(first), f"what comes after the program was run: {first}")
    for mpi in ("openmpi", "mpich"):
        with Job.restart(place.cwd, mpi=mpi) as job:
            got = sorted(first + job.finish())
            check(got == reference, f"continued on {mpi}: {got}, not {reference}")
            said = AFTER in job.errors()
            check(said == waits, f"continued on {mpi}, of what the starter does after it: {job.errors()}")


def redirected(place):
    """What a script redirects stays there. A terminal of a starter becomes the launcher's, output as output."""
    reference = place.reference(STEPS)
    place.script("redirected.sh", '#!/bin/sh\n"$@" > log.${PMIX_RANK:-$PMI_RANK} 2> /dev/null\n')
    logs = [place.cwd / "log.0", place.cwd / "log.1"]

    def lines():
        return sorted(line for log in logs if log.exists() for line in log.read_text().splitlines())

    with place.job(["./redirected.sh", place.program, STEPS], pause=50000) as job:
        job.wait_until(lambda: len(lines()) >= 8, "some steps")
        job.checkpoint("--stop")
        check(job.end(60) == 85 and not re.search("(?m)^(begin|step|end)", job.output()), f"stopped: {job.output()} {job.errors()}")
    for mpi in ("openmpi", "mpich"):
        with Job.restart(place.cwd, mpi=mpi) as job:
            check(not job.finish() and lines() == reference, f"continued on {mpi}: {lines()}, not {reference}; {job.output()}")

    words = ["script", "-qec", f"{place.program} {STEPS}", "/dev/null"]
    with place.job(words, pause=50000) as job:
        job.wait_until(lambda: len(job.lines()) >= 8, "some steps")
        job.checkpoint("--stop")
        check(job.end(60) == 85, f"stopped: {job.output()} {job.errors()}")
        first = [line for line in job.lines() if re.match("begin|step", line)]
    with Job.restart(place.cwd, mpi=place.mpi) as job:
        got = sorted(first + job.finish())
        check(got == reference, f"after a terminal of script's: {got}, not {reference}; {job.errors()}")


def restarted(place):
    place.script("goes_on.sh", '#!/bin/sh\n"$@"\necho after $?\n')
    stop_and_continue(place, ["./goes_on.sh", place.program, STEPS], True)


def replaced(place):
    """Nothing of the starter is left: exec."""
    stop_and_continue(place, ["env", "A=1", "nice", place.program, STEPS], False)


def codes(place):
    # MPICH 4.0.2's mpiexec kills the other ranks as soon as one is gone, and then says 124, 9 or 1, natively, too.
    with place.job(["timeout", "2", place.program, 1000], pause=50000, ranks=1 if place.mpi == "mpich" else 2) as job:
        job.end()
        check(job.process.returncode == 124, f"timeout: {job.process.returncode}: {job.errors()}")
    for command in ([["sh", "-c", "exit 7"], ["sh", "-c", f"{place.program} 2 7; exit $?"],
                     ["env", place.program, 2, 7]]):
        with place.job(command) as job:
            job.end()
            check(job.process.returncode == 7, f"{command}: {job.process.returncode}: {job.errors()}")


def none(place):
    with place.job(["bash", "-c", "echo begin; sleep 7; echo end"]) as job:
        job.wait_until(lambda: job.lines().count("begin") == 2, "the shells")
        asked = job.ask("checkpoint")
        check(asked.returncode == 3 and "no rank has started an MPI program yet" in asked.stderr + asked.stdout,
              f"checkpoint of two shells: {asked.returncode} {asked.stdout}{asked.stderr}")
        finished(job, ["begin", "begin", "end", "end"], "shells")
    check(not list((place.cwd / "ckpt").glob("gen-*")), "two shells have made a generation")


def refused(place):
    program = place.program
    outside = "import subprocess, sys; sys.exit(subprocess.run({}).returncode)".format([str(program), "3"])
    cases = [
        (["env", "-i", program, 3], "environment", False),
        (["sh", "-c", f"{program} 2; {program} 3; echo after"], "second MPI program", False),
        ([f"mpiexec.{place.mpi}", "-n", "2", program, 3], "ranks of its own", True),
        (["sh", "-c", f"mpiexec.{place.mpi} -n 2 {program} 3"], "ranks of its own", False),
        (["ssh", "localhost", program], "another machine", True),
        (["/usr/bin/python3", "-c", f"import os; os.execv('{program}', ['started', '3'])"], "replaces itself", False),
        (["/usr/bin/python3", "-c", outside], "starts MPI", False),
    ]
    for command, word, before in cases:
        if command[0] == "ssh" and not shutil.which("ssh"):
            continue
        with place.job(command) as job:
            job.end()
            # Under srun, which lets the others stand, the root ends the job, and says who was missing.
            errors = [line for line in errors_of(job) if harness.LAUNCHER != "srun" or " is gone" not in line]
            # Children of ranks are ended one by one.
            check(job.process.returncode != 0 and word in str(errors) and len(set(errors)) == 1 and
                  (len(errors) == 1 or word == "starts MPI"),
                  f"{command}: {job.process.returncode}, {errors}, {job.errors()[-2000:]}")
            lines = [line for line in job.lines() if "of 1 ranks" in line]
            check(not lines, f"{command}: worlds of one: {lines}")
            if before:
                check(len(job.errors().splitlines()) == 1, f"{command}: {job.errors()}")


CASES = {case.__name__: case for case in (forms, resumed, redirected, restarted, replaced, codes, none, refused)}


def run(name, mpi):
    with Scratch(f"starters-{name}") as cwd:
        CASES[name](Place(cwd, mpi))


if __name__ == "__main__":
    sys.exit(harness.main(run, CASES))
