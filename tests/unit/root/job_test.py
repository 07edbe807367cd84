#!/usr/bin/env python3
"""Jobs under the real `fermata`, root and node daemons, with fake ranks under a fake mpiexec: every phase, and what
may happen in it.

    job_test.py BUILD [--list | CASE…]

BUILD: directory with bin/fermata and libexec/fermata (fake lower halves, noded). Every case has a run directory of
its own; every wait ends.
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

BUILD = pathlib.Path(sys.argv[1]).resolve()
FERMATA = BUILD / "bin" / "fermata"
PATIENCE = 100
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Place:
    """A scratch directory with its own run directory and PATH; ends what a failed case left behind."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="fermata-job-"))
        self.run_dir = self.path / "run"
        self.jobs = []
        (self.path / "bin").mkdir()
        os.symlink(pathlib.Path(__file__).resolve().parent / "fake_mpiexec.py", self.path / "bin" / "mpiexec.openmpi")
        self.env = dict(os.environ, PATH=f"{self.path}/bin:/usr/bin:/bin", FERMATA_RUN_DIR=str(self.run_dir),
                        FERMATA_LIBEXEC=str(BUILD / "libexec" / "fermata"), FAKE_UNTIL=str(self.path / "end"))

    def call(self, *words, **env):
        return subprocess.run([FERMATA, *map(str, words)], cwd=self.path, env={**self.env, **env}, text=True,
                              capture_output=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)

    def job(self, *words, name="job", wait=True, **env):
        verb = "restart" if "--restart" in words else "run"
        words = [str(word) for word in words if word != "--restart"]
        command = [str(FERMATA), verb, "--job", name, *words]
        if verb == "run":
            command += ["--", "/bin/true", "argument", "--option"]
        job = subprocess.Popen(command, cwd=self.path, env={**self.env, **env}, text=True, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.jobs.append(job)
        if wait:
            self.until(lambda: job.poll() is not None or self.state(name) == "running", f"{name} to run")
            if job.poll() is not None:
                raise AssertionError(f"{name} ended with {job.returncode}: {job.communicate()}")
        return job

    def state(self, name="job"):
        done = self.call("status", "--job", name, "--json")
        return json.loads(done.stdout)["state"] if done.returncode == 0 else ""

    def pids(self, name="job"):
        return [rank["pid"] for rank in json.loads(self.call("status", "--job", name, "--json").stdout)["ranks"]]

    def until(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain for {what}"
            time.sleep(0.01)

    def end(self, job, code):
        (self.path / "end").touch()
        out, err = job.communicate(timeout=PATIENCE)
        assert job.returncode == code, f"exit code {job.returncode}, expected {code}\n{out}\n{err}"
        (self.path / "end").unlink()
        return out, err

    def generations(self):
        return sorted(p.name for p in (self.path / "fermata-ckpt").glob("gen-*"))

    def journal(self, kind=None):
        """Its events, all or of one kind."""
        try:
            lines = (self.path / "fermata-ckpt" / "journal.jsonl").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [e for e in map(json.loads, lines) if kind in (None, e["event"])]

    def processes(self):
        """Pid and command line of all that are of this place, in the process table."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    if f"FERMATA_RUN_DIR={self.run_dir}\0".encode() in (entry / "environ").read_bytes():
                        found.append((int(entry.name), (entry / "cmdline").read_bytes()))
                except OSError:
                    pass  # ended meanwhile
        return found

    def nothing_left(self):
        """Run directory empty; no process of this place, in the process table either."""
        def left():
            return [p.name for p in (self.run_dir / f"fermata-{os.geteuid()}").iterdir()] + self.processes()
        try:
            self.until(lambda: not left(), "")
        except AssertionError:
            raise AssertionError(f"left behind: {left()}") from None

    def kill_node_daemon(self):
        noded = [pid for pid, command in self.processes() if b"noded" in command]
        assert len(noded) == 1, noded
        os.kill(noded[0], signal.SIGKILL)

    def close(self, failed):
        for job in self.jobs:
            if job.poll() is None:
                job.kill()
            job.communicate()
        if failed:
            print(f"kept: {self.path}")
        else:
            shutil.rmtree(self.path)


def refused(done, *words, code=None):
    lines = [line for line in done.stderr.splitlines() if line.startswith("fermata: error:")]
    assert done.returncode not in (0, 85) and len(lines) == 1, (done.returncode, done.stdout, done.stderr)
    assert code is None or done.returncode == code, (done.returncode, done.stderr)
    for word in words:
        assert str(word) in lines[0], (word, lines[0])


def good(done):
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return done.stdout


@case
def checkpoint_and_go_on(p):
    job = p.job("-n", 3, FAKE_LATE="3")
    said = json.loads(good(p.call("checkpoint", "--json")))
    assert said["generation"] == "gen-000001" and said["bytes"] > 0, said
    phases = ["request", "targets", "converge", "freeze", "drain", "suspend", "save", "commit", "resume"]
    assert sorted(said["phases"]) == sorted(phases), said
    line = good(p.call("checkpoint", "--ckpt-dir", "fermata-ckpt"))
    assert line.startswith(f"gen-000002 in {p.path}/fermata-ckpt: ") and "commit" not in line, line
    status = json.loads(good(p.call("status", "--json")))
    assert len(status["ranks"]) == 3 and status["checkpoints"] == 2 and status["phase"] == "running", status
    assert status["command"] == ["/bin/true", "argument", "--option"], status
    out, err = p.end(job, 0)
    assert out == "started\nfinished, count 2\n" and err == "", (out, err)
    assert "gen-000002" in good(p.call("list"))
    assert "intact" in good(p.call("verify"))
    assert json.loads(good(p.call("inspect", "--json")))["ranks"] == 3
    p.nothing_left()


@case
def several_nodes(p):
    job = p.job("-n", 5, FAKE_NODES="3")
    good(p.call("checkpoint"))
    nodes = json.loads(good(p.call("status", "--json")))["nodes"]
    assert sorted(node["ranks"] for node in nodes) == [1, 2, 2], nodes
    waits = good(p.call("status", "--waits"))
    assert "rank 4 on fake1: main thread: MPI_Recv from rank 0" in waits, waits
    p.end(job, 0)
    p.nothing_left()


@case
def exit_code(p):
    p.end(p.job("-np", 2, FAKE_EXIT="7"), 7)
    p.nothing_left()


def killed_in(p, phase, generation_stays=False):
    job = p.job("-n", 3, FAKE_NODES="2", FAKE_DIE=f"{phase}:1")
    done = p.call("checkpoint")
    refused(done)
    # Which rank is heard of first is mpiexec's choice; on a busy machine its own end comes before them all.
    assert "is gone" in done.stderr or "the job has ended" in done.stderr, done.stderr
    out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 137, (job.returncode, out, err)
    assert p.generations() == (["gen-000001"] if generation_stays else []), p.generations()
    p.nothing_left()


@case
def killed_in_converge(p):
    killed_in(p, "begin")


@case
def killed_in_freeze(p):
    killed_in(p, "freeze")


@case
def killed_in_drain(p):
    killed_in(p, "drain")


@case
def killed_in_save(p):
    killed_in(p, "save")


@case
def killed_in_resume(p):
    """After the commit: the generation stands, and a restart works."""
    killed_in(p, "resume", generation_stays=True)
    out, _ = p.end(p.job("--restart"), 0)
    assert out == "finished, count 1\n", out


@case
def killed_and_nobody_says_so(p):
    """A launcher that exits with 0 has not brought a job to its end of which a rank was killed."""
    job = p.job("-n", 2, FAKE_MPIEXEC_IS_GLAD="1")
    good(p.call("checkpoint"))
    os.kill(p.pids()[1], signal.SIGKILL)
    out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 1 and "rank 1 (pid" in err and "is gone" in err, (job.returncode, err)
    out, _ = p.end(p.job("--restart"), 0)
    assert out == "finished, count 1\n", out
    p.nothing_left()


@case
def restart_that_is_said_to_have_ended(p):
    """A launcher that exits with 0 although its ranks have not come back: a failure, and the generation goes on later."""
    job = p.job("-n", 2)
    good(p.call("checkpoint", "--stop"))
    job.communicate(timeout=PATIENCE)
    job = p.job("--restart", wait=False, FAKE_MPIEXEC_FAILS="1", FAKE_MPIEXEC_IS_GLAD="1")
    out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 1 and err.splitlines()[-1].endswith("had not gone on from gen-000001 yet: restart it again"), (job.returncode, err)
    out, _ = p.end(p.job("--restart"), 0)
    assert out == "finished, count 1\n", out
    p.nothing_left()


@case
def stopped_and_nobody_is_lost(p):
    """Ranks of a job that is stopped are killed, too, and there is nothing to say of it."""
    job = p.job("-n", 2, FAKE_MPIEXEC_IS_GLAD="1")
    good(p.call("checkpoint", "--stop"))
    out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 85 and "checkpointed and stopped" in err and "is gone" not in err, (job.returncode, err)
    p.nothing_left()


@case
def killed_between(p):
    job = p.job("-n", 2)
    good(p.call("checkpoint"))
    os.kill(p.pids()[1], signal.SIGKILL)
    out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 137, (job.returncode, err)
    p.nothing_left()


@case
def refuses(p):
    job = p.job("-n", 2, FAKE_REFUSE="1")
    refused(p.call("checkpoint"), "rank 1", "MPI_Comm_spawn", code=3)
    assert p.generations() == []
    p.end(job, 0)


@case
def garbled_clock(p):
    """Without the message the checkpoint would wait for its timeout."""
    job = p.job("-n", 2, FAKE_GARBLE="1")
    refused(p.call("checkpoint", "--timeout", "60s"), "the protocol broke", "rank 1 to the node daemon", code=3)
    p.end(job, 0)


@case
def save_error(p):
    job = p.job("-n", 2, FAKE_SAVE_ERROR="0")
    refused(p.call("checkpoint"), "rank 0: cannot write: no space")
    assert p.generations() == []
    p.end(job, 0)


@case
def timeout_with_diagnosis(p):
    for phase in ("begin", "drain"):
        job = p.job("-n", 2, FAKE_HANG=f"{phase}:0")
        done = p.call("checkpoint", "--timeout", "0.3s")
        refused(done, "timeout", code=4)
        assert "rank 1 on fake0: main thread: MPI_Recv from rank 0" in done.stderr, done.stderr
        assert p.state() == "running" and p.generations() == []
        p.end(job, 0)


@case
def asked_before_the_start(p):
    """A checkpoint waits for a job that starts, at most as long as it may last, and can be cancelled."""
    slow = {"FAKE_SLOW_INIT": "1", "FAKE_HOLD_UNTIL": str(p.path / "go")}
    job = p.job("-n", 3, FAKE_NODES="2", wait=False, **slow)
    p.until(lambda: len(json.loads(p.call("status", "--job", "job", "--json").stdout or "{}").get("ranks", [])) == 2,
            "two ranks")
    done = p.call("checkpoint", "--timeout", "0.3s")
    refused(done, "1 of 3 ranks have not reported: 1", code=4)
    assert "rank 1 on fake1: is in the library's MPI_Init" in done.stderr, done.stderr
    for cancel in (True, False):
        client = subprocess.Popen([FERMATA, "checkpoint"], env=p.env, text=True, stderr=subprocess.PIPE)
        p.until(lambda: json.loads(good(p.call("status", "--json")))["phase"] == "request", "the request")
        if cancel:
            good(p.call("cancel", "--checkpoint"))
        else:
            (p.path / "go").touch()
        _, err = client.communicate(timeout=PATIENCE)
        assert client.returncode == (3 if cancel else 0), (client.returncode, err)
    assert p.generations() == ["gen-000001"]
    p.end(job, 0)
    p.nothing_left()


@case
def start_that_hangs(p):
    done = p.call("run", "-n", 2, "--start-timeout", "1s", "--", "/bin/true", FAKE_SLOW_INIT="1", FAKE_HOLD_UNTIL="/no")
    refused(done, "did not start in 1 s", "1 of 2 ranks have not reported: 1", code=1)
    assert "rank 1 on fake0: is in the library's MPI_Init" in done.stderr, done.stderr
    p.nothing_left()


@case
def waits_in_rebuild(p):
    """A rank that answers nothing while it makes its objects again: `status` says so, and the job goes on."""
    good_end = p.job("-n", 2)
    good(p.call("checkpoint", "--stop"))
    good_end.communicate(timeout=PATIENCE)
    hold = {"FAKE_SLOW_REBUILD": "1", "FAKE_HOLD_UNTIL": str(p.path / "go")}
    job = p.job("--restart", wait=False, **hold)
    p.until(lambda: "rank 1 on fake0: makes its MPI objects again" in p.call("status", "--waits").stdout, "the diagnosis")
    status = json.loads(good(p.call("status", "--json")))
    assert status["state"] == "starting" and status["phase"] == "rebuild", status
    assert status["behind"] == {"phase": "rebuild", "rank": 1, "there": 1, "ranks": 2}, status
    assert "of 2 ranks, rank 1 is in phase rebuild" in good(p.call("status"))
    (p.path / "go").touch()
    p.until(lambda: p.state() == "running", "the job to run")
    assert "makes its MPI objects" not in p.call("status", "--waits").stdout
    out, _ = p.end(job, 0)
    assert out == "finished, count 1\n", out
    p.nothing_left()


@case
def phases_of_a_restart(p):
    """`status` names the phase of who is furthest behind, over all nodes, before ranks have said Hello as well."""
    job = p.job("-n", 5, FAKE_NODES="2")
    good(p.call("checkpoint", "--stop"))
    job.communicate(timeout=PATIENCE)
    job = p.job("--restart", wait=False, FAKE_NODES="2", FAKE_SLOW_LOAD="3", FAKE_HOLD_UNTIL=str(p.path / "go"))
    p.until(lambda: "job job: starting, load\n" in p.call("status").stdout, "phase load")
    p.until(lambda: json.loads(good(p.call("status", "--json")))["behind"] ==
            {"phase": "load", "rank": 3, "there": 1, "ranks": 5}, "the others to be further")
    (p.path / "go").touch()
    p.until(lambda: p.state() == "running", "the job to run")
    status = json.loads(good(p.call("status", "--json")))
    assert status["behind"] is None and status["phase"] == "running" and status["missing"] == "", status
    p.end(job, 0)
    p.nothing_left()


@case
def start_before_any_node_daemon(p):
    """The launcher itself hangs: `status` says phase launcher; ranks that are in MPI_Init are phase ranks."""
    job = p.job("-n", 1, wait=False, FAKE_SLOW_MPIEXEC=str(p.path / "mpi"), FAKE_SLOW_INIT="0",
                FAKE_HOLD_UNTIL=str(p.path / "go"))
    p.until(lambda: "job job: starting, launcher\n" in p.call("status").stdout, "phase launcher")
    (p.path / "mpi").touch()
    p.until(lambda: "job job: starting, ranks\n" in p.call("status").stdout, "phase ranks")
    (p.path / "go").touch()
    p.until(lambda: p.state() == "running", "the job to run")
    p.end(job, 0)
    p.nothing_left()


@case
def lingers_after_finalize(p):
    """`status` names the ranks that are still there; no checkpoint is taken of them."""
    job = p.job("-n", 3, FAKE_LINGER="1", FAKE_HOLD_UNTIL=str(p.path / "go"))
    (p.path / "end").touch()
    p.until(lambda: re.search(r"after MPI_Finalize still there: 1 \(pid \d+\)$", p.call("status").stdout, re.MULTILINE),
            "the two others to be gone")
    refused(p.call("checkpoint"), "every rank has called MPI_Finalize")
    (p.path / "go").touch()
    p.end(job, 0)
    p.nothing_left()


@case
def cancelled(p):
    job = p.job("-n", 2, FAKE_HANG="begin:0")
    refused(p.call("cancel", "--checkpoint"), "no checkpoint")
    client = subprocess.Popen([FERMATA, "checkpoint"], env=p.env, text=True, stderr=subprocess.PIPE)
    p.until(lambda: p.state() == "checkpointing", "the checkpoint")
    good(p.call("cancel", "--checkpoint"))
    _, err = client.communicate(timeout=PATIENCE)
    assert client.returncode == 3 and "cancelled" in err, (client.returncode, err)
    assert p.state() == "running"
    good(p.call("cancel"))
    out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 143, (job.returncode, out, err)
    p.nothing_left()


@case
def stop_and_restart(p):
    """Stop, restart under the same name at once, twice; the second life is an ordinary job."""
    job = p.job("-n", 3)
    for life in range(1, 4):
        good(p.call("checkpoint", "--stop"))
        out, err = job.communicate(timeout=PATIENCE)
        assert job.returncode == 85, (job.returncode, out, err)
        job = p.job("--restart")
    out, err = p.end(job, 0)
    assert out == "finished, count 3\n" and "restarting from gen-000003" in err, (out, err)
    out, err = p.end(p.job("--restart", "--generation", 1), 0)
    assert out == "finished, count 1\n", out
    p.nothing_left()


@case
def killed_supervisor_and_restart(p):
    """kill -9 of `fermata run`: everything of it goes, and a restart under its name need not wait for that."""
    for turn in range(3):
        job = p.job("-n", 3, FAKE_NODES="2") if turn == 0 else p.job("--restart", FAKE_NODES="2")
        good(p.call("checkpoint"))
        job.kill()
        job.wait()
    out, _ = p.end(p.job("--restart"), 0)
    assert out == "finished, count 3\n", out
    p.nothing_left()


@case
def node_daemon_dies(p):
    job = p.job("-n", 2)
    p.kill_node_daemon()
    # The fake ranks end without their daemon, the job with them.
    out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 1, (job.returncode, err)
    p.nothing_left()


@case
def node_daemon_dies_early(p):
    """Ranks that wait in MPI_Init for one that has found no daemon: the job ends, at once and with the reason."""
    job = p.job("-n", 1, wait=False, FAKE_SLOW_INIT="0", FAKE_HOLD_UNTIL="/no")
    p.until(lambda: "MPI_Init" in p.call("status", "--waits").stdout, "a rank in MPI_Init")
    p.kill_node_daemon()
    _, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 1 and "the node daemon of fake0" in err and "start it again" in err, (job.returncode, err)
    p.nothing_left()


@case
def two_jobs_one_directory(p):
    job = p.job("-n", 2)
    refused(p.call("run", "-n", 1, "--job", "other", "--", "/bin/true"), "in use", "job")
    refused(p.call("run", "-n", 1, "--job", "job", "--ckpt-dir", "elsewhere", "--", "/bin/true"), "job")
    good(p.call("checkpoint"))
    p.end(job, 0)


@case
def two_jobs(p):
    one = p.job("-n", 1, "--ckpt-dir", "one", name="one")
    two = p.job("-n", 1, "--ckpt-dir", "two", name="two")
    refused(p.call("checkpoint"), "one, two", code=5)
    good(p.call("checkpoint", "--job", "two"))
    good(p.call("checkpoint", "--ckpt-dir", "two"))
    assert len(json.loads(good(p.call("status", "--json")))) == 2
    (p.path / "end").touch()
    for job in (one, two):
        job.communicate(timeout=PATIENCE)
    assert not (p.path / "one" / "gen-000001").exists() and (p.path / "two" / "gen-000002").exists()


@case
def interval(p):
    job = p.job("-n", 2, "--interval", "0.05s", "--keep", "2")
    p.until(lambda: json.loads(good(p.call("status", "--json")))["checkpoints"] >= 4, "four checkpoints")
    _, err = p.end(job, 0)
    assert err == "" and len(p.generations()) == 2, (err, p.generations())


@case
def signals(p):
    """SIGUSR1: a checkpoint; SIGTERM: a checkpoint, then the end."""
    job = p.job("-n", 2)
    job.send_signal(signal.SIGUSR1)
    p.until(lambda: json.loads(good(p.call("status", "--json")))["checkpoints"] == 1, "the checkpoint")
    job.send_signal(signal.SIGTERM)
    out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 85 and "gen-000002" in err, (job.returncode, err)
    p.nothing_left()


@case
def not_restarted_when_asked_to_end(p):
    """--max-restarts is for failures: not after `cancel`, and not when a signal comes before the next life."""
    job = p.job("-n", 2, "--max-restarts", "3")
    good(p.call("checkpoint"))
    good(p.call("cancel"))
    out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 143 and "going on" not in err, (job.returncode, err)
    for end, code in ((signal.SIGTERM, 85), (signal.SIGINT, 85), (signal.SIGHUP, 129)):
        job = p.job("--restart", "--max-restarts", "3")
        for _ in range(2):  # the first time it goes on at once
            p.until(lambda: p.state() == "running", "the next life")
            os.kill(p.pids()[0], signal.SIGKILL)
            p.until(lambda: p.state() != "running", "its end")
        p.until(lambda: not p.state(), "the pause")
        job.send_signal(end)
        out, err = job.communicate(timeout=PATIENCE)
        how = ": `fermata restart` continues it" if code == 85 else ""
        assert job.returncode == code and err.endswith(f"stopped before it went on from gen-000001{how}\n"), (job.returncode, err)
    p.nothing_left()


@case
def walltime(p):
    """A quarter of the time: a checkpoint to know what one takes; then the last one, in time."""
    job = p.job("-n", 2, "--walltime", "4s")
    # (The generation is there before what it took is known.)
    of_status = lambda: json.loads(good(p.call("status", "--json")))["schedule"]["walltime"]
    p.until(lambda: "predicted" in of_status(), "what the first took")
    schedule = of_status()
    assert 0 < schedule["predicted"] < 1 and schedule["margin"] >= 2 and schedule["last_in"] < schedule["ends_in"], schedule
    line = good(p.call("status"))
    assert "wall time" in line and "margin" in line, line
    out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 85 and "gen-000002" in err, (job.returncode, err)
    assert [e["origin"] for e in p.journal("request")] == ["measure", "walltime"], p.journal()
    p.nothing_left()


@case
def interrupted(p):
    """SIGINT once: a checkpoint, then the end; twice: the end. --on-interrupt program: as mpiexec does it."""
    job = p.job("-n", 2)
    job.send_signal(signal.SIGINT)
    out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 85 and "gen-000001" in err and p.generations() == ["gen-000001"], (job.returncode, err)
    job = p.job("--restart", FAKE_HANG="freeze:1")
    job.send_signal(signal.SIGINT)
    p.until(lambda: p.state() == "checkpointing", "the checkpoint")
    time.sleep(0.3)  # sooner it would be the same one
    job.send_signal(signal.SIGINT)
    out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 130, (job.returncode, err)
    job = p.job("-n", 2, "--on-interrupt", "program")
    job.send_signal(signal.SIGINT)
    out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode not in (0, 85) and p.generations() == ["gen-000001"], (job.returncode, err)
    p.nothing_left()


@case
def journal(p):
    """What became of the job, line by line; nobody else reads it."""
    job = p.job("-n", 2, "--max-restarts", "1")
    good(p.call("checkpoint"))
    os.kill(p.pids()[0], signal.SIGKILL)
    p.until(lambda: len(p.journal("running")) == 2, "the second life")
    p.end(job, 0)
    kinds = [e["event"] for e in p.journal() if e["event"] != "phase"]
    assert kinds == ["start", "running", "request", "checkpoint", "loss", "end", "restart", "start", "running", "end"], kinds
    phases = [e["phase"] for e in p.journal("phase")]
    assert phases == ["request", "targets", "converge", "freeze", "drain", "suspend", "commit", "resume"], phases
    assert p.journal("checkpoint")[0]["bytes"] > 0 and p.journal("restart")[0]["from"] == "gen-000001", p.journal()
    assert [e["code"] for e in p.journal("end")] == [137, 0] and "is gone" in p.journal("end")[0]["why"], p.journal()
    assert (p.path / "fermata-ckpt" / "journal.jsonl").stat().st_mode & 0o777 == 0o600


@case
def watched(p):
    """`status --watch` says what the journal says, until the job is over."""
    job = p.job("-n", 2)
    watch = subprocess.Popen([str(FERMATA), "status", "--watch"], cwd=p.path, env=p.env, text=True, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.jobs.append(watch)
    good(p.call("checkpoint"))
    p.end(job, 0)
    out, err = watch.communicate(timeout=PATIENCE)
    assert watch.returncode == 0 and err == "", (watch.returncode, out, err)
    assert "checkpoint gen-000001: " in out and "every rank runs" in out and out.rstrip().endswith("ended with 0"), out


def slot(p, number, lasts, says_its_end):
    """The job script in one slot of a stand-in for Slurm: TERM to the script a second before the end, then KILL to all of its
    processes. Its exit code; None: it was put into the queue again."""
    for name, text in (("squeue", "echo N/A"), ("scontrol", f'echo "$*" >> {p.path}/requeued')):
        (p.path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (p.path / "bin" / name).chmod(0o755)
    env = {**p.env, "PATH": f"{p.path}/bin:{BUILD}/bin:/usr/bin:/bin", "SLURM_JOB_ID": "4711"}
    if says_its_end:
        env["SLURM_JOB_END_TIME"] = str(int(time.time() + lasts))
    with open(p.path / f"slot{number}.out", "w") as out, open(p.path / f"slot{number}.err", "w") as err:
        script = subprocess.Popen(["/bin/bash", "job.sh"], cwd=p.path, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                  start_new_session=True)
    p.jobs.append(script)
    start, asked = time.monotonic(), False
    while script.poll() is None and not (p.path / "requeued").exists():
        passed = time.monotonic() - start
        if passed > lasts - 1 and not asked:
            script.send_signal(signal.SIGTERM)
            asked = True
        if passed > lasts:
            break
        time.sleep(0.02)
    again = (p.path / "requeued").exists()
    try:
        os.killpg(script.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    script.wait()
    if again:
        assert (p.path / "requeued").read_text() == "requeue 4711\n", (p.path / "requeued").read_text()
        (p.path / "requeued").unlink()
    return None if again else script.returncode


@case
def batch(p):
    """A job script goes on over the ends of its slots: by Slurm's signal, in time by itself, after a slot that was cut off."""
    (p.path / "job.sh").write_text(good(p.call("batch", "--slot", "2s..4s", "--warning", "0.9s", "--total", "60s", "--name", "chain",
                                               "--", "-n", 2, "--ckpt-dir", "a b", "--", "/bin/true", "it's")))
    subprocess.run(["bash", "-n", "job.sh"], cwd=p.path, check=True)
    assert slot(p, 1, 4, False) is None  # by the signal
    assert slot(p, 2, 4, True) is None   # by itself
    assert "checkpointed and stopped" in (p.path / "slot1.err").read_text()
    script = subprocess.Popen(["/bin/bash", "job.sh"], cwd=p.path, start_new_session=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env={**p.env, "PATH": f"{p.path}/bin:{BUILD}/bin:/usr/bin:/bin", "SLURM_JOB_ID": "4711"})
    p.jobs.append(script)
    # A list of all jobs while there is none, the job once there is one.
    p.until(lambda: (job := json.loads(good(p.call("status", "--json")))) and job["phase"] == "running", "the slot that is cut off")
    os.killpg(script.pid, signal.SIGKILL)  # nobody could say anything
    script.wait()
    (p.path / "end").touch()
    assert slot(p, 4, 30, False) == 0
    said = (p.path / "slot4.out").read_text()
    assert said.startswith("finished, count ") and int(said.split()[-1]) >= 2, said
    assert not (p.path / "chain.fermata-slots").exists()
    # And once more: done.
    (p.path / "end").unlink()
    assert slot(p, 5, 30, False) == 0 and "nothing is left to be done" in (p.path / "slot5.err").read_text()
    p.nothing_left()


@case
def batch_total(p):
    """What all slots together have used is counted, and the end of the total is the end."""
    (p.path / "job.sh").write_text(good(p.call("batch", "--slot", "4s", "--warning", "1s", "--total", "100s", "--name", "chain", "--",
                                               "-n", 1, "/bin/true")))
    # Two slots that ended, one that was cut off (4 s), one that somebody else's clock has made longer than a slot.
    (p.path / "chain.fermata-slots").write_text("begin 100\nend 140\nbegin 200\nbegin 1000\nend 1050\nbegin 2000\nend 2003\n")
    (p.path / "end").touch()
    assert slot(p, 1, 30, False) == 0, (p.path / "slot1.err").read_text()
    (p.path / "chain.fermata-slots").write_text("begin 100\nend 140\nbegin 200\nend 260\n")
    assert slot(p, 2, 30, False) == 1 and "is used up" in (p.path / "slot2.err").read_text()


@case
def batch_words(p):
    """Each scheduler's script names what it was asked for; what cannot be is refused."""
    words = ["--slot", "2h..48h", "--total", "96h", "--name", "big", "--option", "--partition=spare", "--", "-n", 6, "-v", "--",
             "./it's here", "-n", "a b"]
    script = good(p.call("batch", *words))
    for part in ("--ntasks=6", "--time=48:00:00", "--time-min=02:00:00", "--signal=B:TERM@300", "--requeue", "total=345600",
                 "#SBATCH --partition=spare\n", "-n 6 -v -- './it'\\''s here' -n 'a b' &"):
        assert part in script, (part, script)
    for scheduler, parts in {"sge": ("-l h_rt=48:00:00,s_rt=47:55:00", "-pe mpi 6", "exit 99"),
                             "lsf": ("#BSUB -W 2880", "#BSUB -wt 5", '#BSUB -Q "85"', "#BSUB -n 6"),
                             "htcondor": ("checkpoint_exit_code = 85", "request_cpus = 6", "RemoteWallClockTime > 345600",
                                          "'./it''s here' -n 'a b'")}.items():
        script = good(p.call("batch", "--scheduler", scheduler, *words))
        for part in parts:
            assert part in script, (part, script)
        if scheduler != "htcondor":
            done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
            assert done.returncode == 0, done.stderr
    refused(p.call("batch", "--", "-n", 2, "./a"), "--slot", code=2)
    refused(p.call("batch", "--slot", "1h", "--", "./a"), "how many ranks", code=2)
    refused(p.call("batch", "--slot", "1h"), "nothing to run", code=2)
    refused(p.call("batch", "--slot", "1h", "--scheduler", "cron", "--", "-n", 2, "./a"), "htcondor", code=2)
    refused(p.call("batch", "--slot", "9m", "--", "-n", 2, "./a"), "--warning", code=2)
    refused(p.call("batch", "--slot", "3h..2h", "--", "-n", 2, "./a"), "--slot", code=2)
    refused(p.call("batch", "--slot", "3h", "--", "-n", 2, "--no-such", "./a"), "--no-such", code=2)
    refused(p.call("batch", "--slot", "3h", "--name", "a b", "--", "-n", 2, "./a"), "--name", code=2)


@case
def gives_up(p):
    """The same failure again and again, without a newer checkpoint: one generation earlier once, then a report."""
    job = p.job("-n", 2, "--max-restarts", "9", FAKE_DIE="go:1", wait=False)
    p.until(lambda: p.state() == "running", "the first life")
    good(p.call("checkpoint"))
    good(p.call("checkpoint"))
    os.kill(p.pids()[1], signal.SIGKILL)
    out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 137, (job.returncode, err)
    assert [e["from"] for e in p.journal("restart")] == ["gen-000002", "gen-000001"], p.journal("restart")
    lines = err.splitlines()
    assert "is given up: the same failure" in err and sum("(exit code 137)" in line for line in lines) == 3, err
    p.nothing_left()


@case
def daemon_lost(p):
    """Alone the job goes on and says what it cannot do; a supervisor with a generation takes it from there."""
    job = p.job("-n", 2, FAKE_ALONE="1")
    p.kill_node_daemon()
    p.until(lambda: p.state() == "broken", "the state")
    time.sleep(2.5)
    out, err = p.end(job, 0)
    assert "the node daemon of fake0" in err and "no checkpoint can be taken" in err, err
    job = p.job("-n", 2, "--max-restarts", "1", "--ckpt-dir", "other", FAKE_ALONE="1")
    good(p.call("checkpoint"))
    p.kill_node_daemon()
    p.until(lambda: json.loads(p.call("status", "--job", "job", "--json").stdout or "{}").get("restored") == "gen-000001" and
            p.state() == "running", "the second life")
    out, err = p.end(job, 0)
    assert out.endswith("finished, count 1\n") and "the node daemon of fake0" in err, (out, err)
    p.nothing_left()


@case
def launcher_that_does_not_see_a_death(p):
    """It has ten seconds; then the root ends it and the other ranks, with a line."""
    job = p.job("-n", 2, FAKE_KEEPS="1")
    pid = p.pids()[1]
    os.kill(pid, signal.SIGKILL)
    out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 1 and f"rank 1 (pid {pid} on fake0) is gone, and the launcher" in err, (job.returncode, err)
    p.nothing_left()


@case
def restarts_by_itself(p):
    job = p.job("-n", 2, "--max-restarts", "1")
    good(p.call("checkpoint"))
    os.kill(p.pids()[0], signal.SIGKILL)
    p.until(lambda: p.state() == "running" and
            json.loads(p.call("status", "--json").stdout or "{}").get("restored") == "gen-000001", "the second life")
    out, err = p.end(job, 0)
    assert out == "started\nfinished, count 1\n" and "going on" in err, (out, err)


@case
def restore_error(p):
    job = p.job("-n", 2)
    good(p.call("checkpoint"))
    p.end(job, 0)
    done = p.call("restart", "--generation", "latest", FAKE_RESTORE_ERROR="1")
    refused(done, "rank 1: no memory", code=6)
    p.nothing_left()


@case
def fatal(p):
    done = p.call("run", "-n", 2, "--", "/bin/true", FAKE_FATAL="1")
    refused(done, "MPI_Abort", code=7)
    p.nothing_left()


@case
def launcher_fails(p):
    done = p.call("run", "-n", 2, "--", "/bin/true", FAKE_MPIEXEC_FAILS="1")
    assert done.returncode == 143, done
    p.nothing_left()


@case
def damaged_generations(p):
    job = p.job("-n", 2)
    good(p.call("checkpoint"))
    good(p.call("checkpoint"))
    p.end(job, 0)
    image = p.path / "fermata-ckpt" / "gen-000002" / "rank-000001.img"
    data = bytearray(image.read_bytes())
    data[-20] ^= 1
    image.write_bytes(data)
    refused(p.call("restart"), "ended with exit code 0", code=7)
    refused(p.call("restart", "--generation", "latest"), "rank-000001.img")
    refused(p.call("verify"), "rank-000001.img", code=6)
    out, err = p.end(p.job("--restart", "--generation", "latest", "--fallback"), 0)
    assert out == "finished, count 1\n" and "restarting from gen-000001" in err, (out, err)
    image.unlink()
    refused(p.call("restart", "--generation", "latest"), "rank-000001.img")
    refused(p.call("restart", "--generation", 9), "gen-000009")
    refused(p.call("restart", "--generation", 1, "-n", 3), "2", code=2)


@case
def wrong_use(p):
    refused(p.call("run", "--", "./nothing-here"), "nothing-here")
    refused(p.call("run", "--mpi", "nompi", "--", "/bin/true"), "nompi", code=2)
    refused(p.call("run", "--mpi", "mpich", "--", "/bin/true", PATH=f"{p.path}/bin"), "mpiexec")
    refused(p.call("run", "--ckpt-dir", "here", "--ckpt-dir", "/proc/ckpt", "--", "/bin/true"), "/proc/ckpt")
    refused(p.call("run", "--mpiexec-args", "--quiet '", "--", "/bin/true"), "unclosed", code=2)
    refused(p.call("run", "-n", "none", "--", "/bin/true"), code=2)
    refused(p.call("run", "--interval", "soon", "--", "/bin/true"), "soon")
    refused(p.call("run", "--job", "a/b", "--", "/bin/true"), "a/b", code=2)
    refused(p.call("run"), code=2)
    refused(p.call("run", "-n", 1, "--"), code=2)
    refused(p.call("run", "-n", 1, "--job=x", "./nothing-here", "-n", "--"), "nothing-here")
    assert "--ckpt-dir" in good(p.call("run", "--help"))
    refused(p.call("sing"), code=2)
    refused(p.call("checkpoint"), "no job", code=5)
    refused(p.call("checkpoint", "--job", "absent"), "absent", code=5)
    refused(p.call("restart", "--ckpt-dir", "absent"), "absent", code=6)
    refused(p.call("list", "--ckpt-dir", "absent"), "absent", code=6)
    (p.path / "script").write_text("#!/no/interpreter\n")
    (p.path / "script").chmod(0o755)
    refused(p.call("run", "--", "./script"), "/no/interpreter")
    assert p.call("--version").stdout.startswith("fermata ")
    assert "checkpoint" in p.call("--help").stdout
    json.loads(p.call("doctor", "--json").stdout)


def main(cases):
    if sys.argv[2:] == ["--list"]:
        print(";".join(cases), end="")
        return
    for name in sys.argv[2:] or cases:
        start = time.monotonic()
        place = Place()
        failed = True
        try:
            cases[name](place)
            failed = False
        finally:
            place.close(failed)
            print(f"{'FAILED' if failed else 'passed'} {name} {time.monotonic() - start:.2f} s", flush=True)


if __name__ == "__main__":
    main(CASES)
