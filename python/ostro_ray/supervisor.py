"""Keeps a run's workers alive: one actor for each of max_workers places, a new one when one is lost. An actor that Ray
has no room for yet is pending: that is how the cluster (and its autoscaler) learns that the run could grow."""

import asyncio
import contextlib
import signal
import time

import ray
from ray.util.scheduling_strategies import NodeLabelSchedulingStrategy, NotIn

from ostro_ray import cluster, keys
from ostro_ray.coordinator import Coordinator
from ostro_ray.nodes import FailingNodes
from ostro_ray.output import say
from ostro_ray.worker import INTERRUPTED, Failed, Lost, Worker

LAST_LINES = 1  # seconds for the coordinator to keep them
GRACE = 10  # seconds from the end of the run to SIGTERM, and from there to the end of all processes
START_TIME = 15  # seconds that a worker for which there is room may take to start
PATIENCE = 8  # seconds until missing workers are worth a message
LOOK = 0.5  # seconds
NODE = "ray.io/node-id"  # a label that Ray gives to every node
REST, MOST_REST = 5, 300  # seconds until a place is tried again whose worker has failed: the first time, and at most
LIVED = 60  # seconds: a worker that ran for so long was not at its start when it failed
MOST_FAILURES = 3  # in a row on one node, of a run that has trained


class Anew(Exception):
    """A worker waits for room, and other nodes are to be left out now: another is to be asked for."""


class Supervisor:
    def __init__(self, args, spec, variables):
        self.args, self.spec, self.variables = args, spec, variables
        self.workers = {}  # by number of the place
        self.options, self.need = cluster.request(args.cpus_per_worker, args.resources_per_worker)
        words = [word for word in spec["words"] if word != "--amend"]  # which is the workers' affair
        self.coordinator = Coordinator(
            args.ostro, ray.util.get_node_ip_address(), args.port, spec,
            ["--min_workers", str(args.min_workers), "--max_workers", str(args.max_workers), *words], variables["OSTRO_JOB_SECRET"])
        self.result, self.over, self.stopping = None, asyncio.Event(), False
        self.signals, self.restarts = 0, 0
        self.failures = {}  # by number of the place: how many workers in a row have failed there
        self.nodes = FailingNodes(args.failures, args.left_out)
        self.keys = keys.of_file()

    def finish(self, code):
        """The run is over, with the first status that is not 0 of those that the coordinator and the workers end with."""
        self.result = self.result or code
        self.over.set()

    def stop(self):
        """SIGTERM, SIGINT or SIGHUP came: the workers save and end. A terminal, a shell and Ray may pass on the same wish,
        and a person may press Ctrl-C twice; only the third ends all at once."""
        self.signals += 1
        if self.signals == 1:
            say("asking the workers to save and to end")
            self.stopping = True
            self.coordinator.stop()
            asyncio.get_running_loop().call_later(self.args.stop_timeout, self.give_up)
        elif self.signals == 2:
            say("the workers save; once more ends them without it")
        else:
            self.finish(1)
            self.signal_workers(signal.SIGKILL)

    def give_up(self):
        """The grace of a run that is to stop is over."""
        if not self.over.is_set():
            say(f"error: the run was not saved within {self.args.stop_timeout:g} s (trainer.stop_timeout); its workers "
                "are ended")
            self.finish(1)

    def signal_workers(self, number):
        for worker in self.workers.values():
            worker.signal(number)

    async def run(self):
        """The run's exit status."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # which nohup sets
                loop.add_signal_handler(number, self.stop)
        if self.args.wait == 0 and self.lacks_room():
            raise cluster.ClusterError(self.room_text())
        coordinator = asyncio.create_task(self.coordinator.run())
        listens = asyncio.create_task(self.coordinator.listening.wait())
        await asyncio.wait([coordinator, listens], return_when=asyncio.FIRST_COMPLETED)
        if not self.coordinator.listening.is_set():
            return await coordinator or 1  # it has said why
        coordinator.add_done_callback(self.task_ended)
        places = [asyncio.create_task(self.keep(number)) for number in range(self.args.max_workers)]
        watch = asyncio.create_task(self.watch())
        for task in (*places, watch):
            task.add_done_callback(self.task_ended)
        await self.over.wait()
        await asyncio.wait(places, timeout=GRACE)
        self.signal_workers(signal.SIGTERM)
        await asyncio.wait(places, timeout=GRACE)
        for task in (*places, watch):
            task.cancel()
        # With the last worker's word the coordinator ends by itself; in any case it has time to keep what workers wrote last.
        await asyncio.wait([coordinator], timeout=GRACE if self.result in (0, INTERRUPTED) else LAST_LINES)
        self.coordinator.end()
        await asyncio.wait([coordinator])
        return self.result

    def task_ended(self, task):
        """A task that returns a number ends the run, and so does a defect."""
        if task.cancelled():
            return
        if task.exception() is not None:
            say(f"error: {task.exception()!r}")
            self.finish(1)
        elif task.result() is not None and not self.coordinator.ending:
            self.finish(task.result())

    async def keep(self, number):
        """Has a worker in this place until the run is over."""
        lost = 0
        while not self.over.is_set() and not self.stopping:
            worker = self.workers[number] = Worker(self.coordinator, self.options | {"scheduling_strategy": self.strategy()},
                                                   self.nodes.left_out())
            rest = 0
            try:
                status = await self.follow(worker)
                # One that is asked to stop may have nothing to save; the others still compute and save.
                return None if status == INTERRUPTED and self.stopping and self.running() > 1 else status
            except Anew:
                pass
            except Failed as why:
                if self.over.is_set() or self.stopping:
                    return None
                rest, left_out = self.rest_after_failure(number, worker)
                if self.hopeless(worker):
                    say(f"error: {why}")
                    return why.code
                say(f"{why}; the others go on, and another is tried in its place in {rest:g} s" + left_out)
            except Lost as why:
                if self.over.is_set():
                    return None
                if self.stopping:
                    say(str(why))
                    return None
                self.restarts += 1
                if self.restarts > self.args.restarts:
                    say(f"error: {why}; {self.args.restarts} workers were replaced already: giving up")
                    return 1
                say(f"{why}; another takes its place")
                # A node that ends every worker at once must not keep the cluster busy.
                lost = 0 if worker.lived() > 5 else lost + 1
                rest = max(why.rest, min(0.1 * 2 ** lost, 10) if lost > 1 else 0)
            finally:
                worker.kill()
                del self.workers[number]
            if rest > 0:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self.over.wait(), rest)
        return None

    def strategy(self):
        """Where Ray is to place a worker: on no node that is left out, and on one on which none has failed, if one has room."""
        if not self.nodes.failures:
            return "SPREAD"
        left_out = self.nodes.left_out()
        avoided = [node for node in self.nodes.failures if node not in left_out]
        return NodeLabelSchedulingStrategy({NODE: NotIn(*left_out)} if left_out else {}, soft={NODE: NotIn(*avoided)} if avoided else {})

    def rest_after_failure(self, number, worker):
        """Counts it; the seconds until another worker is tried in this place, and what is to be said of the node."""
        lived = worker.lived() > LIVED
        before = 0 if lived else self.failures.get(number, 0)
        self.failures[number] = before + 1
        said = ""
        if worker.place is not None and self.nodes.failed(worker.place, lived):
            said = (f"; node {worker.place['address']}, where {self.nodes.failures[worker.place['node']]} in a row have failed, is left "
                    f"out for {self.args.left_out:g} s")
        return min(REST * 2 ** before, MOST_REST), said

    def hopeless(self, failed):
        """Whether min_workers cannot be had, now that this worker has failed. The nodes on which workers fail count for nothing
        but the other workers that run there: one bad node may fail the workers of every place, one after another. A run that has
        trained is worth some patience, one at its start none."""
        least = MOST_FAILURES if self.coordinator.began else 1
        bad = {node for node, failures in self.nodes.failures.items() if failures >= least}
        others = sum(worker is not failed and worker.pid is not None and worker.place["node"] in bad
                     for worker in self.workers.values())
        return others + cluster.capacity(self.need, bad) < self.args.min_workers

    async def follow(self, worker):
        """The worker's exit status; None for one that has not begun when the run is over."""
        following = asyncio.create_task(worker.follow(self.spec | {"coordinator": self.coordinator.address}, self.variables, self.keys))
        over = asyncio.create_task(self.over.wait())
        anew = asyncio.create_task(worker.anew.wait())
        try:
            while True:
                await asyncio.wait([following, over, anew], return_when=asyncio.FIRST_COMPLETED)
                if following.done() or (self.over.is_set() and worker.pid is not None):
                    return await following
                if self.over.is_set():
                    return None
                if worker.place is None:
                    raise Anew
                # It has got a place meanwhile.
                worker.anew.clear()
                anew = asyncio.create_task(worker.anew.wait())
        finally:
            for task in (following, over, anew):
                task.cancel()

    def try_again(self):
        """Nodes that were left out for long enough may have workers again. A worker that waits for room is asked for anew where others are left
        out now than when it was asked for."""
        if back := self.nodes.back():
            say(f"tried again, after failures there: {', '.join(back)}")
        left_out = self.nodes.left_out()
        for worker in self.workers.values():
            if worker.place is None and worker.without.keys() != left_out.keys():
                worker.anew.set()

    def running(self):
        return sum(worker.pid is not None for worker in self.workers.values())

    def lacks_room(self):
        return self.running() + cluster.startable(self.need) < self.args.min_workers

    def room_text(self):
        left_out = ", ".join(sorted(self.nodes.left_out().values()))
        return (f"the Ray cluster has no room for {self.args.min_workers} workers, which the run needs at least; "
                f"{self.running()} run; {cluster.room_text(self.need)}" + (f"; left out because workers failed there: {left_out}" if left_out else ""))

    async def watch(self):
        """Has workers leave nodes that will go, ends those that do not answer, and gives them keys that are new. Says when the cluster has no room for min_workers; 1, the end of the
        run, when that lasts."""
        since, said = None, float("-inf")
        while True:
            await asyncio.sleep(LOOK)
            gone = cluster.draining()
            self.keys = keys.of_file() or self.keys
            self.try_again()
            for worker in self.workers.values():
                worker.end_silent()
                worker.renew(self.keys)
                if worker.place is not None and worker.place["node"] in gone:
                    worker.leave(signal.SIGTERM)
            now = time.monotonic()
            if self.over.is_set() or self.stopping or self.running() >= self.args.min_workers:
                since = None
                continue
            since = since or now
            if self.args.wait is not None and now - since > self.args.wait + START_TIME:
                say(f"error: {self.room_text()} (--wait {self.args.wait:g})")
                return 1
            if now - since > PATIENCE and now - said > 60 and self.lacks_room():
                said = now
                say(f"{self.room_text()}; waiting" + ("" if self.args.wait is not None else " (--wait 0 would end)"))
