#!/usr/bin/env python3
"""The first experiment with GPU memory (docs/limits.md refuses it today): four steps, each with what the driver said and how
long it took beside a plain copy.

    bench/gpu/run.py [--mib 256] [--mpi mpich] [--log FILE]      where there is a GPU, as root; "skipped: no GPU" elsewhere (77)
    bench/gpu/run.py pack DIR                                    what a machine without this tree's packages needs

1  one process saves its own device memory by the driver's calls, and restores it
2  the same under `fermata run`: put into host memory from outside, an image is made, and put back; the program goes on
3  `checkpoint --stop`, a new process by `fermata restart`, put back there
4  two ranks on one GPU: messages of host memory, then of device memory, resumed and restarted

A step that the driver or Fermata refuses says why, and the next one is tried. After pack: DIR/run there.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = pathlib.Path(os.environ.get("FERMATA_ROOT", HERE.parents[1]))
BUILD = pathlib.Path(os.environ.get("FERMATA_BUILD", ROOT / "build"))
FERMATA = pathlib.Path(os.environ.get("FERMATA", BUILD / "bin" / "fermata"))
NO_GPU = 77


class Refused(Exception):
    pass


def say(log, text):
    for line in text.splitlines():
        print(line, file=log, flush=True)
        if log is not sys.stdout:
            print(line, flush=True)


def compiled(folder, mpi):
    subprocess.run(["gcc", "-O2", "-o", folder / "memory", HERE / "memory.c", "-ldl"], check=True)
    subprocess.run(["gcc", "-O2", "-o", folder / "state", HERE / "state.c", "-ldl"], check=True)
    subprocess.run([f"mpicc.{mpi}", "-O2", "-DWITH_MPI", "-o", folder / f"memory.{mpi}", HERE / "memory.c", "-ldl"], check=True)


class Experiment:
    def __init__(self, options, programs, log):
        self.mib, self.mpi, self.programs, self.log = options.mib, options.mpi, programs, log
        self.patience = options.patience

    def call(self, *words, cwd=None, env=None):
        done = subprocess.run([str(word) for word in words], cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=self.patience)
        say(self.log, f"$ {' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
        return done

    def must(self, *words, **more):
        done = self.call(*words, **more)
        if done.returncode != 0:
            raise Refused(f"{words[0]} ended with {done.returncode}")
        return done

    def wait(self, condition, what):
        end = time.monotonic() + self.patience
        while not condition():
            if time.monotonic() > end:
                raise Refused(f"waited in vain for {what}")
            time.sleep(0.05)

    def pids(self, cwd, ranks):
        found = []

        def there():
            done = subprocess.run([FERMATA, "status", "--json", "--ckpt-dir", "ckpt"], cwd=cwd, capture_output=True, text=True)
            status = json.loads(done.stdout) if done.returncode == 0 else {}
            found[:] = [rank["pid"] for rank in status.get("ranks", [])] if status.get("state") == "running" else []
            return len(found) == ranks
        self.wait(there, "the ranks' processes")
        return found

    def each(self, pids, *words):
        for pid in pids:
            self.must(self.programs / "state", pid, *words)

    def job(self, cwd, ranks, env):
        out = (cwd / "out").open("w")
        return subprocess.Popen([FERMATA, "run", "-n", str(ranks), "--mpi", self.mpi, "--ckpt-dir", "ckpt", "--",
                                 self.programs / f"memory.{self.mpi}", "held", str(self.mib), str(cwd / "go")], cwd=cwd, env=env,
                                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)

    def right(self, cwd, ranks, name="out"):
        text = (cwd / name).read_text()
        say(self.log, text)
        if text.count("right after it was held") != ranks or "WRONG" in text:
            raise Refused("the memory did not come back")

    def held(self, ranks, stop, device=False):
        with tempfile.TemporaryDirectory(prefix="fermata-gpu-") as folder:
            cwd = pathlib.Path(folder)
            env = dict(os.environ, **({"DEVICE_MESSAGES": "1"} if device else {}))
            env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
            job = self.job(cwd, ranks, env)
            try:
                self.wait(lambda: (cwd / "out").read_text().count("READY") == ranks or job.poll() is not None, "READY")
                if job.poll() is not None:
                    raise Refused("the program has ended:\n" + (cwd / "out").read_text())
                pids = self.pids(cwd, ranks)
                self.each(pids, "lock", "checkpoint", "get")
                self.must(FERMATA, "checkpoint", "--ckpt-dir", "ckpt", *(["--stop"] if stop else []), cwd=cwd)
                if not stop:
                    self.each(pids, "restore", "unlock", "get")
                    (cwd / "go").touch()
                    job.wait(self.patience)
                    return self.right(cwd, ranks)
                job.wait(self.patience)
                job = subprocess.Popen([FERMATA, "restart", "--ckpt-dir", "ckpt"], cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                                       stdout=(cwd / "again").open("w"), stderr=subprocess.STDOUT)
                self.each(self.pids(cwd, ranks), "get", "restore", "unlock", "get")
                (cwd / "go").touch()
                job.wait(self.patience)
                self.right(cwd, ranks, "again")
            finally:
                if job.poll() is None:
                    job.kill()
                    job.wait()

    def run(self):
        steps = {"1 one process, by itself": lambda: self.must(self.programs / "memory", "self", self.mib),
                 "2 under fermata, resumed": lambda: self.held(1, False),
                 "3 restarted in a new process": lambda: self.held(1, True),
                 "4 two ranks, host messages, resumed": lambda: self.held(2, False),
                 "4 two ranks, host messages, restarted": lambda: self.held(2, True),
                 "4 two ranks, device messages, restarted": lambda: self.held(2, True, True)}
        held = 0
        for name, step in steps.items():
            say(self.log, f"== {name}")
            try:
                step()
                held += 1
                say(self.log, f"== {name}: holds")
            except (Refused, subprocess.TimeoutExpired) as why:
                say(self.log, f"== {name}: does not hold: {why}")
        say(self.log, f"{held} of {len(steps)} steps hold")
        return 0 if held == len(steps) else 1


def libraries_of(program):
    said = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    for line in said.splitlines():
        path = line.split("=>")[-1].split()[0] if "=>" in line else ""
        # The C library is the other machine's: it has to be as new.
        if path.startswith("/") and not path.rsplit("/", 1)[1].startswith(("libc.so", "ld-linux", "libm.so", "libpthread", "libdl", "librt")):
            yield pathlib.Path(path)


def pack(folder, mpi):
    """An installed Fermata, the experiment's programs, MPICH's launcher, and what they all are linked to."""
    folder.mkdir(parents=True)
    subprocess.run(["cmake", "--install", BUILD, "--prefix", folder / "fermata"], check=True, stdout=subprocess.DEVNULL)
    compiled(folder, mpi)
    for name in (f"mpiexec.{mpi}", "hydra_pmi_proxy"):
        if found := shutil.which(name):
            (folder / "bin").mkdir(exist_ok=True)
            shutil.copy(found, folder / "bin" / name)
    (folder / "lib").mkdir()
    programs = [*folder.glob("memory*"), folder / "state", *(folder / "bin").glob("*"), *(folder / "fermata").rglob("bin/*"),
                *(folder / "fermata").rglob("libexec/fermata/*"), *(folder / "fermata").rglob("lib/fermata/**/*.so*")]
    for program in programs:
        for library in libraries_of(program):
            if not (folder / "lib" / library.name).exists():
                shutil.copy(library, folder / "lib" / library.name)
    shutil.copy(HERE / "run.py", folder / "run.py")
    run = folder / "run"
    run.write_text('#!/bin/sh\nhere=$(cd "$(dirname "$0")" && pwd)\nexport LD_LIBRARY_PATH="$here/lib:$LD_LIBRARY_PATH" PATH="$here/bin:$PATH"\n'
                   f'FERMATA="$here/fermata/bin/fermata" exec python3 "$here/run.py" --mpi {mpi} --programs "$here" "$@"\n')
    run.chmod(0o755)
    print(f"{folder}: {sum(one.stat().st_size for one in folder.rglob('*') if one.is_file()) >> 20} MiB")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="pack DIR")
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--mpi", default="mpich", choices=["openmpi", "mpich"])
    parser.add_argument("--log", type=pathlib.Path)
    parser.add_argument("--programs", type=pathlib.Path, help="compiled already")
    parser.add_argument("--patience", type=float, default=300)
    options = parser.parse_args()
    if options.words:
        if options.words[0] != "pack" or len(options.words) != 2:
            parser.error("pack DIR")
        return pack(pathlib.Path(options.words[1]).resolve(), options.mpi)
    with tempfile.TemporaryDirectory(prefix="fermata-gpu-") as folder:
        programs = options.programs or pathlib.Path(folder)
        if not options.programs:
            compiled(programs, options.mpi)
        first = subprocess.run([programs / "state", str(os.getpid()), "get"], capture_output=True, text=True)
        if first.returncode == NO_GPU:
            print(f"skipped: {first.stdout.strip()}")
            return NO_GPU
        log = options.log.open("w") if options.log else sys.stdout
        return Experiment(options, programs, log).run()


if __name__ == "__main__":
    sys.exit(main())
