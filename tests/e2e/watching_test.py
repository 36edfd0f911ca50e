#!/usr/bin/env python3
"""Tests what watches a run: metrics for Prometheus, events, alerts, the standard error of workers, and notices that a machine is
about to be taken away.

`ostro launch local` with trainer.metrics_listen: what the launcher answers is read strictly (prometheus.py, and by prometheus_client
where that is there), while a worker is killed; the chain is that of `ostro train`. A loss that is not finite is an alert, which a
command gets. A notice makes `ostro train` and all workers save and end, and keeps others from beginning; the runs go on to the
same chain. `--dry_run` says whether a save fits into the grace.

    watching_test.py --ostro PROGRAM
"""

import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import prometheus
from program import kill_all
from workers_test import Gate, Place, check, steps_of, wait_for, workers_of

STEPS = 120
OPTIONS = ["--trainer.num_train_steps", str(STEPS), "--trainer.checkpointer.keep", "[{every: 10}]"]
LISTEN = ["--trainer.metrics_listen", "127.0.0.1:0"]


class Started:
    """A command whose output goes to a file."""

    all = []

    def __init__(self, place, name, words, settings=None):
        self.out = place.top / f"{name}.out"
        with self.out.open("w", encoding="utf-8") as out:
            self.process = subprocess.Popen([place.ostro, *words], env=place.environment({"OSTRO_THREADS": "1"} | (settings or {})),
                                            stdout=out, stderr=subprocess.STDOUT, cwd=place.top)
        Started.all.append(self.process)

    def text(self):
        return self.out.read_text(encoding="utf-8", errors="replace")

    def said(self, pattern):
        return wait_for(lambda: re.search(pattern, self.text()) or self.over(pattern))

    def over(self, pattern):
        check(self.process.poll() is None, f"it ended, and never said {pattern}:\n{self.text()}")

    def ended(self, code):
        self.process.wait(timeout=300)
        check(self.process.returncode == code, f"exit code {self.process.returncode}, not {code}\n{self.text()}")
        return self.text()


def get(url, host=None):
    request = urllib.request.Request(url, headers={"Host": host} if host else {})
    with urllib.request.urlopen(request, timeout=300) as answer:
        check(answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), answer.headers)
        return answer.read().decode()


def lines_of(place, run, name):
    path = place.top / "runs" / run / name
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def events_of(place, run):
    return [f"{e['event']}: {e['text']}" for e in lines_of(place, run, "events.jsonl")]


def check_launch(place, expected):
    """Metrics of a job in which a worker is killed."""
    run, gate = "watched", Gate(place.top)
    told = place.top / "told by 'alert' $HOME"
    alert = json.dumps(["sh", "-c", 'cat >> "$0"', str(told)])
    gate.at(3)
    job = Started(place, run, ["launch", "local", "--workers", "2", *place.words(run, OPTIONS), *LISTEN, "--trainer.alert_command", alert,
                               "--trainer.alert_disk_free", "0", "--trainer.alert_stall_factor", "0"], {"OSTRO_FAULT": gate.fault()})
    url = job.said(r"metrics for Prometheus: (\S+)")[1]

    def now():
        text = get(url)
        return text, prometheus.families(text)

    def shows(workers, **least):
        """The figures, once there are so many workers, and at least so much of others: on a busy machine one more may be lost."""
        found = now()[1]
        value = lambda name: found[f"ostro_train_{name}"].value() if f"ostro_train_{name}" in found else -1
        return value("workers") == workers and all(value(name) >= number for name, number in least.items()) and found

    # Epochs change, and checkpoints are told of, between two steps: one more is trained each time that something is waited for, but never
    # the last ones. So the steps last as long as wait_for does.
    reached = 3

    def wait_in_steps(what):
        def look():
            nonlocal reached
            found = what()
            if not found:
                reached = min(reached + 1, STEPS - 5)
                gate.at(reached)
                time.sleep(0.1 + reached / 40)
            return found

        return wait_for(look)

    wait_in_steps(lambda: shows(2, workers_joined_total=2, workers_lost_total=0) and steps_of(place, run) > 12)
    os.kill(list(workers_of(run))[0], signal.SIGKILL)
    wait_in_steps(lambda: shows(2, workers_joined_total=3, workers_lost_total=1))
    found = wait_in_steps(lambda: (f := shows(2)) and "ostro_train_last_checkpoint_step" in f and f["ostro_train_step"].value() >= 22 and f)
    value = lambda name, **labels: found[f"ostro_train_{name}"].value(**labels)
    check(value("target_steps") == STEPS and 0 < value("loss") < 10 and value("tokens_total") > 0 and value("tokens_per_second") > 0,
          "the figures of a step")
    check(value("epoch") >= 2 and value("alerts_total", alert="worker_lost") >= 1, "epoch, alerts")
    check(value("time_seconds_total", use="step") > 0 and 0 < value("goodput_ratio") <= 1, "goodput")
    check(value("checkpoint_bytes_total") >= value("last_checkpoint_bytes") > 100_000 and value("last_checkpoint_step") % 10 == 0 and value("checkpoint_write_seconds_total") > 0, "bytes")
    times = found["ostro_train_step_duration_seconds"].samples
    check(times[("ostro_train_step_duration_seconds_count", ())] >= 20, times)
    text, found = now()
    same = prometheus.same_by_package(text, found)
    check(same is not False, "prometheus_client reads other samples")
    prometheus.must_be_refused(text)
    for path, host, code in (("/metrics", "evil.example", 403), ("/", None, 404)):
        try:
            get(url.replace("/metrics", path), host)
            check(False, f"{path} for {host} was answered")
        except urllib.error.HTTPError as error:
            check(error.code == code, f"{path} for {host}: {error.code}")
    gate.open()
    job.ended(0)
    check(place.chain(run) == expected, "another chain than that of ostro train")
    events = events_of(place, run)
    kinds = [e.split(":")[0] for e in events]
    check(kinds[0] == "begin" and kinds[-1] == "end" and kinds.count("joined") >= 3 and kinds.count("lost") >= 1 and
          kinds.count("alert") >= 1 and "epoch" in kinds and any(e.startswith("saved: the checkpoint of step 120 ") for e in events), events)
    alerts = lines_of(place, run, "alerts.jsonl")
    check({a["alert"] for a in alerts} == {"worker_lost"} and len(alerts) == kinds.count("alert") and alerts[0]["run"].endswith("/runs/watched"), alerts)
    check([json.loads(line) for line in told.read_text().splitlines()] == alerts, "what the command got")
    logs = sorted((place.top / "runs" / run / "stderr").iterdir())
    check(logs and {p.name for p in logs} <= {"worker-0.log", "worker-1.log"}, logs)  # a worker that follows may write nothing
    kept = "".join(p.read_text() for p in logs)
    check(all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \d+ .", line) for line in kept.splitlines()) and "M parameters" in kept, kept)
    print(f"metrics of a job whose worker is killed are read{' by prometheus_client, too' if same else ''}: the same chain")


def check_not_finite(place):
    told = place.top / "not finite"
    bad = Started(place, "bad", ["train", *place.words("bad", [*OPTIONS, "--optimizer.learning_rate", "1e38"]), "--trainer.alert_command",
                                 json.dumps(["tee", "-a", str(told)]), "--trainer.alert_disk_free", "0"])
    bad.process.wait(timeout=300)
    check(bad.process.returncode == 1 and "alert not_finite: " in bad.text(), bad.text())
    check([json.loads(line)["alert"] for line in told.read_text().splitlines()] == ["not_finite"], told.read_text())
    missing = Started(place, "missing", ["train", *place.words("missing", [*OPTIONS, "--optimizer.learning_rate", "1e38"]),
                                         "--trainer.alert_command", '["no-such-program-of-ostro"]'])
    missing.process.wait(timeout=300)
    check("trainer.alert_command: no-such-program-of-ostro does not start" in missing.text(), missing.text())
    check(not lines_of(place, "alone", "alerts.jsonl") or all(a["alert"] == "disk_nearly_full" for a in lines_of(place, "alone", "alerts.jsonl")),
          "a run that is well has alerts")
    print("a loss that is not finite is an alert, which a command gets")


def check_notices(place, expected):
    """A notice: saved, nothing begins while it is there, and then the run goes on."""
    notice, gate = place.top / "notice", Gate(place.top)
    for run, words, given, told in (("train-notice", ["train"], ["--trainer.notice_file", str(notice)], 1),
                                    ("job-notice", ["launch", "local", "--workers", "2"],
                                     ["--trainer.notice_command", json.dumps(["test", "-e", str(notice)])], 2)):
        more = [*words, *place.words(run, OPTIONS), *given, "--trainer.checkpointer.keep", "[{every: 1000}]"]
        expected_here = place.train(f"{run}-reference", [*OPTIONS, "--trainer.checkpointer.keep", "[{every: 1000}]"])
        check(expected_here != expected, "the steps of checkpoints are in the chain")
        gate.at(15)
        # Workers, though in one process, stop at the gate.
        settings = {"OSTRO_FAULT": gate.fault()} | ({"OSTRO_SIM_WORKERS": "2"} if told == 1 else {})
        started = Started(place, run, [*more, *(LISTEN if told == 1 else [])], settings)
        wait_for(lambda: steps_of(place, run) > 3 or started.over("a step"))
        notice.write_text("")
        wait_for(lambda: sum(e.startswith("notice: ") for e in events_of(place, run)) == told or started.over("a notice"))
        gate.open()
        out = started.ended(75)
        steps = steps_of(place, run)
        check(3 < steps < STEPS, f"{steps} steps: the notice came too late\n{out}")
        check((place.top / "runs" / run / "checkpoints" / f"step-{steps:08}").is_dir(), "the state was not saved")
        again = Started(place, run, more)
        out = again.ended(75)
        check(steps_of(place, run) == steps and "notice" in out, out)
        notice.unlink()
        Started(place, run, more).ended(0)
        check(place.chain(run) == expected_here, "another chain after a notice")
    print("a file and a command are notices: saved, and gone on to the same chain")


def check_no_notice(place):
    """A command that says no, below a parent that ignores how its children end, which a process inherits."""
    words = ["train", *place.words("ignoring", ["--trainer.num_train_steps", "2"]), "--trainer.notice_command", '["false"]']
    done = subprocess.run(["sh", "-c", 'trap "" CHLD; exec "$@"', "sh", place.ostro, *words], env=place.environment({}), text=True,
                          capture_output=True, check=False, timeout=300)
    check(done.returncode == 0 and steps_of(place, "ignoring") == 2, f"{done.returncode}\n{done.stdout}{done.stderr}")
    print("a command that says no is no notice, also where a parent ignores SIGCHLD")


def check_grace(place):
    words = ["train", "--dry_run", *place.words("alone", OPTIONS), "--trainer.notice_grace"]
    for more, code, says in ((["2h"], 0, "that of its last checkpoint"), (["2h", "--write_rate", "100"], 0, "100.0 MB/s (as stated)"),
                             (["1s", "--write_rate", "1", "--model.hidden_dim", "1024"], 2, "it does not fit")):
        done = subprocess.run([place.ostro, *words, *more], env=place.environment({}), text=True, capture_output=True, check=False, timeout=300)
        check(done.returncode == code and says in done.stdout, f"{more}: {done.returncode}\n{done.stdout}{done.stderr}")
        check((code == 0) == bool(re.search(r"take [0-9.]+ s: it fits", done.stdout)) and ("trainer.notice_grace: 1 s are less" in done.stderr) == (code == 2), done.stderr)
    print("--dry_run says whether a save fits into the grace")


def check_watch(place):
    """The same metrics of any run, by ostro watch; without the counts that only a coordinator has."""
    watch = Started(place, "watch", ["watch", str(place.top / "runs" / "watched"), "--listen", "127.0.0.1:0"])
    text = get(watch.said(r"http://\S+/")[0] + "metrics")
    found = prometheus.families(text)
    check(found["ostro_train_step"].value() == STEPS and "ostro_train_workers_lost_total" not in found, text)
    watch.process.send_signal(signal.SIGTERM)
    watch.ended(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ostro-watching-") as top:
        place = Place(args.ostro, pathlib.Path(top))
        try:
            expected = place.train("alone", OPTIONS)
            check_launch(place, expected)
            check_watch(place)
            check_not_finite(place)
            check_notices(place, expected)
            check_no_notice(place)
            check_grace(place)
        finally:
            kill_all(Started.all)
    return 0


if __name__ == "__main__":
    sys.exit(main())
