#!/usr/bin/env python3
"""How start, checkpoint and upkeep of a job grow with its size, without ranks.

    bench/scale/growth.py BUILD [--sizes 100:4,…] [--machines 100:4,…] [--idle SECONDS] [--json FILE] [--svg FILE]

Sizes are RANKS:DAEMONS. For each: a real root and real node daemons over loopback, agents instead of ranks
(scale-agents, which answers whatever a checkpoint asks and writes no images); and the state machines of such a job in
one process, each daemon with a core of its own (scale-machines). Seconds of the first are of all processes on the cores
of this machine; CPU times are those of each kind of process alone.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

SIZES = "100:4,1000:16,10000:100,100000:1000"
# Launch of jobs of so many ranks, from the papers that results/scale.md names: by a star, by a tree.
RESEARCH = [("tree, launch with ranks (research)", [(16384, 15.2), (16384, 21.6)]), ("star, launch with ranks (research)", [(16384, 99), (16384, 121)])]


def cpu_by_kind(build, root):
    """Seconds of CPU so far of each process of this build: of the root, of the daemons, of the agents."""
    kinds = {"root": [], "noded": [], "agents": []}
    programs = {str(build / "libexec/fermata/noded"): "noded", str(build / "bin/scale-agents"): "agents"}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            program = os.readlink(f"/proc/{entry}/exe")
            seconds = int(pathlib.Path(f"/proc/{entry}/schedstat").read_text().split()[0]) / 1e9
        except OSError:
            continue
        kind = "root" if int(entry) == root else programs.get(program)
        if kind:
            kinds[kind].append((int(entry), seconds))
    return {kind: dict(all) for kind, all in kinds.items()}


def spent(before, after):
    return {kind: [after[kind][pid] - before[kind].get(pid, 0) for pid in after[kind]] for kind in after}


class Job:
    def __init__(self, build, ranks, daemons):
        self.build, self.here = build, pathlib.Path(tempfile.mkdtemp(prefix="fermata-scale-", dir="/dev/shm"))
        for folder in ("bin", "lib"):
            (self.here / folder).mkdir()
        (self.here / "bin/mpiexec.openmpi").symlink_to(build / "bin/scale-agents")
        for library in ("openmpi", "mpich"):
            (self.here / f"lib/lower-{library}").symlink_to("/bin/true")
        (self.here / "lib/noded").symlink_to(build / "libexec/fermata/noded")
        self.env = dict(os.environ, PATH=f"{self.here}/bin:/usr/bin:/bin", FERMATA_RUN_DIR=str(self.here / "run"),
                        FERMATA_LIBEXEC=str(self.here / "lib"), SCALE_NODES=str(daemons), SCALE_HOLD=str(self.here / "mark"))
        self.root = subprocess.Popen([build / "bin/fermata", "run", "--job", "scale", "-n", str(ranks), "--mpi", "openmpi",
                                      "--ckpt-dir", self.here / "ckpt", "--", "/bin/true"], env=self.env)

    def until(self, done, what, seconds=170):
        end = time.monotonic() + seconds
        while not done():
            if self.root.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"waited in vain for {what}")
            time.sleep(0.01)

    def ask(self, *words):
        done = subprocess.run([self.build / "bin/fermata", words[0], "--job", "scale", "--json", *words[1:]], env=self.env,
                              capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def mark(self, name):
        return float((self.here / f"mark.{name}").read_text())

    def root_is(self, what):
        text = pathlib.Path(f"/proc/{self.root.pid}/status").read_text()
        return int(next(line for line in text.splitlines() if line.startswith(what)).split()[1]) * 1024

    def end(self):
        subprocess.run([self.build / "bin/fermata", "cancel", "--job", "scale"], env=self.env, capture_output=True, check=False)
        self.root.wait(120)
        # Daemons leave one after the other; those of the next size shall not share the cores with them.
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and any(one.is_dir() for one in (self.here / "run").glob("*/*")):
            time.sleep(0.1)
        shutil.rmtree(self.here, ignore_errors=True)


def journal_has(job, event):
    try:
        return f'"{event}"' in (job.here / "ckpt/journal.jsonl").read_text()
    except OSError:
        return False


def difference(before, after):
    return {name: after[name] - before[name] for name in after if name != "children"}


def real(build, ranks, daemons, idle):
    job = Job(build, ranks, daemons)
    try:
        job.until((job.here / "mark.daemons").exists, "daemons")
        begin = time.monotonic()
        (job.here / "mark.go").touch()
        job.until(lambda: journal_has(job, "running"), "ranks")
        one = {"ranks": ranks, "daemons": daemons, "daemons_s": job.mark("daemons") - job.mark("start"), "registered_s": time.monotonic() - begin}
        quiet = job.ask("status")["tree"]
        time.sleep(idle)
        beats = difference(quiet, job.ask("status")["tree"])
        one["idle"] = {name: value / idle for name, value in beats.items()}
        before, cpu = job.ask("status")["tree"], cpu_by_kind(build, job.root.pid)
        said = job.ask("checkpoint", "--timeout", "150s")
        used = spent(cpu, cpu_by_kind(build, job.root.pid))
        after = job.ask("status")["tree"]
        one |= {"round_s": said["seconds"], "phases": said["phases"], "traffic": difference(before, after), "children": after["children"],
                "root_cpu_s": sum(used["root"]), "daemons_cpu_s": sum(used["noded"]), "busiest_daemon_cpu_s": max(used["noded"]),
                "agents_cpu_s": sum(used["agents"]), "root_most_bytes": job.root_is("VmHWM"), "root_bytes": job.root_is("VmRSS"),
                "root_descriptors": len(os.listdir(f"/proc/{job.root.pid}/fd"))}
    finally:
        job.end()
    return one


def sizes_of(text):
    return [tuple(int(number) for number in size.split(":")) for size in text.split(",") if size]


def svg(result, path):
    """Seconds over ranks, both in powers of ten."""
    width, height, left, bottom = 620, 380, 60, 330
    x = lambda ranks: left + (len_of(ranks) - 2) * 130
    y = lambda seconds: bottom - (len_of(max(seconds, 1e-4)) + 4) * 45

    def len_of(value):
        import math
        return math.log10(value)

    lines = [("round, real processes on these cores", "#c0392b", [(r["ranks"], r["round_s"]) for r in result["real"]]),
             ("registration, real processes on these cores", "#e59866", [(r["ranks"], r["registered_s"]) for r in result["real"]]),
             ("round, state machines, a core a daemon", "#1f618d", [(m["ranks"], m["round_s"]) for m in result["machines"]]),
             ("start, state machines, a core a daemon", "#85c1e9", [(m["ranks"], m["start_s"]) for m in result["machines"]])]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">'
           '<rect width="100%" height="100%" fill="white"/>']
    for power in range(-4, 3):
        out.append(f'<line x1="{left}" x2="{width - 20}" y1="{y(10 ** power):.1f}" y2="{y(10 ** power):.1f}" stroke="#ddd"/>'
                   f'<text x="{left - 6}" y="{y(10 ** power) + 4:.1f}" text-anchor="end">{10.0 ** power:g} s</text>')
    for power in range(2, 7):
        out.append(f'<text x="{x(10 ** power)}" y="{bottom + 18}" text-anchor="middle">10^{power}</text>')
    out.append(f'<text x="{x(1e4)}" y="{bottom + 36}" text-anchor="middle">ranks</text>')
    for number, (name, color, points) in enumerate(lines):
        path_of = " ".join(f"{x(ranks):.1f},{y(seconds):.1f}" for ranks, seconds in points)
        out.append(f'<polyline points="{path_of}" fill="none" stroke="{color}" stroke-width="2"/>')
        out += [f'<circle cx="{x(ranks):.1f}" cy="{y(seconds):.1f}" r="3" fill="{color}"/>' for ranks, seconds in points]
        out.append(f'<text x="{left + 8}" y="{30 + 15 * number}" fill="{color}">{name}</text>')
    for number, (name, points) in enumerate(RESEARCH):
        shade = ("#555", "#aaa")[number]
        out += [f'<rect x="{x(ranks) - 3:.1f}" y="{y(seconds) - 3:.1f}" width="6" height="6" fill="{shade}"/>' for ranks, seconds in points]
        out.append(f'<text x="{left + 8}" y="{90 + 15 * number}" fill="{shade}">{name}</text>')
    pathlib.Path(path).write_text("\n".join(out) + "</svg>\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--machines", default=SIZES + ",1000000:10000")
    parser.add_argument("--idle", type=float, default=15)
    parser.add_argument("--json")
    parser.add_argument("--svg")
    options = parser.parse_args()
    build = options.build.resolve()
    result = {"machines": [], "real": []}
    for ranks, daemons in sizes_of(options.machines):
        done = subprocess.run([build / "bin/scale-machines", str(ranks), str(daemons)], capture_output=True, text=True, check=True)
        result["machines"].append(json.loads(done.stdout))
        print(done.stdout, end="", flush=True)
    for ranks, daemons in sizes_of(options.sizes):
        result["real"].append(real(build, ranks, daemons, options.idle))
        print(json.dumps(result["real"][-1]), flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(result, indent=1) + "\n")
    if options.svg:
        svg(result, options.svg)


if __name__ == "__main__":
    main()
