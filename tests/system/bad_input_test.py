#!/usr/bin/env python3
"""What a user can do wrong, and what can break: each ends in one line and a non-zero exit, nothing is left running and
nothing is lost.

    bad_input_test.py CASE
"""
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import harness
from harness import FERMATA, PROGRAMS, Job, Scratch, call, check, go, resting

MIX = [PROGRAMS / "mix.openmpi", "80", "500"]  # resting: eight seconds, or as long as it is let
SOURCES = pathlib.Path(__file__).resolve().parents[2]
SHORT = [PROGRAMS / "mix.openmpi", "40", "500"]


def processes_of(cwd):
    """Processes whose working directory is inside `cwd`: nobody else's."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                where = os.readlink(entry / "cwd")
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if where.startswith(str(cwd)) and int(entry.name) != os.getpid():
                found.append((int(entry.name), " ".join(words)))
    return found


def nothing_left(cwd):
    deadline = time.monotonic() + 20
    while left := processes_of(cwd):
        check(time.monotonic() < deadline, f"still running: {left}")
        time.sleep(0.05)


def one_line(done, *words):
    """A refusal: non-zero, exactly one line of ours on stderr, with all `words` in it."""
    ours = [line for line in done.stderr.splitlines() if line.startswith("fermata: error:")]
    check(done.returncode not in (0, 85), f"exit status {done.returncode}; stderr: {done.stderr}")
    check(len(ours) == 1, f"expected one line, got: {done.stderr}")
    for word in words:
        check(str(word) in ours[0], f"'{word}' is not in: {ours[0]}")
    return ours[0]


def refused_run(cwd, program, *words, extra=(), preexec=None):
    done = subprocess.run([str(FERMATA), "run", "-n", "2", "--ckpt-dir", "ckpt", *map(str, extra), "--",
                           *map(str, program)], capture_output=True, text=True, timeout=harness.PATIENCE, cwd=cwd,
                          stdin=subprocess.DEVNULL, preexec_fn=preexec)
    print("  ", one_line(done, *words))
    nothing_left(cwd)


def generation(cwd, count=1):
    """A finished job with `count` generations in cwd/ckpt and its native results."""
    (cwd / "go").unlink(missing_ok=True)
    with Job.run(SHORT, 2, cwd, env=resting(cwd)) as job:
        job.wait_until(lambda: len(job.lines()) >= 3, "three lines")
        for _ in range(count):
            job.checkpoint()
        go(cwd)
        return job.finish()


def restart_is_right(cwd, reference, extra=(), generation="latest"):
    with Job.restart(cwd, extra=extra, generation=generation) as job:
        lines = job.finish()
        check(lines and lines == reference[-len(lines):], f"wrong after restart: {lines[-2:]} {reference[-2:]}")


def refused_restart(cwd, *words, extra=()):
    done = call("restart", "--ckpt-dir", "ckpt", "--generation", "latest", *extra, cwd=cwd)
    print("  ", one_line(done, *words))
    nothing_left(cwd)


def no_such_program(cwd):
    refused_run(cwd, ["./nothing-here"], "nothing-here")


def static_binary(cwd):
    refused_run(cwd, [PROGRAMS / "static"], "static")


def script_without_interpreter(cwd):
    script = cwd / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    refused_run(cwd, [script], "/no/such/interpreter")


def no_such_mpi(cwd):
    refused_run(cwd, SHORT, "nompi", extra=["--mpi", "nompi"])


def no_mpiexec(cwd):
    os.environ["PATH"] = str(cwd)
    refused_run(cwd, [pathlib.Path(SHORT[0]).resolve(), *SHORT[1:]], "mpiexec")


def small_address_space(cwd):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    refused_run(cwd, SHORT, "ulimit -v", preexec=limit)


def no_new_code(cwd):
    """As under SELinux's deny_execmem or systemd's MemoryDenyWriteExecute: in all of the job, and in its ranks alone."""
    said = "no memory may become code here"
    deny = cwd / "deny"
    deny.write_text("#!/usr/bin/perl\nsyscall(157, 65, 1, 0, 0, 0) == 0 or exit 77;  # prctl(PR_SET_MDWE, …)\nexec @ARGV or exit 78;\n")
    deny.chmod(0o755)
    if subprocess.run([deny, "true"], check=False).returncode == 77:
        print("skipped: this kernel (before Linux 6.3) has no PR_SET_MDWE")
        sys.exit(77)
    done = subprocess.run([deny, FERMATA, "run", "-n", "2", "--", *map(str, SHORT)], capture_output=True, text=True,
                          timeout=harness.PATIENCE, cwd=cwd, stdin=subprocess.DEVNULL)
    one_line(done, said)
    refused_run(cwd, [deny, *SHORT], said)
    done = subprocess.run([deny, FERMATA, "doctor"], capture_output=True, text=True, timeout=harness.PATIENCE)
    check(done.returncode == 1 and re.search(f"^FAIL .*{said}", done.stdout, re.M), f"doctor: {done.stdout}")
    nothing_left(cwd)


def unwritable_directory(cwd):
    refused_run(cwd, SHORT, "/proc/ckpt", extra=["--ckpt-dir", "/proc/ckpt"])


def full_directory(cwd):
    """The checkpoint fails in one line, the generation before stays, the job goes on and is right."""
    small = cwd / "ckpt"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(small)], check=True)
    try:
        with Job.run(MIX, 2, cwd, env=resting(cwd)) as job:
            job.wait_until(lambda: len(job.lines()) >= 3, "three lines")
            failed = None
            for _ in range(6):
                done = call("checkpoint", "--job", job.name)
                if done.returncode != 0:
                    failed = done
                    break
            check(failed is not None, "six checkpoints fit into 24 MiB")
            print("  ", one_line(failed))
            go(cwd)
            reference = job.finish()
            check("mix: right" in reference[-1], reference[-1])
        restart_is_right(cwd, reference)
    finally:
        subprocess.run(["umount", str(small)], check=True)


def missing_image(cwd):
    generation(cwd)
    (cwd / "ckpt" / "gen-000001" / "rank-000001.img").unlink()
    refused_restart(cwd, "rank-000001.img")


def truncated_image(cwd):
    reference = generation(cwd, 2)
    image = cwd / "ckpt" / "gen-000002" / "rank-000001.img"
    os.truncate(image, image.stat().st_size // 2)
    refused_restart(cwd, image.name)
    restart_is_right(cwd, reference, extra=["--fallback"])


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 4]))


def flipped_image(cwd):
    reference = generation(cwd)
    image = cwd / "ckpt" / "gen-000001" / "rank-000000.img"
    for offset in (image.stat().st_size // 2, image.stat().st_size - 100, 20):
        flip(image, offset)
        refused_restart(cwd, image.name)
        flip(image, offset)
    restart_is_right(cwd, reference)


def flipped_manifest(cwd):
    reference = generation(cwd, 2)
    flip(cwd / "ckpt" / "gen-000002" / "manifest.json", 40)
    refused_restart(cwd, "manifest.json")
    restart_is_right(cwd, reference, generation=1)


def other_build(cwd):
    """A build whose halves know something else of each other: this one's number of the interface, replaced everywhere."""
    reference = generation(cwd)
    subprocess.run([sys.executable, SOURCES / "tools" / "interface.py", SOURCES / "src", cwd / "interface.h"], check=True)
    sources = int(re.search(r"0x([0-9a-f]{8})", (cwd / "interface.h").read_text())[1], 16)
    table = int(re.search(r"kAbiHash = 0x([0-9a-f]{8})", (harness.BUILD / "generated" / "fermata_table.h").read_text())[1], 16)
    number = (sources ^ table).to_bytes(4, "little")
    other = cwd / "other"
    (other / "bin").mkdir(parents=True)
    shutil.copy(FERMATA, other / "bin")
    for folder in ("libexec/fermata", "lib/fermata/fronts"):
        shutil.copytree(harness.BUILD / folder, other / folder)
    changed = 0
    for path in [*(other / "libexec/fermata").glob("lower-*"), other / "lib/fermata/fronts/libfermata-front.so"]:
        code = path.read_bytes()
        changed += number in code
        path.write_bytes(code.replace(number, (0xBADC0DE).to_bytes(4, "little")))
    check(changed >= 3, f"only {changed} files have the interface's number")

    def call_other(*words):
        return subprocess.run([str(other / "bin" / "fermata"), *words], capture_output=True, text=True, timeout=harness.PATIENCE, cwd=cwd)

    native = call_other("run", "-n", "2", "--ckpt-dir", "own", "--", *map(str, SHORT))
    check(native.returncode == 0, f"the other build does not run: {native.stderr}")
    print("  ", one_line(call_other("restart", "--ckpt-dir", "ckpt", "--generation", "latest"), "another interface", "0badc0de"))
    nothing_left(cwd)
    restart_is_right(cwd, reference)


def wrong_rank_count(cwd):
    generation(cwd)
    refused_restart(cwd, "2", extra=["-n", "3"])


def two_jobs_one_directory(cwd):
    with Job.run(MIX, 2, cwd, env=resting(cwd)) as job:
        job.wait_until(lambda: len(job.lines()) >= 1, "one line")
        done = call("run", "-n", "2", "--ckpt-dir", "ckpt", "--", *SHORT, cwd=cwd)
        print("  ", one_line(done, job.name))
        job.checkpoint()


def killed_before(cwd):
    """A rank dies while nothing happens: the job ends, the generation stays."""
    with Job.run(MIX, 2, cwd, env=resting(cwd)) as job:
        job.wait_until(lambda: len(job.lines()) >= 2, "two lines")
        job.checkpoint()
        os.kill(job.rank_pids()[1], signal.SIGKILL)
        check(job.end() != 0, "a job with a killed rank ended with success")
    go(cwd)
    nothing_left(cwd)
    with Job.restart(cwd) as job:
        check("mix: right" in job.finish()[-1], "wrong after restart")


def killed_during(cwd):
    """A rank stands still outside MPI, so the checkpoint waits for it; then it is killed."""
    with Job.run(MIX, 2, cwd, env=resting(cwd)) as job:
        job.wait_until(lambda: len(job.lines()) >= 2, "two lines")
        job.checkpoint()
        victim = job.rank_pids()[1]
        os.kill(victim, signal.SIGSTOP)
        client = subprocess.Popen([str(FERMATA), "checkpoint", "--job", job.name], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        job.wait_until(lambda: job.status()["phase"] != "running", "the request")
        os.kill(victim, signal.SIGKILL)
        out, err = client.communicate(timeout=harness.PATIENCE)
        check(client.returncode != 0, f"a checkpoint with a killed rank was called good: {out}")
        check(err.count("fermata: error:") == 1, err)
        check(job.end() != 0, "a job with a killed rank ended with success")
    go(cwd)
    nothing_left(cwd)
    left = [entry.name for entry in (cwd / "ckpt").iterdir() if entry.name.startswith("gen-")]
    check(left == ["gen-000001"], f"generations: {left}")
    with Job.restart(cwd) as job:
        check("mix: right" in job.finish()[-1], "wrong after restart")


def daemon_killed(cwd):
    """The node daemon dies when all ranks but one have arrived in MPI_Finalize: nobody waits for its word for ever."""
    for mpi in ("openmpi", "mpich"):
        with Job.run([PROGRAMS / f"waits.{mpi}", "late_finalize", 1, 2], 3, cwd, mpi=mpi) as job:
            job.wait_line("READY")
            time.sleep(0.3)
            os.kill(job.daemon_pids()[0], signal.SIGKILL)
            if harness.WITHOUT_DAEMON:
                check(job.end() == harness.WITHOUT_DAEMON and "the node daemon of" in job.errors(), job.errors())
                continue
            job.finish()
            check("lost the node daemon" in job.errors(), job.errors())


def checkpoint_without_job(cwd):
    print("  ", one_line(call("checkpoint", "--job", "no-such-job"), "no-such-job"))


def stop_and_continue(cwd):
    """checkpoint --stop ends the run with 85; the continued job is right."""
    reference = harness.native(MIX, 2, "openmpi", cwd)
    with Job.run(MIX, 2, cwd, env=resting(cwd)) as job:
        job.wait_until(lambda: len(job.lines()) >= 5, "five lines")
        job.checkpoint("--stop")
        before = job.finish(expected=85)
    go(cwd)
    nothing_left(cwd)
    with Job.restart(cwd) as job:
        after = job.finish()
    check(before + after == reference, f"{len(before)} + {len(after)} lines are not the native {len(reference)}")


def exit_code_and_streams(cwd):
    """Exit code, standard error and standard input of rank 0 behave as under plain mpiexec."""
    script = cwd / "talk.sh"
    script.write_text("#!/bin/sh\nread line || line=nothing\necho \"out $line\"\necho err >&2\nexit 7\n")
    script.chmod(0o755)
    done = subprocess.run([str(FERMATA), "run", "-n", "1", "--mpi", "openmpi", "--ckpt-dir", "ckpt", "--", str(script)],
                          input="hello\n", capture_output=True, text=True, timeout=harness.PATIENCE, cwd=cwd)
    check(done.returncode == 7, f"exit status {done.returncode}: {done.stderr}")
    check("out hello" in done.stdout.splitlines(), done.stdout)
    check("err" in done.stderr.splitlines(), done.stderr)


CASES = {function.__name__: function for function in (
    no_such_program, static_binary, script_without_interpreter, no_such_mpi, no_mpiexec, small_address_space, no_new_code,
    unwritable_directory, full_directory, missing_image, truncated_image, flipped_image, flipped_manifest, other_build,
    wrong_rank_count, two_jobs_one_directory, killed_before, killed_during, daemon_killed, checkpoint_without_job, stop_and_continue,
    exit_code_and_streams)}


def run(name):
    with Scratch(name) as cwd:
        CASES[name](cwd)


if __name__ == "__main__":
    sys.exit(harness.main(run, CASES))
