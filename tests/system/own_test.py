#!/usr/bin/env python3
"""Jobs under Fermata's own launcher: node daemons as parents of the ranks, no mpiexec.

    own_test.py CASE openmpi|mpich
"""
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time

import harness
from harness import FERMATA, PATIENCE, PROGRAMS, Job, Scratch, check

OWN = ["--launcher", "own"]
STEPS, MIB = 200, 1
# ssh HOST COMMAND, to a "host" that is this machine under another name, with a fresh environment.
SSH = """#!/bin/sh
host=$1
shift
exec env -i PATH="$PATH" HOME="$HOME" FERMATA_NODE="$host" OWN_TEST="$0" sh -c "$*"
"""


def fermata(cwd, *words, **more):
    words = [str(word) for word in (FERMATA, "run", *OWN, *words)]
    more.setdefault("stdin", subprocess.DEVNULL)
    if "input" in more:
        more.pop("stdin")
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, cwd=cwd, check=False, **more)


def two_hosts(cwd):
    (cwd / "ssh").write_text(SSH)
    (cwd / "ssh").chmod(0o755)
    # Open MPI's shared memory has names by the host's own name, which both "hosts" have.
    return dict(os.environ, FERMATA_SSH=str(cwd / "ssh"), STEADY_PAUSE="1000", OMPI_MCA_btl="tcp,self", **harness.BY_LOOPBACK)


def same(lines, wanted):
    check(lines == wanted, f"{len(lines)} lines for {len(wanted)}; the last: {lines[-1:]} for {wanted[-1:]}")


def nothing_left(job):
    """No process of the job's is there: neither daemon nor rank."""
    end = time.monotonic() + 10
    mark = f"FERMATA_JOB={job.name}".encode()
    while True:
        left = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    left.append((process.name, (process / "cmdline").read_bytes()))
            except OSError:
                pass  # gone
        if not left:
            return
        check(time.monotonic() < end, f"left: {left}")
        time.sleep(0.05)


def life(mpi, cwd):
    """Stopped and continued: by itself, by the site's launcher, and by itself again on the other library."""
    other = "mpich" if mpi == "openmpi" else "openmpi"
    program = [PROGRAMS / f"steady.{mpi}", STEPS, MIB]
    wanted = harness.native(program, 3, mpi, cwd)
    env = dict(os.environ, STEADY_PAUSE="3000")
    lines = []

    def stop(job):
        with job:
            before = len(job.lines())
            job.wait_until(lambda: len(job.lines()) > before + 5, "some steps")
            job.checkpoint("--stop")
            lines.extend(job.finish(expected=85))
            nothing_left(job)

    stop(Job.run(program, 3, cwd, mpi=mpi, env=env, extra=OWN))
    stop(Job.restart(cwd, mpi=mpi, extra=OWN))
    stop(Job.restart(cwd, mpi=mpi, extra=["--launcher", "mpiexec"]))
    with Job.restart(cwd, mpi=other, extra=OWN) as job:
        lines.extend(job.finish())
    same(lines, wanted)


def output(mpi, cwd):
    """Lines stay whole and in order, nothing is lost, whatever reads them slowly; what is no line comes, too."""
    script = ('i=0; while [ $i -lt 4000 ]; do printf "$1 $i "; printf "%060d\\n" $i; i=$((i+1)); done; '
              'echo "error of $1" >&2; printf "end of $1"')
    ranks = 'sh -c "$0" "$0" ${OMPI_COMM_WORLD_RANK:-$PMI_RANK}'
    words = [FERMATA, "run", *OWN, "--mpi", mpi, "-n", "3", "--", "sh", "-c", ranks, script]
    with subprocess.Popen([str(word) for word in words], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        time.sleep(1)  # the pipe is full by then
        text, errors = process.communicate(timeout=PATIENCE)
    check(process.returncode == 0, f"{process.returncode}: {errors}")
    for rank in range(3):
        got = re.findall(rf"(?:^|end of \d){rank} (\d+) (\d{{60}})$", text, re.M)
        check([int(one) for one, _ in got] == list(range(4000)) and all(int(a) == int(b) for a, b in got),
              f"rank {rank}: {len(got)} whole lines")
        check(f"end of {rank}" in text and f"error of {rank}\n" in errors, f"rank {rank}: {text[-80:]} {errors}")


def input_(mpi, cwd):
    """Rank 0 gets what comes through a pipe, all of it; the others nothing. Who does not read is not waited for."""
    script = 'if [ ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} = 0 ]; then cksum; else wc -c; fi'
    text = "".join(f"{number}\n" for number in range(200000))
    wanted = subprocess.run(["cksum"], input=text, capture_output=True, text=True, check=True).stdout
    done = fermata(cwd, "--mpi", mpi, "-n", 2, "--", "sh", "-c", script, input=text)
    check(done.returncode == 0 and sorted(done.stdout.split("\n")) == sorted((wanted + "0\n").split("\n")), done)
    done = fermata(cwd, "--mpi", mpi, "-n", 2, "--", "true", input=text)
    check(done.returncode == 0, done)


def codes(mpi, cwd):
    """As mpiexec's: the first that is not 0; 128 + signal; MPI_Abort's."""
    rank = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
    for script, code in ((f"exit $((3 * {rank}))", 3), ("kill -SEGV $$", 139), ("exit 0", 0)):
        done = fermata(cwd, "--mpi", mpi, "-n", 2, "--", "sh", "-c", script)
        check(done.returncode == code, f"{script}: {done}")
    check("rank " in fermata(cwd, "--mpi", mpi, "--", "sh", "-c", "kill -SEGV $$").stderr, "no line")
    for given, code in ((7, 7), (0, 1), (256, 1)):
        done = fermata(cwd, "--mpi", mpi, "-n", 2, "--", PROGRAMS / f"world.{mpi}", "abort", 1, given)
        check(done.returncode == code and f"called MPI_Abort with code {given}" in done.stderr, f"{given}: {done}")


def killed(mpi, cwd):
    """A rank is killed: one line says which, where and by what; the others and the job end with it."""
    with Job.run([PROGRAMS / f"steady.{mpi}", 100000, MIB], 3, cwd, mpi=mpi, extra=OWN,
                 env=dict(os.environ, STEADY_PAUSE="2000")) as job:
        job.wait_until(lambda: len(job.lines()) > 5, "some steps")
        host = job.status()["ranks"][1]["host"]
        pid = job.rank_pids()[1]
        os.kill(pid, signal.SIGKILL)
        code = job.end(20)
        said = f"fermata: rank 1 on {host} (pid {pid}) was killed by signal 9 (Killed)\n"
        check(code == 137 and job.errors() == said, f"{code}: {job.errors()}")
        nothing_left(job)


def daemon(mpi, cwd):
    """The daemon is killed: its ranks die with it, the job ends."""
    with Job.run([PROGRAMS / f"steady.{mpi}", 100000, MIB], 2, cwd, mpi=mpi, extra=OWN,
                 env=dict(os.environ, STEADY_PAUSE="2000")) as job:
        job.wait_until(lambda: len(job.lines()) > 5, "some steps")
        for pid in job.daemon_pids():
            os.kill(pid, signal.SIGKILL)
        code = job.end(20)
        check(code == 137 and "the node daemon of" in job.errors(), f"{code}: {job.errors()}")
        nothing_left(job)


def root(mpi, cwd):
    """Fermata itself is killed: daemon and ranks end."""
    with Job.run([PROGRAMS / f"steady.{mpi}", 100000, MIB], 2, cwd, mpi=mpi, extra=OWN,
                 env=dict(os.environ, STEADY_PAUSE="2000")) as job:
        job.wait_until(lambda: len(job.lines()) > 5, "some steps")
        job.process.kill()
        job.process.wait()
        nothing_left(job)


def hosts(mpi, cwd):
    """Two nodes: two daemons, fences between them; stopped and continued on one."""
    env = two_hosts(cwd)
    program = [PROGRAMS / f"steady.{mpi}", STEPS, MIB]
    wanted = harness.native(program, 4, mpi, cwd)
    with Job.run(program, 4, cwd, mpi=mpi, extra=[*OWN, "--hosts", "a:2,b:2"], env=env) as job:
        job.wait_until(lambda: len(job.lines()) > 5, "some steps")
        check(sorted((node["host"], node["ranks"]) for node in job.status()["nodes"]) == [("a", 2), ("b", 2)],
              job.status()["nodes"])
        job.checkpoint("--stop")
        lines = job.finish(expected=85)
        nothing_left(job)
    with Job.restart(cwd, mpi=mpi, extra=[*OWN, "--hosts", "c:4"], env=env) as job:
        lines.extend(job.finish())
    same(lines, wanted)


def daemons_at(cwd):
    """Process of each daemon that the ssh of this test has started, by "host"."""
    found = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "environ").read_bytes().split(b"\0")
            if f"OWN_TEST={cwd}/ssh".encode() in words and (process / "cmdline").read_bytes().split(b"\0")[0].endswith(b"/noded"):
                found[next(word for word in words if word.startswith(b"FERMATA_NODE=")).decode()[13:]] = int(process.name)
        except OSError:
            pass  # gone
    return found


def no_daemons(cwd):
    end = time.monotonic() + 10
    while left := daemons_at(cwd):
        check(time.monotonic() < end, f"daemons are left: {left}")
        time.sleep(0.05)


CHAIN = ["--hosts", "a:1,b:1,c:1,d:1"]


def deep(mpi, cwd):
    """Daemons below daemons, each below the one before: output, fences, checkpoint; a rank far below dies; continued in
    another shape."""
    env = dict(two_hosts(cwd), FERMATA_TREE_RADIX="1")
    program = [PROGRAMS / f"steady.{mpi}", STEPS, MIB]
    wanted = harness.native(program, 4, mpi, cwd)
    with Job.run(program, 4, cwd, mpi=mpi, extra=[*OWN, *CHAIN], env=env) as job:
        job.wait_until(lambda: len(job.lines()) > 5, "some steps")
        check(job.status()["tree"]["children"] == 1, job.status()["tree"])
        lines = []
        job.checkpoint()
        rank = next(rank for rank in job.status()["ranks"] if rank["rank"] == 3)
        os.kill(rank["pid"], signal.SIGKILL)
        check(job.end(20) == 137, job.errors())
        check(f"rank 3 on d (pid {rank['pid']}) was killed by signal 9" in job.errors(), job.errors())
        nothing_left(job)
    with Job.restart(cwd, mpi=mpi, extra=[*OWN, *CHAIN], env=dict(env, FERMATA_TREE_RADIX="2")) as job:
        job.wait_until(lambda: len(job.lines()) > 2, "further steps")
        check(job.status()["tree"]["children"] == 2, job.status()["tree"])
        job.checkpoint("--stop")
        lines.extend(job.finish(expected=85))
        nothing_left(job)
    with Job.restart(cwd, mpi=mpi, extra=[*OWN, *CHAIN], env=env) as job:
        lines.extend(job.finish())
    check(lines == wanted[-len(lines):], f"{lines[:1]}, {lines[-1:]}: {len(lines)} lines; the last of {wanted[-1:]}")
    done = fermata(cwd, "--mpi", mpi, *CHAIN, "--", "sh", "-c", "echo ${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; wc -c", input="xyz", env=env)
    check(sorted(done.stdout.split()) == sorted("0 1 2 3 3 0 0 0".split()), done)


def deep_loss(mpi, cwd):
    """A daemon that stands between others is killed: one line names it, all end, and the next life goes on."""
    env = dict(two_hosts(cwd), FERMATA_TREE_RADIX="1")
    program = [PROGRAMS / f"steady.{mpi}", STEPS, MIB]
    wanted = harness.native(program, 4, mpi, cwd)
    with Job.run(program, 4, cwd, mpi=mpi, extra=[*OWN, *CHAIN, "--max-restarts", "1"], env=env) as job:
        job.wait_until(lambda: len(job.lines()) > 5, "some steps")
        job.checkpoint()
        os.kill(daemons_at(cwd)["b"], signal.SIGKILL)
        lines = job.finish()
        no_daemons(cwd)
        lost = [line for line in job.errors().splitlines() if line.startswith("fermata: the node daemon")]
        check(len(lost) == 1 and "the node daemon of b is gone" in lost[0], job.errors())
        nothing_left(job)
    check(lines[-1:] == wanted[-1:] and set(lines) == set(wanted), f"{len(lines)} lines for {len(wanted)}")
    with Job.run(program, 4, cwd, mpi=mpi, extra=[*OWN, *CHAIN, "--ckpt-dir", cwd / "another"], env=env) as job:
        job.wait_until(lambda: len(job.lines()) > 5, "some steps")
        os.kill(daemons_at(cwd)["b"], signal.SIGKILL)
        before = time.monotonic()
        check(job.end(20) == 137 and "the node daemon of b is gone" in job.errors(), job.errors())
        check(time.monotonic() - before < 4, "those below were waited for")
        nothing_left(job)
        no_daemons(cwd)


def chain_of_starts(cwd, before=""):
    """The environment where each daemon starts the next one, and the file in which ssh notes who has reached whom.
    `before`: what ssh does first."""
    env = dict(two_hosts(cwd), FERMATA_TREE_RADIX="1")
    note = f'echo "${{FERMATA_NODE:-root}} $1" >> {cwd}/started\n'
    (cwd / "ssh").write_text(SSH.replace("host=$1\n", note + before + "host=$1\n"))
    return env, cwd / "started"


def starts(mpi, cwd):
    """Daemons start daemons. Who is not reached by one is started from the first host; who is reached by nobody is
    named, and the job does not start."""
    env, started = chain_of_starts(cwd)
    done = fermata(cwd, "--mpi", mpi, *CHAIN, "--", "sh", "-c", "echo x", env=env)
    check(done.returncode == 0 and done.stdout == 4 * "x\n" and not done.stderr, done)
    check(started.read_text() == "root a\na b\nb c\nc d\n", started.read_text())
    started.unlink()
    env, _ = chain_of_starts(cwd, 'if [ "$FERMATA_NODE $1" = "b c" ]; then echo "no way" >&2; exit 255; fi\n')
    done = fermata(cwd, "--mpi", mpi, *CHAIN, "--", "sh", "-c", "echo x", env=env)
    check(done.returncode == 0 and done.stdout == 4 * "x\n" and not done.stderr, done)
    check(started.read_text() == "root a\na b\nb c\nroot c\nc d\n", started.read_text())
    env, _ = chain_of_starts(cwd, 'if [ "$1" = c ]; then echo "no way" >&2; exit 255; fi\n')
    done = fermata(cwd, "--mpi", mpi, *CHAIN, "--", "sh", "-c", "echo x", env=env)
    said = [line for line in done.stderr.splitlines() if line.startswith("fermata: ")]
    check(done.returncode == 1 and not done.stdout and len(said) == 1, done)
    check("the node daemon on c has ended" in said[0] and "no way" in done.stderr, done)
    no_daemons(cwd)


def starter_killed(mpi, cwd):
    """A daemon dies while it starts another one: a line names it, nothing waits, nothing is left."""
    env, started = chain_of_starts(cwd, 'if [ "$1" = c ]; then exec sleep 60; fi\n')
    words = [FERMATA, "run", *OWN, "--mpi", mpi, *CHAIN, "--", "true"]
    with subprocess.Popen([str(word) for word in words], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 30
        while not started.exists() or "b c" not in started.read_text():
            check(time.monotonic() < end, "b does not start c")
            time.sleep(0.02)
        os.kill(daemons_at(cwd)["b"], signal.SIGKILL)
        _, errors = process.communicate(timeout=20)
    said = [line for line in errors.splitlines() if "b" in line]
    check(process.returncode not in (0, 85) and len(said) == 1 and "the node daemon of b" in said[0], (process.returncode, errors))
    no_daemons(cwd)


def many(mpi, cwd):
    """More nodes than the root may have descriptors."""
    env = dict(two_hosts(cwd), FERMATA_TREE_RADIX="8")
    limit = 72  # eight daemons, those that just come, and what Fermata keeps for itself
    hosts = ",".join(f"n{number}:1" for number in range(80))
    done = fermata(cwd, "--mpi", mpi, "--hosts", hosts, "--", "true", env=env,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
    check(done.returncode == 0, done)


def unreachable(mpi, cwd):
    """A host that ssh does not reach, and one that is taken away later: one line each."""
    env = two_hosts(cwd)
    (cwd / "ssh").write_text("#!/bin/sh\necho \"no route to $1\" >&2; exit 255\n")
    done = fermata(cwd, "--mpi", mpi, "--hosts", "a:2", "-n", 2, "--", "true", env=env)
    check(done.returncode == 1 and "the node daemon on a has ended" in done.stderr and "no route to a" in done.stderr, done)


def words(mpi, cwd):
    """Words of mpiexec: what is understood has its effect, what is not is refused before anything starts."""
    env = dict(os.environ, HANDED="on")
    done = fermata(cwd, "--mpi", mpi, "-n", 1, "-x", "SAID=1", "-wdir", "/", "--", "sh", "-c", "echo $SAID $HANDED; pwd",
                   env=env)
    check(done.returncode == 0 and done.stdout == "1 on\n/\n", done)
    for given, text in ((["--bind-to", "l3cache"], "--bind-to l3cache"), (["--hosts", "a:x"], "no number of slots"),
                        (["--rankfile", "f"], "--rankfile is not understood"), (["--hosts", "-oProxy"], "no name of a host"),
                        (["--hosts", "localhost:2"], "3 ranks are more than the 2 slots")):
        done = fermata(cwd, "--mpi", mpi, "-n", 3, *given, "--", "true")
        check(done.returncode == 2 and text in done.stderr and done.stderr.count("\n") == 1, f"{given}: {done}")
    done = fermata(cwd, "--mpi", mpi, "-n", 3, "--hosts", "localhost:2", "--oversubscribe", "--", "true")
    check(done.returncode == 0, done)
    secret = fermata(cwd, "--mpi", mpi, "-n", 1, "--", "env").stdout
    check("FERMATA_KEY" not in secret, secret)


def connections(mpi, cwd):
    """What leads to other processes fails, and one line says why and what to do."""
    for case, function in (("spawn", "MPI_Comm_spawn"), ("join", "MPI_Comm_join")):
        done = fermata(cwd, "--mpi", mpi, "-n", 2, "--", PROGRAMS / f"dynamic.{mpi}", case)
        lines = [line for line in done.stderr.splitlines() if "connects no processes" in line]
        check(done.returncode != 0, f"{case}: it did not fail: {done}")
        check(lines and all(f"{function}: Fermata's own launcher" in line and "--launcher mpiexec" in line for line in lines),
              f"{case}: {done}")
        ranks = [line.split(": ")[1] for line in lines]
        check(len(set(ranks)) == len(ranks), f"{case}: a rank says it twice: {lines}")


def from_mpiexec(mpi, cwd):
    """A job that mpiexec has started, continued under this launcher: its ranks end with their daemon here, too."""
    with Job.run([PROGRAMS / f"steady.{mpi}", 5000, MIB], 2, cwd, mpi=mpi, extra=["--launcher", "mpiexec"],
                 env=dict(os.environ, STEADY_PAUSE="2000")) as job:
        job.wait_until(lambda: len(job.lines()) > 5, "some steps")
        job.ask("checkpoint", "--stop")
        job.end()
    with Job.restart(cwd, mpi=mpi, extra=OWN, env=dict(os.environ, STEADY_PAUSE="2000")) as job:
        job.wait_until(lambda: len(job.lines()) > 5, "further steps")
        pids = job.rank_pids()
        # Without the root nobody but the kernel ends the ranks of a daemon that is gone.
        os.kill(job.process.pid, signal.SIGSTOP)
        for pid in job.daemon_pids():
            os.kill(pid, signal.SIGKILL)
        end = time.monotonic() + 20
        while any(pathlib.Path(f"/proc/{pid}/exe").exists() for pid in pids):
            check(time.monotonic() < end, f"ranks live without their daemon: {pids}")
            time.sleep(0.05)
        os.kill(job.process.pid, signal.SIGCONT)
        check(job.end() == 137, job.errors())
        nothing_left(job)


CASES = {"life": life, "output": output, "input": input_, "codes": codes, "killed": killed, "daemon": daemon, "root": root,
         "hosts": hosts, "unreachable": unreachable, "words": words, "connections": connections,
         "from_mpiexec": from_mpiexec, "deep": deep, "deep_loss": deep_loss,
         "starts": starts, "starter_killed": starter_killed, "many": many}


def run(case, mpi):
    with Scratch(f"own-{case}-{mpi}") as cwd:
        CASES[case](mpi, cwd)


if __name__ == "__main__":
    sys.exit(harness.main(run, CASES))
