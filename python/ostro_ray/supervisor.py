"""Keeps a run's workers alive: one actor for each of max_workers places, a new one when one is lost. An actor that Ray
has no room for yet is pending: that is how the cluster (and its autoscaler) learns that the run could grow."""

import asyncio
import signal
import time

import ray
from ray import exceptions

from ostro_ray import cluster, place
from ostro_ray.coordinator import Coordinator
from ostro_ray.output import say, tell

INTERRUPTED, LOST_PLACE, LEFT = 75, 76, 77  # exit statuses of a worker (`ostro --help`)
GRACE = 10  # seconds from the end of the run to SIGTERM, and from there to the end of all processes
START_TIME = 15  # seconds that a worker for which there is room may take to start
PATIENCE = 8  # seconds until missing workers are worth a message




class Slot:
    """One of max_workers places, and who has it now."""

    def __init__(self):
        self.actor, self.place, self.pid = None, None, None
        self.started = 0.0  # when the worker was, of time.monotonic()


class Supervisor:
    def __init__(self, args, spec, secret):
        self.args, self.spec = args, spec
        self.slots = [Slot() for _ in range(args.max_workers)]
        self.need = {"CPU": args.cpus_per_worker, **args.resources_per_worker}
        self.need = {name: amount for name, amount in self.need.items() if amount > 0}
        words = ["--min_workers", str(args.min_workers), "--max_workers", str(args.max_workers), "--config",
                 args.config, *spec["words"]]
        # Workers get --amend, too; the coordinator does not know it.
        words = [word for word in words if word != "--amend"]
        self.coordinator = Coordinator(args.ostro, ray.util.get_node_ip_address(), args.port, words, secret)
        self.result, self.over, self.stopping = None, asyncio.Event(), False
        self.restarts = 0
        ray.cloudpickle.register_pickle_by_value(place)
        self.remote = ray.remote(place.Place)

    def finish(self, code):
        """The run is over, with the status of the first worker that ended by itself, or else of one that failed."""
        if self.result is None or (self.result == 0 and not (code == INTERRUPTED and not self.stopping)):
            self.result = code
        self.over.set()

    def stop(self):
        """SIGTERM or SIGINT came: the workers save and end."""
        say("asking the workers to save and end")
        self.stopping = True
        self.coordinator.stop()

    def signal_workers(self, number):
        for slot in self.slots:
            if slot.pid:
                slot.actor.signal.remote(number)

    def name(self, slot):
        rank = self.coordinator.ranks.get((slot.place["host"], slot.pid))
        worker = f"pid {slot.pid}" if rank is None else f"worker {rank}"
        return f"{worker} at {slot.place['address']}"

    async def run(self):
        """The run's exit status."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        self.check_room_at_once()
        coordinator = asyncio.create_task(self.coordinator.run())
        listens = asyncio.create_task(self.coordinator.listening.wait())
        await asyncio.wait([coordinator, listens], return_when=asyncio.FIRST_COMPLETED)
        if not self.coordinator.listening.is_set():
            return await coordinator or 1  # it has said why
        coordinator.add_done_callback(self.coordinator_ended)
        workers = [asyncio.create_task(self.keep(slot)) for slot in self.slots]
        for task in workers:
            task.add_done_callback(self.check_task)
        watch = asyncio.create_task(self.watch_room())
        await self.over.wait()
        await asyncio.wait(workers, timeout=GRACE)
        self.signal_workers(signal.SIGTERM)
        await asyncio.wait(workers, timeout=GRACE)
        for task in (*workers, watch):
            task.cancel()
        self.coordinator.end()
        await asyncio.wait([coordinator])
        return self.result

    def coordinator_ended(self, task):
        if not self.over.is_set():
            self.finish(task.result())

    def check_task(self, task):
        if not task.cancelled() and task.exception() is not None:
            say(f"error: {task.exception()!r}")
            self.finish(1)

    async def keep(self, slot):
        """Has a worker in this place until the run is over."""
        failures = 0
        while not self.over.is_set() and not self.stopping:
            options = {"num_cpus": self.args.cpus_per_worker, "resources": self.args.resources_per_worker}
            slot.actor = self.remote.options(max_restarts=0, max_concurrency=2, scheduling_strategy="SPREAD",
                                             **options).remote()
            worker = asyncio.create_task(self.follow(slot))
            over = asyncio.create_task(self.over.wait())
            while not worker.done():
                await asyncio.wait([worker, over], return_when=asyncio.FIRST_COMPLETED)
                if self.over.is_set() and slot.pid is None:
                    worker.cancel()  # Ray has no room for it, or it has no process yet
                    await asyncio.wait([worker])
                elif self.over.is_set():
                    await asyncio.wait([worker])
            over.cancel()
            ray.kill(slot.actor, no_restart=True)
            lived = time.monotonic() - slot.started if slot.pid else 0
            slot.pid = None
            if worker.cancelled():
                return
            why = worker.result()
            if why is None or self.over.is_set():
                return
            self.restarts += 1
            if self.restarts > self.args.restarts:
                say(f"error: {why}; {self.args.restarts} workers were replaced already: giving up")
                return self.finish(1)
            say(f"{why}; another takes its place")
            failures = 0 if lived > 5 else failures + 1
            if failures > 1:  # a node that kills every worker at once must not keep the cluster busy
                await asyncio.wait([asyncio.create_task(self.over.wait())], timeout=min(0.1 * 2 ** failures, 10))

    async def follow(self, slot):
        """Follows one worker to its end. Why it was lost; None when it has ended by itself."""
        slot.place, slot.pid = None, None
        try:
            spec = self.spec | {"coordinator": self.coordinator.address}
            async for reference in slot.actor.run.options(num_returns="streaming").remote(spec):
                kind, value = await reference
                if kind == "place":
                    slot.place = value
                elif kind == "started":
                    slot.pid, slot.started = value, time.monotonic()
                elif kind == "stdout":
                    tell(value)
                elif kind == "stderr":
                    for line in value:
                        say(f"[{self.name(slot)}] {line}")
                elif kind == "failed":
                    say(f"error: node {slot.place['address']} cannot start a worker: {value}; --program names it "
                        "on the nodes")
                    self.finish(1)
                    return None
                elif value < 0:
                    return f"{self.name(slot)} was killed by signal {-value}"
                elif value == LOST_PLACE:
                    return f"{self.name(slot)} lost its place"
                elif value == LEFT:
                    return f"{self.name(slot)} has left"
                else:
                    self.finish(value)
                    return None
        except exceptions.RayError as error:
            first = str(error).strip().split("\n", 1)[0]
            who = f"the actor of {self.name(slot)}" if slot.pid else "an actor"
            return f"{who} is lost ({type(error).__name__}: {first[:200]})"
        return "an actor ended before its worker"

    def running(self):
        return sum(slot.pid is not None for slot in self.slots)

    def room_message(self):
        return (f"the Ray cluster has no room for {self.args.min_workers} workers, which the run needs at least; "
                f"{self.running()} run; {cluster.room_text(self.need)}")

    def lacks_room(self):
        return self.running() + cluster.startable(self.need) < self.args.min_workers

    def check_room_at_once(self):
        if self.args.wait == 0 and self.lacks_room():
            raise cluster.ClusterError(self.room_message())

    async def watch_room(self):
        """Says when the cluster has no room for min_workers, and ends the run when that lasts."""
        since, said = None, float('-inf')
        while True:
            await asyncio.sleep(0.5)
            now = time.monotonic()
            if self.over.is_set() or self.stopping or self.running() >= self.args.min_workers:
                since = None
                continue
            since = since or now
            missing = now - since
            if self.args.wait is not None and missing > self.args.wait + START_TIME:
                say(f"error: {self.room_message()} (--wait {self.args.wait:g})")
                return self.finish(1)
            if missing > PATIENCE and now - said > 60 and self.lacks_room():
                said = now
                say(f"{self.room_message()}; waiting" +
                    ("" if self.args.wait is not None else " (--wait 0 would end)"))
