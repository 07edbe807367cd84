#!/usr/bin/env python3
"""Pages of `fermata report` in a real browser, by hand: Chromium without a window renders each, prints it to PDF, and must say
nothing of errors. The pictures and PDFs are kept to be looked at.

    report_pages.py OUT [DIR ...]     pages of these checkpoint directories, and of a journal of 10,000 ranks made here

Needs chromium (Debian: chromium, fonts-dejavu-core).
"""
import datetime
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from harness import call, check  # noqa: E402

# What Chromium says of itself where there is no desktop.
ITS_OWN = re.compile(r"dbus|bus\.cc|idle_linux|gpu|vaapi|GCM|ssl_client|bytes written")


def large(directory):
    """Ten lives of a job on 500 nodes, one of which is slow."""
    directory.mkdir(mode=0o700)
    now, lines = datetime.datetime(2026, 11, 26), []

    def add(later, event, **fields):
        nonlocal now
        now += datetime.timedelta(seconds=later)
        lines.append(json.dumps({"time": now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03}Z", "event": event,
                                 "job": "1122334455667788", **fields}))

    generation = 0
    for life in range(10):
        add(2, "start", name="large <b>", ranks=10000, restored=f"gen-{generation:06}" if life else "", command=["./solver & co"])
        add(8, "running", ranks=10000, nodes=500, mpi="mpich")
        for k in range(30 + 7 * life):
            generation += 1
            name = f"gen-{generation:06}"
            for phase, seconds in (("targets", 0.02), ("converge", 0.3 if k % 9 else 4.0), ("freeze", 0.05), ("drain", 0.02),
                                   ("suspend", 6 + k % 5), ("commit", 0.01), ("resume", 0.03)):
                slow = phase == "converge" and k % 9 == 0
                add(seconds + 0.01, "phase", phase=phase, seconds=seconds, generation=name,
                    last="node-317" if slow else f"node-{(k * 37) % 500}",
                    **({"waits": "rank 6341 on node-317: MPI_Recv from rank 6342\nrank 9 on node-0: MPI_Allreduce"} if slow else {}))
            times = lambda longest: {"seconds": [round(longest * (0.5 + (b * 7 + k) % 13 / 40), 4) for b in range(64)],
                                     "slowest": [(b * 10000 + 5000) // 64 for b in range(64)], "mean": round(longest / 2, 4)}
            took = {name: times(longest) for name, longest in (("converge", 0.2), ("freeze", 0.04), ("drain", 0.01),
                                                               ("suspend", 0.3), ("save", 5 + k % 5))}
            if k % 9 == 0:  # rank 6341 is of block 40
                took["converge"]["seconds"][40], took["converge"]["slowest"][40] = 3.9, 6341
            for phase in took.values():
                phase["host"] = "node-317" if max(phase["seconds"]) == phase["seconds"][40] else "node-12"
            add(0, "ranks", generation=name, ranks=10000, blocks=64, phases=took)
            add(0, "checkpoint", ok=True, generation=name, level="memory", origin="interval", bytes=40 << 40, seconds=7.0,
                standing=6.5, behind=0.0, cost=6.5, bandwidth=(40 << 40) / (6 + k % 5), line=name)
            if k % 3 == 0:
                add(60, "copy", ok=True, generation=name, level="files", bytes=40 << 40, seconds=50, why="")
            add(500, "request", origin="interval")
        add(100, "loss", why="rank 6341 (pid 5 on node-317) is gone", rank=6341, host="node-317")
        add(1, "end", code=137, why="rank 6341 (pid 5 on node-317) is gone")
        add(0, "restart", number=life + 1, pause=0, **{"from": f"gen-{generation:06}"})
    (directory / "journal.jsonl").write_text("\n".join(lines) + "\n")
    (directory / "journal.jsonl").chmod(0o600)
    return directory


def render(chromium, page, out):
    begun = time.monotonic()
    for way in (f"--screenshot={out}.png", f"--print-to-pdf={out}.pdf"):
        done = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
                               "--window-size=1180,2600", way, f"file://{page}"], capture_output=True, text=True, timeout=120)
        errors = [line for line in done.stderr.splitlines() if "ERROR" in line or "CONSOLE" in line]
        errors = [line for line in errors if not ITS_OWN.search(line)]
        check(done.returncode == 0 and not errors, f"{page}: {done.returncode} {errors}")
    print(f"{out}.png, {out}.pdf: {page.stat().st_size} bytes, rendered twice in {time.monotonic() - begun:.1f} s", flush=True)


def main(out, *directories):
    chromium = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), None)
    check(chromium, "no chromium here")
    out = pathlib.Path(out).resolve()
    out.mkdir()
    for directory in [large(out / "large"), *map(pathlib.Path, directories)]:
        page = out / f"{directory.resolve().name}.html"
        done = call("report", directory, "-o", page)
        check(done.returncode == 0, done.stderr)
        render(chromium, page, out / page.stem)


if len(sys.argv) < 2:
    sys.exit(__doc__)
main(*sys.argv[1:])
