#!/usr/bin/env python3
"""What belongs to a process (tests/programs/process.c): each behaviour natively, checkpointed and resumed, checkpointed
and restarted.

    process_test.py openmpi|mpich
"""
import json
import os
import re
import subprocess
import sys

import harness
from harness import BUILD, PROGRAMS, Job, Scratch, call, check

# What a restart cannot bring back, with what it says instead; docs/limits.md has the reason.
NOT_RESTARTED = {"unlink_fstat03": "not true: st.st_nlink == 1 && st.st_ino == named.st_ino"}
# Never to be interposed in the upper half: they would cost every program.
OURS_NEVER = re.compile(r" [TWi] (malloc|calloc|realloc|free|pthread_mutex_\w+|clock_gettime|gettimeofday)(@|$)")


def verdicts(lines):
    return dict(line.split(" ", 1) for line in lines if " right" in line or " not true" in line)


def inspected(cwd):
    """`inspect` names threads and descriptors."""
    done = call("inspect", "--json", "--ckpt-dir", "restarted-ckpt", cwd=cwd)
    check(done.returncode == 0, done.stderr)
    process = json.loads(done.stdout)["images"][0]["process"]
    kinds = {file["kind"] for file in process["files"]}
    check({"signalfd", "eventfd", "fifo", "file", "timerfd", "socket", "memfd", "epoll", "pipe", "removed"} <= kinds,
          f"kinds {kinds}")
    check(any(file.get("path", "").endswith("/append") for file in process["files"]), f"{process['files']}")
    check(len(process["threads"]) >= 8 and any(thread["called_mpi"] for thread in process["threads"]),
          f"{process['threads']}")


def run(mpi):
    with Scratch("process") as cwd:
        program = PROGRAMS / f"process.{mpi}"
        table = {}

        def place(name):
            (cwd / name).mkdir()
            return cwd / name
        table["native"] = verdicts(harness.native([program, place("native")], 1, mpi, cwd))
        for way, options in (("resumed", ()), ("restarted", ("--stop",))):
            hold = cwd / f"go-{way}"
            env = dict(os.environ, HOLD_FILE=str(hold))
            with Job.run([program, place(way)], 1, cwd, mpi=mpi, ckpt=way + "-ckpt", env=env) as job:
                job.wait_line("READY")
                job.checkpoint(*options)
                hold.touch()
                if not options:
                    table[way] = verdicts(job.finish())
                    continue
                job.finish(expected=85)
            inspected(cwd)
            with Job.restart(cwd, ckpt=way + "-ckpt", mpi=mpi, env=env) as job:
                table[way] = verdicts(job.finish())
                if job.errors().strip():
                    print(job.errors().strip())
        bad = []
        for name in table["native"]:
            row = [table[way].get(name, "nothing said") for way in table]
            print(f"   {name:18} " + "  ".join(f"{said:9}" for said in row))
            wanted = ["right", "right", NOT_RESTARTED.get(name, "right")]
            bad += [f"{name} {way}: {said}" for way, said, want in zip(table, row, wanted) if said != want]
        check(len(table["native"]) >= 47, f"only {len(table['native'])} cases")
        fronts = list((BUILD / "lib" / "fermata" / "fronts").glob("*.so*"))
        check(fronts, "no fronts")
        for front in fronts:
            names = subprocess.run(["nm", "-D", "--defined-only", str(front)], capture_output=True, text=True, check=True)
            bad += [f"{front.name} interposes: {line}" for line in names.stdout.splitlines() if OURS_NEVER.search(line)]
        check(not bad, "\n".join(bad))


if __name__ == "__main__":
    sys.exit(harness.verdict("process", lambda: run(sys.argv[1])))
