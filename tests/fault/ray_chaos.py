"""Makes many faults in one run on a Ray cluster, drawn by a seed: tests/fault/ray_test.py --faults N.

The cluster's first node stays (it has Ray's own books); of the others there are one to three, and beside them bad nodes,
on which every worker ends with an error, come and go. Between two faults the run advances by some steps; sometimes the
second comes at once. Some leaves take long: 0.05 to 40 seconds.
"""

import os
import pathlib
import signal
import threading
import time

from workers_test import check, steps_of, workers_of

MIN_WORKERS, MAX_WORKERS = 2, 3
# How often each is drawn.
KINDS = {"kill a worker": 6, "kill two workers": 2, "kill an actor": 3, "kill the coordinator": 3, "kill a node": 3,
         "add a node": 2, "drain a node": 2, "stop a worker": 2, "add a bad node": 2}
BAD_STATUSES = [1, 2, 127]  # of a worker: no data, an error of options, no program
MANY = 30  # faults: a trial by hand, for which a machine with other work has hours, and little CPU time
FIRST_BAD = 200  # the last number of a bad node's address


def steps_for(faults):
    """Of a run that does not end before so many faults. With many of them every fifth step has a leaf that takes long."""
    return 400 + 100 * faults if faults < MANY else 150 + 15 * faults


def options_for(faults):
    return ["--trainer.num_train_steps", str(steps_for(faults)), "--trainer.checkpointer.keep",
            "[{every: 100}]", "--trainer.mp", "f32"]


def long_leaves(faults, rng):
    """OSTRO_FAULT for leaves of 0.05 to 40 seconds, one for five steps; of few faults 2 seconds at most, and one for ten faults.
    And their sum in seconds."""
    longest, count = (40, steps_for(faults) // 5) if faults >= MANY else (2, 1 + faults // 10)
    drawn = [(rng.randint(2, steps_for(faults) - 50), int(1000 * 0.05 * (longest / 0.05) ** rng.random())) for _ in range(count)]
    return ",".join(f"leaf:{step}:*:delay={ms}" for step, ms in drawn), sum(ms for _, ms in drawn) / 1000


def program_with_bad_nodes(place, folder):
    """The program; on a node whose address is a file's name in `folder` it ends with the status that this file holds."""
    path = place.top / "program"
    path.write_text(f"""#!/bin/sh
before=
for word; do
  if [ "$before" = --bind ] && [ -e "{folder}/$word" ]; then
    echo "error: node $word is bad" >&2
    exit "$(cat "{folder}/$word")"
  fi
  before=$word
done
exec {place.ostro} "$@"
""")
    path.chmod(0o755)
    return str(path)


def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


class Chaos:
    def __init__(self, launch, cluster, nodes, rng, tools, log, marks):
        """`nodes`: those that may be lost. `tools`: (processes_with, node_settings, drain) of ray_test.py. `marks`: the
        folder of program_with_bad_nodes."""
        self.launch, self.cluster, self.nodes, self.rng, self.log = launch, cluster, nodes, rng, log
        self.processes_with, self.node_settings, self.drain = tools
        self.addresses = 10 + len(nodes)  # a node gets an address that none had
        self.timers = []
        self.marks, self.bad, self.bad_nodes = marks, [], 0
        self.done = {kind: 0 for kind in KINDS}

    def workers(self):
        return list(workers_of(self.launch.run))

    def steps(self):
        return steps_of(self.launch.place, self.launch.run)

    def _kill(self, pids):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def kill_a_worker(self):
        self._kill(self.rng.sample(self.workers(), 1))

    def kill_two_workers(self):
        self._kill(self.rng.sample(self.workers(), 2))

    def kill_an_actor(self):
        self._kill([parent_of(self.rng.choice(self.workers()))])

    def kill_the_coordinator(self):
        pids = self.processes_with(lambda words: len(words) > 1 and words[1] == "coordinator" and self.launch.run in words)
        check(pids, "no coordinator runs")
        self._kill(pids)

    def add_a_node(self):
        self.addresses += 1
        self.nodes.append(self.cluster.add_node(**self.node_settings(self.addresses)))

    def kill_a_node(self):
        node = self.nodes.pop(self.rng.randrange(len(self.nodes)))
        node.all_processes["raylet"][0].process.kill()

    def drain_a_node(self):
        """It goes, as an instance does that is preempted, when its worker has left or soon after."""
        node = self.nodes.pop(self.rng.randrange(len(self.nodes)))
        self.drain(node)
        timer = threading.Timer(self.rng.uniform(1, 6), node.all_processes["raylet"][0].process.kill)
        timer.start()
        self.timers.append(timer)

    def stop_a_worker(self):
        """For a time around the lease of 5 seconds: it may be in the run still when it goes on, or out of it."""
        pid = self.rng.choice(self.workers())
        os.kill(pid, signal.SIGSTOP)

        def go_on():
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
        timer = threading.Timer(self.rng.uniform(3, 9), go_on)
        timer.start()
        self.timers.append(timer)

    def add_a_bad_node(self):
        """Beside a bad node that is there already it first takes that one away."""
        if self.bad:
            self.cluster.remove_node(self.bad.pop(), allow_graceful=False)
        number = FIRST_BAD + self.bad_nodes % 50
        self.bad_nodes += 1
        (self.marks / f"127.0.0.{number}").write_text(str(self.rng.choice(BAD_STATUSES)))
        self.bad.append(self.cluster.add_node(**self.node_settings(number)))

    def draw(self):
        kinds = dict(KINDS)
        if len(self.nodes) == 1:  # with the first node that makes two, the least that the run needs
            kinds = {k: n for k, n in kinds.items() if k not in ("kill a node", "drain a node")}
        if len(self.nodes) == 3:
            del kinds["add a node"]
        return self.rng.choices(list(kinds), list(kinds.values()))[0]

    def go_on(self):
        """Waits for steps, and that there is somebody to lose."""
        wanted = self.steps() + self.rng.choice([0, 3, 10, 30])
        self.launch.wait_for(lambda: self.steps() >= wanted and len(self.workers()) >= MIN_WORKERS, f"step {wanted}", 1200)
        time.sleep(self.rng.choice([0, 0, 0.3, 1, 2]))
        self.launch.wait_for(lambda: len(self.workers()) >= MIN_WORKERS, "two workers", 1200)

    def run(self, faults):
        begin = time.monotonic()
        try:
            for number in range(1, faults + 1):
                self.go_on()
                kind = self.draw()
                print(f"{time.monotonic() - begin:7.1f} s  step {self.steps():5}  {len(self.workers())} workers, "
                      f"{1 + len(self.nodes)} nodes: fault {number}: {kind}", file=self.log, flush=True)
                getattr(self, kind.replace(" ", "_"))()
                self.done[kind] += 1
        finally:
            for timer in self.timers:
                timer.join()
        print(", ".join(f"{kind}: {count}" for kind, count in self.done.items()), file=self.log, flush=True)
