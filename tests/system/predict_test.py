#!/usr/bin/env python3
"""`fermata predict`: the numbers of the papers by the command line, as text, JSON and a picture; what is wrong is refused in a
line.

    predict_test.py given|journal|mistakes
"""
import json
import sys
import xml.etree.ElementTree

from harness import Scratch, call, check


def near(value, wanted, by):
    check(abs(value - wanted) <= by, f"{value} for {wanted}")


def predicted(*words, cwd=None):
    done = call("predict", "--json", *words, cwd=cwd)
    check(done.returncode == 0, f"{words}: {done.returncode}, {done.stderr}")
    return json.loads(done.stdout)


def given(cwd):
    said = predicted("--checkpoint", "300s", "--restart", "600s", "--mtbf", "1h", "--interval", "10m", "--work", "10h")
    by_name = {one["name"]: one for one in said["intervals"]}
    near(by_name["Young (1974)"]["seconds"], 1469.69, 0.006)
    near(by_name["Daly (2006)"]["seconds"], 1276.50, 0.006)
    near(by_name["exact"]["seconds"], 1276.88, 0.006)
    near(by_name["Young (1974)"]["loss"], 0.83723, 1e-5)
    near(by_name["Daly (2006)"]["loss"], 0.83068, 1e-5)
    near(said["expected"]["seconds"], 36000 * 1.83068, 0.4)
    check(all("paper" in one for one in said["intervals"][:3]), "a formula without its paper")
    check("costs 101 %" in said["advice"][0] and "21.3 min 83.1 %" in said["advice"][0], said["advice"])

    said = predicted("--levels", "memory 2s 0.2d, buddy 20s 2d, files 300s 20d")["levels"]
    near(said["loss"], 0.04906, 5e-6)
    for one, wanted in zip(said["levels"], (262.9, 2629, 32199)):
        near(one["best"], wanted, 1e-3 * wanted)

    said = predicted("--memory", "16GB", "--bandwidth", "500MB/s", "--storage", "128GB", "--disk", "128GB")["dump"]
    near(said["fill_time"] / 60, 4.3, 0.05)
    near(said["ideal"] / 60, 0.53, 0.005)
    near(said["expected_most"] / said["ideal"], 9.7, 0.05)

    said = predicted("-n", 256, "--rank-mtbf", "5000d", "--replicas", "25%,50%,100%", "--shape", 1)["replication"]["shares"]
    for one, wanted in zip(said, (1.3288, 1.9707, 14.6866)):
        near(one["relative"], wanted, 6e-5 * wanted)

    text = call("predict", "--checkpoint", "300s", "--mtbf", "1h", "--plot", "cost.svg", cwd=cwd)
    check(text.returncode == 0 and "Young (1974)" in text.stdout and "FGCS" in text.stdout, text.stdout + text.stderr)
    picture = xml.etree.ElementTree.parse(cwd / "cost.svg").getroot()
    check(picture.tag == "{http://www.w3.org/2000/svg}svg", picture.tag)


def event(at, kind, **fields):
    return json.dumps({"time": f"2026-11-26T{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}.000Z", "event": kind,
                       "job": "1122334455667788", **fields}) + "\n"


def journal(cwd):
    """What is measured there, unless it is given."""
    (cwd / "ckpt").mkdir(mode=0o700)
    lines = [event(0, "start", name="solver", ranks=4, restored=""), event(10, "running", ranks=4),
             event(130, "checkpoint", ok=True, generation="gen-000001", seconds=20.0, standing=4.0, cost=6.0, bytes=1 << 30,
                   bandwidth=1e8),
             event(270, "checkpoint", ok=True, generation="gen-000002", seconds=20.0, standing=4.0, cost=8.0, bytes=1 << 30,
                   bandwidth=1e8), "half a li",  # what a full disk leaves
             "\n" + event(370, "loss", why="rank 1 is gone", rank=1), event(371, "end", code=137),
             event(371, "restart", **{"from": "gen-000002"}), event(372, "start", name="solver", restored="gen-000002"),
             event(400, "running", ranks=4), event(760, "end", code=0)]
    (cwd / "ckpt/journal.jsonl").write_text("".join(lines))
    (cwd / "ckpt/journal.jsonl").chmod(0o600)
    said = predicted("ckpt", cwd=cwd)
    numbers = {name: one["value"] for name, one in said["numbers"].items() if name != "ranks"}
    check(numbers == {"checkpoint": 7, "recovery": 30, "mtbf": 361 + 360, "rank_mtbf": 4 * 721, "interval": 120,
                      "bytes": 1 << 30, "bandwidth": 1e8}, numbers)
    check("1 failure" in said["remarks"][0], said["remarks"])
    said = predicted("ckpt", "--mtbf", "1h", "--checkpoint", "300s", "--restart", "600s", cwd=cwd)
    near(said["intervals"][1]["seconds"], 1276.50, 0.006)
    dump = predicted("ckpt", "--memory", "10GB", "--bandwidth", "1GB/s", cwd=cwd)["dump"]
    near(dump["expected"], 100, 1e-6)
    near(dump["times_ideal"], 10, 1e-6)


def mistakes(cwd):
    for words, wanted in [([], "there is no directory fermata-ckpt"), (["gone"], "there is no directory gone"),
                          (["--checkpoint", "0"], "--checkpoint must be more than 0"),
                          (["--mtbf", "1h", "--rank-mtbf", "1h"], "name one of them"),
                          (["--checkpoint", "x"], "not a duration"),
                          (["--checkpoint", "1s", "--plot", "a.svg"], "--plot needs"),
                          (["--checkpoint", "1s", "--mtbf", "1h", "--plot", "gone/a.svg"], "gone"),
                          (["--levels", "memory 2s"], "NAME COST MTBF"),
                          (["--levels", ",".join(["a 1s 1h"] * 9)], "at most 8"),
                          (["--replicas", "101%", "-n", "4", "--rank-mtbf", "1d"], "--replicas takes"),
                          (["--replicas", "50%"], "needs -n"), (["-n", "1.5", "--mtbf", "1h"], "whole number"),
                          (["--memory", "nan", "--bandwidth", "1GB/s"], "not a size"),
                          (["--memory", "1GB"], "--memory needs --bandwidth"),
                          (["--memory", "1GB", "--bandwidth", "1XB/s"], "not a bandwidth"),
                          (["--memory", "1GB", "--bandwidth", "1GB", "--disk", "1TB"], "go together"),
                          (["a", "b"], "'b' was not expected")]:
        done = call("predict", *words, cwd=cwd)
        check(done.returncode != 0 and done.stdout == "" and done.stderr.count("\n") == 1 and wanted in done.stderr,
              f"{words}: {done.returncode} {done.stdout}{done.stderr}")
    (cwd / "empty").mkdir(mode=0o700)
    done = call("predict", "empty", cwd=cwd)
    check(done.returncode == 1 and "no journal of a job" in done.stderr, done.stderr)


with Scratch("predict") as place:
    {"given": given, "journal": journal, "mistakes": mistakes}[sys.argv[1]](place)
