#!/usr/bin/env python3
"""What `fermata inspect` says of the objects of MPI in an image, against a program that made them (tests/programs/objects.c).

    inspect_test.py openmpi|mpich
"""
import json
import pathlib
import sys

import harness
from harness import PROGRAMS, Job, Scratch, call, check


def only(objects, **facts):
    found = [one for one in objects if all(one.get(key) == value for key, value in facts.items())]
    check(len(found) == 1, f"{facts}: {len(found)} in {json.dumps(objects, indent=1)}")
    return found[0]


def run(mpi):
    with Scratch("inspect") as cwd:
        cwd = pathlib.Path(cwd)
        with Job.run([PROGRAMS / f"objects.{mpi}"], 2, cwd) as job:
            job.wait_line("ready")
            job.checkpoint("--stop")
            job.end()
        said = call("inspect", "--json", "--ckpt-dir", "ckpt", cwd=cwd)
        check(said.returncode == 0, said.stderr)
        for image in json.loads(said.stdout)["images"]:
            rank, objects = image["rank"], image["mpi"]["list"]
            counts = image["mpi"]["counts"]
            for kind, number in {"group": 2, "datatype": 2, "op": 1, "request": 2, "message": 1, "window": 1, "file": 1,
                                 "info": 1, "keyval": 1}.items():
                check(counts[kind] == number, f"{kind}: {counts}")
            only(objects, object="comm", name="MPI_COMM_WORLD", predefined=True, size=2, rank=rank)
            check(only(objects, object="comm", name="alpha")["attributes"] == 1, "its attribute")
            only(objects, object="comm", topology="cart", size=2)
            only(objects, object="comm", kind="inter", size=1, remote_size=1)
            only(objects, object="group", size=1)
            only(objects, object="datatype", combiner="vector", name="column", bytes=80, committed=True)
            only(objects, object="datatype", combiner="contiguous", bytes=240, types=1, committed=False)
            only(objects, object="op", commutes=True)
            only(objects, object="request", kind="receive", peer=1 - rank, tag=77, state="active")
            only(objects, object="request", kind="receive", peer="any", tag=78, state="inactive", persistent=True)
            only(objects, object="message", source=1 - rank, tag=99, bytes=40)
            only(objects, object="window", kind="allocate", bytes=256, unit=4, size=2)
            only(objects, object="file", name=str(cwd / "data"), size=2)
            only(objects, object="info", pairs=1)
        text = call("inspect", "--objects", "--ckpt-dir", "ckpt", cwd=cwd).stdout
        check("datatype 2" in text and "combiner vector" in text, text)
        (cwd / "go").touch()
        with Job.restart(cwd) as job:
            check(job.finish() == ["right"], "the program's end")


if __name__ == "__main__":
    sys.exit(harness.main(run, ["openmpi", "mpich"]))
