#!/usr/bin/env python3
"""Ranks that get new lower halves while they run (`fermata renew`): the native lines after renewals at random moments.

    renew_test.py storm openmpi|mpich PROGRAM [SECONDS BETWEEN] [SEED] [same|either] [drained|anywhere]
                                  programs: below; either: on either library; anywhere: with a message log
    renew_test.py held openmpi|mpich CASE...                              programs that stand where tests/programs/trap.c says
    renew_test.py anywhere openmpi|mpich HOW...                           how ranks wait for one that computes: tests/programs/computes.c
    renew_test.py kept openmpi asyncio
    renew_test.py constant openmpi|mpich [N] [drained|anywhere]
    renew_test.py state|refused|killed|signals|saved|place openmpi|mpich [N]
"""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import everything_test
import harness
import trap_test
from harness import PROGRAMS, Job, Scratch, check

OTHER = {"openmpi": "mpich", "mpich": "openmpi"}
OWN = ["--launcher", "own"]
LOG = ["--message-log"]
SOURCES = pathlib.Path(__file__).resolve().parents[1] / "programs"
# Each runs some seconds.
STORMS = {
    "steady": (["steady.MPI", "1200", "2"], {"STEADY_PAUSE": "2000"}),
    "threads": (["threads.MPI", "12", "40", "500000"], {}),
    "heat": (["heat.MPI", "90", "8000"], {}),
    "mutex": (["mutex.MPI", "700"], {}),
    "random": (["random.MPI", "7", "8000", "1000"], {}),
    "reaping": (["/usr/bin/python3", str(SOURCES / "reaping.py"), "60"], {}),
    "python": (["/usr/bin/python3", str(SOURCES / "pickle_mix.py"), "30", "3000"], {}),
}


def renewed(job, *words):
    return job.ask("renew", *words, timeout=60)


def at_random(job, between, draw, libraries):
    """Renews until the job has ended, with a library of these in turns at random; how often."""
    times = 0
    while True:
        end = time.monotonic() + draw.uniform(0.2, 1.8) * between
        while time.monotonic() < end:
            if job.process.poll() is not None:
                return times
            time.sleep(0.01)
        done = renewed(job, *(["--mpi", draw.choice(libraries)] if libraries else []))
        if done.returncode != 0:
            # It may be about to end.
            time.sleep(1)
            check(job.process.poll() is not None or "MPI_Finalize" in done.stderr or "has ended" in done.stderr,
                  f"renew: {done.returncode} {done.stderr}\n{job.errors()[-3000:]}")
            continue
        times += 1


def storm(mpi, name, between="0.4", seed="1", which="same", how="drained"):
    words, variables = STORMS[name]
    program = [PROGRAMS / word.replace("MPI", mpi) if word.endswith(".MPI") else word for word in words]
    env = dict(os.environ, **variables)
    with Scratch(f"renew-{name}") as cwd:
        wanted = harness.native(program, 2, mpi, cwd)
        with Job.run(program, 2, cwd, mpi=mpi, env=env, extra=LOG if how == "anywhere" else OWN) as job:
            job.wait_until(lambda: job.lines(), "the first line")
            times = at_random(job, float(between), random.Random(int(seed)), ["openmpi", "mpich"] if which == "either" else [])
            lines = job.finish()
        check(lines == wanted, f"after {times} renewals {lines[-3:]}, natively {wanted[-3:]}")
        check(times >= 2, f"only {times} renewals: the program is too short")
    return f"{times} renewals"


def held(mpi, *cases):
    """Programs that stand where it is hard: renewed there, on the other library, too; then let go."""
    for case in cases:
        with Scratch(f"renew-{case}") as cwd:
            program = [PROGRAMS / f"trap.{mpi}", case]
            go = cwd / "go"
            # HOLD_FILE "/" is there: only the late one holds, inside of the renewal.
            env = dict(os.environ, **({"HOLD_FILE": "/", "HOLD_FILE_LATE": str(go)} if case in trap_test.LATE else {"HOLD_FILE": str(go)}))
            ranks = 4 if case in trap_test.LATE else 2
            wanted = [line for line in harness.native(program, ranks, mpi, cwd, env=dict(os.environ)) if line != "READY"]
            with Job.run(program, ranks, cwd, mpi=mpi, env=env, extra=OWN) as job:
                job.wait_line("READY")
                # Let go by a first one, half of the late ones would stand in a collective call, where the others come only later.
                for words in [[]] * (case not in trap_test.LATE) + [["--mpi", OTHER[mpi]]]:
                    done = renewed(job, "--timeout", "20s", *words)
                    check(done.returncode == 0, f"{case} {words}: {done.stderr}")
                go.touch()
                lines = [line for line in job.finish() if line != "READY"]
            check(lines == wanted, f"{case}: {lines[-3:]}, natively {wanted[-3:]}")
    return f"{len(cases)} programs"


def anywhere(mpi, *how):
    """With a message log nobody is waited for: the renewal comes while one computes and the others wait for it inside of a call."""
    took = []
    for case in how:
        with Scratch(f"renew-{case}") as cwd:
            program = [PROGRAMS / f"computes.{mpi}", case]
            go = cwd / "go"
            wanted = harness.native(program, 3, mpi, cwd, env=dict(os.environ))
            with Job.run(program, 3, cwd, mpi=mpi, env=dict(os.environ, HOLD_FILE=str(go)), extra=LOG) as job:
                job.wait_line("READY")
                for words in [], ["--mpi", OTHER[mpi]]:
                    begin = time.monotonic()
                    done = renewed(job, "--timeout", "20s", *words)
                    check(done.returncode == 0, f"{case} {words}: {done.stderr}")
                    took.append(time.monotonic() - begin)
                go.touch()
                lines = job.finish()
            check(lines == wanted, f"{case}: {lines}, natively {wanted}")
    return f"{len(how)} ways, at most {max(took):.2f} s"


def kept(mpi, name):
    """An event loop that remembers its process, with a pool of threads and a helper command, goes on in another one."""
    with Scratch(f"renew-{name}") as cwd:
        go = cwd / "go"
        env = dict(os.environ, HOLD_FILE=str(go))
        words = {"asyncio": ["/usr/bin/python3", SOURCES / "asyncio_ring.py", go]}[name]
        go.touch()
        wanted = [line for line in harness.native(words, 2, mpi, cwd, env=env) if line != "READY"]
        go.unlink()
        with Job.run(words, 2, cwd, mpi=mpi, env=env, extra=OWN) as job:
            job.wait_line("READY")
            for _ in range(3):
                done = renewed(job)
                check(done.returncode == 0, done.stderr)
            go.touch()
            lines = [line for line in job.finish() if line != "READY"]
        check(lines == wanted, f"{lines}, natively {wanted}; {job.errors()}")


def state(mpi):
    """One of everything that a process has, but for what no other process can take over, is as before."""
    with Scratch("renew-state") as cwd:
        env = dict(os.environ, EVERYTHING_MOVABLE="1")
        with Job.run([PROGRAMS / f"everything.{mpi}", "an argument"], 2, cwd, mpi=mpi, env=env, extra=OWN) as job:
            job.wait_line("READY")
            done = renewed(job)
            check(done.returncode == 0, done.stderr)
            (cwd / "go-resumed").touch()
            job.wait_line("AGAIN")
            warnings = job.errors()
        bad = []
        for rank in range(2):
            before = everything_test.description(cwd, "before", rank)
            check(len(before) > 400, f"only {len(before)} lines of description")
            after = everything_test.description(cwd, "resumed", rank)
            bad += [f"rank {rank}: {line}" for line in everything_test.differences(before, after, warnings)]
        check(not bad, "\n".join(bad) + "\nwarnings:\n" + warnings)
        # With locks, leases, /proc/self and the like it is refused by name, and the program goes on.
        with Job.run([PROGRAMS / f"everything.{mpi}", "an argument"], 2, cwd, mpi=mpi, extra=OWN) as job:
            job.wait_line("READY")
            done = renewed(job)
            check(done.returncode == 1 and "F_SETOWN" in done.stderr and done.stderr.count("\n") == 1, f"{done.returncode} {done.stderr}")
            (cwd / "go-resumed").touch()
            job.wait_line("AGAIN")


def of_process(pid):
    """(mappings outside of the upper half's addresses, descriptors, resident KiB)"""
    lower = 0
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        at = int(line.split("-")[0], 16)
        lower += at >= 1 << 45 or 1 << 37 <= at < 1 << 39
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return lower, len(os.listdir(f"/proc/{pid}/fd")), int(re.search(r"VmRSS:\s+(\d+)", status)[1])


def constant(mpi, times="12", how="drained"):
    """Nothing grows from renewal to renewal, neither in ranks nor in the daemon nor in /dev/shm."""
    extra = [*LOG, "--message-log-memory", "256KiB"] if how == "anywhere" else OWN
    with Scratch("renew-constant") as cwd:
        env = dict(os.environ, STEADY_PAUSE="5000")
        # Others have files in /dev/shm as well: the job has one of its own.
        apart = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh"] if os.geteuid() == 0 else []
        with Job.run([PROGRAMS / f"steady.{mpi}", 100000, 2], 2, cwd, mpi=mpi, env=env, extra=extra, on=apart) as job:
            job.on = ()
            job.wait_until(lambda: job.lines(), "the first line")
            seen = []

            def in_shm():
                return len(os.listdir(f"/proc/{job.daemon_pids()[0]}/root/dev/shm"))

            for _ in range(int(times)):
                done = renewed(job)
                check(done.returncode == 0, f"renew: {done.stderr}")
                before = len(job.lines())
                job.wait_until(lambda: len(job.lines()) > before + 3, "some steps")
                pids = job.rank_pids() + job.daemon_pids()
                seen.append([of_process(pid) for pid in pids] + [in_shm()])
            first, last = seen[1], seen[-1]
            for one, then in zip(first[:-1], last[:-1]):
                check(abs(then[0] - one[0]) <= 6 and then[2] < one[2] * 1.05 + 1000, f"{first} then {last}")
            # The daemon's helper of the world before may take a moment to leave.
            least = [min(each[i][1] for each in seen[1:]) for i in range(len(pids))]
            job.wait_until(lambda: [of_process(pid)[1] for pid in pids] == least, f"descriptors {least}, after {last}", 10)
            # So may what a world before has left in /dev/shm.
            job.wait_until(lambda: in_shm() <= first[-1], f"/dev/shm: {first[-1]} files, after {last[-1]}", 10)
            check(job.ask("cancel").returncode == 0, "cancel")
    return f"{last[0]} after {times} renewals"


def refused(mpi):
    """A job of another launcher, and a program that no child could go on with: one line, and the job goes on."""
    with Scratch("renew-refused") as cwd:
        env = dict(os.environ, STEADY_PAUSE="3000")
        program = [PROGRAMS / f"steady.{mpi}", 300, 1]
        wanted = harness.native(program, 2, mpi, cwd)
        with Job.run(program, 2, cwd, mpi=mpi, env=env, extra=["--launcher", "mpiexec"]) as job:
            job.wait_until(lambda: job.lines(), "the first line")
            done = renewed(job)
            check(done.returncode == 3 and "--launcher own" in done.stderr and done.stderr.count("\n") == 1, f"{done.returncode} {done.stderr}")
            check(job.finish() == wanted, "another result")
        with Job.run(program, 2, cwd, mpi=mpi, env=env, extra=OWN) as job:
            job.wait_until(lambda: job.lines(), "the first line")
            done = renewed(job, "--env", "no_value")
            check(done.returncode == 2 and "NAME=VALUE" in done.stderr, f"{done.returncode} {done.stderr}")
            check(job.finish() == wanted, "another result")
        env = dict(os.environ, OWN_STATE_STEPS="20000", STEADY_PAUSE="4000")
        with Job.run([PROGRAMS / f"own_state.{mpi}", "s", "triggers", "keep=3"], 2, cwd, mpi=mpi, env=env, extra=OWN) as job:
            job.wait_until(lambda: "from 0 0" in job.lines(), "the first line")
            time.sleep(1)  # the root hears of it
            done = renewed(job)
            check(done.returncode == 3 and "saves its own state" in done.stderr, f"{done.returncode} {done.stderr}")


def new_children(daemon, old):
    """Ranks' processes that have not been ranks before; waits a moment for one."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        children = set(map(int, pathlib.Path(f"/proc/{daemon}/task/{daemon}/children").read_text().split()))
        young = []
        for pid in children - old:
            try:
                name = pathlib.Path(f"/proc/{pid}/comm").read_text()
                if "pmix" not in name and "noded" not in name:
                    young.append(pid)
            except OSError:
                pass  # gone
        if young:
            return young
    return []


def killed(mpi, times="6", seed="3", how="drained"):
    """A child is killed while it starts, at random moments: the job goes on as it was."""
    draw = random.Random(int(seed))
    with Scratch("renew-killed") as cwd:
        env = dict(os.environ, STEADY_PAUSE="4000")
        program = [PROGRAMS / f"steady.{mpi}", 1500, 2]
        wanted = harness.native(program, 2, mpi, cwd)
        gave_up = 0
        with Job.run(program, 2, cwd, mpi=mpi, env=env, extra=LOG if how == "anywhere" else OWN) as job:
            job.wait_until(lambda: job.lines(), "the first line")
            for _ in range(int(times)):
                if job.process.poll() is not None:
                    break
                daemon = job.daemon_pids()[0]
                old = set(job.rank_pids())
                asked = subprocess.Popen([str(harness.FERMATA), "renew", "--job", job.name], stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True)
                # Just born: long before it can be the rank itself.
                for pid in new_children(daemon, old)[:1]:
                    time.sleep(draw.uniform(0, 0.03))
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass  # a helper of the world's server, or a renewal that was over in no time
                asked.wait(60)
                gave_up += asked.returncode != 0
            lines = job.finish()
        check(lines == wanted, f"{lines[-2:]}, natively {wanted[-2:]}; {gave_up} given up")
        check(gave_up >= int(times) // 2, f"only {gave_up} given up")
    return f"{gave_up} of {times} given up"


def signals(mpi, times="3"):
    """Signals that come while the children start: each is heard once."""
    each = 20
    with Scratch("renew-signals") as cwd:
        go = cwd / "go"
        with Job.run([PROGRAMS / f"signalled.{mpi}"], 2, cwd, mpi=mpi, env=dict(os.environ, HOLD_FILE=str(go)), extra=OWN) as job:
            job.wait_line("READY")
            for _ in range(int(times)):
                daemon, old = job.daemon_pids()[0], job.rank_pids()
                asked = subprocess.Popen([str(harness.FERMATA), "renew", "--job", job.name], stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True)
                check(new_children(daemon, set(old)), "no child")
                for pid in old * each:
                    os.kill(pid, signal.SIGRTMIN + 3)
                check(asked.wait(60) == 0, "renew")
            go.touch()
            lines = job.finish()
        wanted = ["READY"] + [f"rank {rank} heard {each * int(times)}" for rank in range(2)]
        check(lines == wanted, f"{lines}, wanted {wanted}")


def saved(mpi):
    """Checkpoints before and after renewals, continued by the site's launcher on the other library."""
    with Scratch("renew-saved") as cwd:
        env = dict(os.environ, STEADY_PAUSE="3000")
        program = [PROGRAMS / f"steady.{mpi}", 700, 2]
        wanted = harness.native(program, 2, mpi, cwd)
        with Job.run(program, 2, cwd, mpi=mpi, env=env, extra=[*OWN, "--save-options", "incremental"]) as job:
            job.wait_until(lambda: job.lines(), "the first line")
            for words in ["--mpi", OTHER[mpi]], []:
                job.checkpoint()
                check(renewed(job, *words).returncode == 0, "renew")
            job.checkpoint("--stop")
            lines = job.finish(expected=85)
        # What served it last is what it is continued on when nobody says otherwise.
        listed = json.loads(harness.call("list", "--json", "--ckpt-dir", "ckpt", cwd=cwd).stdout)
        check(listed[-1]["mpi"] == OTHER[mpi], listed[-1])
        with Job.restart(cwd, mpi=mpi, extra=OWN) as job:
            job.wait_until(lambda: job.lines(), "a line")
            check(renewed(job).returncode == 0, "renew")
            lines += job.finish()
        check(lines == wanted, f"{lines[-2:]}, natively {wanted[-2:]}")


def libraries_of(pid):
    """Files of the MPI library that a rank has mapped."""
    return {line.split()[-1] for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines() if "libmpi" in line}


def place(mpi):
    """A library that is named by its place stays the job's at a renewal; another is taken and given back; words of mpiexec."""
    name = {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}[mpi]
    cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    debians = next(line.split("=> ")[1] for line in cache.splitlines() if line.strip().startswith(name))
    with Scratch("renew-place") as cwd:
        # A copy: what is mapped says which of the two it is.
        (cwd / "elsewhere" / "lib").mkdir(parents=True)
        here = cwd / "elsewhere" / "lib" / name.replace("mpich", "mpi")
        shutil.copy(pathlib.Path(debians).resolve(), here)
        program = [PROGRAMS / f"steady.{mpi}", 700, 2]
        wanted = harness.native(program, 2, mpi, cwd)
        env = dict(os.environ, STEADY_PAUSE="4000")
        with Job.run(program, 2, cwd, mpi=cwd / "elsewhere", env=env, extra=OWN) as job:
            job.wait_until(lambda: job.lines(), "the first line")

            def serves(library, *words):
                done = renewed(job, *words)
                check(done.returncode == 0, f"{words}: {done.stderr}")
                for pid in job.rank_pids():
                    check(str(library) in libraries_of(pid), f"{words}: {libraries_of(pid)} and not {library}")

            check(str(here) in libraries_of(job.rank_pids()[0]), libraries_of(job.rank_pids()[0]))
            serves(here)
            serves(pathlib.Path(debians).resolve(), "--mpi", mpi)
            # Given once, kept; in the words of the library's mpiexec.
            there = cwd / name
            shutil.copy(here, there)
            serves(there, "--mpiexec-args", f"-x LD_LIBRARY_PATH={cwd}" if mpi == "openmpi" else f"-genv LD_LIBRARY_PATH {cwd}")
            serves(there)
            serves(here, "--mpi", os.path.relpath(cwd / "elsewhere"))
            for words, code, line in ((["--mpi", "nompi"], 2, "no MPI library is called nompi"), (["--mpi", "nowhere/x"], 2, "no MPI library at"),
                                      (["--mpiexec-args", "--bynode"], 2, "stay where they are")):
                done = renewed(job, *words)
                check(done.returncode == code and line in done.stderr and done.stderr.count("\n") == 1, f"{words}: {done.returncode} {done.stderr}")
            lines = job.finish()
        check(lines == wanted, f"{lines[-2:]}, natively {wanted[-2:]}")


CASES = {f.__name__: f for f in (storm, held, anywhere, kept, state, constant, refused, killed, signals, saved, place)}
sys.exit(harness.main(lambda name, *rest: CASES[name](*rest), CASES))
