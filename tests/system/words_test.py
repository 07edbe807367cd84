#!/usr/bin/env python3
"""What the command says: mistakes on the command line, and what people read while a job runs, when it stopped and afterwards.

    words_test.py CASE
"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import time

import harness
from harness import FERMATA, PROGRAMS, Job, Scratch, call, check

STEADY = [PROGRAMS / "steady.openmpi", "100000", "4"]
PAUSE = dict(os.environ, STEADY_PAUSE="3000")
SHORT = ["2", "1"]  # of steady


def says(done, *texts, code=0, stderr=True):
    """Its exit code, and one line of stderr (or its output) with all of `texts`."""
    said = done.stderr if stderr else done.stdout
    check(done.returncode == code, f"{done.args}: exit code {done.returncode}, expected {code}: {done.stdout}{done.stderr}")
    check(not stderr or len(said.splitlines()) == 1, f"{done.args}: not one line: {said}")
    for text in texts:
        check(text in said, f"{done.args}: no '{text}' in: {said}")
    for raw in ("filesystem error", "what():", "basic_string", "\x1b"):
        check(raw not in done.stdout + done.stderr, f"{done.args}: raw text: {done.stdout}{done.stderr}")
    return said


def wrong(*words, has=(), cwd=None):
    line = says(call(*words, cwd=cwd), *has, code=2)
    check("fermata --help" not in line, f"{words}: a subcommand's help is another: {line}")
    return line


def mistakes(cwd):
    """Nothing is run, one line, exit code 2; the help has examples, exit codes and a page."""
    for words in ((), ("help",), ("--help",)):
        done = call(*words)
        check(done.returncode == (0 if words else 2), f"{words}: {done.returncode}")
        text = done.stdout if words else done.stderr
        for part in ("Usage: fermata COMMAND", "fermata run -n 4 -- ./solver", "85", "usage.md", "143"):
            check(part in text, f"{words}: no '{part}' in {text}")
    pages = next(line for line in text.splitlines() if line.startswith("Pages: ")).split()[1]
    check((pathlib.Path(pages) / "usage.md").exists(), f"no usage.md in {pages}")
    for verb in "run restart checkpoint status cancel list verify inspect compact doctor".split():
        one, other = call(verb, "--help"), call("help", verb)
        check(one.returncode == 0 and one.stdout == other.stdout, f"{verb}: {one.stdout}\n{other.stdout}")
        check(f"Usage: fermata {verb} [OPTIONS]" in one.stdout and f"fermata {verb}" in one.stdout.split("Example", 1)[1], one.stdout)
    for words in ("incremental[=hashes|split]", "compress=none|lz4", "busy=refuse", "trust-memory", "PROG [ARGS...]"):
        check(words in call("run", "--help").stdout, f"no '{words}' in the help of run")
    wrong("start", "-n", "2", "x", has=["no command 'start'", "nearest is 'restart'", "checkpoint"])
    wrong("help", "chekpoint", has=["nearest is 'checkpoint'"])
    wrong("-n", "4", "./prog", has=["options come after the command", "fermata run -n"])
    for number in ("two", "0", "-1", "1000000000", "4x", "99999999999999999999"):
        line = wrong("run", "-n", number, "--", "/bin/true", has=["1 to 10000000", f"'{number}'"])
        check(len(line) < 120, line)
    for words in ("compres=zstd incremantal", "compress=gzip", "io=fast", "threads=x"):
        for verb in (["run"], ["restart"], ["compact"]):
            program = ["--", "/bin/true"] if verb == ["run"] else []
            wrong(*verb, "--save-options", words, *program, has=[f"'{words.split()[0]}'", "incremental[=hashes|split]", "chain="])
    wrong("run", "--intervall", "3s", "x", has=["--intervall is no option", "nearest is --interval", "fermata run --help"])
    wrong("run", "--ckpt-dir", has=["--ckpt-dir needs a value"])
    wrong("run", "--job", "--interval", "5s", "x", has=["--job needs a value"])
    wrong("run", "--protocol", "3pc", "x", has=["3pc", "cc-d"])
    for words in ["--launcher", "mpiexec"], ["--protocol", "2pc"]:
        wrong("run", "--message-log", *words, "x", has=["--message-log", words[0]])
    wrong("run", "--max-restarts", "many", "x", has=["--max-restarts", "'many'"])
    wrong("run", "--spares", "1", "--launcher", "mpiexec", "-n", 1, "true", has=["--spares", "--launcher own"])
    wrong("run", "--spares", "2", "--launcher", "own", "--hosts", "localhost:2", "-n", 1, "true", has=["--spares 2", "none would be left"])
    wrong("list", "ckpt", has=["'ckpt'", "--ckpt-dir", "fermata list --help"])
    wrong("verify", "gen-000001", has=["--generation"])
    wrong("restart", "./prog", has=["takes no './prog'"])
    wrong("list", "-hx", has=["-hx"])  # not the help, with 0
    wrong("run", "-houst", "a,b", "./prog", has=["-houst", "--mpiexec-args=-houst"])
    wrong("checkpoint", "--oversubscribe", has=["--oversubscribe"])
    says(call("list", cwd=cwd), "no checkpoint directory fermata-ckpt", "--ckpt-dir", code=6)


def launcher(cwd):
    """Options of mpiexec before the program go to the mpiexec that knows them."""
    def runs(mpi, *words, program=None):
        done = call("run", "--mpi", mpi, *words, "--", *(program or [PROGRAMS / f"steady.{mpi}", *SHORT]), cwd=cwd)
        # Of a program without MPI_Init Open MPI's mpiexec thinks ill.
        check(done.returncode == 0 or program == env, f"{words}: {done.returncode}: {done.stderr}")
        return done.stdout
    (cwd / "hosts").write_text("localhost slots=2\n")
    (cwd / "machines").write_text("localhost:2\n")
    (cwd / "elsewhere").mkdir()
    env = ["sh", "-c", "echo $THAT $PWD"]
    check(runs("openmpi", "-host", "localhost:2") and runs("openmpi", "--hostfile", "hosts", "-np", "2"), "no output")
    said = runs("openmpi", "-n", "1", "-x", "THAT=it is", "--bind-to", "none", "--mca", "btl", "self,vader", "--wdir", cwd / "elsewhere",
                program=env)
    check(said == f"it is {cwd}/elsewhere\n", said)
    said = runs("mpich", "-n1", "-genv", "THAT", "it is", "-host", "localhost", "-wdir", cwd / "elsewhere", program=env)
    check(said == f"it is {cwd}/elsewhere\n", said)
    check(runs("mpich", "-f", "machines", "-ppn", "2", "-np", "2"), "no output")
    says(call("run", "--mpi", "openmpi", "-genv", "A", "1", "/bin/true", cwd=cwd), "-genv", "MPICH's mpiexec", "--mpi mpich", code=2)
    says(call("run", "--mpi", "mpich", "--oversubscribe", "/bin/true", cwd=cwd), "--oversubscribe", "Open MPI's", code=2)
    wrong("run", "--mca", "btl", has=["--mca needs 2 more words"])
    # The program is where mpiexec starts the ranks.
    shutil.copy(PROGRAMS / "steady.openmpi", cwd / "elsewhere" / "prog")
    for words in (["--mpiexec-args=--wdir elsewhere"], ["--mpiexec-args", "--wdir elsewhere"], ["-wd", "elsewhere"]):
        check(runs("openmpi", "-n", "1", *words, program=["./prog", *SHORT]), f"{words}: no output")
    says(call("run", "-n", "1", "./prog", cwd=cwd), "does not exist", code=1)


def job(cwd):
    """A running job: starting, waits, checkpoints in one line, sizes that agree; stopped: how to go on."""
    # What is shown of a program's name does not move the cursor.
    program = cwd / "evil\x1b[2J\nname"
    os.symlink(STEADY[0], program)
    with Job.run([program, *STEADY[1:]], 2, cwd, env=PAUSE, extra=[] if harness.LAUNCHER == "srun" else ["--bind-to", "none"]) as job:
        starting = ""  # all that was said until it ran: one rank may have come before the other
        while not (done := job.ask("status")).returncode == 0 or "starting" in done.stdout:
            starting += done.stdout
            check(job.process.poll() is None, job.errors())
        check("none of 2 ranks has reported" in starting and "(0 ranks)" not in starting, starting)
        check("mpi          not known" in starting, starting)
        job.wait_until(lambda: job.lines(), "output")
        status = says(job.ask("status"), "\\x1b[2J\\x0aname", "2 on ", stderr=False)
        check("Open MPI" in status, status)
        # Ranks of this program rest outside MPI most of the time.
        deadline = time.monotonic() + 30
        while "none: no rank stands in an MPI call" not in (said := job.ask("status", "--waits").stdout):
            check("waits\n" in said and time.monotonic() < deadline, said)
        line = says(job.ask("checkpoint"), f"gen-000001 in {cwd}/ckpt: ", stderr=False)
        check(len(line.splitlines()) == 1 and "request" not in line and " s\n" in line, line)
        detailed = says(job.ask("checkpoint", "-v"), "gen-000002", "request 0.", "resume 0.", stderr=False)
        said = job.checkpoint()
        check({"phases", "bytes", "line", "seconds", "directory", "generation"} <= set(said) and "request" not in said["line"], said)
        directory = ["--ckpt-dir", "ckpt"]
        listed = json.loads(call("list", "--json", *directory, cwd=cwd).stdout)[2]
        inspected = json.loads(call("inspect", "--json", *directory, cwd=cwd).stdout)
        check(said["bytes"] == listed["bytes"] == inspected["bytes"], f"{said} {listed} {inspected['bytes']}")
        files = sum(file.stat().st_size for file in (cwd / "ckpt" / "gen-000003").glob("*.img"))
        check(files == said["bytes"], f"{files} bytes of files, {said['bytes']}")
        size = said["line"].split(": ")[1].split(" in ")[0]
        for verb in ("list", "inspect"):
            says(call(verb, *directory, cwd=cwd), size, "\\x1b[2J", job.name, stderr=False)
        says(call("verify", *directory, cwd=cwd), f"gen-000003  intact, {size}", stderr=False)
        heading, *rows = call("list", *directory, cwd=cwd).stdout.splitlines()
        for column in ("generation", "committed", "job", "size", "took", "command"):
            # The heading stands above what it is of.
            check(column in heading and len(rows) == 3, f"{heading}\n{rows}")
        check(rows[0][heading.index("job"):].startswith(job.name), f"{heading}\n{rows[0]}")
        # Moved away while it runs, and back.
        (cwd / "ckpt").rename(cwd / "away")
        says(job.ask("checkpoint"), f"{cwd}/ckpt is not there any more", "renamed or removed", code=1)
        (cwd / "away").rename(cwd / "ckpt")
        check(job.ask("checkpoint", "--stop").returncode == 0, "checkpoint --stop")
        check(job.end() == 85, f"exit code {job.process.returncode}")
        check(f"checkpointed and stopped: `fermata restart --ckpt-dir {cwd}/ckpt` continues it\n" in job.errors(), job.errors())


def finalized(cwd):
    """After MPI_Finalize in all ranks nothing is checkpointed, in so many words; while one still works before it, it is."""
    text = """import os, time
from mpi4py import MPI
rank = MPI.COMM_WORLD.rank
def hold(name):
    print(name, flush=True)
    while not os.path.exists(name): time.sleep(0.01)
if rank == 0: hold("before")
MPI.Finalize()
if rank == 0: hold("after")
"""
    with Job.run(["/usr/bin/python3", "-c", text], 2, cwd) as job:
        job.wait_line("before")
        job.checkpoint()
        (cwd / "before").touch()
        job.wait_line("after")
        deadline = time.monotonic() + 30
        while (done := job.ask("checkpoint")).returncode == 0:  # the last rank may not have arrived yet
            check(time.monotonic() < deadline, f"{done}")
        check(done.returncode == 3 and "MPI_Finalize" in done.stderr and "in no checkpoint" in done.stderr, f"{done}")
        (cwd / "after").touch()
        job.finish()


def store(cwd):
    """A directory of generations: empty, of somebody else, with a generation that is removed while it is written."""
    (cwd / "ckpt").mkdir()
    for verb, code in (("list", 0), ("verify", 6), ("inspect", 6)):
        done = call(verb, "--ckpt-dir", "ckpt", cwd=cwd)
        check(done.returncode == code and "generation" in done.stdout + done.stderr, f"{verb}: {done}")
    check(json.loads(call("list", "--json", "--ckpt-dir", "ckpt", cwd=cwd).stdout) == [], "list --json of an empty one")
    cwd.chmod(0o755)
    (cwd / "ckpt").chmod(0o700)
    if os.geteuid() == 0:
        for directory in ("ckpt", "ckpt/below"):
            says(as_nobody("list", "--ckpt-dir", cwd / directory), f"{cwd}/{directory} cannot be read", "Permission denied",
                 code=6)
    with Job.run([*STEADY[:2], "16"], 1, cwd, env=PAUSE, extra=["--save-options", "forked,threads=1,compress=zstd:15"]) as job:
        job.wait_until(lambda: job.lines(), "output")
        asked = subprocess.Popen([FERMATA, "checkpoint", "--job", job.name], stderr=subprocess.PIPE, text=True)
        job.wait_until(lambda: job.status()["phase"] == "save", "phase save")
        shutil.rmtree(cwd / "ckpt" / "gen-000001")
        line = asked.communicate(timeout=60)[1]
        check(asked.returncode == 1 and "gen-000001" in line and "cannot be found any more" in line and
              len(line.splitlines()) == 1, f"{asked.returncode}: {line}")
        before = len(job.lines())
        job.wait_until(lambda: len(job.lines()) > before, "the job to go on")


def as_nobody(*words):
    done = subprocess.run([FERMATA, "--version"], user=65534, group=65534, extra_groups=[], capture_output=True)
    check(done.returncode == 0, "another user cannot run this build")
    return subprocess.run([FERMATA, *words], user=65534, group=65534, extra_groups=[], capture_output=True, text=True, cwd="/")


def programs(cwd):
    """What is said of a program before anything starts, and of a machine."""
    (cwd / "wrapper.sh").write_text("#!/bin/sh\nexec ./prog\n")
    (cwd / "wrapper.sh").chmod(0o755)
    for program in ("./wrapper.sh", "/bin/true", sys.executable):
        said = says(call("run", "--check", "--", program, cwd=cwd), "no MPI is visible", "not seen", "--mpi", stderr=False)
        check("ABI" not in said and "()" not in said, said)
    says(call("run", "--check", "--", PROGRAMS / "mix.mpich"), "built for mpich (libmpich.so.12)", stderr=False)
    linker = "/lib64/ld-linux-x86-64.so.2"
    says(call("run", "-n", "1", "--", linker, "./prog", cwd=cwd), "is the dynamic linker: name the program itself", code=1)
    if os.geteuid() == 0:
        rights(cwd)
        nearly_full = (f"mkdir {cwd}/small && mount -t tmpfs -o size=1m none {cwd}/small && TMPDIR={cwd}/small exec {FERMATA} doctor")
        done = subprocess.run(["unshare", "-m", "sh", "-c", nearly_full], capture_output=True, text=True)
        check(done.returncode == 0 and f"{cwd}/small" in done.stdout and "nearly full" in done.stdout, f"{done}")
    doctor = call("doctor").stdout
    check("--mpi auto takes it" in doctor and "has not" not in doctor and "are its own" in doctor, doctor)


def rights(cwd):
    """Of a program that is setuid, setgid or has capabilities: they would be lost, and are not lost in silence."""
    if os.statvfs(cwd).f_flag & os.ST_NOSUID:
        print("   files here give no rights")
        return
    cwd.chmod(0o755)
    program = cwd / "prog"
    for owner, group, mode, word in ((65534, -1, 0o4755, "is setuid"), (-1, 65534, 0o2755, "is setgid")):
        shutil.copy(PROGRAMS / "steady.openmpi", program)
        os.chown(program, owner, group)
        program.chmod(mode)
        says(call("run", "-n", "1", "--", "./prog", *SHORT, cwd=cwd), str(program), word, "would be lost", code=1)
        program.unlink()
    # Its own rights are no more than it has.
    shutil.copy(PROGRAMS / "steady.openmpi", program)
    program.chmod(0o6755)
    check(call("run", "--check", "--", "./prog", cwd=cwd).returncode == 0, "setuid to the user itself")
    program.chmod(0o755)
    # vfs_cap_data of revision 2: CAP_NET_RAW, effective.
    os.setxattr(program, "security.capability", struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0))
    says(as_nobody("run", "--check", "--", program), "file capabilities", "would be lost", code=1)
    check(call("run", "--check", "--", "./prog", cwd=cwd).returncode == 0, "root has all capabilities")


CASES = {function.__name__: function for function in (mistakes, launcher, job, finalized, store, programs)}


def run(name):
    with Scratch("words") as cwd:
        return CASES[name](cwd)


if __name__ == "__main__":
    sys.exit(harness.main(run, CASES))
