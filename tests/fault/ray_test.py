#!/usr/bin/env python3
"""Tests `ostro launch ray` on a real Ray cluster of two nodes, both on this machine.

Slices are named by a label of the nodes. Adds a node on which workers fail, and which is left out for a while, kills a worker, an actor and the coordinator, in an order that OSTRO_TEST_SEED draws,
adds nodes, kills one and drains one: the run ends, and its chain is that of `ostro train` byte for byte. A run that is
stopped, as it draws, by Ctrl-C once or twice, as `ray job stop` does, or because its terminal is closed, is saved. Then
what a cluster may lack: one clear error each. --faults does only so many drawn faults in one run (ray_chaos.py).

Needs Ray (scripts/setup.sh --python). Its nodes listen at 127.0.0.2 and up.

    ray_test.py --ostro PROGRAM --faulty PROGRAM [--faults N] [--seed N] [--log FILE]
"""

import argparse
import asyncio
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "e2e"), str(ROOT / "tests" / "fault")]
from program import kill_all  # noqa: E402
from ray_chaos import Chaos, long_leaves, options_for, program_with_bad_nodes  # noqa: E402
from workers_test import Gate, Place, check, steps_of, wait_for, workers_of  # noqa: E402

try:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_AUTH_MODE"] = "disabled"  # whatever token an earlier Ray has left on this machine
    # A node waits so long for its agent, a program in Python, and ends itself when a busy machine has not started it.
    os.environ["RAY_agent_register_timeout_ms"] = "300000"
    import ray._private.services
    from ray._common.utils import get_default_ray_temp_dir
    from ray._raylet import GcsClient, GcsClientOptions, GlobalStateAccessor
    from ray.cluster_utils import Cluster
    from ray.core.generated import autoscaler_pb2
except ImportError as missing:
    print(f"SKIPPED: {missing}; scripts/setup.sh --python installs Ray")
    sys.exit(77)

# Enough steps that the run does not end before all faults have been seen.
LONG = ["--trainer.num_train_steps", "600", "--trainer.checkpointer.keep", "[{every: 100}]"]
SHORT = ["--trainer.num_train_steps", "40", "--trainer.checkpointer.keep", "[{every: 20}]"]
# A lost node refuses connections: that is noticed after 1.5 seconds; with Ray's defaults after 14. An answer may be late.
HEALTH = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 500, "health_check_timeout_ms": 5_000,
          "health_check_failure_threshold": 3}
# With many faults the machine is busy for long, and a node that begins answers nothing yet.
PATIENT = HEALTH | {"health_check_initial_delay_ms": 60_000}
NODE_SECONDS = 300  # for the start of a node; Ray's own limit is 30 and no option


def wait_for_nodes_longer():
    """Ray asks for a node that it starts again and again, and gives up after 30 s: the first question waits instead."""
    asked = ray._private.services.get_node

    def get_node(address, node):
        end = time.monotonic() + NODE_SECONDS
        while True:
            try:
                return asked(address, node)
            except RuntimeError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
    ray._private.services.get_node = get_node


RACK = "example.org/rack"  # a label of each node


def node_settings(number):
    return {"num_cpus": 1, "object_store_memory": 80 << 20, "node_ip_address": f"127.0.0.{number}", "labels": {RACK: f"rack-{number}"}}


def processes_with(wanted):
    """Their numbers; `wanted` looks at a process's words."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().decode().split("\0")
        except (OSError, UnicodeDecodeError):
            continue
        if entry.name.isdigit() and wanted(words):
            found.append(int(entry.name))
    return sorted(found)


def drain(cluster, node):
    """What the autoscaler does with an instance that is going to be preempted."""
    accepted, why = GcsClient(address=cluster.address).drain_node(
        node.node_id, autoscaler_pb2.DrainNodeReason.Value("DRAIN_NODE_REASON_PREEMPTION"), "preempted",
        (time.time_ns() // 1_000_000) + 60_000)
    check(accepted, f"a node cannot be drained: {why}")


BAD_NODE = 9  # its workers do not find their data


class Launch:
    """A launcher in the background, with a process group of its own, as a shell's."""

    def __init__(self, place, cluster, run, options, settings=None, program=None, words=()):
        self.place, self.run, self.log = place, run, place.top / f"{run}.log"
        self.gate = Gate(place.top)
        python = {"OSTRO_PYTHON": sys.executable, "PYTHONPATH": str(ROOT / "python"), "OSTRO_THREADS": "1"}
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [program or place.ostro, "launch", "ray", "--address", cluster.address, "--min_workers", "2", "--max_workers", "3",
                 *words, *place.words(run, options)], start_new_session=True,
                env=place.environment(python | {"OSTRO_FAULT": self.gate.fault()} | (settings or {})), stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    # Ray starts an actor in seconds, or in minutes where the machine is busy; the limit is for what never comes.
    def wait_for(self, what, told, seconds=240):
        def there():
            check(self.process.poll() is None, f"{self.run}: ended while waiting for {told}\n{self.log.read_text()}")
            return what()
        end = time.monotonic() + seconds
        while not (found := there()):
            check(time.monotonic() < end, f"{self.run}: waited in vain for {told}\n{self.log.read_text()}")
            time.sleep(0.01)
        return found

    def end(self, wanted=0, seconds=120):
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            check(False, f"{self.run}: does not end\n{self.log.read_text()}")
        text = self.log.read_text()
        check(self.process.returncode == wanted, f"{self.run}: exit code {self.process.returncode}\n{text}")
        wait_for(lambda: not workers_of(self.run))
        return text

    def kill(self):
        kill_all([self.process])


def faults(launch, cluster, nodes, rng):
    """name -> does it; and the order."""
    run = launch.run

    def kill(name, numbers):
        check(numbers, f"no {name} runs")
        os.kill(rng.choice(numbers), signal.SIGKILL)

    def actors():
        """The parents of the run's workers: other actors may be waiting for their end."""
        return [int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
                for pid in workers_of(run)]

    # A worker of Ray starts in seconds, or in minutes where the machine is busy: meanwhile the run may train some steps and no more.
    def while_it_waits(what, told):
        launch.gate.at(steps_of(launch.place, run) + 20)
        launch.wait_for(what, told)
        launch.gate.open()

    def add_node(number):
        nodes.append(cluster.add_node(**node_settings(number)))
        while_it_waits(lambda: len(workers_of(run)) == 3, "the worker of the new node")

    def add_bad_node():
        bad = cluster.add_node(**node_settings(BAD_NODE))
        while_it_waits(lambda: "ended with status 1; the others go on" in launch.log.read_text(), "a worker that fails")
        cluster.remove_node(bad, allow_graceful=False)
        while_it_waits(lambda: f"tried again, after failures there: 127.0.0.{BAD_NODE}" in launch.log.read_text(), "a node that is tried again")
        check(f"node 127.0.0.{BAD_NODE}, where 1 in a row have failed, is left out for 3 s" in launch.log.read_text(), launch.log.read_text())

    def kill_node():
        nodes[0].all_processes["raylet"][0].process.kill()
        launch.wait_for(lambda: len(workers_of(run)) == 2, "the end of the lost node's worker")

    def drain_node():
        drain(cluster, nodes[1])
        launch.wait_for(lambda: "has left" in launch.log.read_text(), "a worker that leaves")

    drawn = [("kill a worker", lambda: kill("worker", list(workers_of(run)))),
             ("kill an actor", lambda: kill("actor", actors())),
             ("kill the coordinator", lambda: kill("coordinator", processes_with(
                 lambda words: len(words) > 1 and words[1] == "coordinator" and run in words)))]
    rng.shuffle(drawn)
    return [("add a node without data", add_bad_node), *drawn, ("add a node", lambda: add_node(4)), ("kill a node", kill_node),
            ("add another", lambda: add_node(5)), ("drain the first that was added", drain_node)]


CREDENTIALS = "[default]\naws_access_key_id = other\naws_secret_access_key = other\n[p]\naws_access_key_id = {}\naws_secret_access_key = an access key of this test\n"


def check_keys(launch, file):
    """Each worker has the keys of the launcher's profile in a file that its user alone can read, also when they are renewed."""
    def texts():
        found = []
        for pid in workers_of(launch.run):
            variables = dict(line.split("=", 1) for line in pathlib.Path(f"/proc/{pid}/environ").read_text().split("\0") if "=" in line)
            path = pathlib.Path(variables["AWS_SHARED_CREDENTIALS_FILE"])
            check(path != file and path.stat().st_mode & 0o77 == 0 and path.parent.stat().st_mode & 0o77 == 0, f"{path} is open to others")
            # No folder has its name, so that it ends with its actor, also with one that is killed.
            check(os.readlink(path).endswith(" (deleted)"), f"{path} is {os.readlink(path)}")
            found.append(path.read_text())
        return found

    of_profile = CREDENTIALS.split("[p]")[1]
    check(texts() and set(texts()) == {"[p]" + of_profile.format("first")}, f"{texts()}")
    file.write_text(CREDENTIALS.format("second"))
    launch.wait_for(lambda: set(texts()) == {"[p]" + of_profile.format("second")}, "keys that are renewed")


def check_faults(place, cluster, nodes, rng, reference, of_ray):
    looked = False
    marks = place.top / "bad"
    marks.mkdir()
    (marks / f"127.0.0.{BAD_NODE}").write_text("1")
    keys = place.top / "keys"
    keys.write_text(CREDENTIALS.format("first"))
    launch = Launch(place, cluster, "faults", LONG, {"OSTRO_JOB_SECRET": SECRET, "AWS_SHARED_CREDENTIALS_FILE": str(keys), "AWS_PROFILE": "p"},
                    words=["--program", program_with_bad_nodes(place, marks), "--failures", "1", "--left_out", "3"])
    try:
        for name, inject in faults(launch, cluster, nodes, rng):
            wanted = steps_of(place, "faults") + rng.randint(2, 8)
            launch.wait_for(lambda: steps_of(place, "faults") >= wanted and len(workers_of("faults")) >= 2,
                            f"step {wanted}")
            print(f"after step {steps_of(place, 'faults')}: {name}", flush=True)
            if not looked:
                looked = True
                given = [pathlib.Path(f"/proc/{pid}/environ").read_bytes() for pid in workers_of("faults")]
                check(given and all(SECRET.encode() in text for text in given), "the workers have no secret")
                check_keys(launch, keys)
                found = shown(cluster, of_ray, (SECRET, KEY))
                check(not found, f"the secret is shown: {found}")
            inject()
        text = launch.end()
    finally:
        launch.kill()
    check(place.chain("faults") == reference, f"another chain\n{text}")
    check("run hash: " in text, f"no hash is told\n{text}")
    check(len(text) < 20_000, f"the launcher prints {len(text)} characters")
    kept = "".join(log.read_text() for log in (place.top / "runs" / "faults" / "stderr").iterdir())
    check("M parameters" in kept and "[it was killed by signal 9]" in kept, f"what workers wrote is not kept\n{kept}")
    print("the chain is that of one process")


def check_chaos(place, cluster, nodes, rng, faults, log):
    options = options_for(faults)
    reference = place.train("chaos-alone", options, seconds=3600)
    planned, seconds = long_leaves(faults, rng)
    print(f"beside them: {planned}", file=log, flush=True)
    marks, once = place.top / "bad", place.top / "chaos.once"
    marks.mkdir()
    once.mkdir()
    # A name that no other test on this machine has: its processes are found by it.
    launch = Launch(place, cluster, f"chaos-{os.getpid()}", options, {"OSTRO_FAULT": planned, "OSTRO_FAULT_ONCE": str(once)},
                    words=["--program", program_with_bad_nodes(place, marks)])
    begin = time.monotonic()
    try:
        chaos = Chaos(launch, cluster, nodes, rng, (processes_with, node_settings, lambda node: drain(cluster, node)), log, marks)
        chaos.run(faults)
        text = launch.end(seconds=1200 + 60 * faults + seconds)
    finally:
        launch.kill()
        if log is not sys.stdout:
            pathlib.Path(f"{log.name}.launcher").write_text(launch.log.read_text())
    check(place.chain(launch.run) == reference, f"another chain\n{text}")
    check("run hash: " in text, f"no hash is told\n{text}")
    left = [str(path) for path in (place.top / "runs" / launch.run).rglob("*.tmp")]
    check(not left, f"left behind: {left}")
    happened = len(list(once.iterdir()))
    check(happened > 0, f"none of {planned} happened")
    print(f"{faults} drawn faults and {happened} long leaves on a Ray cluster in {time.monotonic() - begin:.0f} s: the run ended, with the chain of one "
          f"process; {text.count('resuming')} times from a checkpoint", file=log, flush=True)


SECRET, KEY = "the secret of this job, which is long", "an access key of this test"


def shown(cluster, folder, words):
    """Where Ray keeps or shows one of the words: in its own files, in its tables, in the arguments of a process."""
    found = [str(path) for path in folder.rglob("*") if path.is_file() and any(word.encode() in path.read_bytes() for word in words)]
    gcs = GcsClient(address=cluster.address)
    kept = [gcs.internal_kv_get(key, namespace) or b"" for namespace in (None, b"fun", b"cls", b"job") for key in gcs.internal_kv_keys(b"", namespace)]
    tables = GlobalStateAccessor(GcsClientOptions.create(cluster.address, None, allow_cluster_id_nil=True, fetch_cluster_id_if_nil=False))
    tables.connect()
    kept += [row for table in (tables.get_actor_table(None, None), tables.get_task_events(), tables.get_worker_table()) for row in table]
    found += ["a table of Ray's"] if any(word.encode() in value for value in kept for word in words) else []
    return found + [f"process {pid}" for pid in processes_with(lambda found: any(word in " ".join(found) for word in words))]


def check_shown(cluster, folder):
    """The control: what the definition of an actor has is in a table, and what it prints in a file; what a method gets is in neither."""
    in_table, in_file, nowhere = (f"a marker of this test, {number}" for number in range(3))
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    try:
        class Shows:
            kept = in_table

            def run(self, told, hidden):
                print("".join(reversed(told)), flush=True)
                yield len(hidden)

        actor = ray.remote(Shows).options(num_cpus=0).remote()
        told = actor.run.options(num_returns="streaming").remote("".join(reversed(in_file)), nowhere)
        check(ray.get(next(told)) == len(nowhere), "the actor has got something else")
        wait_for(lambda: any(path.endswith(".out") for path in shown(cluster, folder, [in_file])))
        check("a table of Ray's" in shown(cluster, folder, [in_table]), "what is in a table is not found there")
        found = shown(cluster, folder, [nowhere])
        check(not found, f"what a method gets is shown: {found}")
    finally:
        ray.shutdown()


def processes_of(launch):
    """The launcher and the coordinator: what Ray ends of a job, and signals one by one."""
    return [launch.process.pid, *processes_with(
        lambda words: len(words) > 1 and words[1] == "coordinator" and launch.run in words)]


# name: what gets which signal. A terminal signals the process group.
STOPS = {
    "Ctrl-C": lambda launch: os.killpg(launch.process.pid, signal.SIGINT),
    "Ctrl-C twice": lambda launch: [os.killpg(launch.process.pid, signal.SIGINT) for _ in range(2)],
    "ray job stop": lambda launch: [os.kill(pid, signal.SIGTERM) for pid in processes_of(launch)],
    "a closed terminal": lambda launch: os.killpg(launch.process.pid, signal.SIGHUP),
}


def check_stop(place, cluster, rng, reference, kinds):
    """Each saves all steps, and the same command goes on."""
    options = [*LONG[:3], "[{every: 600}]"]
    for kind in kinds:
        launch = Launch(place, cluster, "stop", options, words=["--slice_label", RACK])
        try:
            wanted = steps_of(place, "stop") + rng.randint(3, 30)
            launch.wait_for(lambda: steps_of(place, "stop") >= wanted, f"step {wanted}")
            slices = [[words[i + 1] for i, word in enumerate(words) if word == "--slice"] for words in workers_of("stop").values()]
            check(sorted(slices) == [["rack-2"], ["rack-3"]], f"slices by the label of nodes: {slices}")
            STOPS[kind](launch)
            text = launch.end(75)
        finally:
            launch.kill()
        saved = re.search(r"stopped after step (\d+) and saved", text)
        check(saved and int(saved[1]) >= wanted, f"{kind}: nothing is saved\n{text}")
        print(f"{kind}: saved at step {saved[1]}", flush=True)
    launch = Launch(place, cluster, "stop", options)
    try:
        launch.end()
    finally:
        launch.kill()
    check(place.chain("stop") == reference, "another chain after stops")


def check_planted(place, cluster, faulty, reference):
    launch = Launch(place, cluster, "planted", SHORT, {"OSTRO_TEST_FAULT": "leaf_order"}, faulty)
    try:
        launch.end()
    finally:
        launch.kill()
    check(place.chain("planted") != reference, "a planted fault changed nothing")
    print("a planted fault: another chain")


def check_patience():
    """One bad node may fail the workers of every place, one after another, and ends no run for which the others have room."""
    sys.path.insert(0, str(ROOT / "python"))
    from ostro_ray import cluster as room, nodes as failing, supervisor

    class Failed:
        def __init__(self, node):
            self.place, self.pid = {"node": node, "address": node}, 1

        def lived(self):
            return 1

    def ends_after(nodes, failures, began):
        """After how many of the failures, each (place, node), the run ends; None when it goes on."""
        one = object.__new__(supervisor.Supervisor)
        one.failures, one.nodes, one.need, one.workers = {}, failing.FailingNodes(0, 600), {"CPU": 1}, {}
        one.args = argparse.Namespace(min_workers=2, max_workers=3)
        one.coordinator = argparse.Namespace(began=began)
        room.capacity, kept = lambda need, without: len(nodes - without), room.capacity
        try:
            for count, (number, node) in enumerate(failures, 1):
                one.workers = {number: Failed(node)}
                rest, said = one.rest_after_failure(number, one.workers[number])
                check(5 <= rest <= 300 and not said and not one.nodes.left_out(), f"a rest of {rest} s{said}")
                if one.hopeless(one.workers[number]):
                    return count
        finally:
            room.capacity = kept
        return None

    everywhere = [(n % 3, "bad") for n in range(12)]
    for nodes, failures, began, wanted in [
            ({"a", "b", "bad"}, everywhere, True, None), ({"a", "bad"}, everywhere, True, 3),
            ({"a", "b", "bad"}, everywhere, False, None), ({"a", "b"}, [(0, "a"), (1, "b")], False, 1),
            ({"a", "b", "c"}, [(0, "a"), (1, "b"), (2, "c")], False, 2), ({"a", "b"}, [(0, "a"), (1, "b")], True, None)]:
        found = ends_after(nodes, failures, began)
        check(found == wanted, f"nodes {nodes}, failures {failures}, a run that has {'' if began else 'not '}trained: ends after {found}, not {wanted}")
    # A node is left out at its second failure in a row, for ten seconds, and then at the next one.
    now = 0
    node = failing.FailingNodes(2, 10, lambda: now)
    place = Failed("bad").place
    check([node.failed(place, lived) for lived in (False, True, False)] == [False, False, True] and node.left_out() == {"bad": "bad"}, node.failures)
    now = 9
    check(node.back() == [] and node.left_out(), "tried again too early")
    now = 10
    check(node.back() == ["bad"] and node.left_out() == {} and node.failed(place, False), "not tried again once")
    print("one bad node ends no run for which the others have room")


def check_waits():
    """A place that asks for a worker anew, again and again, and one that rests until the run is over leave no task of asyncio behind."""
    from ostro_ray import nodes as failing, supervisor

    class Waits:
        """A worker for which there is no room; each one but the last is asked for anew, and the last is lost."""
        made = []

        def __init__(self, *_):
            self.place, self.pid, self.anew = None, None, asyncio.Event()
            Waits.made.append(self)
            if len(Waits.made) < 20:
                self.anew.set()

        async def follow(self, *_):
            if len(Waits.made) < 20:
                await asyncio.Event().wait()
            raise supervisor.Lost("none", rest=600)

        def lived(self):
            return 0

        def kill(self):
            pass

    async def run():
        one = object.__new__(supervisor.Supervisor)
        one.over, one.stopping, one.workers, one.options, one.restarts = asyncio.Event(), False, {}, {}, 0
        one.nodes, one.spec, one.variables, one.keys = failing.FailingNodes(0, 600), {}, {}, None
        one.args, one.coordinator = argparse.Namespace(restarts=5), argparse.Namespace(address="")
        place = asyncio.create_task(one.keep(0))
        while not one.restarts:
            check(len(asyncio.all_tasks()) <= 8, "tasks are left behind")  # this, the place, three that it waits for, three that end
            await asyncio.sleep(0)
        for _ in range(5):  # what was cancelled ends
            await asyncio.sleep(0)
        left = len(asyncio.all_tasks())
        one.over.set()
        await asyncio.wait_for(place, 10)
        await asyncio.sleep(0)
        return left, len(asyncio.all_tasks())

    kept, supervisor.Worker = supervisor.Worker, Waits
    try:
        left, at_end = asyncio.run(run())
    finally:
        supervisor.Worker = kept
    check(len(Waits.made) == 20 and left <= 3 and at_end == 1, f"{len(Waits.made)} workers, {left} tasks while the place rests, {at_end} at the end")
    print("a place that waits leaves no task behind")


def check_errors(place, cluster):
    python = {"OSTRO_PYTHON": sys.executable, "PYTHONPATH": str(ROOT / "python")}
    none = {"OSTRO_PYTHON": "/nowhere/python3"}
    room = ["--address", cluster.address, "--min_workers", "2", "--max_workers", "2"]
    for words, settings, wanted in [
            ([*room, "--cpus_per_worker", "64", "--wait", "0"], python,
             r"no room for 2 workers.*a worker needs \{CPU: 64\}; node 127\.0\.0\.\d has \{CPU: 1\}"),
            (["--address", "127.0.0.1:1", "--min_workers", "1", "--max_workers", "1"], python,
             r"--address 127\.0\.0\.1:1: no Ray cluster can be reached"),
            (["--address", "ray://127.0.0.1:1", "--min_workers", "1", "--max_workers", "1"], python, "ray job submit"),
            (["--min_workers", "3", "--max_workers", "2"], python, "min_workers 3 .*max_workers 2"),
            (room, python | {"PYTHONPATH": str(place.top)}, "no package ostro_ray"),
            ([*room, "--program", "/nowhere/ostro"], python,
             r"node 127\.0\.0\.\d cannot start a worker: /nowhere/ostro: No such file"),
            ([*room, "--slice_label", "no.such/label"], python, r"node 127\.0\.0\.\d has no label no\.such/label \(--slice_label\)"),
            ([*room, "--failures", "-1"], python, "--failures: -1 is negative; 0 leaves no node out"),
            (room, none, "cannot start /nowhere/python3")]:
        done = subprocess.run([place.ostro, "launch", "ray", *words, *place.words("errors", [])],
                              env=place.environment(settings), text=True, timeout=300, capture_output=True, check=False)
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        check(done.returncode in (1, 2) and len(errors) == 1 and re.search(wanted, errors[0]),
              f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    print("what a cluster may lack: one clear error each")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--faulty", help="tests/controls; --faults needs none")
    parser.add_argument("--faults", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--log")
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else int(os.environ.get("OSTRO_TEST_SEED", "1"))
    log = open(args.log, "w") if args.log else sys.stdout
    full = os.environ.get("OSTRO_TEST_SIZE", "sample") != "sample"
    print(f"seed {seed}")
    # Ray has a folder of its own: its processes may write logs for some time after they were killed.
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as of_ray:
        place = Place(args.ostro, pathlib.Path(folder))
        reference = None if args.faults else place.train("alone", LONG)
        # Where Ray notes the cluster's address, whatever temp_dir says; it does not make this folder itself.
        pathlib.Path(get_default_ray_temp_dir()).mkdir(exist_ok=True)
        wait_for_nodes_longer()
        cluster = Cluster(initialize_head=True, head_node_args=node_settings(2) | {
            "include_dashboard": False, "_system_config": PATIENT if args.faults else HEALTH, "temp_dir": f"{of_ray}/ray"})
        try:
            nodes = [cluster.add_node(**node_settings(3))]
            cluster.wait_for_nodes(NODE_SECONDS)
            if args.faults:
                print(f"seed {seed}", file=log, flush=True)
                check_chaos(place, cluster, nodes, random.Random(seed), args.faults, log)
                return
            rng = random.Random(seed)
            check_shown(cluster, pathlib.Path(of_ray))
            check_patience()
            check_waits()
            check_errors(place, cluster)
            kinds = rng.sample(list(STOPS), len(STOPS) if full else 1)
            check_stop(place, cluster, rng, place.train("alone-stop", [*LONG[:3], "[{every: 600}]"]), kinds)
            check_faults(place, cluster, nodes, rng, reference, pathlib.Path(of_ray))
            if full:
                reference = place.train("alone-short", SHORT)
                check_planted(place, cluster, args.faulty, reference)
        finally:
            # A raylet takes half a minute to end by itself, one after another.
            for node in [*cluster.worker_nodes, cluster.head_node]:
                cluster.remove_node(node, allow_graceful=False)
            cluster.shutdown()


if __name__ == "__main__":
    main()
