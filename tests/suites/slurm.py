#!/usr/bin/env python3
"""Jobs under a real Slurm with two nodes (slurm_cluster.py), started by srun: examples/slurm.sh through whatever ends a
job or a part of it, and what `fermata run` does inside an allocation. As root.

    tests/suites/slurm.py [CASE…] [--mpi openmpi|mpich|both] [--proctrack linuxproc|cgroup|both]
    tests/suites/slurm.py --system REGEX [--log FILE]   system tests by their names in ctest, all their jobs by srun; in FILE
                                                        a line each: name, exit code, seconds. Those that ended with 0 there are left out

A chain ends with the lines of an undisturbed run, and nothing of it is left on any node. MPICH runs over both nodes with
PyPI's mpich 5 where wheels_suite.py has built it; Debian's 4.0.2 may hang in MPI_Finalize between nodes, natively too
(docs/internals/bindings.md), and has one node for itself.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
import harness
from harness import Failure, Scratch, check
from nodes_test import NAMES, same
from slurm_cluster import Slurm

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "examples" / "slurm.sh"
WHEELS = pathlib.Path(os.environ.get("FERMATA_SUITES", pathlib.Path.home() / ".cache" / "fermata-suites"))
MIB, PAUSE = 2, 20000  # some 45 steps a second
B = "--signal=B:TERM@30"
NO_SIGNAL = "no signal"


def library(mpi):
    """What --mpi is given, and on how many nodes its ranks are."""
    wheel = WHEELS / "wheels-mpich"
    if mpi == "mpich":
        return (str(wheel), 2) if (wheel / "lib" / "libmpi.so.12").exists() else ("mpich", 1)
    return mpi, 2


class Chain:
    """examples/slurm.sh with our program as its solver, two ranks."""

    def __init__(self, slurm, mpi, steps, *options, words="--interval 2s"):
        self.slurm = slurm
        program = [harness.PROGRAMS / f"steady.{mpi}", steps, MIB]
        self.wanted = [line for line in harness.native(program, 2, mpi, slurm.cwd) if line.startswith(("step", "end"))]
        name, nodes = library(mpi)
        text = self.text(" ".join(map(str, program)), f"--mpi {name} {words}")
        if NO_SIGNAL in options:
            check("--signal=B:TERM@300 " in text, "slurm.sh has changed")
            text, options = text.replace("--signal=B:TERM@300 ", ""), [word for word in options if word != NO_SIGNAL]
        script = slurm.cwd / "job.sh"
        script.write_text(text)
        self.number = slurm.submit(script, f"--nodes={nodes}", f"--ntasks-per-node={2 // nodes}", f"--chdir={slurm.cwd}",
                                   f"--output={slurm.cwd}/out.%j", f"--export=ALL,STEADY_PAUSE={PAUSE}", *options)
        self.until(100)
        self.status = slurm.status()
        hosts = sorted(node["host"] for node in self.status["nodes"])
        check(hosts == sorted(NAMES)[:nodes], f"the ranks are on {hosts}")

    def text(self, program, words):
        text = SCRIPT.read_text()
        check("./solver" in text and "--interval auto" in text, "slurm.sh has changed")
        return text.replace("./solver", program).replace("--interval auto", words)

    def until(self, lines):
        self.slurm.until(lambda: len(self.slurm.said(self.number)) > lines, f"{lines} steps")

    def committed(self):
        self.slurm.until(lambda: list((self.slurm.cwd / "ckpt").glob("gen-*/manifest.json")), "a generation")

    def end(self, what, requeued, clear=lambda: None):
        """To its end, with the right lines; those since a checkpoint may stand twice when something failed. `clear`: what has
        to come before nothing is left."""
        self.slurm.end(self.number)
        said = self.slurm.said(self.number)
        found = said if requeued else [line for at, line in enumerate(said) if line not in said[:at]]
        same(found, self.wanted, what)
        check((self.slurm.restarts(self.number) > 0) == requeued, f"requeued {self.slurm.restarts(self.number)} times")
        clear()
        self.slurm.empty()
        return self.slurm.output(self.number)


class PluginChain(Chain):
    """The same by srun alone, in a job that was submitted with --fermata."""

    def text(self, program, words):
        return f"""#!/bin/bash
#SBATCH --ntasks=2 --time=01:00:00 --requeue --no-kill --open-mode=append
#SBATCH --fermata=ckpt/of-%j --fermata-options="{words}"
trap : TERM
srun hostname > host.txt
srun {program}
code=$?
[ $code = 85 ] && scontrol requeue "$SLURM_JOB_ID"
exit $code
"""

    def committed(self):
        self.slurm.until(lambda: list((self.slurm.cwd / "ckpt" / f"of-{self.number}").glob("gen-*/manifest.json")), "a generation")


def plugin(slurm, mpi):
    """Slurm's own commands with --fermata: a rank dies, the time is over, the job goes on in another slot. A step without,
    one that is done, shells, and words that are wrong."""
    chain = PluginChain(slurm, mpi, 2700, "--time=1")
    chain.committed()
    victim = chain.status["ranks"][1]["pid"]
    os.kill(victim, signal.SIGKILL)
    slurm.until(lambda: "restarting from" in slurm.output(chain.number), "a restart", 60)
    slurm.end(chain.number)
    said = slurm.said(chain.number)
    same([line for at, line in enumerate(said) if line not in said[:at]], chain.wanted, "by the plugin")
    slurm.empty()
    slots = slurm.requeued(chain.number)
    hosts = (slurm.cwd / "host.txt").read_text().split()
    check(len(hosts) == 2 and set(hosts) <= set(NAMES), f"the step without MPI in the last slot: {hosts}")
    plugin_words(slurm, mpi)
    return f"requeued {slots} times"


def plugin_requeued(slurm, mpi):
    """scontrol requeue, which ends the script at once, and SIGTERM to the ranks alone."""
    chain = PluginChain(slurm, mpi, 1200)
    check(slurm.call("scontrol", "requeue", chain.number).returncode == 0, "requeue failed")
    slurm.until(lambda: slurm.restarts(chain.number) > 0 and len(slurm.said(chain.number)) > 300 and slurm.state(chain.number) == "RUNNING", "the next slot")
    check(slurm.call("scancel", "-s", "TERM", f"{chain.number}.1").returncode == 0, "scancel failed")
    chain.end("after scontrol requeue and scancel", True)


EPILOG = harness.BUILD / "lib" / "fermata" / "slurm" / "epilog.sh"


def epilog(slurm, mpi):
    """All processes of a job are killed; Slurm's epilog removes what they leave. What `fermata doctor --admin` says of this Slurm."""
    def left():
        return [name for node in slurm.nodes for name in subprocess.run(
            [*node.on, "ls", f"/tmp/fermata-{os.geteuid()}"], capture_output=True, text=True, check=True).stdout.split()]

    chain = Chain(slurm, mpi, 1200, B)
    chain.committed()
    check(len(left()) > 1, f"run directories: {left()}")
    for _, pid, _ in slurm.of_ours():
        os.kill(pid, signal.SIGKILL)
    slurm.until(lambda: slurm.state(chain.number) not in ("RUNNING", "COMPLETING"), "the end", 60)
    slurm.until(lambda: not left(), "nothing that is left", 30)
    slurm.empty()
    done = slurm.call("fermata", "doctor", "--admin", "--json", "--ckpt-dir", slurm.cwd)
    said = {one["what"]: one for one in json.loads(done.stdout)}
    wrong = [said[what] for what in ("slurm", "srun, openmpi", "srun, mpich", "srun --fermata", "Epilog", "leftovers", "SlurmdTimeout") if not said[what]["ok"]]
    check(done.returncode == 0 and not wrong and "as slurmctld says" in said["slurm"]["found"], f"{done.returncode}: {wrong} {said['slurm']}")
    check("10 s from SIGTERM" in said["KillWait"]["found"] and "REQUEUE" in said["preemption"]["found"], f"{said['KillWait']} {said['preemption']}")


def plugin_words(slurm, mpi):
    name, nodes = library(mpi)
    steady = harness.PROGRAMS / f"steady.{mpi}"
    srun = f"srun -lN{nodes} -n2 --fermata={slurm.cwd}/words --fermata-options='--mpi {name}'"

    def expect(script, code, *texts, options=()):
        ended, out, err = slurm.inside(script, *options)
        check(ended == code and all(text in out + err for text in texts), f"{script}: {ended}\n{out}\n{err}")
        return out, err

    expect(f"{srun} {steady} 10 1", 0, "step 9")
    expect(f"{srun} {steady} 10 1", 0, "nothing is left to be done")
    expect(f"{srun} sh -c 'exit 7'", 7)
    out, _ = expect("srun env", 0, options=[f"--fermata={slurm.cwd}/of-salloc"])
    check("FERMATA_JOB=" in out, f"the option of salloc is lost: {out}")
    out, _ = expect("srun --fermata=off env", 0, options=[f"--fermata={slurm.cwd}/of-salloc"])
    check("FERMATA_JOB=" not in out, f"off is not: {out}")
    # Fermata's own words in a job with the option: one `fermata run`, not one below another.
    expect(f"fermata run --mpi {name} -n 2 --ckpt-dir {slurm.cwd}/inner -- {steady} 10 1", 0, "step 9", options=["--fermata=outer"])
    check(not (slurm.cwd / "outer").exists(), "Fermata's srun has become another Fermata")
    expect("srun --pty hostname", 0, options=["--fermata=outer"])
    expect(f"{srun} --fermata-options='--interval' hostname", 2, "--interval needs a value")
    expect("srun --fermata-options=-v hostname", 2, "goes with --fermata=DIR")
    expect(f"{srun} hostname : -n1 hostname", 2, "several programs in one step")
    done = slurm.call("sbatch", "--fermata=x%z", slurm.cwd / "job.sh")
    check(done.returncode == 2 and "there are %j" in done.stderr, f"sbatch: {done}")


def time_limit(slurm, mpi):
    """The limit comes before the program is done; the signal may come up to a minute early."""
    chain = Chain(slurm, mpi, 2700, "--time=1", "--signal=B:TERM@40")
    chain.end("over the time limit", True)
    return f"requeued {slurm.requeued(chain.number)} times"


def urgent(slurm, chain):
    """A job of a partition of higher priority takes the nodes; how long it waited for them."""
    chain.until(300)
    (slurm.cwd / "urgent.sh").write_text("#!/bin/sh\nsleep 5\n")
    number = slurm.submit(slurm.cwd / "urgent.sh", "--partition=high", "--nodes=2", "--exclusive", f"--chdir={slurm.cwd}", "--output=/dev/null")
    begin = time.monotonic()
    slurm.until(lambda: slurm.state(number) in ("RUNNING", "COMPLETED"), "the urgent job", 120)
    waited = time.monotonic() - begin
    slurm.end(number)
    return f"the urgent job waited {waited:.1f} s"


def preempted(slurm, mpi):
    """With --signal=B:TERM the script is warned."""
    chain = Chain(slurm, mpi, 1500, "--partition=low", B)
    said = urgent(slurm, chain)
    chain.end("after the urgent job", True)
    return said


def preempted_bare(slurm, mpi):
    """Without --signal the first SIGTERM comes to the ranks."""
    chain = Chain(slurm, mpi, 1500, "--partition=low", NO_SIGNAL)
    said = urgent(slurm, chain)
    output = chain.end("after the urgent job", True)
    check("has told the ranks to end" in output, "no rank was warned")
    return said


def preempted_ranks(slurm, mpi):
    """--signal=TERM without B: comes to the ranks, within a second of the start."""
    chain = Chain(slurm, mpi, 1500, "--partition=low", "--time=5", "--signal=TERM@30")
    said = urgent(slurm, chain)
    chain.end("after the urgent job", True)
    return said


def scancelled(slurm, mpi):
    """scancel -s TERM: to the ranks of a step alone."""
    chain = Chain(slurm, mpi, 1200, B)
    check(slurm.call("scancel", "-s", "TERM", f"{chain.number}.0").returncode == 0, "scancel failed")
    output = chain.end("after scancel -s TERM", True)
    check("has told the ranks to end" in output, "no rank was warned")


def checkpointed(slurm, mpi):
    """scancel -s USR1: a checkpoint, and the job goes on."""
    chain = Chain(slurm, mpi, 1000, B, words="--keep all")
    check(slurm.call("scancel", "-s", "USR1", f"{chain.number}.0").returncode == 0, "scancel failed")
    chain.end("after scancel -s USR1", False)
    made = len(list((slurm.cwd / "ckpt").glob("gen-*/manifest.json")))
    check(made == 1, f"{made} generations")


def requeued(slurm, mpi):
    """scontrol requeue: everything is told to end."""
    chain = Chain(slurm, mpi, 1200, B)
    check(slurm.call("scontrol", "requeue", chain.number).returncode == 0, "requeue failed")
    chain.end("after scontrol requeue", True)


def rank_dies(slurm, mpi, words="--interval 2s", look=lambda: None):
    """The job goes on from the newest generation in the same allocation."""
    chain = Chain(slurm, mpi, 1200, B, words=words)
    chain.committed()
    look()
    victim = chain.status["ranks"][1]["pid"]
    begin, before = time.monotonic(), len(slurm.said(chain.number))
    os.kill(victim, signal.SIGKILL)
    slurm.until(lambda: "restarting from" in slurm.output(chain.number), "a restart", 60)
    restarted = time.monotonic() - begin
    chain.until(before + 20)
    computing = time.monotonic() - begin
    chain.end("after a rank's death", False)
    return f"a restart after {restarted:.1f} s, computing again after {computing:.1f} s"


def own(slurm, mpi):
    """--launcher own: one srun starts a daemon on each node, which is the parent of its ranks."""
    def parents():
        found = set()
        for rank in slurm.status()["ranks"]:
            parent = int(pathlib.Path(f"/proc/{rank['pid']}/stat").read_text().rsplit(")", 1)[1].split()[1])
            found.add(pathlib.Path(f"/proc/{parent}/comm").read_text().strip())
        return found

    name, nodes = library(mpi)
    done = slurm.inside(f"fermata run --launcher own --mpi {name} -n {nodes} --ckpt-dir {slurm.cwd}/none -- sh -c 'exit 7'")
    check(done[0] == 7, f"exit code {done}")
    return rank_dies(slurm, mpi, "--launcher own --interval 2s", lambda: check(parents() == {"noded"}, f"ranks of {parents()}"))


def lives_on(slurm, mpi, lose, what, clear=lambda: None):
    """A job over both nodes loses the second one and goes on in the same allocation, on the first."""
    chain = Chain(slurm, mpi, 1200, B)
    chain.committed()
    begin = time.monotonic()
    lose()
    slurm.until(lambda: "restarting from" in slurm.output(chain.number), "a restart", 120)
    restarted = time.monotonic() - begin

    def hosts():
        done = slurm.call("fermata", "status", "--json")
        return done.returncode == 0 and f'"host":"{NAMES[0]}"' in done.stdout.replace(" ", "")

    slurm.until(hosts, "ranks on the first node", 60)
    check([node["host"] for node in slurm.status()["nodes"]] == [NAMES[0]], f"on {slurm.status()['nodes']}")
    chain.end(what, False, clear)
    return f"a restart on {NAMES[0]} after {restarted:.1f} s"


def node_down(slurm, mpi):
    """scontrol update state=down: Slurm kills what it has on that node, with cgroup the node daemon, too: the directory
    that it leaves goes with the next job there."""
    def update(*words):
        check(slurm.call("scontrol", "update", f"nodename={NAMES[1]}", *words).returncode == 0, f"not {words}")

    def next_job():
        name, _ = library(mpi)
        done = slurm.inside(f"fermata run --launcher own --mpi {name} -n 2 --ckpt-dir {slurm.cwd}/next -- true")
        check(done[0] == 0, f"the next job: {done}")

    return lives_on(slurm, mpi, lambda: update("state=down", "reason=test"), "after a node was set down", next_job)


def node_dies(slurm, mpi):
    """Everything on the node is gone, its slurmd and slurmstepd too."""
    return lives_on(slurm, mpi, lambda: check(slurm.nodes[1].kill() > 0, "nothing was there"), "after a node's death")


def allocation(slurm, mpi):
    """Inside an allocation: exit codes, standard input, a wrong plugin, too many ranks, a silent stop, cancel."""
    name, _ = library(mpi)
    run = f"fermata run --mpi {name} -n 2 --ckpt-dir {slurm.cwd}/ckpt"
    steady = harness.PROGRAMS / f"steady.{mpi}"

    def expect(script, code, *texts):
        ended, out, err = slurm.inside(script)
        check(ended == code and all(text in out + err for text in texts), f"{script}: {ended}\n{out}\n{err}")
        return out, err

    expect(f"{run} -- sh -c 'exit 7'", 7)
    out, _ = expect(f"seq 3 | {run} -- sh -c 'echo $SLURM_PROCID: $(wc -l)'", 0)
    check(sorted(out.split("\n")) == ["", "0: 3", "1: 0"], f"standard input: {out}")
    expect(f"{run} --launcher srun --srun-args=--mpi=pmix_v9 -- true", 2, "srun has no plugin pmix_v9")
    if mpi == "mpich":
        expect(f"fermata run --mpi mpich -n 2 --srun-args=--mpi=none -- {steady} 10 1", 1, "it needs --mpi=pmi2")
    expect(f"fermata run --mpi {name} -n 9 -- true", 1, "do not fit on the 4 processors of 2 nodes")
    _, err = expect(f"STEADY_PAUSE={PAUSE} {run} -- {steady} 4000 2 & until fermata checkpoint --stop; do sleep 0.5; done 2>/dev/null; wait $!", 85)
    foreign = [line for line in err.splitlines() if not line.startswith("fermata: ")]
    check(not foreign, f"said at a stop: {foreign}")
    expect(f"fermata restart --mpi {name} --ckpt-dir {slurm.cwd}/ckpt > /dev/null & sleep 3; fermata cancel; wait $!", 143, "cancelled")
    slurm.empty()


def own_state(slurm, mpi):
    """A program that saves its own state (libfermata), by srun alone: killed, and started again by the same line."""
    nodes, plugin = (2, "pmix") if mpi == "openmpi" else (1, "pmi2")
    walk, steps = harness.PROGRAMS / f"walk.{mpi}", 20000
    wanted = harness.native([harness.PROGRAMS / "walk.mpich", slurm.cwd / "alone", steps], 1, "mpich", slurm.cwd)
    found = []
    for number, options in enumerate(("keep=2", "memory=buddy,flush=20" if nodes > 1 else "layout=shared")):
        run = f"srun --mpi={plugin} -N{nodes} -n2 {walk} {slurm.cwd}/s{number} {steps} {options}"
        code, out, err = slurm.inside(f"{run} & sleep 3; scancel -s KILL $SLURM_JOB_ID.0; wait $!")
        check(code != 0 and "from 0" in out and "end" not in out, f"the first start: {code}\n{out}\n{err}")
        code, out, err = slurm.inside(run)
        ends = [line for line in out.splitlines() if line.startswith("end")]
        check(code == 0 and ends and ends[0] in wanted, f"the second start: {code}\n{out}\n{err}")
        found.append(int(out.split("from ")[1].split()[0]))
        check(found[-1] > 0, f"it began anew: {out}\n{err}")
    slurm.empty()
    return f"went on from steps {found}"


CASES = {f.__name__: f for f in (allocation, own_state, scancelled, checkpointed, requeued, rank_dies, node_down, node_dies, preempted, preempted_bare,
                                 preempted_ranks, time_limit, own, plugin, plugin_requeued, epilog)}


# System tests, by their names, that say nothing about srun, or that cannot be inside of an allocation; and why.
NOT_BY_SRUN = {
    r"(own|srun|pmi)\..*": "it chooses its launchers itself",
    r"dynamic\.(?!missing).*": "MPI_Comm_spawn and ports: Slurm's plugin pmix has neither, natively (docs/limits.md)",
    r"binding\..*": "it asks mpiexec to bind; srun binds by the plugin task/affinity, which this Slurm is without",
    r"levels\.no_memory\..*|local\.full|elsewhere\.another_cpu": "its mounts are seen by what it starts itself, and ranks are slurmd's",
    r"attack\.files\.(?!run_dir_of_a_user_for_root|lock_link|setuid_program|root_in_a_users_directory).*":
        "its users have no accounts, and Slurm starts steps for those alone",
    r"words\.launcher": "it checks mpiexec's own options; in an allocation Hydra looks for its hosts by srun, which knows no localhost",
    r"(nodes|buddies|parity|tree)\..*|shared_state\.apart|supervised\.nodes": "it makes nodes of its own, of which Slurm knows nothing",
    r"(api|api_veloc|api_clean|rt_tddft)\.(?!transparent).*|api_crash": "programs that save their own state, by mpiexec alone; by srun: the case own_state",
}


def why_not(name):
    """Why this test is not run by srun; empty when it is."""
    return next((reason for pattern, reason in NOT_BY_SRUN.items() if re.fullmatch(pattern, name.removeprefix("system."))), "")


def system_tests(pattern):
    """Names and command lines of the tests that CI has, from ctest."""
    done = subprocess.run(["ctest", "--test-dir", harness.BUILD, "-R", pattern, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    return {test["name"]: test["command"] for test in json.loads(done.stdout)["tests"] if test["name"].startswith("system.")}


class Log:
    """A line for each test that was run, in a file where there is one."""

    def __init__(self, path):
        self.path = path

    def passed(self):
        lines = [line.split() for line in self.path.read_text().splitlines()] if self.path and self.path.exists() else []
        return {words[0] for words in lines if words[1] == "0"}

    def add(self, name, code, seconds):
        if self.path:
            with self.path.open("a") as file:
                file.write(f"{name} {code} {seconds:.0f}\n")


def system(pattern, log):
    """Each test in an allocation of one node with processors for its ranks; how many failed."""
    failed, tests = 0, {}
    for name, words in system_tests(pattern).items():
        if reason := why_not(name):
            print(f"{name}: not by srun: {reason}", flush=True)
        elif name not in log.passed():
            tests[name] = words
    while tests:
        with Scratch("slurm") as cwd, Slurm(cwd, cpus=16) as slurm:
            while tests:  # after a failure with a Slurm without remains
                name = next(iter(tests))
                said = system_test(slurm, name, tests.pop(name), log)
                if said:
                    failed += 1
                    print(said, flush=True)
                    break
    return failed


def system_test(slurm, name, words, log):
    """What went wrong; empty when nothing did."""
    begin = time.monotonic()
    user = []
    if name.startswith("system.everything.ordinary"):
        # Not for root: the step has to be that user's, and an interpreter below /root is not for him.
        user, words = ["--uid=nobody"], ["/usr/bin/python3", *words[1:]]
    script = " ".join(f"'{word}'" for word in words)
    code, said = 124, ""
    # The node's network is one that a test may have for itself; in another one srun reaches no Slurm (attack/network_test.py).
    variables = ["FERMATA_TEST_LAUNCHER=srun", f"FERMATA_BUILD={harness.BUILD}", "FERMATA_OWN_NETWORK=1"]
    try:
        done = slurm.call("salloc", "--quiet", *user, "--nodes=1", "--exclusive", "--no-kill", "env", *variables, "bash", "-c", script, patience=900)
        code = done.returncode or 1
        check(done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        slurm.empty()
        code = 0
    except (Failure, subprocess.TimeoutExpired) as failure:
        said = f"{name} srun: FAILED in {time.monotonic() - begin:.0f} s: {failure}"
    log.add(name, code, time.monotonic() - begin)
    if not said:
        print(f"{name} srun: passed in {time.monotonic() - begin:.0f} s", flush=True)
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--mpi", default="both")
    parser.add_argument("--proctrack", default="linuxproc")
    parser.add_argument("--system", metavar="REGEX")
    parser.add_argument("--log", metavar="FILE", type=pathlib.Path)
    options = parser.parse_args()
    missing = [tool for tool in ("munged", "slurmctld", "slurmd", "sbatch") if shutil.which(tool) is None]
    if missing or set(options.cases) - set(CASES):
        parser.error(f"not there: {', '.join(missing)}" if missing else f"cases are: {', '.join(CASES)}")
    if options.system:
        return 1 if system(options.system, Log(options.log)) else 0
    failed = 0
    for mpi in ["openmpi", "mpich"] if options.mpi == "both" else [options.mpi]:
        for proctrack in ["linuxproc", "cgroup"] if options.proctrack == "both" else [options.proctrack]:
            for name in options.cases or CASES:
                begin = time.monotonic()
                try:
                    with Scratch("slurm") as cwd, Slurm(cwd, proctrack, 60 if name == "preempted" else 20,
                                                             more=f"Epilog={EPILOG}\n" if name == "epilog" else "") as slurm:
                        said = CASES[name](slurm, mpi)
                    print(f"{name} {mpi} {proctrack}: passed in {time.monotonic() - begin:.0f} s{f': {said}' if said else ''}", flush=True)
                except Failure as failure:
                    failed += 1
                    print(f"{name} {mpi} {proctrack}: FAILED: {failure}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
