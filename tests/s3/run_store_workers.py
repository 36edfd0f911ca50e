"""A run in an object store whose workers and coordinator are killed at drawn requests.

Each process has a folder of its own, with copies of texts, tokenizer, configuration and compiled kernels: they share nothing but the
store. Where one was killed another begins in a new folder, the coordinator at its old port. So it does, as with a launcher, where a
worker ended because it was not in an epoch yet when its coordinator was killed."""
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "fault"))
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))
from harness import Failure, check, wait_for
from program import kill_all
from workers_test import Gate

WORKERS = 3
LAST_FREE = 3  # so many steps before the end nobody is killed any more
PATIENCE = 300  # seconds, for what must happen


class Machines:
    """The processes of one run, by hand."""

    def __init__(self, workspace, store, env, config, name):
        self.w, self.store, self.env, self.config, self.name = workspace, store, env, config, name
        self.top = workspace.root / f"machines-{name}"
        self.top.mkdir()
        self.gate = Gate(self.top)
        self.count, self.port, self.coordinator, self.workers, self.replaced = 0, 0, None, [], 0

    def start(self, *words):
        place = self.top / str(self.count)
        self.count += 1
        for folder in ("corpus", "kernels"):
            shutil.copytree(self.w.root / folder, place / folder)
        for file in ("tokenizer.json", self.config):
            shutil.copy(self.w.root / file, place)
        env = self.w.env | self.env | {"OSTRO_CACHE_DIR": str(place / "kernels"), "HOME": str(place), "OSTRO_FAULT": self.gate.fault(),
                                       "OSTRO_JOB_SECRET": "of the machines"}
        with (place / "out").open("wb") as out, (place / "err").open("wb") as err:
            process = subprocess.Popen([self.w.ostro, *words, "--config", self.config], cwd=place, env=env, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err)
        process.place = place
        return process

    def all(self):
        return [self.coordinator, *self.workers]

    def forsaken(self, worker):
        return (worker.poll() or 0) > 0 and re.search("error: .*the coordinator is gone", (worker.place / "err").read_text()) is not None

    def look(self, victim=None):
        """Begins others for workers whose coordinator was killed too early. That a process but `victim` ended in another way is an error."""
        for worker in [w for w in self.workers if self.forsaken(w)]:
            self.workers.remove(worker)
            self.begin_worker()
            self.replaced += 1
        ended = [p for p in self.all() if p is not victim and p.poll() is not None and not self.forsaken(p)]
        if ended:
            raise Failure(f"processes ended by themselves: {[p.returncode for p in ended]}\n{self.said()}")

    def wait(self, condition, what):
        def there():
            self.look()
            return condition()
        try:
            wait_for(there, PATIENCE, what)
        except Failure as failure:
            raise Failure(f"{failure}\n{self.said()}") from None

    def said(self):
        return "\n".join(f"{path.relative_to(self.top)}: {path.read_text(errors='replace')[-1500:]}" for path in sorted(self.top.glob("*/*"))
                         if path.name in ("out", "err"))

    def start_coordinator(self):
        self.coordinator = self.start("coordinator", "--port", str(self.port), "--min_workers", "1", "--max_workers", str(WORKERS))
        self.wait(lambda: self.events("listening"), "a coordinator")
        self.port = self.events("listening")[0]["port"]

    def begin_worker(self):
        self.workers.append(self.start("worker", "--coordinator", f"127.0.0.1:{self.port}"))
        return self.workers[-1]

    def start_worker(self):
        worker = self.begin_worker()
        self.wait(lambda: [e for e in self.events("joined") if e["pid"] == worker.pid], "a worker that joins")

    def events(self, name):
        """Those of the coordinator that runs now."""
        lines = (self.coordinator.place / "out").read_text().splitlines(keepends=True)
        return [event for event in (json.loads(line) for line in lines if line.endswith("\n")) if event["event"] == name]

    def steps(self):
        """That are done, as the coordinator wrote it last. The chain comes into the store some steps at a time."""
        members = json.loads(self.store.files(f"all/{self.name}/").get("cluster.json", b"{}")).get("members", [])
        return max([member["step"] - 1 for member in members if member["rank"] is not None], default=0)

    def end(self):
        kill_all(self.all())


def kill_drawn(machines, rng, steps, kills):
    """Kills so many processes while the run trains its first `steps` steps, about a third of them coordinators: the first at once, the others
    when the run has done its next steps. The uploads that were open at a kill."""
    store, left, who = machines.store, set(), []
    machines.gate.at(2)
    machines.start_coordinator()
    for _ in range(WORKERS):
        machines.start_worker()
    for number in range(kills):
        limit = 2 + steps * number // kills
        machines.gate.at(limit)
        if number > 0:
            machines.wait(lambda: machines.steps() >= limit - 1, f"step {limit - 1}")
        victim = machines.coordinator if rng.random() < 1 / 3 else rng.choice(machines.workers)
        moment, hit = len(store.requests) + rng.randrange(1, 30), threading.Event()

        def kill(*_, victim=victim, moment=moment, hit=hit):
            if len(store.requests) >= moment and not hit.is_set():
                victim.send_signal(signal.SIGKILL)
                hit.set()
        store.fault = kill
        while not hit.wait(0.02):
            machines.look(victim)
            machines.gate.at(min(limit + 3, steps))
        store.fault = None
        check(victim.wait(PATIENCE) == -signal.SIGKILL, f"the process to be killed ended with {victim.returncode}")
        left |= set(store.uploads)
        who.append(f"{'coordinator' if victim is machines.coordinator else 'worker'} at step {machines.steps()}")
        if victim is machines.coordinator:
            machines.start_coordinator()
        else:
            machines.workers.remove(victim)
            machines.start_worker()
    print(f"    killed: {', '.join(who)}; {machines.replaced} workers ended since they were in no epoch yet", flush=True)
    return left


def killed_workers(test, name, steps, kills):
    """`test` is that of run_store_test.py. The run must have its chain, and nothing torn."""
    test.begin()
    machines = Machines(test.w, test.store, test.env, test.config(name), name)
    try:
        left = kill_drawn(machines, test.rng, steps - LAST_FREE, kills)
        machines.gate.open()
        codes = [process.wait(PATIENCE) for process in machines.all() if not machines.forsaken(process)]
        if any(codes):
            raise Failure(f"{name}: exit statuses {codes}\n{machines.said()}")
    finally:
        machines.end()
    more = test.store.uploads.keys() - left
    check(not more, f"{name}: uploads were left by processes that nobody killed: {more}")
    test.store.uploads.clear()
    test.whole(name)
