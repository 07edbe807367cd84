#!/usr/bin/env python3
"""`fermata report` of a real job that lost a rank and went on by itself: each number of the page is that of the journal, counted
here once more, and the page is whole without anything beside it.

    report_test.py openmpi|mpich
"""
import datetime
import html.parser
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys

from harness import PROGRAMS, Job, Scratch, call, check

PHASES = ("converge", "freeze", "drain", "suspend", "save")
VOID = {"meta", "rect", "line", "polyline", "circle", "img", "br"}


class Page(html.parser.HTMLParser):
    """The numbers with their names, the shapes of the pictures, and what text is neither."""

    def __init__(self, text):
        super().__init__()
        self.numbers, self.shapes, self.text, self.open, self.links = [], [], "", [], []
        self.feed(text)
        check(not self.open, f"open at the end: {self.open}")

    def handle_starttag(self, tag, attributes):
        known = dict(attributes)
        self.links += [known[name] for name in ("src", "href") if name in known]
        if tag == "rect":
            self.shapes.append(known)
        if "data-k" in known:
            self.numbers.append((known["data-k"], float(known["data-v"])))
        if tag not in VOID or not self.get_starttag_text().endswith("/>") and tag != "meta":
            self.open.append((tag, known))

    def handle_startendtag(self, tag, attributes):
        if tag == "rect":
            self.shapes.append(dict(attributes))

    def handle_endtag(self, tag):
        check(self.open and self.open.pop()[0] == tag, f"</{tag}> closes something else")

    def handle_data(self, data):
        inside = [tag for tag, known in self.open if tag in ("svg", "style", "code", "title") or "data-k" in known]
        if not inside:
            self.text += data


def ms(event):
    when = datetime.datetime.strptime(event["time"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc)
    return round(when.timestamp() * 1000)


def lives_of(events):
    lives = []
    for event in events:
        if event["event"] == "start":
            lives.append({"start": ms(event), "checkpoints": [], "copies": [], "restored": event["restored"]})
        life = lives[-1]
        if event["event"] == "running":
            life.update(running=ms(event), ranks=event["ranks"], nodes=event["nodes"])
        elif event["event"] == "checkpoint":
            life["checkpoints"].append({**event, "end": ms(event)})
        elif event["event"] == "copy":
            life["copies"].append(event)
        elif event["event"] == "loss":
            life.setdefault("failed", ms(event))
        elif event["event"] == "end":
            life["code"] = event["code"]
        if event["event"] != "restart":
            life["end"] = ms(event)
    for life, following in zip(lives, lives[1:] + [None]):
        life["lost"] = 0
        if following:
            life.setdefault("failed", life["end"])  # the launcher was faster than whoever looks for lost ranks
            good = [one for one in life["checkpoints"] if one["ok"] and one["generation"] == following["restored"]]
            since = good[-1]["end"] - 1000 * good[-1]["behind"] if good else life["running"]
            life["lost"] = (life["failed"] - since) / 1000
            life["recovery"] = (following["running"] - life["failed"]) / 1000
    return lives


def times_of_ranks(events):
    """The numbers of the map of ranks and of the table of the slowest. One block a rank: these jobs are small."""
    checkpoints, took = [], None
    for event in events:
        if event["event"] == "ranks":
            took = event
        elif event["event"] == "checkpoint":
            checkpoints += [took] if took and event["ok"] else []
            took = None
    good = sum(event["event"] == "checkpoint" and event["ok"] for event in events)
    check(len(checkpoints) == good, f"times of ranks of {len(checkpoints)} checkpoints of {good}")
    ranks = range(checkpoints[0]["ranks"])
    seconds = lambda one, name, rank: one["phases"].get(name, {"seconds": [0] * len(ranks)})["seconds"][rank]
    for one in checkpoints:
        check(one["blocks"] == one["ranks"], f"{one}")
        for name, phase in one["phases"].items():
            check(name in PHASES and phase["slowest"] == list(ranks), f"{one}")
    rows = {}
    for one in checkpoints:
        for name, phase in one["phases"].items():
            slowest = phase["slowest"][phase["seconds"].index(max(phase["seconds"]))]
            times, sum_, mean = rows.get((name, slowest), (0, 0, 0))
            rows[name, slowest] = times + 1, sum_ + max(phase["seconds"]), mean + phase["mean"]
    rows = sorted(sorted(rows.items()), key=lambda row: row[1][2] - row[1][1])[:10]
    return {
        "ranks.checkpoints": [good],
        **{f"ranks.{name}": [sum(seconds(one, name, rank) for one in checkpoints) for rank in ranks] for name in PHASES},
        "ranks.checkpoint": [sum(seconds(one, name, rank) for name in PHASES) for one in checkpoints[-60:] for rank in ranks],
        "slowest.rank": [rank for (_, rank), _ in rows],
        **{f"slowest.{name}": [row[k] for _, row in rows] for k, name in enumerate(("times", "seconds", "mean"))},
    }


def expected(events):
    """{name: all its values}"""
    lives = lives_of(events)
    checkpoints = [one for life in lives for one in life["checkpoints"]]
    good = [one for one in checkpoints if one["ok"]]
    ran = sum(life["end"] - life["running"] for life in lives) / 1000
    lost, cost = sum(life["lost"] for life in lives), sum(one["cost"] for one in good)
    mean = lambda values: sum(values) / len(values)
    kept = [[one for one in life["checkpoints"] if one["ok"]] for life in lives]
    between = sorted((b["end"] - a["end"]) / 1000 - b["seconds"] for life in kept for a, b in zip(life, life[1:]))
    interval, failures = between[len(between) // 2], len(lives) - 1
    mtbf, recovery, each = ran / failures, mean([life["recovery"] for life in lives[:-1]]), mean([one["cost"] for one in good])
    loss = lambda tau: mtbf * math.exp(recovery / mtbf) * (math.exp((tau + each) / mtbf) - 1) / tau - 1
    x = each / (2 * mtbf)
    best = math.sqrt(2 * each * mtbf) * (1 + math.sqrt(x) / 3 + x / 9) - each
    wall = (lives[-1]["end"] - lives[0]["start"]) / 1000
    return {
        "begin": [lives[0]["start"]], "end": [lives[-1]["end"]], "ranks": [2], "lives": [len(lives)], "failures": [failures],
        "wall": [wall], "running": [ran], "lost": [lost], "cost": [cost], "efficiency": [(ran - lost - cost) / wall],
        "good": [len(good)], "not_made": [len(checkpoints) - len(good)], "written": [sum(one["bytes"] for one in good)],
        "mean_cost": [each] * 2, "mean_bandwidth": [mean([one["bandwidth"] for one in good])], "mean_recovery": [recovery],
        "interval": [interval] * 2, "mtbf": [mtbf], "interval_loss": [loss(interval)], "best_interval": [best],
        "best_loss": [loss(best)],
        "life": [k + 1 for k in range(len(lives))], "life.start": [life["start"] for life in lives],
        "life.nodes": [life["nodes"] for life in lives], "life.ready": [(life["running"] - life["start"]) / 1000 for life in lives],
        "life.ran": [(life["end"] - life["running"]) / 1000 for life in lives],
        "life.checkpoints": [len(life["checkpoints"]) for life in lives],
        "life.lost": [life["lost"] for life in lives if life["lost"] > 0], "life.code": [life["code"] for life in lives],
        **times_of_ranks(events),
        "checkpoint.end": [one["end"] for one in checkpoints],
        **{f"checkpoint.{name}": [one[name] for one in good] for name in ("bytes", "seconds", "standing", "cost", "bandwidth")},
    }


def compare(page, wanted):
    found = {}
    for name, value in page.numbers:
        found.setdefault(name, []).append(value)
    check(found.keys() == wanted.keys(), f"only one has {found.keys() ^ wanted.keys()}")
    for name, values in wanted.items():
        same = len(found[name]) == len(values) and all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6)
                                                       for a, b in zip(found[name], values))
        check(same, f"{name}: {found[name]} on the page, {values} by the journal")


def only_those(page, events):
    """No other number is on the page than those that name themselves, and what words of the journal hold."""
    text = page.text
    words = {value for event in events for value in event.values() if isinstance(value, str)}
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(word, "") if len(word) > 1 else text
    text = re.sub(r"FGCS 22\(3\), 2006|95 %", "", text)
    check(not re.search(r"\d", text), f"numbers that the journal does not have: {re.findall('.*[0-9].*', text)}")


def pictures(page, events):
    """Bars of the timeline are as long as what they stand for: 895 pixels are all the time."""
    lives = lives_of(events)
    pixels = 895 / (lives[-1]["end"] - lives[0]["start"])
    width = lambda kind: sum(float(shape["width"]) for shape in page.shapes
                             if shape["class"] == kind and shape["height"] == "18")
    bars = {"run": sum(life.get("failed", life["end"]) - life["running"] for life in lives),
            "lost": sum(1000 * life["lost"] for life in lives),
            "restart": sum(1000 * life["recovery"] for life in lives[:-1]),
            "start": lives[0]["running"] - lives[0]["start"]}
    for kind, wanted in bars.items():
        check(abs(width(kind) - wanted * pixels) < 3, f"{kind}: {width(kind)} pixels for {wanted * pixels}")
    count = lambda kind: sum(shape["class"] == kind and shape["height"] != "10" for shape in page.shapes)
    check(count("fail") == len(lives) - 1, "not each failure is drawn")
    check(0 < count("stand") <= sum(one["ok"] for life in lives for one in life["checkpoints"]), "checkpoints of the timeline")
    check(count("flush") > 0, "no copy is drawn")


SAMPLE = re.compile(r'([a-z_]+)\{((?:[a-z_]+="(?:[^"\\\\]|\\\\.)*",?)*)\} (\S+)')


def metrics(file, events):
    """The text format, sample by sample, and the numbers of the journal."""
    check(file.stat().st_mode & 0o777 == 0o644, "the collector cannot read it")
    found, family, kinds = {}, None, {}
    for line in file.read_text().splitlines():
        if line.startswith("# TYPE "):
            family = line.split()[2]
            check(family not in kinds, f"{family} twice")
            kinds[family] = line.split()[3]
        elif not line.startswith("# HELP "):
            sample = SAMPLE.fullmatch(line)
            check(sample and sample[1].startswith(family), f"no sample of {family}: {line}")
            check((kinds[family] == "counter") == sample[1].endswith("_total"), f"{line}: {kinds[family]}")
            labels = ",".join(one for one in sample[2].split(",") if not one.startswith("fermata_job="))
            check((sample[1], labels) not in found, f"{line} twice")
            found[sample[1], labels] = float(sample[3])
    lives = lives_of(events)
    checkpoints = [one for life in lives for one in life["checkpoints"]]
    good = [one for one in checkpoints if one["ok"]]
    wanted = {("fermata_job_lives_total", ""): len(lives), ("fermata_job_failures_total", ""): len(lives) - 1,
              ("fermata_job_restarts_total", ""): len(lives) - 1, ("fermata_job_running", ""): 0, ("fermata_job_ranks", ""): 2,
              ("fermata_job_running_seconds_total", ""): sum(life["end"] - life["running"] for life in lives) / 1000,
              ("fermata_job_lost_work_seconds_total", ""): sum(life["lost"] for life in lives),
              ("fermata_checkpoints_total", 'result="ok"'): len(good),
              ("fermata_checkpoints_total", 'result="failed"'): len(checkpoints) - len(good),
              ("fermata_checkpoint_bytes_total", ""): sum(one["bytes"] for one in good),
              ("fermata_checkpoint_cost_seconds_total", ""): sum(one["cost"] for one in good),
              ("fermata_checkpoint_duration_seconds_sum", ""): sum(one["seconds"] for one in good),
              ("fermata_last_checkpoint_timestamp_seconds", ""): good[-1]["end"] / 1000}
    for name, value in wanted.items():
        check(math.isclose(found.get(name, math.nan), value, rel_tol=1e-6, abs_tol=1e-6), f"{name}: {found.get(name)}, {value}")
    if promtool := shutil.which("promtool"):
        with open(file) as text:
            done = subprocess.run([promtool, "check", "metrics"], stdin=text, capture_output=True, text=True)
        check(done.returncode == 0, f"promtool: {done.stdout}{done.stderr}")


def one_slow_rank(mpi):
    """Of three ranks the last has a hundred times the memory, all of which is saved each time, and comes late to each call of MPI,
    where the others wait for it: the map and the table say so."""
    with Scratch("report-slow") as cwd:
        env = dict(os.environ, STEADY_PAUSE="20000", STEADY_GO=str(cwd / "go"))
        with Job.run([PROGRAMS / f"steady.{mpi}", 100, 2, 2, 300, 300000], 3, cwd, mpi, env=env) as job:
            job.wait_until(lambda: "step 2 " in job.output(), "a step")
            for _ in range(6):
                job.checkpoint()
            (cwd / "go").touch()
            job.finish()
        events = [json.loads(line) for line in (cwd / "ckpt/journal.jsonl").read_text().splitlines()]
        check(call("report", "ckpt", "-o", "page.html", cwd=cwd).returncode == 0, "no page")
        page = Page((cwd / "page.html").read_text())
        found = {}
        for name, value in page.numbers:
            found.setdefault(name, []).append(value)
        for name, values in times_of_ranks(events).items():
            check(len(found[name]) == len(values) and all(map(math.isclose, found[name], values)), f"{name}: {found[name]}, {values}")
        slow = [found["ranks.suspend"][rank] + found["ranks.save"][rank] for rank in range(3)]
        check(slow[2] > 2 * max(slow[:2]), f"rank 2 took {slow[2]} s to be saved, the others {slow[:2]}")
        late = found["ranks.converge"]
        check(late[2] == max(late), f"rank 2 took {late[2]} s to a safe state, the others {late[:2]}")
        check(found["slowest.rank"][:2] == [2, 2], f"the slowest: {found['slowest.rank']}")
        shades = [shape["class"] for shape in page.shapes if shape.get("data-k") == "ranks.checkpoint"]
        check("h6" in shades[2::3], f"the map: {shades}")
        together = [sum(found["ranks.checkpoint"][rank::3]) for rank in range(3)]
        check(together[2] == max(together), f"all phases: {together}")
        lines = [event for event in events if event["event"] == "ranks"]
        check(all(event["phases"]["save"]["host"] == os.uname().nodename for event in lines), f"{lines}")


def main(mpi):
    one_slow_rank(mpi)
    with Scratch("report") as cwd:
        (cwd / "memory").mkdir(mode=0o700)
        env = dict(os.environ, STEADY_PAUSE="8000", FERMATA_MEMORY_DIR=str(cwd / "memory"))
        journal = cwd / "ckpt/journal.jsonl"
        made = lambda: journal.exists() and journal.read_text().count('"ok":true')
        with Job.run([PROGRAMS / f"steady.{mpi}", 300, 2], 2, cwd, mpi,
                     extra=["--levels", "memory 0.2s, files 0.5s", "--max-restarts", 3, "--metrics", "job.prom"], env=env) as job:
            job.wait_until(lambda: made() and made() > 3, "some checkpoints")
            os.kill(job.rank_pids()[1], signal.SIGKILL)
            job.wait_until(lambda: '"restart"' in journal.read_text(), "a restart")
            job.finish()
        events = [json.loads(line) for line in journal.read_text().splitlines()]
        done = call("report", "ckpt", "-o", "page.html", "--bandwidth", "2GB/s", cwd=cwd)
        check(done.returncode == 0 and done.stdout == "page.html\n", f"{done.returncode}: {done.stdout}{done.stderr}")
        text = (cwd / "page.html").read_text()
        page = Page(text)
        check(not page.links and "<script" not in text and "url(" not in text, f"the page needs {page.links}")
        compare(page, expected(events))
        only_those(page, events)
        pictures(page, events)
        check("measured for this storage: 1.9 GiB/s" in text, "no line for the storage's bandwidth")
        for words, wanted in [(["gone"], "there is no directory gone"), (["ckpt", "--job", "x"], "no job 'x'"),
                              (["ckpt", "-o", "gone/a.html"], "gone"), (["ckpt", "--bandwidth", "x"], "not a bandwidth")]:
            done = call("report", *words, cwd=cwd)
            check(done.returncode != 0 and done.stderr.count("\n") == 1 and wanted in done.stderr, f"{words}: {done.stderr}")
        metrics(cwd / "job.prom", events)
        # The same measures, by the other command.
        said = json.loads(call("predict", "ckpt", "--json", cwd=cwd).stdout)
        near = lambda name, value: check(math.isclose(said["numbers"][name]["value"], value, rel_tol=1e-6), f"{name}: {said}")
        for name, key in (("checkpoint", "mean_cost"), ("recovery", "mean_recovery"), ("mtbf", "mtbf"), ("interval", "interval")):
            near(name, expected(events)[key][0])


main(sys.argv[1])
