#!/usr/bin/env python3
"""MPI over InfiniBand verbs without the hardware: software RoCE in the emulated machine of kernel.py (`kernel.py rdma`).

Both libraries, over reliable connections (rc) and datagrams (ud): tests/programs/registered.c natively, then checkpointed while
its messages are under way, stopped, and continued over verbs, TCP, shared memory, on the other library, and with the device
gone. All lines must be the native ones, and packets of the device are the proof that verbs carried them.

    rdma.py MPI…      inside that machine: openmpi, mpich
"""
import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from suites import BUILD, FERMATA, Failure  # noqa: E402

PROGRAMS = BUILD / "tests" / "programs"
STEPS, RANKS, PATIENCE = 60, 2, 400
PAUSE = 500000  # µs a step where checkpoints are to come: an emulated command takes seconds to begin
DEVICE = "rxe0"
PACKETS = pathlib.Path(f"/sys/class/infiniband/{DEVICE}/ports/1/hw_counters/sent_pkts")
TLS = {"rc": "rc_verbs,ud_verbs,self", "ud": "ud_verbs,self", "tcp": "tcp,self", "shm": "posix,sysv,self"}


def check(condition, message):
    if not condition:
        raise Failure(message)


def tool(*words):
    subprocess.run(words, check=True)


def network_card():
    for module in ("virtio_net", "rdma_rxe", "ib_uverbs", "rdma_ucm"):
        tool("modprobe", module)
    for _ in range(100):
        cards = [card.name for card in pathlib.Path("/sys/class/net").iterdir() if card.name != "lo"]
        if cards:
            break
        time.sleep(0.1)
    check(cards, "no network card")
    tool("ip", "address", "add", "192.0.2.1/24", "dev", cards[0])
    tool("ip", "address", "add", "2001:db8::1/64", "dev", cards[0], "nodad")
    tool("ip", "link", "set", cards[0], "up")
    return cards[0]


def add_device(card):
    tool("rdma", "link", "add", DEVICE, "type", "rxe", "netdev", card)
    for _ in range(100):
        for entry in sorted(pathlib.Path(f"/sys/class/infiniband/{DEVICE}/ports/1/gids").iterdir()):
            # UCX 1.13's datagrams are dropped with the entry of the IPv4 address, its default.
            if entry.read_text().startswith("2001:0db8"):
                return entry.name
        time.sleep(0.1)
    raise Failure("the device has no entry for the IPv6 address")


def environment(mpi, way, gid, pause=0):
    env = dict(os.environ, STEADY_PAUSE=str(pause), OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    if way != "host":  # whatever the library takes by itself
        env["UCX_TLS"] = TLS[way]
    if way in ("rc", "ud"):
        env.update(UCX_IB_GID_INDEX=gid, UCX_NET_DEVICES=f"{DEVICE}:1")
    if mpi == "openmpi" and way != "host":
        # By itself it has UCX only where there is hardware for it.
        env.update(OMPI_MCA_pml="ucx", OMPI_MCA_pml_ucx_tls="any", OMPI_MCA_pml_ucx_devices="any")
    return env


def packets():
    return int(PACKETS.read_text()) if PACKETS.exists() else 0


class Carried:
    """The block's messages went over the device, or (want=False) did not."""

    def __init__(self, what, want):
        self.what, self.want = what, want

    def __enter__(self):
        self.before = packets()

    def __exit__(self, kind, *_):
        if kind is None:
            # STEPS messages of half a MiB are more than 5,000 packets of at most 4 KiB.
            sent = packets() - self.before
            check(sent > 1000 if self.want else sent == 0, f"{self.what}: the device sent {sent} packets")


def native(mpi, way, gid, words):
    launcher = [f"mpiexec.{mpi}", *(["--oversubscribe"] if mpi == "openmpi" else []), "-n", RANKS]
    command = [str(word) for word in [*launcher, PROGRAMS / f"registered.{mpi}", STEPS, *words]]
    done = subprocess.run(command, text=True, timeout=PATIENCE, env=environment(mpi, way, gid), capture_output=True, check=False)
    check(done.returncode == 0 and "right" in done.stdout, f"natively: {done.returncode} {done.stdout[-300:]}{done.stderr[-1000:]}")
    # UCX writes its warnings to the standard output.
    said = [line for line in done.stdout.splitlines() if " UCX " in line]
    print("".join(f"  natively: {line}\n" for line in said), end="", flush=True)
    return [line for line in done.stdout.splitlines() if line not in said]


def stopped(mpi, way, gid, words, cwd):
    """A generation while messages are under way, and one more with --stop; what it printed."""
    out = cwd / "out"
    with out.open("w") as file, (cwd / "errors").open("w") as errors:
        job = subprocess.Popen([str(word) for word in [FERMATA, "run", "--mpi", mpi, "-n", RANKS, "--ckpt-dir", "ckpt", "--",
                                                       PROGRAMS / f"registered.{mpi}", STEPS, *words]],
                               cwd=cwd, env=environment(mpi, way, gid, PAUSE), stdout=file, stderr=errors)
        try:
            for lines, more in ((5, []), (12, ["--stop"])):
                deadline = time.monotonic() + PATIENCE
                while len(out.read_text().splitlines()) < lines:
                    check(job.poll() is None and time.monotonic() < deadline,
                          f"run: {out.read_text()} {(cwd / 'errors').read_text()}")
                    time.sleep(0.1)
                done = subprocess.run([str(FERMATA), "checkpoint", "--ckpt-dir", "ckpt", *more], cwd=cwd, text=True,
                                      timeout=PATIENCE, capture_output=True, check=False)
                check(done.returncode == 0, f"checkpoint: {done.stdout}{done.stderr}{(cwd / 'errors').read_text()} "
                      f"{len(out.read_text().splitlines())} lines")
            check(job.wait(PATIENCE) == 85, f"stopped with {job.returncode}: {(cwd / 'errors').read_text()}")
        finally:
            job.kill()
            job.wait()
    return out.read_text().splitlines()


def continued(cwd, mpi, way, gid):
    shutil.rmtree(cwd / "again", ignore_errors=True)
    shutil.copytree(cwd / "ckpt", cwd / "again")
    done = subprocess.run([str(FERMATA), "restart", "--mpi", mpi, "--ckpt-dir", "again"], cwd=cwd, text=True, timeout=PATIENCE,
                          env=environment(mpi, way, gid), capture_output=True, check=False)
    check(done.returncode == 0, f"continued: {done.returncode} {done.stdout[-300:]}{done.stderr[-1500:]}")
    return done.stdout.splitlines()


def one(mpi, way, words, card, gid, cwd):
    """Native lines, the same in two pieces by every way on; returns the new entry of the device."""
    other = {"openmpi": "mpich", "mpich": "openmpi"}[mpi]
    name = f"{mpi} on {way}{' with a window' if words else ''}"
    with Carried(f"{name}, natively", True):
        want = native(mpi, way, gid, words)
    with Carried(name, True):
        first = stopped(mpi, way, gid, words, cwd)
    check(12 <= len(first) < len(want), f"{name}: {first[-2:]} of {len(want)} lines")
    check(first == want[:len(first)], f"{name}: {[pair for pair in zip(first, want) if pair[0] != pair[1]][:2]}")
    print(f"{name}: {len(first)} native lines, two generations", flush=True)
    ways = [(mpi, way), (mpi, "tcp")]
    if not words:
        ways += [(mpi, "ud" if way == "rc" else "rc"), (mpi, "shm"), (other, "rc"), (mpi, "host")]
    for onto, by in ways:
        if by == "host":
            tool("rdma", "link", "delete", DEVICE)
        begin = time.monotonic()
        with Carried(f"{name}, continued on {onto} by {by}", by in ("rc", "ud")):
            rest = continued(cwd, onto, by, gid)
        check(rest == want[len(first):], f"{name}, continued on {onto} by {by}: {rest[-2:]}, natively {want[-2:]}")
        what = "without the device" if by == "host" else f"by {by}"
        print(f"  continued on {onto} {what}: the native lines ({time.monotonic() - begin:.0f} s)", flush=True)
        if by == "host":
            gid = add_device(card)
    return gid


def main(libraries):
    card = network_card()
    gid = add_device(card)
    failed = 0
    for mpi in libraries:
        for way, words in (("rc", []), ("ud", []), ("rc", ["window"])):
            cwd = pathlib.Path(f"/tmp/rdma-{mpi}-{way}{len(words)}")
            cwd.mkdir()
            try:
                gid = one(mpi, way, words, card, gid, cwd)
            except (Failure, subprocess.TimeoutExpired) as failure:
                failed += 1
                print(f"FAILED: {failure}", flush=True)
                if not PACKETS.exists():
                    gid = add_device(card)
            shutil.rmtree(cwd, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["mpich", "openmpi"]))
