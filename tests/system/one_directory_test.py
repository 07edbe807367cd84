#!/usr/bin/env python3
"""Several jobs in one checkpoint directory, jobs that have ended, and `run --continue`: one line for a chain of jobs."""
import os
import pathlib
import shutil
import signal

import harness
from harness import FERMATA, PROGRAMS, Job, Scratch, call, check, go, resting

STEPS = 40
ROUNDS = 500  # of arithmetic a step: some 2 ms


def program(mpi, steps=STEPS):
    return [PROGRAMS / f"mix.{mpi}", steps, ROUNDS]


def generations(cwd):
    return sorted(path.name for path in (cwd / "ckpt").glob("gen-*"))


def stopped(job):
    job.wait_until(lambda: len(job.lines()) >= 3, "three lines")
    job.checkpoint("--stop")
    job.finish(expected=85)


def retention(mpi):
    """A stopped job's only generation outlives another job that keeps its newest three; restart finds it again."""
    with Scratch("one-directory") as cwd:
        wanted = harness.native(program(mpi), 2, mpi, cwd)
        with Job.run(program(mpi), 2, cwd, mpi=mpi, env=resting(cwd)) as first:
            stopped(first)
        check(generations(cwd) == ["gen-000001"], generations(cwd))
        with Job.run(program(mpi), 2, cwd, mpi=mpi, extra=["--interval", "0.1s"], env=resting(cwd)) as second:
            check(second.finish() == wanted, "the second job's result")
            check("gen-000001 of job" in second.errors() and "has not ended: it is kept" in second.errors(), second.errors())
        left = generations(cwd)
        check(left[0] == "gen-000001" and len(left) == 4, f"{left}")
        go(cwd)
        # The newest generation is of a job that has ended: not that one is continued.
        with Job(["restart", "--ckpt-dir", "ckpt"], cwd) as back:
            lines = back.finish()
            check(first.lines() + lines == wanted, f"{lines}")
            check("restarting from gen-000001" in back.errors() and "ended with exit code 0" in back.errors(), back.errors())


def ended(mpi):
    """Nobody repeats the tail of a job that has ended with 0, unless it is named."""
    with Scratch("one-directory") as cwd:
        longer = program(mpi, 2 * STEPS)  # the checkpoint is whole before the last line, on a loaded machine, too
        wanted = harness.native(longer, 2, mpi, cwd)
        with Job.run(longer, 2, cwd, mpi=mpi, env=resting(cwd)) as job:
            job.wait_until(lambda: len(job.lines()) >= 20, "twenty lines")
            job.checkpoint()
            go(cwd)
            check(job.finish() == wanted, "the result")
        for _ in range(2):
            done = call("restart", "--ckpt-dir", "ckpt", cwd=cwd)
            check(done.returncode == 7 and not done.stdout and "has ended with exit code 0" in done.stderr and
                  len(done.stderr.splitlines()) == 1, f"{done}")
        last = int(generations(cwd)[-1][4:])
        for choice in (last, "latest"):
            with Job(["restart", "--ckpt-dir", "ckpt", "--generation", choice], cwd) as back:
                lines = back.finish()
                check(lines and lines == wanted[-len(lines):], f"{lines}")
        (cwd / "go").unlink()
        with Job.run([PROGRAMS / f"mix.{mpi}", 1000, ROUNDS], 2, cwd, mpi=mpi, ckpt="killed", env=resting(cwd)) as job:
            job.wait_until(lambda: len(job.lines()) >= 3, "three lines")
            job.checkpoint()
            job.kill_ranks()
        with Job(["restart", "--ckpt-dir", "killed"], cwd) as back:  # it did not end with 0
            back.wait_until(lambda: len(back.lines()) >= 3, "the job to go on")


def chain(mpi):
    """The same line starts, continues and says that it is done; another command is no part of the chain."""
    line = ["run", "--continue", "-n", 2, "--mpi", mpi, "--ckpt-dir", "ckpt", "--", *program(mpi)]
    with Scratch("one-directory") as cwd:
        wanted = harness.native(program(mpi), 2, mpi, cwd)
        lines = []
        for _ in range(2):
            with Job(line, cwd, env=resting(cwd)) as job:
                stopped(job)
                lines += job.lines()
        go(cwd)
        done = call(*line[:8], "--", *program(mpi, STEPS + 1), cwd=cwd)
        check(done.returncode == 2 and "of another command, which has not ended" in done.stderr, f"{done}")
        # What starts no MPI program is no part of it, and done each time.
        for _ in range(2):
            done = call(*line[:8], "--", "sh", "-c", "echo staged", cwd=cwd)
            check(done.returncode == 0 and done.stdout == "staged\n" * 2, f"{done}")
        with Job(line, cwd) as job:
            lines += job.finish()
            check("restarting from gen-000002" in job.errors(), job.errors())
        check(lines == wanted, f"{lines}")
        for _ in range(2):
            done = call(*line, cwd=cwd)
            check(done.returncode == 0 and not done.stdout and "nothing is left to be done" in done.stderr, f"{done}")
        # A job that made no checkpoint is done, too.
        other = [*line[:6], "--ckpt-dir", "other", *line[8:]]
        with Job(other, cwd) as job:
            check(job.finish() == wanted, "the result")
        done = call(*other, cwd=cwd)
        check(done.returncode == 0 and not done.stdout, f"{done}")
        # Words that are no UTF-8 are compared by their bytes.
        latin = [*line[:6], "--ckpt-dir", "lat\udce9n", *line[8:], "caf\udce9"]
        (cwd / "go").unlink()
        with Job(latin, cwd, env=resting(cwd)) as job:
            job.wait_until(lambda: len(job.lines()) >= 3, "three lines")
            done = call("checkpoint", "--stop", "--ckpt-dir", "lat\udce9n", cwd=cwd)
            check(done.returncode == 0, f"{done}")
            job.finish(expected=85)
            lines = job.lines()
        go(cwd)
        done = call(*latin[:-1], "caf\udce8", cwd=cwd)
        check(done.returncode == 2 and "of another command" in done.stderr, f"{done}")
        with Job(latin, cwd) as job:
            lines += job.finish()
        check(lines == wanted, f"{lines}")
        done = call(*latin, cwd=cwd)
        check(done.returncode == 0 and not done.stdout and "nothing is left to be done" in done.stderr, f"{done}")


def interrupted(mpi):
    """A job that a signal has ended has not come to its end, whatever mpiexec's exit code (MPICH's says 0)."""
    line = ["run", "--continue", "-n", 2, "--mpi", mpi, "--ckpt-dir", "ckpt", "--", *program(mpi)]
    with Scratch("one-directory") as cwd:
        wanted = harness.native(program(mpi), 2, mpi, cwd)
        ckpt, away = cwd / "ckpt", cwd / "away"

        def launcher(job):
            children = pathlib.Path(f"/proc/{job.process.pid}/task/{job.process.pid}/children").read_text().split()
            names = ["srun"] if harness.LAUNCHER == "srun" else ["mpiexec", "prterun"]  # (Open MPI 5's mpiexec becomes prterun)
            command = {int(child): pathlib.Path(f"/proc/{child}/cmdline").read_text() for child in children}
            return next(child for child, words in command.items() if any(name in words for name in names))

        def full(job):  # the checkpoint that SIGTERM asks for fails
            ckpt.rename(away)
            job.process.terminate()

        def killed_launcher(job):
            os.kill(launcher(job), signal.SIGTERM)

        def interrupted(job):
            job.process.send_signal(signal.SIGINT)

        ends = [interrupted, killed_launcher, full]
        if harness.LAUNCHER == "own":  # `fermata run` itself is the launcher, whose SIGTERM asks for a checkpoint
            ends.remove(killed_launcher)
        for end in ends:
            # Ctrl-C is no failure to go on from.
            again = [] if end is killed_launcher else ["--max-restarts", 1]
            with Job([*line[:2], *again, *line[2:]], cwd, env=resting(cwd)) as job:
                job.wait_until(lambda: len(job.lines()) >= 3, "three lines")
                job.checkpoint()
                end(job)
                code = job.end()
                check("going on " not in job.errors(), job.errors())
            check(end is not full or code not in (0, 85), f"exit code {code}")
            check(end is not interrupted or code == 85, f"exit code {code}")  # Ctrl-C saves first
            if away.exists():
                away.rename(ckpt)
            with Job(line, cwd) as job:
                job.wait_until(lambda: job.lines(), "the job to go on")
                check(f"restarting from gen-00000{2 if end is interrupted else 1}" in job.errors() and job.lines()[0] in wanted[3:], f"{job.lines()} {job.errors()}")
            shutil.rmtree(ckpt)


if __name__ == "__main__":
    CASES = {"retention": retention, "ended": ended, "chain": chain, "interrupted": interrupted}
    raise SystemExit(harness.main(lambda name, mpi: CASES[name](mpi), CASES))
