#!/usr/bin/env python3
"""Tests what `ostro status` shows of a run on several processes, and that workers that stop or hang are replaced.

`ostro launch local` with OSTRO_FAULT: a worker that gets SIGSTOP is killed when its lease is over and replaced; one
that hangs reports the stacks of its threads and is replaced; the chain is that of one process. A fault that is not
there (another step) replaces no worker. `ostro status` shows a run that trains, one whose processes are all gone, one
that is finished, and one of a single process.

    status_test.py --ostro PROGRAM
"""

import argparse
import json
import pathlib
import re
import signal
import subprocess
import tempfile

from program import kill_all
from workers_test import Gate, Place, check, hold_until_all, steps_of, wait_for, workers_of

STEPS = 40
HELD_AT = 24  # steps, while a run is looked at: no checkpoint has the last four
OPTIONS = ["--trainer.num_train_steps", str(STEPS), "--trainer.checkpointer.keep", "[{every: 5}]"]


class Runs:
    def __init__(self, place):
        self.place = place
        self.chain = place.train("alone", OPTIONS)

    def settings(self, run, *faults):
        once = self.place.top / f"once-{run}"
        once.mkdir(exist_ok=True)
        return {"OSTRO_THREADS": "1"} | ({"OSTRO_FAULT": ",".join(faults), "OSTRO_FAULT_ONCE": str(once)} if faults else {})

    def start(self, run, more, *faults):
        settings = self.settings(run, *faults)
        return subprocess.Popen([self.place.ostro, "launch", "local", "--workers", "3", *self.place.words(run, OPTIONS),
                                 *more], env=self.place.environment(settings), text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    def finish(self, process):
        try:
            out, _ = process.communicate(timeout=600)
        finally:
            kill_all([process])
        return out

    def launch(self, run, fault, more=()):
        """A run whose workers train when all are there, so that the one of the fault's rank is."""
        out = self.place.launch_together(run, 3, [*OPTIONS, *more], self.settings(run, fault))
        check(self.place.chain(run) == self.chain, f"{run}: another chain\n{out}")
        return out

    def status(self, run):
        return json.loads(self.place.run(["status", "--json", str(self.place.top / "runs" / run)]).stdout)

    def text(self, run):
        return self.place.run(["status", str(self.place.top / "runs" / run)]).stdout


def events(status):
    return [f"{e['kind']}: {e['text']}" for e in status["cluster"]["events"]]


def check_stopped(runs):
    out = runs.launch("stopped", "exchange:17:1:stop")
    check("is silent: it is killed" in out and "takes its place" in out, f"nobody was killed\n{out}")
    status = runs.status("stopped")
    check(any(e.startswith("lost: worker 1 ") and "nothing was heard" in e for e in events(status)), events(status))
    check(status["state"] == "finished" and status["step"] == STEPS, status)
    check(status["goodput"]["seconds"]["recovery"] > 3, f"5 seconds of silence are no recovery: {status['goodput']}")
    print("a stopped worker is killed and replaced: the same chain")


def check_hang(runs):
    # A disk that is busy for longer than the timeout makes other workers hang as well, in another phase.
    out = runs.launch("hangs", "leaf:11:2:delay=600000", ["--trainer.hang_timeout", "4s"])
    check("hangs: nothing has moved for" in out and "phase leaf of step 11" in out, out)
    check("takes its place" in out, out)
    reports = [p.read_text() for p in (runs.place.top / "runs" / "hangs").glob("hang-*.txt")]
    report = next((r for r in reports if "phase leaf of step 11" in r), None)
    check(report and ", the main one" in report, f"reports {reports}")
    check(re.search(r"ostro::fault_(point|aside)\(", report), f"the function that hangs is not named:\n{report}")
    # A shorter delay than the timeout is no hang, and a fault that is not reached is none.
    for run, fault in (("slow", "leaf:11:2:delay=500"), ("none", "leaf:1000:2:stop")):
        out = runs.launch(run, fault, ["--trainer.hang_timeout", "60s"])
        check("takes its place" not in out and "hangs" not in out, out)
        check(any(p.name.endswith(fault) for p in (runs.place.top / f"once-{run}").iterdir()) == (run == "slow"),
              "whether the fault happened")
    print("a worker that hangs reports its stacks and is replaced: the same chain; a slow one is left alone")


def check_status(runs):
    run = "watched"
    price = ["--trainer.worker_price_per_hour", "2"]
    gate = Gate(runs.place.top)
    gate.at(0)
    process = runs.start(run, price, gate.fault())
    try:
        hold_until_all(runs.place.top / "runs" / run, 3, process, gate, HELD_AT)
        wait_for(lambda: steps_of(runs.place, run) >= HELD_AT - 1 or process.poll() is not None)
        # Written every second, so it may be a second old.
        status = wait_for(lambda: (s := runs.status(run))["cluster"]["size"] == 3 and
                          all(m["step"] > 0 and m["bytes_sent"] > 0 for m in s["cluster"]["members"]) and s)
        check(status["state"] == "running" and status["cluster_is_live"] and status["steps"] == STEPS, status)
        members = status["cluster"]["members"]
        check([m["rank"] for m in members] == [0, 1, 2] and {m["pid"] for m in members} == set(workers_of(run)),
              members)
        check(status["cluster"]["mesh"] == "replica 1, data 3, model 1", status["cluster"]["mesh"])
        check(status["eta_seconds"] > 0 and 0 < status["goodput"]["goodput"] < 1, status)
        check(re.search(r"mesh replica 1, data 3, model 1.*\nworker +place", runs.text(run), re.S), runs.text(run))
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    wait_for(lambda: not workers_of(run))
    gone = runs.status(run)
    check(gone["state"] == "gone" and not gone["cluster_is_live"], gone)
    check("its processes are gone" in runs.text(run), runs.text(run))
    before = gone["goodput"]["seconds"]
    process = runs.start(run, price)
    out = runs.finish(process)
    check(process.returncode == 0, f"{run}: exit code {process.returncode}\n{out}")
    check(runs.place.chain(run) == runs.chain, f"{run}: another chain\n{out}")
    status = runs.status(run)
    check(status["state"] == "finished" and status["eta_seconds"] is None, status)
    after = status["goodput"]["seconds"]
    check(all(after[k] >= before[k] - 1e-9 for k in before), f"times shrank: {before} {after}")
    # Steps are lost if the run had come further than where its second session began.
    began = json.loads((runs.place.top / "runs" / run / "run.json").read_text())["sessions"][-1]["from_step"]
    known = max(gone["step"], gone["goodput"]["steps"])
    check((after["lost"] > 0) == (known > began), f"from step {began}, {known} steps were done: {after}")
    check(status["goodput"]["tokens"] == STEPS * 8 * 256, status["goodput"])
    paid = status["goodput"]["worker_seconds"] / 3600 * 2
    check(abs(status["dollars"] - paid) < 1e-9 and status["dollars_per_billion_tokens"] > 0, status)
    check("per billion tokens" in runs.text(run), runs.text(run))
    total, all_workers = sum(after.values()), status["goodput"]["worker_seconds"]
    check(total < all_workers <= 3 * total + 1e-6, f"{all_workers} worker-seconds in {total} seconds")
    alone = runs.status("alone")
    check(alone["state"] == "finished" and alone["cluster"] is None and alone["step"] == STEPS, alone)
    bad = subprocess.run([runs.place.ostro, "status", str(runs.place.top)], capture_output=True, text=True, check=False)
    check(bad.returncode != 0 and "is no run directory" in bad.stderr, bad.stderr)
    print("status: of a run that trains, one that is gone, one that is finished, one of one process")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(Place(args.ostro, pathlib.Path(folder)))
        check_stopped(runs)
        check_hang(runs)
        check_status(runs)


if __name__ == "__main__":
    main()
