#!/usr/bin/env python3
"""examples/slurm.sh under a real Slurm: a controller and two nodes, namespaces as in tests/system/nodes_test.py. As root;
the packages slurmctld slurmd slurm-client munge have to be there.

    tests/suites/slurm.py [CASE…] [--mpi openmpi|mpich|both]

Each case ends with the lines of an undisturbed run.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
import harness
from harness import Failure, Scratch, check
from nodes_test import NAMES, Cluster, same

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "examples" / "slurm.sh"
MIB, PAUSE = 2, 20000  # some 45 steps a second
CONFIGURATION = """
ClusterName=fermata
SlurmctldHost={first}
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
# cred_expire: so long a requeued job has to wait, 120 s by default.
AuthInfo=socket={cwd}/munge.socket,cred_expire=10
StateSaveLocation={cwd}/state
SlurmctldPidFile={cwd}/slurmctld.pid
SlurmctldLogFile={cwd}/slurmctld.log
SlurmdPidFile={cwd}/slurmd.%n.pid
SlurmdLogFile={cwd}/slurmd.%n.log
SlurmdSpoolDir={cwd}/spool.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
{nodes}PartitionName=low Nodes=ALL Default=YES PriorityTier=1 GraceTime=60
PartitionName=high Nodes=ALL PriorityTier=10
"""


class Slurm(Cluster):
    """A cluster whose nodes run the daemons of Slurm."""

    def __init__(self, cwd):
        super().__init__(cwd)
        self.daemons = []

    def build(self):
        super().build()
        self.cwd.chmod(0o711)  # munge insists
        nodes = "".join(f"NodeName={node.name} NodeAddr={node.address} CPUs=2\n" for node in self.nodes)
        (self.cwd / "slurm.conf").write_text(CONFIGURATION.format(cwd=self.cwd, first=self.nodes[0].name, nodes=nodes))
        (self.cwd / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")  # none is used, but v2 wants one to be there
        (self.cwd / "munge.key").write_bytes(os.urandom(128))
        (self.cwd / "munge.key").chmod(0o400)
        files = [f"--{kind}-file={self.cwd}/munge.{kind}" for kind in ("key", "log", "pid", "seed")]
        self.daemon("munged", "--foreground", f"--socket={self.cwd}/munge.socket", *files)
        self.until(lambda: (self.cwd / "munge.socket").exists(), "munge's socket", 30)
        self.daemon(*self.nodes[0].on, *self.configured("slurmctld", "-D"))
        for node in self.nodes:
            self.daemon(*node.on, *self.configured("slurmd", "-D"))
        self.until(lambda: self.ask("sinfo", "-h", "-p", "low", "-t", "idle", "-o", "%D") == "2", "two idle nodes", 60)

    def __exit__(self, *rest):
        super().__exit__(*rest)  # with all that runs on the nodes
        for daemon in self.daemons:
            daemon.kill()
            daemon.wait()

    def configured(self, *words):
        return ["env", f"SLURM_CONF={self.cwd}/slurm.conf", f"PATH={harness.FERMATA.parent}:{os.environ['PATH']}", *words]

    def daemon(self, *words):
        with (self.cwd / "daemons.log").open("a") as log:
            self.daemons.append(subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def call(self, *words):
        return subprocess.run([*self.nodes[0].on, *self.configured(*map(str, words))], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=60, check=False)

    def ask(self, *words):
        """What a command says; empty when it fails."""
        done = self.call(*words)
        return done.stdout.strip() if done.returncode == 0 else ""

    def until(self, condition, what, patience=300):
        end = time.monotonic() + patience
        while not condition():
            if time.monotonic() > end:
                raise Failure(f"{what} did not come in {patience} s\n{self.ask('squeue')}\n{self.ask('scontrol', 'show', 'job')}\n"
                              + "".join(f"{log.name}:\n{log.read_text()[-3000:]}\n" for log in self.cwd.glob("*.log")))
            time.sleep(0.2)

    def submit(self, script, *options):
        done = self.call("sbatch", "--parsable", *options, script)
        check(done.returncode == 0, f"sbatch: {done.stderr}")
        return done.stdout.strip()

    def state(self, number):
        return self.ask("squeue", "-h", "-j", number, "-t", "all", "-o", "%T")

    def end(self, number):
        active = time.monotonic()

        def ended():
            nonlocal active
            state = self.state(number)
            if state in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "REQUEUED"):
                active = time.monotonic()
            # A job that is being requeued is shown as ended for a moment.
            return state == "COMPLETED" or time.monotonic() - active > 10

        self.until(ended, f"the end of job {number}", 900)
        words = [line for line in self.output(number).splitlines() if not line.startswith("step")]
        check(self.state(number) == "COMPLETED", f"job {number}: {self.state(number)}, {len(self.said(number))} lines\n" + "\n".join(words))

    def requeued(self, number):
        times = int(re.search(r"Restarts=(\d+)", self.ask("scontrol", "show", "job", number)).group(1))
        check(times > 0, "the job was never requeued")
        return times

    def output(self, number):
        path = self.cwd / f"out.{number}"
        return path.read_text() if path.exists() else ""

    def said(self, number):
        return re.findall(r"^(?:step|end) .*", self.output(number), re.MULTILINE)


def start(slurm, mpi, steps, *options):
    """examples/slurm.sh with our program as its solver, two ranks; its number, and what it has to say."""
    program = [harness.PROGRAMS / f"steady.{mpi}", steps, MIB]
    wanted = harness.native(program, 2, mpi, slurm.cwd)
    script = slurm.cwd / "job.sh"
    text = SCRIPT.read_text()
    check("./solver" in text, "slurm.sh has no ./solver")
    script.write_text(text.replace("./solver", " ".join(map(str, program))).replace("fermata run ", f"fermata run --mpi {mpi} "))
    # Debian's MPICH may hang in MPI_Finalize between nodes, natively too (docs/internals/bindings.md).
    nodes = 1 if mpi == "mpich" else 2
    number = slurm.submit(script, f"--nodes={nodes}", f"--ntasks-per-node={2 // nodes}", f"--chdir={slurm.cwd}", f"--output={slurm.cwd}/out.%j",
                          f"--export=ALL,STEADY_PAUSE={PAUSE}", *options)
    slurm.until(lambda: len(slurm.said(number)) > 100, "100 steps")
    hosts = sorted(node["host"] for node in json.loads(slurm.call("fermata", "status", "--json").stdout)["nodes"])
    check(hosts == sorted(NAMES)[:nodes], f"the ranks are on {hosts}")
    return number, [line for line in wanted if line.startswith(("step", "end"))]


def time_limit(slurm, mpi):
    """The limit comes before the program is done."""
    number, wanted = start(slurm, mpi, 4000, "--time=2", "--signal=B:TERM@45")  # it comes up to a minute early
    slurm.end(number)
    same(slurm.said(number), wanted, "over the time limit")
    return f"requeued {slurm.requeued(number)} times"


def preempted(slurm, mpi):
    """A job of a partition of higher priority takes the nodes; then it goes on."""
    number, wanted = start(slurm, mpi, 3000, "--partition=low", "--signal=B:TERM@30")
    slurm.until(lambda: len(slurm.said(number)) > 300, "300 steps")
    (slurm.cwd / "urgent.sh").write_text("#!/bin/sh\nsleep 5\n")
    before = len(slurm.said(number))
    urgent = slurm.submit(slurm.cwd / "urgent.sh", "--partition=high", "--nodes=2", "--exclusive", f"--chdir={slurm.cwd}", "--output=/dev/null")
    begin = time.monotonic()
    slurm.until(lambda: slurm.state(urgent) in ("RUNNING", "COMPLETED"), "the urgent job", 120)
    waited = time.monotonic() - begin
    slurm.end(urgent)
    slurm.end(number)
    same(slurm.said(number), wanted, "after the urgent job")
    slurm.requeued(number)
    return f"preempted after {before} lines, the urgent job waited {waited:.1f} s"


CASES = {f.__name__: f for f in (time_limit, preempted)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--mpi", default="both")
    options = parser.parse_args()
    missing = [tool for tool in ("munged", "slurmctld", "slurmd", "sbatch") if shutil.which(tool) is None]
    if missing or set(options.cases) - set(CASES):
        parser.error(f"not there: {', '.join(missing)}" if missing else f"cases are: {', '.join(CASES)}")
    failed = 0
    for mpi in ["openmpi", "mpich"] if options.mpi == "both" else [options.mpi]:
        for name in options.cases or CASES:
            try:
                with Scratch("slurm") as cwd, Slurm(cwd) as slurm:
                    print(f"{name} {mpi}: {CASES[name](slurm, mpi)}", flush=True)
            except Failure as failure:
                failed += 1
                print(f"{name} {mpi}: FAILED: {failure}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
