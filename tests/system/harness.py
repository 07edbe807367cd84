"""Drives real jobs through the `fermata` command; every wait ends.

A Job is one `fermata run` or `fermata restart` in the foreground of this test, with its output in files. Scratch is
a directory that is kept, with its name printed, when the test fails.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("FERMATA_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build"))
FERMATA = BUILD / "bin" / "fermata"
PROGRAMS = BUILD / "tests" / "programs"
# Generous: the machine may be shared. No test waits this long unless something is wrong.
PATIENCE = float(os.environ.get("FERMATA_TEST_PATIENCE", "120"))
# All jobs of a test under another launcher than the default one.
LAUNCHER = os.environ.get("FERMATA_TEST_LAUNCHER")
# The exit code of a job that has lost a node daemon: under own it is the parent of its ranks, and of srun's ranks nobody would
# hear any more. None: the job goes on and cannot be saved.
WITHOUT_DAEMON = {"own": 137, "srun": 1}.get(LAUNCHER)

os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


# For pretended nodes: Open MPI 5 finds no way from an interface of this machine to the same one, natively too.
BY_LOOPBACK = {"OMPI_MCA_btl_tcp_if_include": "lo"}
# Open MPI 5.0.7 says of each peer that it would not reach it by TCP where the only interface is the loopback, natively too.
LIBRARY_SAYS = re.compile(r"^\[.*btl_tcp_proc_create_interface_graph\] Unable to find reachable pairing.*\n", re.M)


class Failure(Exception):
    pass


def check(condition, message):
    if not condition:
        raise Failure(message)


class Scratch:
    """A fresh directory; removed when the block ends well, kept and named when it does not."""

    def __init__(self, name):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix=f"fermata-{name}-"))

    def __enter__(self):
        return self.path

    def __exit__(self, kind, *_):
        if kind is None:
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            print(f"kept: {self.path}", flush=True)


def call(*arguments, timeout=PATIENCE, cwd=None, env=None, on=()):
    """Runs a short `fermata` command to its end; `on`: words before it, to run it elsewhere (nodes_test.py)."""
    words = [*on, str(FERMATA), *map(str, arguments)]
    try:
        return subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=timeout, cwd=cwd,
                              env=env, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{' '.join(words)} did not end in {timeout} s; stderr: {error.stderr}") from error


def doctor(what):
    """What `fermata doctor` has found out about one thing."""
    return next(one for one in json.loads(call("doctor", "--json").stdout) if one["what"] == what)


def version(mpi):
    """Of the library that mpiexec is of."""
    said = subprocess.run([f"mpiexec.{mpi}", "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, re.search(r"(?:OpenRTE\)|Open MPI\)|Version:) *(\d+)\.(\d+)", said).groups()))


def check_mapped(job):
    """Memory is read when it is touched, or, where this kernel cannot do that, a warning says so."""
    can = doctor("mapped restart")["ok"]
    check(("read before the program goes on" in job.errors()) != can, job.errors())


def resting(cwd, env=None):
    """The environment of a tests/programs/mix.c that rests after each step, and go(cwd), which ends that."""
    return dict(env or os.environ, MIX_GO=str(cwd / "go"))


def go(cwd):
    (cwd / "go").touch()


def native(program, ranks, mpi, cwd, env=None, stdin=subprocess.DEVNULL):
    """The undisturbed run: its standard output as lines."""
    words = [f"mpiexec.{mpi}", "-n", str(ranks)]
    if mpi == "openmpi":
        words += ["--oversubscribe", "--bind-to", "none"]
    try:
        for _ in range(3):
            done = subprocess.run(words + [str(word) for word in program], capture_output=True, text=True, timeout=PATIENCE,
                                  cwd=cwd, stdin=stdin, env=env)
            # Open MPI 5's mpiexec refuses the number of one that was killed (findings/mpiexec-killed-container.sh), 4's a
            # directory that another one has just made, or is about to remove.
            if not any(word in done.stderr for word in ("PMIX_ERR_EXISTS", "orte_session_dir failed")): break
    except subprocess.TimeoutExpired as error:
        raise Failure(f"the native run did not end in {PATIENCE} s") from error
    check(done.returncode == 0, f"native run failed: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout.splitlines()


class Job:
    """`fermata run` or `fermata restart`, running. `name` is its job name and the stem of its output files."""

    count = 0

    def __init__(self, words, cwd, name=None, env=None, stdin=subprocess.DEVNULL, on=()):
        Job.count += 1
        self.on = on
        self.name = name or f"t{os.getpid()}-{Job.count}"
        self.out_path = pathlib.Path(cwd) / f"{self.name}.out"
        self.err_path = pathlib.Path(cwd) / f"{self.name}.err"
        verb, *rest = [str(word) for word in words]
        if LAUNCHER and "--launcher" not in rest:
            rest = ["--launcher", LAUNCHER, *rest]
        with open(self.out_path, "w") as out, open(self.err_path, "w") as err:
            self.process = subprocess.Popen([*on, str(FERMATA), verb, "--job", self.name, *rest], stdout=out, stderr=err,
                                            stdin=stdin, cwd=cwd, env=env)

    @staticmethod
    def run(program, ranks, cwd, mpi="auto", ckpt="ckpt", extra=(), env=None, stdin=subprocess.DEVNULL, on=()):
        return Job(["run", "-n", ranks, "--mpi", mpi, "--ckpt-dir", ckpt, *extra, "--", *program], cwd, env=env,
                   stdin=stdin, on=on)

    @staticmethod
    def restart(cwd, mpi="auto", ckpt="ckpt", generation="latest", extra=(), env=None, on=()):
        return Job(["restart", "--ckpt-dir", ckpt, "--generation", generation, "--mpi", mpi, *extra], cwd, env=env,
                   on=on)

    @staticmethod
    def stopped_at_ready(program, ranks, cwd, mpi, env):
        """A job that is saved where it says READY, goes on, and is saved again and stopped: two generations in ckpt."""
        with Job.run(program, ranks, cwd, mpi=mpi, env=env) as job:
            job.wait_line("READY")
            job.checkpoint()
            job.checkpoint("--stop")
            job.finish(expected=85)

    def ask(self, verb, *rest, timeout=PATIENCE):
        """A short `fermata` command about this job, where it runs."""
        return call(verb, "--job", self.name, *rest, timeout=timeout, on=self.on)

    def output(self):
        return self.out_path.read_text(errors="replace")

    def errors(self):
        return LIBRARY_SAYS.sub("", self.err_path.read_text(errors="replace"))

    def lines(self):
        """Complete lines of output so far."""
        text = self.output()
        return text[:text.rfind("\n") + 1].splitlines()

    def wait_until(self, condition, what, timeout=PATIENCE):
        deadline = time.monotonic() + timeout
        while not condition():
            if self.process.poll() is not None:
                if condition():
                    return
                raise Failure(f"{self.name} ended ({self.process.returncode}) before {what}; stdout:\n"
                              f"{self.output()[-2000:]}\nstderr:\n{self.errors()[-3000:]}")
            if time.monotonic() > deadline:
                status = self.ask("status", timeout=20)
                raise Failure(f"{self.name}: {what} did not come in {timeout} s; stderr:\n{self.errors()[-3000:]}\n"
                              f"status:\n{status.stdout}{status.stderr}")
            time.sleep(0.005)

    def wait_line(self, text, timeout=PATIENCE):
        self.wait_until(lambda: text in self.lines(), f"line '{text}'", timeout)

    def checkpoint(self, *extra, timeout=PATIENCE):
        """Takes a checkpoint and returns what --json says of it."""
        # The command gives up first, with its diagnosis.
        done = self.ask("checkpoint", "--json", "--timeout", f"{0.8 * timeout:.0f}s", *extra, timeout=timeout)
        check(done.returncode == 0, f"checkpoint of {self.name} failed ({done.returncode}): {done.stdout}{done.stderr}"
              f"\nstderr of the job:\n{self.errors()[-3000:]}")
        said = json.loads(done.stdout)
        import regions  # it uses this module
        for image in sorted((pathlib.Path(said["directory"]) / said["generation"]).glob("rank-*.img")):
            regions.check_image(image)
        return said

    def status(self):
        done = self.ask("status", "--json")
        check(done.returncode == 0, f"status failed: {done.stderr}")
        return json.loads(done.stdout)

    def rank_pids(self):
        return [rank["pid"] for rank in self.status()["ranks"]]

    def processes(self):
        """{pid: name} of all that the job has started and that runs, by its environment: daemons have left the process tree."""
        found = {}
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if f"FERMATA_JOB={self.name}".encode() in (process / "environ").read_bytes().split(b"\0"):
                    found[int(process.name)] = (process / "comm").read_text().strip()
            except OSError:
                pass  # gone
        return found

    def daemon_pids(self):
        """Of the node daemons."""
        return [pid for pid, name in self.processes().items() if name == "noded"]

    def kill_ranks(self):
        """kill -9 every rank; waits until the job is gone. It may have ended in the meantime."""
        status = self.ask("status", "--json")
        for pid in [rank["pid"] for rank in json.loads(status.stdout)["ranks"]] if status.returncode == 0 else []:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.end(PATIENCE)

    def end(self, timeout=PATIENCE):
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            status = self.ask("status", timeout=20)
            self.abandon()
            raise Failure(f"{self.name} did not end in {timeout} s; stdout:\n{self.output()[-1500:]}\nstderr:\n"
                          f"{self.errors()[-3000:]}\nstatus:\n{status.stdout}{status.stderr}") from None

    def finish(self, timeout=PATIENCE, expected=0):
        code = self.end(timeout)
        check(code == expected, f"{self.name}: exit status {code}, expected {expected}; stdout:\n"
              f"{self.output()[-1500:]}\nstderr:\n{self.errors()[-3000:]}")
        return self.lines()

    def abandon(self):
        """For failing tests: leave no process of this job behind."""
        if self.process.poll() is None:
            try:
                self.ask("cancel", timeout=30)
                self.process.wait(20)
            except (Failure, subprocess.TimeoutExpired):
                self.process.kill()
                self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.abandon()


def verdict(name, action):
    """Runs `action`; one line and status 1 when it fails. What it returns, if anything, is said of its success."""
    try:
        said = action()
    except Failure as failure:
        print(f"FAILED {name}: {failure}", flush=True)
        return 1
    print(f"passed {name}" + (f": {said}" if said else ""), flush=True)
    return 0


def main(run, cases):
    """Runs the case named on the command line, with what follows the name as further arguments."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in cases:
        print(f"no case '{name}'; there are: {' '.join(cases)}")
        return 2
    return verdict(name, lambda: run(name, *sys.argv[2:]))
