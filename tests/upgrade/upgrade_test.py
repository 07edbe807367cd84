#!/usr/bin/env python3
"""Generations that earlier builds have saved (keep.py), continued by this one: each on the other library, saved again by this build
while it runs, and continued on its own library. The lines are those of the undisturbed run of then.

    upgrade_test.py NAME.tar.xz
"""
import os
import pathlib
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
import harness  # noqa: E402
from harness import Job, Scratch, check  # noqa: E402

OTHER = {"openmpi": "mpich", "mpich": "openmpi"}


def case(archive, abi):
    with Scratch(f"upgrade-{archive.name.split('.')[0]}-{abi}") as cwd:
        with tarfile.open(archive) as tar:
            for member in tar.getmembers():
                if member.name.startswith(f"{abi}/"):
                    member.name = member.name.removeprefix(f"{abi}/")
                    tar.extract(member, cwd)
        for path in (cwd / "ckpt").rglob("*"):
            os.chown(path, os.getuid(), os.getgid())
        whole, before = ((cwd / name).read_text().splitlines() for name in ("whole", "before"))
        with Job.restart(cwd, mpi=OTHER[abi]) as job:
            job.wait_until(lambda: len(job.lines()) >= 3, "some lines of the program that an earlier build has saved")
            job.checkpoint("--stop")
            middle = job.finish(expected=85)
        with Job.restart(cwd, mpi=abi) as job:
            after = job.finish()
        check(len(middle) >= 3 and len(after) >= 3, f"{len(middle)}, then {len(after)} lines")
        check(before + middle + after == whole, f"{before + middle + after} are not {whole}")
        print(f"{archive.name}, {abi}: {len(before)} lines then, {len(middle)} on {OTHER[abi]}, {len(after)} on {abi}")


if __name__ == "__main__":
    os.environ["FERMATA_ANY_CPU"] = "1"  # keep.py: it has chosen nothing by it
    name = pathlib.Path(sys.argv[1])
    sys.exit(harness.verdict(f"upgrade {name.name}", lambda: [case(name, abi) for abi in OTHER]))
