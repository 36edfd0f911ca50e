"""A small lab whose steps are done elsewhere (`ostro lab run --place`), for tests: what runs, what was done, and how often."""
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import time

from lab_test import CONFIG, Lab, check
from program import kill_all

PLAN = """
lab: small
question: Which rate is best?
steps:
  texts: {source: {files: [texts], licence: GPL-3.0-only}}
  held: {source: {files: ["held/*.txt"], licence: Apache-2.0}}
  words: {tokenizer: {from: $texts, vocab_size: 300}}
  rows: {tokens: {from: $texts, held_out: $held, tokenizer: $words}}
  base:
    sweep: {rate: [0.001, 0.01]}
    train: {data: $rows, config: tiny.yaml, set: {optimizer.learning_rate: $rate}}
  score: {eval: {of: $base}}
"""
DONE_ELSEWHERE = ["words", "rows", "base[rate=0.001]", "base[rate=0.01]", "score[rate=0.001]", "score[rate=0.01]"]
SECRET = "0123456789abcdef" * 4


def small_lab(ostro, top):
    lab = Lab(ostro, top)
    (lab.top / "tiny.yaml").write_text(CONFIG)
    lab.write(PLAN)
    return lab


def wait_for(what, told, seconds=240, seen=str):
    """What `what` gives once it is something; `seen` gives what a wait in vain shows besides."""
    end = time.monotonic() + seconds
    while not (found := what()):
        if time.monotonic() >= end:
            check(False, f"waited in vain for {told}\n{seen()}")
        time.sleep(0.05)
    return found


def processes_of(lab):
    """The processes that do steps of the lab: task's file -> their numbers."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().decode().split("\0")
        except (OSError, UnicodeDecodeError):
            continue
        if words[1:3] == ["lab", "step"] and words[3].startswith(f"{lab.top}/"):
            found.setdefault(words[3], []).append(int(entry.name))
    return found


def steps_of(lab):
    """Task's file -> name of the step; of the tasks that are there."""
    found = {}
    for path in (lab.top / "small.lab/jobs").glob("*/task.json"):
        try:
            found[str(path)] = json.loads(path.read_text())["step"]
        except FileNotFoundError:
            pass  # the step is done meanwhile
    return found


def done(lab):
    """The steps that the journal has as done, in its order."""
    entries = [json.loads(line) for line in (lab.top / "small.lab/journal.jsonl").read_text().splitlines()]
    return [entry["step"] for entry in entries if entry["kind"] == "done"]


def check_done_once(steps):
    """What done() gives of a finished lab."""
    wanted = sorted(["texts", "held", *DONE_ELSEWHERE])
    check(sorted(steps) == wanted, f"the journal has the steps {sorted(steps)}, not {wanted}")


def record(lab, name):
    done = lab.start("record", "plan.yaml", "--out", name)
    check(done.returncode == 0, f"lab record: {done.stdout}{done.stderr}")
    return (lab.top / name).read_bytes()


class Placed:
    """`ostro lab run --place ...` in the background, on a lab whose trainings wait at a gate."""

    def __init__(self, lab, words, **variables):
        self.lab, self.out = lab, lab.top / "driver.txt"
        self.gate = lab.top / "gate"
        env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")}
        env |= {"OSTRO_FAULT": f"checkpoint:*:*:gate={self.gate}", "AWS_SECRET_ACCESS_KEY": SECRET} | variables
        with open(self.out, "w") as out:
            self.process = subprocess.Popen([lab.ostro, "lab", "run", "plan.yaml", *words], cwd=lab.top, env=env, stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=subprocess.STDOUT, start_new_session=True)

    def open_gate(self, step):
        """Trainings go on up to their checkpoint of this step."""
        new = self.gate.with_suffix(".new")
        new.write_text(str(step))
        new.replace(self.gate)

    def logs(self):
        return {path.name: path.read_text() for path in (self.lab.top / "small.lab/logs").glob("*.txt")}

    def wait_for(self, what, told):
        """What `what` gives; meanwhile no two processes do the same step, and the driver does not end."""
        def seen():
            return f"{self.out.read_text()}{self.logs()}"

        def there():
            twice = {task: pids for task, pids in processes_of(self.lab).items() if len(pids) > 1}
            if twice:
                check(False, f"a step is done by two processes: {twice}\n{seen()}")
            found = what()
            if not found and self.process.poll() is not None:
                check(False, f"ended without {told}\n{seen()}")
            return found
        return wait_for(there, told, seen=seen)

    def training(self, count=2, without=()):
        """The numbers of the processes that train, once there are so many; none of `without`."""
        def there():
            names = steps_of(self.lab)
            pids = [pid for task, pids in processes_of(self.lab).items() if names.get(task, "").startswith("base") for pid in pids]
            return pids if len(pids) == count and not set(pids) & set(without) else None
        return self.wait_for(there, f"{count} trainings")

    def checkpoints(self, step, count=2):
        """Waits until so many trainings have saved a step."""
        self.wait_for(lambda: len(list((self.lab.top / "small.lab/out").glob(f"*/checkpoints/step-{step:08}/manifest.json"))) >= count,
                      f"{count} checkpoints of step {step}")

    def end(self, wanted=0, seconds=300):
        """Its last line."""
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            check(False, f"does not end\n{self.out.read_text()}{self.logs()}")
        text = self.out.read_text()
        check(self.process.returncode == wanted, f"exit code {self.process.returncode}\n{text}{self.logs()}")
        return text.splitlines()[-1].removeprefix("lab hash: ")

    def kill(self):
        """Returns when none of its processes has the lab any more."""
        kill_all([self.process])

        def is_free():
            with open(self.lab.top / "small.lab/lock", "a") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False
            return True
        wait_for(is_free, "the end of the driver's processes", 60)


def check_nothing_left(lab):
    wait_for(lambda: not processes_of(lab), "the end of all processes of the lab", 60)
    left = list((lab.top / "small.lab/jobs").glob("*"))
    check(not left, f"left behind: {left}")
    for path in lab.top.rglob("*"):
        check(not path.is_file() or SECRET.encode() not in path.read_bytes(), f"{path} has the secret")


def kill_process(pid):
    os.kill(pid, signal.SIGKILL)
