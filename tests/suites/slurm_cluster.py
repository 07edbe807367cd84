"""A real Slurm of two nodes on this machine, for slurm.py: a controller and two slurmd in namespaces of their own
(tests/system/nodes_test.py). As root; the packages slurmctld slurmd slurm-client munge have to be there."""
import json
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
import harness
from harness import Failure, check
from nodes_test import Cluster

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
# The nodes share /tmp, where the plugin pmix wants a directory for each.
TmpFS={cwd}/tmp.%n
SlurmdTimeout=20
KillWait=10
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/none
ReturnToService=2
# Nodes may be given more processors than this machine has.
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
{more}{nodes}PartitionName=low Nodes=ALL Default=YES PriorityTier=1 GraceTime={grace}
PartitionName=high Nodes=ALL PriorityTier=10
"""
# Programs of Fermata that are a job's.
OURS = re.compile(rb"fermata(\0| )run|fermata(\0| )restart|/libexec/fermata/")


class Slurm(Cluster):
    """A cluster whose nodes run the daemons of Slurm."""

    def __init__(self, cwd, proctrack="linuxproc", grace=60, cpus=2, more=""):
        super().__init__(cwd)
        self.more = more  # lines of slurm.conf
        self.daemons = []
        self.proctrack, self.grace, self.cpus = proctrack, grace, cpus

    def build(self):
        super().build()
        self.cwd.chmod(0o711)  # munge insists
        nodes = "".join(f"NodeName={node.name} NodeAddr={node.address} CPUs={self.cpus}\n" for node in self.nodes)
        (self.cwd / "slurm.conf").write_text(CONFIGURATION.format(
            cwd=self.cwd, first=self.nodes[0].name, nodes=nodes, proctrack=self.proctrack, grace=self.grace,
            more=self.more))
        # cgroup v1 also where none is used: v2 wants one to be there.
        groups = f"CgroupMountpoint={self.cwd}/cgroup\n" if self.proctrack == "cgroup" else ""
        (self.cwd / "cgroup.conf").write_text(f"CgroupPlugin=cgroup/v1\n{groups}")
        plugin = harness.BUILD / "lib" / "fermata" / "slurm" / "fermata_spank.so"
        if plugin.exists():
            (self.cwd / "plugstack.conf").write_text(f"optional {plugin}\n")
        (self.cwd / "munge.key").write_bytes(os.urandom(128))
        (self.cwd / "munge.key").chmod(0o400)
        for node in self.nodes:
            (self.cwd / f"tmp.{node.name}").mkdir()
            if self.proctrack == "cgroup":
                self.give_freezer(node)
        files = [f"--{kind}-file={self.cwd}/munge.{kind}" for kind in ("key", "log", "pid", "seed")]
        self.daemon("munged", "--foreground", f"--socket={self.cwd}/munge.socket", *files)
        self.until(lambda: (self.cwd / "munge.socket").exists(), "munge's socket", 30)
        self.daemon(*self.nodes[0].on, *self.configured("slurmctld", "-D"))
        for node in self.nodes:
            self.daemon(*node.on, *self.configured("slurmd", "-D"))
        self.until(lambda: self.ask("sinfo", "-h", "-p", "low", "-t", "idle", "-o", "%D") == "2", "two idle nodes", 60)

    def give_freezer(self, node):
        """A hierarchy of control groups of the node's own: both use the same names below one."""
        base = self.cwd / f"cgroup.{node.name}"
        mine = f"fermata-{os.getpid()}-{node.name}"
        script = (f"mkdir -p {base} {self.cwd}/cgroup/freezer && mount -t cgroup -o freezer freezer {base} && "
                  f"mkdir -p {base}/{mine} && mount --bind {base}/{mine} {self.cwd}/cgroup/freezer")
        done = subprocess.run([*node.on, "sh", "-c", script], capture_output=True, text=True, check=False)
        check(done.returncode == 0, f"no freezer for {node.name}: {done.stderr}")

    def __exit__(self, *rest):
        super().__exit__(*rest)  # with all that runs on the nodes
        for daemon in self.daemons:
            daemon.kill()
            daemon.wait()
        for left in pathlib.Path("/sys/fs/cgroup/freezer").glob(f"fermata-{os.getpid()}-*"):
            for folder in sorted(left.glob("**/"), reverse=True):
                try:
                    folder.rmdir()
                except OSError:
                    pass

    def configured(self, *words):
        return ["env", f"SLURM_CONF={self.cwd}/slurm.conf", f"PATH={harness.FERMATA.parent}:{os.environ['PATH']}", *words]

    def daemon(self, *words):
        with (self.cwd / "daemons.log").open("a") as log:
            self.daemons.append(subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def call(self, *words, stdin="", patience=60):
        return subprocess.run([*self.nodes[0].on, *self.configured(*map(str, words))], capture_output=True, text=True,
                              input=stdin, timeout=patience, check=False)

    def inside(self, script, *options, patience=120):
        """A shell script in an allocation of both nodes: exit code, output, errors."""
        done = self.call("salloc", "--quiet", "--nodes=2", "--ntasks=2", "--no-kill", *options, "bash", "-c", script,
                         patience=patience)
        return done.returncode, done.stdout, done.stderr

    def ask(self, *words):
        """What a command says; empty when it fails."""
        done = self.call(*words)
        return done.stdout.strip() if done.returncode == 0 else ""

    def until(self, condition, what, patience=300):
        end = time.monotonic() + patience
        while not condition():
            if time.monotonic() > end:
                raise Failure(f"{what} did not come in {patience} s\n{self.ask('squeue')}\n{self.ask('scontrol', 'show', 'job')}\n"
                              + "".join(f"{log.name}:\n{log.read_text()[-3000:]}\n" for log in
                                        [*self.cwd.glob("*.log"), *self.cwd.glob("out.*")]))
            time.sleep(0.2)

    def submit(self, script, *options):
        done = self.call("sbatch", "--parsable", *options, script)
        check(done.returncode == 0, f"sbatch: {done.stderr}")
        return done.stdout.strip()

    def state(self, number):
        return self.ask("squeue", "-h", "-j", number, "-t", "all", "-o", "%T")

    def end(self, number, patience=900):
        active = time.monotonic()

        def ended():
            nonlocal active
            state = self.state(number)
            if state in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "REQUEUED"):
                active = time.monotonic()
            # A job that is being requeued is shown as ended for a moment.
            return state == "COMPLETED" or time.monotonic() - active > 10

        self.until(ended, f"the end of job {number}", patience)
        words = [line for line in self.output(number).splitlines() if not line.startswith("step")]
        check(self.state(number) == "COMPLETED", f"job {number}: {self.state(number)}, {len(self.said(number))} lines\n" + "\n".join(words))

    def restarts(self, number):
        return int(re.search(r"Restarts=(\d+)", self.ask("scontrol", "show", "job", number)).group(1))

    def requeued(self, number):
        times = self.restarts(number)
        check(times > 0, "the job was never requeued")
        return times

    def output(self, number):
        path = self.cwd / f"out.{number}"
        return path.read_text() if path.exists() else ""

    def said(self, number):
        return re.findall(r"^(?:step|end) .*", self.output(number), re.MULTILINE)

    def status(self):
        """Of the one job that runs."""
        done = self.call("fermata", "status", "--json")
        check(done.returncode == 0, f"status: {done.stderr}")
        return json.loads(done.stdout)

    def of_ours(self):
        found = []
        for node in self.nodes:
            for pid in node.pids():
                try:
                    command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
                except OSError:
                    continue
                if OURS.search(command):
                    found.append((node.name, pid, command))
        return found

    def empty(self, patience=15):
        """Nothing of a job of ours is left on any node: no process, no directory."""
        end = time.monotonic() + patience
        while self.of_ours() and time.monotonic() < end:
            time.sleep(0.2)
        check(not self.of_ours(), f"left: {self.of_ours()}")
        base = os.environ.get("FERMATA_RUN_DIR", f"/tmp/fermata-{os.geteuid()}")
        for node in self.nodes:
            if node.pids():
                done = subprocess.run([*node.on, "ls", base], capture_output=True, text=True, check=False)
                check(not done.stdout.split(), f"left in {base} on {node.name}: {done.stdout}")
