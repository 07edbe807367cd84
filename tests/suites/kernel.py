#!/usr/bin/env python3
"""The tests under another kernel: Debian 12's own (linux-image-amd64, 6.1), in a virtual machine that qemu emulates without
hardware support, so on any machine and slowly. As root; packages qemu-system-x86 and debootstrap, and the network once.

    tests/suites/kernel.py build               a disk with Debian 12 and what tools/setup installs; about ten minutes
    tests/suites/kernel.py run [CTEST WORDS…]  this tree's build/ in it: ctest with these words (below: WORDS)
    tests/suites/kernel.py rdma [MPI…]          MPI over InfiniBand verbs, by software RoCE (rdma.py), half an hour
    tests/suites/kernel.py cross               a job stopped there goes on here, and one stopped here goes on there, with two models
                                               of CPUs there: one that has what --cpu says, and one that has less; ten minutes

The machine sees this tree at its own path, everything else is its own. --where DIR, or FERMATA_SUITES: where the disk is kept.
"""
import argparse
import contextlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from suites import BUILD, FERMATA, ROOT, WHERE, Failure, check

PROGRAMS = BUILD / "tests" / "programs"
# What depends on the kernel: memory, descriptors, settings of the process, and images from end to end.
WORDS = ["-R", r"split\.|Process|Threads|posix|system\.(process|store|early|elsewhere|encryption|liveness|bad|crash)"]
# What this machine's images need not fear: instructions and registers that no other processor here has.
CPU = "max,pku=off,mpx=off,sse4a=off,3dnow=off,3dnowext=off,la57=off"
OLDER = "IvyBridge"  # x86-64-v2 with AVX, and nothing of v3 beyond
PACKAGES = ["linux-image-amd64", "kmod", "iproute2", "procps", "python3", "cmake", "binutils",
            "rdma-core", "ibverbs-providers", "ibverbs-utils", "ucx-utils"]  # the second line: rdma.py
INIT = r"""#!/bin/bash
# The first process: one script from outside, then the end.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 FERMATA_TEST_PATIENCE=400
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/pts /dev/shm /dev/mqueue /share
mount -t devpts devpts /dev/pts; mount -t tmpfs tmpfs /dev/shm; mount -t tmpfs tmpfs /run; mount -t mqueue mqueue /dev/mqueue
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
ip link set lo up; hostname another-kernel
modprobe 9pnet_virtio; modprobe 9p
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=none share /share
cd /root; setsid bash /share/script >/share/said 2>&1 </dev/null
echo $? >/share/code
sync; echo o >/proc/sysrq-trigger; sleep 1000
"""


def command(*words, **more):
    return subprocess.run([str(word) for word in words], check=True, **more)


def build(where):
    """Debian's packages, unpacked as debootstrap does it, as a file system in one file."""
    text = (ROOT / "tools" / "setup").read_text()
    lists = re.search(r"packages=\((.*?)\n\)", text, re.S).group(1)
    ours = [word for line in lists.splitlines() for word in line.split("#")[0].split() if word not in ("spin", "git", "ccache")]
    tree = where / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    command("debootstrap", "--variant=minbase", "bookworm", tree, "http://deb.debian.org/debian")
    command("chroot", tree, "apt-get", "install", "-y", "--no-install-recommends", *PACKAGES, *ours,
            env=dict(os.environ, DEBIAN_FRONTEND="noninteractive"), stdout=subprocess.DEVNULL)
    (tree / "kernel-test-init").write_text(INIT)
    (tree / "kernel-test-init").chmod(0o755)
    for name in ("vmlinuz", "initrd.img"):
        shutil.copy((tree / name).resolve() if not (tree / name).is_symlink() else tree / os.readlink(tree / name), where / name)
    disk = where / "disk"
    disk.unlink(missing_ok=True)
    with open(disk, "wb") as file:
        file.truncate(16 << 30)
    command("mke2fs", "-q", "-t", "ext4", "-d", tree, disk)
    shutil.rmtree(tree)


class Machine:
    """Runs one script; `share` is /share in it."""

    def __init__(self, where, share, script, network="none", cpu=CPU):
        check((where / "disk").exists(), f"no disk in {where}: kernel.py build")
        self.share = share
        (share / "script").write_text(script)
        (share / "said").touch()
        self.console = open(share / "console", "wb")
        self.process = subprocess.Popen(
            ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", cpu, "-smp", "2", "-m", "6G", "-display", "none",
             "-serial", "stdio", "-no-reboot", "-nic", network, "-kernel", str(where / "vmlinuz"), "-initrd",
             str(where / "initrd.img"), "-append",
             "root=/dev/vda rw console=ttyS0 panic=-1 mitigations=off no_timer_check init=/kernel-test-init", "-snapshot", "-drive",
             f"file={where / 'disk'},if=virtio,format=raw,cache=unsafe", "-virtfs",
             f"local,path={share},mount_tag=share,security_model=none,id=share"],
            stdin=subprocess.DEVNULL, stdout=self.console, stderr=subprocess.STDOUT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.console.close()

    def finish(self, limit):
        """Shows what the script says; its exit code."""
        deadline = time.monotonic() + limit
        with open(self.share / "said", errors="replace") as said:
            while True:
                ended = self.process.poll() is not None
                sys.stdout.write(said.read())
                sys.stdout.flush()
                if ended:
                    break
                check(time.monotonic() < deadline, f"not ended after {limit} s")
                time.sleep(1)
        code = self.share / "code"
        check(code.exists(), "the machine ended by itself: " + (self.share / "console").read_text(errors="replace")[-800:])
        return int(code.read_text())


@contextlib.contextmanager
def shared_directory():
    """With this tree as a tar file in it."""
    share = pathlib.Path(tempfile.mkdtemp(prefix="fermata-kernel-"))
    try:
        command("tar", "-C", "/", "--exclude=.git", "--exclude=build-*", "-cf", share / "tree.tar", str(ROOT)[1:])
        yield share
    finally:
        shutil.rmtree(share)


UNPACK = """
set -e
tar -C / -xf /share/tree.tar
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
"""


def run(where, words):
    # The tests know the interpreter of the machine that configured them.
    link = re.search(r"^FERMATA_PYTHON:.*;(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M).group(1)
    script = UNPACK + f"""
[ -e {shlex.quote(link)} ] || {{ mkdir -p {shlex.quote(os.path.dirname(link))}; ln -s /usr/bin/python3 {shlex.quote(link)}; }}
cd {shlex.quote(str(BUILD))}
# By soft-dirty bits a byte written costs a huge page: tests that look at sizes want small ones.
echo madvise >/sys/kernel/mm/transparent_hugepage/enabled
uname -r; bin/fermata doctor
ctest --output-on-failure --timeout 900 {shlex.join(words or WORDS)}
"""
    with shared_directory() as share, Machine(where, share, script) as machine:
        return machine.finish(4 * 3600)


def rdma(where, libraries):
    script = UNPACK + f"cd {shlex.quote(str(BUILD))}; python3 ../tests/suites/rdma.py {shlex.join(libraries)}\n"
    with shared_directory() as share, Machine(where, share, script, "user,model=virtio-net-pci,restrict=on") as machine:
        return machine.finish(3600)


def stopped_after(steps, words, cwd, level):
    """A script: a job of `words` in `cwd`, incremental generations, stopped. `level`: --cpu LEVEL, or "" for all that the CPU has."""
    return f"""
mkdir -p {cwd}; cd {cwd}; export STEADY_PAUSE=20000
lines() {{ while [ $(wc -l <out) -lt $1 ]; do kill -0 $job; sleep 0.1; done; }}
{FERMATA} run -n 2 {level} --mpi mpich --ckpt-dir ckpt --save-options incremental -- {words} >out &
job=$!
lines {steps}; {FERMATA} checkpoint --ckpt-dir ckpt
lines {2 * steps}; {FERMATA} checkpoint --ckpt-dir ckpt --stop
wait $job || [ $? = 85 ]
"""


class Crossing:
    """One program, whose lines are compared to the last bit, and one emulated CPU."""

    def __init__(self, where, cpu):
        self.where, self.cpu = where, cpu
        self.program = f"{PROGRAMS / 'steady.mpich'} 120 8"
        self.env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        self.native = command("mpiexec.mpich", "-n", 2, *self.program.split(), env=self.env, capture_output=True, text=True).stdout.splitlines()

    def right(self, text, what):
        lines = text.splitlines()
        check(5 < len(lines) < len(self.native) and lines == self.native[-len(lines):], f"{what}: {lines[-2:]}")
        print(f"{what}, {self.cpu.partition(',')[0]}: right, its last {len(lines)} lines", flush=True)

    def both_ways(self, to, back, refused=None):
        """Stopped here with --cpu `to`, gone on there; stopped there with `back`, gone on here. `refused`: a level of which a job goes on
        there with neither library, and which instructions it lacks is said before anything runs."""
        here, there = pathlib.Path("/tmp/fermata-here"), pathlib.Path("/tmp/fermata-there")
        with shared_directory() as share:
            for level in filter(None, (to, refused)):
                command("bash", "-ec", stopped_after(20, self.program, here, f"--cpu {level}"), env=self.env)
                shutil.move(here, share / level)
            script = UNPACK + f"""
cp -r /share/{to} {here}; cd {here}
for mpi in openmpi mpich; do
    cp -r ckpt ckpt.$mpi
    {FERMATA} restart --ckpt-dir ckpt.$mpi --mpi $mpi >/share/$mpi
done
"""
            if refused:
                script += f"""
cp -r /share/{refused} {here}.refused; cd {here}.refused
for mpi in openmpi mpich; do
    {FERMATA} restart --ckpt-dir ckpt --mpi $mpi >/share/refused.$mpi 2>&1 && exit 1
done
"""
            script += stopped_after(20, self.program, there, back) + f"cp -r {there} /share/there\n"
            with Machine(self.where, share, script, cpu=self.cpu) as machine:
                check(machine.finish(3600) == 0, "failed there")
            for mpi in ("openmpi", "mpich"):
                self.right((share / mpi).read_text(), f"stopped here, gone on there on {mpi}")
                if refused:
                    said = (share / f"refused.{mpi}").read_text()
                    check("avx2" in said and "--cpu x86-64-v2`" in said and "step" not in said, f"{refused} there: {said}")
                    print(f"{refused} there on {mpi}: refused, {said.strip().splitlines()[-1]}", flush=True)
            shutil.rmtree(there, ignore_errors=True)
            shutil.copytree(share / "there", there)
        try:
            for mpi in ("openmpi", "mpich"):
                shutil.copytree(there / "ckpt", there / mpi)
                done = command(FERMATA, "restart", "--ckpt-dir", mpi, "--mpi", mpi, cwd=there, env=self.env, capture_output=True, text=True)
                self.right(done.stdout, f"stopped there, gone on here on {mpi}")
        finally:
            shutil.rmtree(there)


def cross(where):
    """To the last bit, both ways and on both libraries."""
    Crossing(where, CPU).both_ways("x86-64-v3", "--cpu x86-64-v3")
    Crossing(where, OLDER).both_ways("x86-64-v2", "", refused="x86-64-v3")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--where", type=pathlib.Path, default=WHERE)
    parser.add_argument("what", choices=["build", "run", "cross", "rdma"])
    options, words = parser.parse_known_args()
    where = options.where / "kernel"
    where.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the machine ends with us
    try:
        if options.what == "build":
            build(where)
            return 0
        if options.what == "rdma":
            return rdma(where, words)
        return run(where, words) if options.what == "run" else cross(where)
    except Failure as failure:
        print(f"FAILED: {failure}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
