#!/usr/bin/env python3
"""`fermata doctor --admin` and `--sweep`: this machine's real limits and file systems, a Slurm that is only said to be there, and
what dead jobs leave.

    doctor_test.py slurm|machine|leftovers
"""
import json
import os
import pathlib
import resource
import shutil
import subprocess
import time

import harness
from harness import FERMATA, PROGRAMS, Job, Scratch, check

BAD = """# a comment
ProctrackType=proctrack/pgid KillWait=10
include more.conf
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
JobContainerType=job_container/tmpfs
SlurmdTimeout=0
VSizeFactor=110
Epilog={cwd}/epilog
PartitionName=low Nodes=ALL GraceTime=0
"""
MORE = "JobRequeue=0\nUnkillableStepTimeout=20 # short\n"
GOOD = """Configuration data as of 2026-01-01T00:00:00
AuthInfo                = cred_expire=10
Epilog                  = /opt/fermata/lib/fermata/slurm/epilog.sh
JobContainerType        = job_container/none
JobRequeue              = 1
KillWait                = 60 sec
MpiDefault              = pmix
PreemptMode             = REQUEUE
PreemptType             = preempt/qos
ProctrackType           = proctrack/cgroup
RequeueExit             = 85
SlurmctldParameters     = preempt_send_user_signal
SlurmdTimeout           = 300 sec
UnkillableStepTimeout   = 120 sec
VSizeFactor             = 0 percent
"""


def program(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def doctor(*words, code=0, on=(), **variables):
    """{what: finding}"""
    done = subprocess.run([*map(str, on), str(FERMATA), "doctor", "--json", *map(str, words)], capture_output=True, text=True,
                          env=dict(os.environ, **variables), timeout=harness.PATIENCE)
    check(done.returncode == code, f"doctor {words}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return {one["what"]: one for one in json.loads(done.stdout)}


def found(findings, what, good, *texts):
    one = findings[what]
    check(one["ok"] == good and all(text in one["found"] for text in texts), f"{what}: {one}")
    check("\n" not in one["found"], f"{what} is more than a line")


def slurm(cwd):
    """Every setting that is bad is said, with what to do; slurmctld's word counts more than the file."""
    binaries = cwd / "bin"
    binaries.mkdir()
    program(binaries / "scontrol", "exit 1")
    program(binaries / "srun", f"[ $1 = --help ] && cat {cwd}/help || printf 'MPI plugin types are...\\n\\tnone\\n\\tpmi2\\n'")
    (cwd / "help").write_text("      --fermata=DIR           srun steps\n")
    (cwd / "slurm.conf").write_text(BAD.format(cwd=cwd))
    (cwd / "more.conf").write_text(MORE)
    program(cwd / "epilog", "# fermata is not here\nexit 0")
    around = {"SLURM_CONF": str(cwd / "slurm.conf"), "PATH": f"{binaries}:{os.environ['PATH']}"}
    said = doctor("--admin", code=1, **around)  # VSizeFactor
    found(said, "slurm", True, f"{cwd}/slurm.conf")
    found(said, "ProctrackType", False, "proctrack/pgid", "proctrack/cgroup")
    found(said, "KillWait", False, "10 s from SIGTERM")
    found(said, "preemption", False, "CANCEL ends jobs")
    found(said, "requeue", False, "sbatch --requeue", "RequeueExit=85 would")
    found(said, "SlurmdTimeout", False, "0: Slurm never")
    found(said, "UnkillableStep", False, "20 s until")
    found(said, "VSizeFactor", False, "jobs are refused")
    check(said["VSizeFactor"]["needed"], "jobs are not refused for VSizeFactor?")
    found(said, "JobContainer", False, "FERMATA_RUN_DIR")
    found(said, "srun, openmpi", False, "pmi2", "PMIx")
    found(said, "srun, mpich", True, "--mpi=pmi2")
    found(said, "srun --fermata", True, "not there", f"{cwd}/plugstack.conf")
    found(said, "Epilog", False, "waits for that user's next one")

    (cwd / "good").write_text(GOOD)
    program(binaries / "scontrol", f"[ \"$*\" = 'show config' ] && cat {cwd}/good")
    (cwd / "fermata_spank.so").write_text("")
    (cwd / "plugstack.conf").write_text(f"# required {cwd}/other/fermata_spank.so\noptional {cwd}/fermata_spank.so fermata=/usr/bin/fermata\n")
    said = doctor("--admin", **around)
    found(said, "slurm", True, "scontrol")
    for what in ("ProctrackType", "KillWait", "preemption", "requeue", "SlurmdTimeout", "UnkillableStep", "VSizeFactor", "JobContainer", "Epilog"):
        found(said, what, True)
    found(said, "preemption", True, "GraceTime")  # partitions are in the file alone
    found(said, "srun --fermata", True, f"has {cwd}/fermata_spank.so")
    (cwd / "help").write_text("nothing\n")
    found(doctor("--admin", **around), "srun --fermata", False, "srun does not take it")
    (cwd / "help").write_text("      --fermata=DIR           srun steps\n")
    (cwd / "plugstack.conf").write_text(f"required {cwd}/fermata_spank.so\n")
    found(doctor("--admin", **around), "srun --fermata", False, "optional")
    (cwd / "fermata_spank.so").unlink()
    found(doctor("--admin", **around), "srun --fermata", False, "not on this node")
    said = doctor("--admin", SLURM_CONF=str(cwd / "gone"))
    found(said, "slurm", False, "cannot be read")
    check("KillWait" not in said, "settings of a Slurm that is not there")
    check("slurm" not in doctor(**around), "Slurm without --admin")


def machine(cwd):
    """What the kernel says, here and now."""
    said = doctor("--admin", "--ckpt-dir", cwd / "a" / "b")
    kind = subprocess.run(["stat", "-f", "-c", "%T", cwd], capture_output=True, text=True, check=True).stdout.strip()
    names = {"ext2/ext3": "ext4", "xfs": "XFS", "btrfs": "Btrfs", "tmpfs": "tmpfs", "overlayfs": "overlayfs"}
    found(said, "checkpoints", said["checkpoints"]["ok"], f"{cwd}: {names.get(kind, '')}", "free")
    check(not list(cwd.iterdir()), f"left: {list(cwd.iterdir())}")
    found(said, "its locks", True)
    probe = cwd / "one"
    probe.write_bytes(b"x" * 4096)
    shares = subprocess.run(["cp", "--reflink=always", probe, cwd / "two"], capture_output=True).returncode == 0
    check(said["its features"]["found"].startswith("files share" if shares else "no shared"), f"reflink: {shares}, {said['its features']}")
    scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
    found(said, "ptrace", not scope.exists() or int(scope.read_text()) < 2, scope.read_text().strip() if scope.exists() else "Yama")
    found(said, "overcommit", True, f"={pathlib.Path('/proc/sys/vm/overcommit_memory').read_text().strip()}")
    found(said, "mappings", True, pathlib.Path("/proc/sys/vm/max_map_count").read_text().strip())
    found(said, "most files", said["most files"]["ok"], str(resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    adapters = pathlib.Path("/sys/class/infiniband").exists()
    small = doctor("--admin", on=["prlimit", "--memlock=65536:65536", "--nofile=1000:1000"])
    found(small, "locked memory", not adapters, "64.0 KiB" if "64.0 KiB" in small["locked memory"]["found"] else "64 KiB")
    found(small, "most files", False, "1000")
    found(doctor("--admin", TMPDIR="/nowhere"), "TMPDIR", False, "/nowhere cannot be written to")
    with Scratch("doctor-memory") as elsewhere:
        memory = pathlib.Path("/dev/shm") / elsewhere.name
        memory.mkdir()
        try:
            found(doctor("--admin", "--ckpt-dir", memory), "checkpoints", False, "gone when the machine is")
        finally:
            memory.rmdir()


def leftovers(cwd):
    """What killed jobs left goes, of the user who asks, as root of all; what runs, and what a restart wants, stays."""
    run_dir, memory = cwd / "run", cwd / "memory"
    run_dir.mkdir()
    run_dir.chmod(0o1777)
    memory.mkdir()
    cwd.chmod(0o711)
    places = {"FERMATA_RUN_DIR": str(run_dir), "FERMATA_MEMORY_DIR": str(memory), "FERMATA_LOCAL_DIR": str(cwd / "local")}
    os.environ.update(places)
    env = dict(os.environ, STEADY_PAUSE="3000")
    base = run_dir / f"fermata-{os.geteuid()}"
    steady = [PROGRAMS / "steady.mpich", 2000, 1]
    found(doctor("--sweep"), "leftovers", True, "nothing of")
    with Job.run(steady, 2, cwd, mpi="mpich", ckpt="dead", env=env, extra=["--levels", "memory 0.3s"]) as dead:
        dead.wait_until(lambda: list((cwd / "dead").glob("gen-*/manifest.json")), "a generation")
        pids = (dead.process.pid, *dead.processes())
        for pid in pids:
            os.kill(pid, 9)
        dead.process.wait()
        end = time.monotonic() + 30  # what still holds the job's lock is swept by nobody
        while any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < end:
            time.sleep(0.05)
    with Job.run(steady, 2, cwd, mpi="mpich", env=env) as living:
        living.wait_until(lambda: len(living.lines()) > 5, "some lines")
        # A job that starts sweeps, too: these are left for the doctor.
        mine = base / "left"
        mine.mkdir()
        (mine / "lock").write_text("fermata run directory 1\n")
        if os.geteuid() == 0:
            others(run_dir)
        found(doctor("--admin"), "leftovers", False, f"{2 if os.geteuid() == 0 else 1} run directories", "1 of them for a restart")
        before = {path.name for path in base.iterdir()} - {"left"}
        found(doctor("--sweep"), "leftovers", True, "of them stay: 0 run directories, 1 directories")
        check({path.name for path in base.iterdir()} == before, f"{before} before, {list(base.iterdir())} now")
        if os.geteuid() == 0:
            check(not (run_dir / "fermata-65534" / "left").exists(), "another user's is left")
            check((run_dir / "fermata-65533" / "left").exists(), "somebody has made root remove what is not that user's")
        mine.mkdir()
        (mine / "lock").write_text("fermata run directory 1\n")
        epilog(cwd, places)
        check(not mine.exists(), "the epilog has left it")
        living.checkpoint("--stop")
        living.finish(expected=85)
    check(list(memory.glob("**/*.img")), "what a restart wants is gone")


def others(run_dir):
    """What a job of another user's left, and a name that somebody has made for a third."""
    for user, owner in ((65534, 65534), (65533, 65534)):
        left = run_dir / f"fermata-{user}" / "left"
        left.mkdir(parents=True)
        (left / "lock").write_text("fermata run directory 1\n")
        for path in (left / "lock", left, left.parent):
            os.chown(path, owner, owner)
        left.parent.chmod(0o700)


def epilog(cwd, places):
    """As an installation has it, with nothing in PATH."""
    here = cwd / "prefix" / "lib" / "fermata" / "slurm"
    here.mkdir(parents=True)
    shutil.copy(pathlib.Path(__file__).resolve().parents[2] / "packaging" / "slurm" / "epilog.sh", here)
    (cwd / "prefix" / "bin").mkdir()
    (cwd / "prefix" / "bin" / "fermata").symlink_to(FERMATA)
    done = subprocess.run([here / "epilog.sh"], capture_output=True, text=True, env=places)
    check(done.returncode == 0 and not done.stdout + done.stderr, f"{done}")


CASES = {f.__name__: f for f in (slurm, machine, leftovers)}


def case(name):
    with Scratch(f"doctor-{name}") as cwd:
        CASES[name](cwd)


if __name__ == "__main__":
    raise SystemExit(harness.main(case, CASES))
