#!/usr/bin/env python3
"""LSF's way to save a job and to bring it back, examples/lsf: where there is no LSF, with what it would do around them.

    lsf_test.py
"""
import os
import pathlib
import subprocess
import sys
import time

import harness
from harness import PROGRAMS, Scratch, check

METHOD = pathlib.Path(__file__).resolve().parents[2] / "examples" / "lsf"
STEPS, PAUSE = 400, 3000


class Job:
    """What LSF starts as job NUMBER, in a directory of its own below the one of `bsub -k`."""

    def __init__(self, cwd, number, command):
        self.env = dict(os.environ, LSB_JOBID=str(number), LSB_CHKPNT_DIR=str(cwd / "chkpnt" / str(number)),
                        PATH=f"{harness.FERMATA.parent}:{os.environ['PATH']}", STEADY_PAUSE=str(PAUSE))
        self.output = cwd / f"out.{number}"
        with self.output.open("w") as out:
            self.process = subprocess.Popen(["sh", "-c", command], env=self.env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out)

    def lines(self):
        text = self.output.read_text()
        return text[:text.rfind("\n") + 1].splitlines()

    def until(self, lines):
        end = time.monotonic() + harness.PATIENCE
        while len(self.lines()) < lines:
            check(self.process.poll() is None and time.monotonic() < end, f"{len(self.lines())} lines")
            time.sleep(0.01)

    def method(self, name, *words):
        return subprocess.run([METHOD / f"{name}.fermata", *words, str(self.process.pid)], env=self.env, capture_output=True,
                              text=True, timeout=harness.PATIENCE, check=False)

    def end(self):
        return self.process.wait(harness.PATIENCE)


def run():
    with Scratch("lsf") as cwd:
        program = f"{PROGRAMS}/steady.mpich {STEPS} 1"
        wanted = harness.native(program.split(), 2, "mpich", cwd)
        (cwd / "chkpnt" / "123").mkdir(parents=True)
        first = Job(cwd, 123, f'fermata run -n 2 --mpi mpich --job lsf-$LSB_JOBID --ckpt-dir "$LSB_CHKPNT_DIR/fermata" -- {program}')
        none = first.method("erestart")
        check(none.returncode != 0 and "no generation" in none.stderr, f"nothing to come back from: {none}")
        first.until(30)
        check(first.method("echkpnt", "-f").returncode == 0, "no checkpoint")
        check(first.method("echkpnt", "-s").returncode == 1, "-s was not refused")
        check(first.process.poll() is None, "a job ended by its checkpoint")
        done = first.method("echkpnt", "-k", "-d", str(cwd / "chkpnt"))
        check(done.returncode == 0, f"echkpnt -k: {done.stdout}{done.stderr}")
        check(first.end() == 85, "the job did not end with its checkpoint")
        # LSF renames the directory, and leaves a link.
        (cwd / "chkpnt" / "123").rename(cwd / "chkpnt" / "456")
        (cwd / "chkpnt" / "123").symlink_to("456")
        first.env["LSB_CHKPNT_DIR"] = str(cwd / "chkpnt" / "456")
        done = first.method("erestart")
        check(done.returncode == 0, f"erestart: {done.stdout}{done.stderr}")
        key, _, command = (cwd / "chkpnt" / "456" / ".restart_cmd").read_text().strip().partition("=")
        check(key == "LSB_RESTART_CMD", f"{key}={command}")
        second = Job(cwd, 456, command)
        check(second.end() == 0, "the restarted job failed")
        check(first.lines() + second.lines() == wanted, f"{len(first.lines())} and {len(second.lines())} lines of {len(wanted)}")
        check(first.lines() and second.lines(), "one of the two did everything")


if __name__ == "__main__":
    sys.exit(harness.verdict("lsf", run))
