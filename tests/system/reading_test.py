#!/usr/bin/env python3
"""Files that the program only reads, and that have changed between a stop and a restart (tests/programs/reading.c): what is
said, and with what content the program goes on.

    reading_test.py small|large|encrypted openmpi|mpich
"""
import os
import shutil
import sys

import harness
from harness import PROGRAMS, Job, Scratch, check

LINES = 400
TEXT = "".join(f"step {i} of the input\n" for i in range(LINES))
BIG = 16 << 20  # bytes: more than is kept


def keep_times(path, change):
    status = path.stat()
    change()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace(path, text):
    """As editors do."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.rename(path)


class Case:
    def __init__(self, cwd, mpi, text, extra=()):
        self.cwd, self.mpi, self.text, self.extra = cwd, mpi, text, extra
        self.input = cwd / "in.script"
        self.hold = cwd / "go"
        self.env = dict(os.environ, HOLD_FILE=str(self.hold))
        self.program = [PROGRAMS / f"reading.{mpi}", self.input]
        self.input.write_text(text)
        self.hold.touch()
        self.want = harness.native(self.program, 2, mpi, cwd)
        self.hold.unlink()
        with Job.run(self.program, 2, cwd, mpi=mpi, env=self.env, extra=extra) as job:
            job.wait_line("READY")
            job.checkpoint("--stop")
            job.finish(expected=85)
        self.hold.touch()

    def restart(self, what, says, silent=False, extra=(), same=True, code=0):
        """Goes on; stderr has `says`. The file is put back afterwards."""
        with Job.restart(self.cwd, mpi=self.mpi, env=self.env, extra=[*self.extra, *extra]) as job:
            lines = job.finish(expected=code)
            said = job.errors()
        check(("in.script" in said) == (not silent), f"{what}: {said}")
        check(says in said, f"{what}: no '{says}' in {said}")
        if code == 0:
            check((lines[-2:] == self.want[-2:]) == same, f"{what}: {lines}, natively {self.want}\n{said}")
        replace(self.input, self.text)
        return lines


def small(cwd, mpi):
    case = Case(cwd, mpi, TEXT)
    case.restart("nothing changed", "", silent=True)
    replace(case.input, TEXT)
    case.restart("the same content in another file", "", silent=True)
    kept = "goes on with what was kept of it"
    replace(case.input, TEXT.replace("input", "INPUT"))
    case.restart("edited", kept)
    keep_times(case.input, lambda: case.input.write_text(TEXT.replace("step", "STEP")))
    case.restart("edited in place, with the old time", kept)
    case.input.write_text(TEXT[:200])
    case.restart("truncated", kept)
    case.input.unlink()
    case.restart("removed", kept)
    replace(case.input, TEXT.replace("input", "INPUT"))
    case.restart("edited, and the new content is wanted", "the program reads that (--files off)", extra=["--files", "off"],
                 same=False)
    case.input.write_text(TEXT + "one more\n")
    lines = case.restart("appended to", "has grown since the checkpoint", same=False)
    check("the last 'one more'" in lines[-2], f"appended to: {lines}")
    # A copy that is damaged is none.
    for copy in (cwd / "ckpt").glob("gen-*/files/*"):
        copy.write_bytes(copy.read_bytes()[:-1] + b"!")
    replace(case.input, TEXT.replace("input", "INPUT"))
    case.restart("edited, the copy damaged", "was not kept: put it back and restart again", code=1)


def large(cwd, mpi):
    text = "".join(f"{i:0255d}\n" for i in range(BIG // 256))
    case = Case(cwd, mpi, text)
    case.restart("nothing changed", "", silent=True)
    replace(case.input, text)
    case.restart("the same content, another time", "the rest was not compared")
    replace(case.input, "1" + text[1:])
    case.restart("edited at its beginning", "was not kept: put it back and restart again", code=1)
    replace(case.input, "1" + text[1:])
    case.restart("edited at its beginning, wanted", "the program reads that (--files off)", extra=["--files", "off"])
    replace(case.input, text[:-2] + "x\n")
    case.restart("edited at its end", "holds something else than at the checkpoint", code=1)
    shutil.copy2(case.input, cwd / "copy")
    (cwd / "copy").rename(case.input)
    replace(case.input, text + "more\n")
    case.restart("appended to", "has grown since the checkpoint", same=False)


def encrypted(cwd, mpi):
    key = cwd / "key"
    key.touch(mode=0o600)
    key.write_text("17" * 32)
    case = Case(cwd, mpi, TEXT, ["--encrypt-key", key])
    case.restart("nothing changed", "", silent=True)
    replace(case.input, TEXT.replace("input", "INPUT"))
    case.restart("edited", "was not kept: put it back and restart again", code=1)


def run(what, mpi):
    with Scratch("reading") as cwd:
        {"small": small, "large": large, "encrypted": encrypted}[what](cwd, mpi)


if __name__ == "__main__":
    sys.exit(harness.main(run, ["small", "large", "encrypted"]))
