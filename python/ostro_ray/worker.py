"""One worker, as the supervisor sees it: an actor, and the process that it runs."""

import asyncio
import signal
import time

import ray
from ray import exceptions

from ostro_ray import place
from ostro_ray.output import say, tell

INTERRUPTED, LOST_PLACE, LEFT = 75, 76, 77  # exit statuses (`ostro --help`)


class Lost(Exception):
    """The worker is gone, and another may take its place: the reason. `rest` is how many seconds that should wait."""

    def __init__(self, why, rest=0):
        super().__init__(why)
        self.rest = rest


class Failed(Exception):
    """The worker could not be started, or ended with an error, and the node may be what is wrong: the reason and the exit
    status."""

    def __init__(self, why, code=1):
        super().__init__(why)
        self.code = code


class Worker:
    def __init__(self, coordinator, options, without):
        """`without`: the nodes that Ray is not to place it on, as of FailingNodes.left_out."""
        # By value: the nodes need not have this package.
        ray.cloudpickle.register_pickle_by_value(place)
        self._actor = ray.remote(place.Place).options(
            max_restarts=0, max_concurrency=2, **options).remote()
        self._coordinator = coordinator
        self.without, self.anew = without, asyncio.Event()  # set: another is to be asked for, if it has no place yet
        self.place, self.pid = None, None  # once Ray has placed it; once the process runs
        self._started = 0.0
        self._leaving = False
        self._keys = None  # that it was given last

    def name(self):
        rank = self._coordinator.ranks.get(self._key())
        worker = f"pid {self.pid}" if rank is None else f"worker {rank}"
        return f"{worker} at {self.place['address']}"

    def _key(self):
        return (self.place["host"], self.pid)

    def lived(self):
        """For how many seconds its process has run."""
        return time.monotonic() - self._started if self.pid else 0

    def signal(self, number):
        if self.pid:
            self._actor.signal.remote(number)

    def renew(self, keys):
        """Gives it other keys than those that it has. One that was given none has a file of its node, or needs none."""
        if self.pid and self._keys is not None and self._keys != keys:
            self._keys = keys
            self._actor.renew.remote(keys)

    def leave(self, number):
        """Asks it to leave, once."""
        if self.pid and not self._leaving:
            self._leaving = True
            self.signal(number)

    def end_silent(self):
        """Kills its process if it does not answer: a stopped one would keep its place for ever."""
        if self.pid and self._key() in self._coordinator.silent:
            self._coordinator.silent.remove(self._key())
            say(f"{self.name()} is silent: it is killed")
            self.signal(signal.SIGKILL)

    def kill(self):
        ray.kill(self._actor, no_restart=True)

    async def follow(self, spec, variables, keys=None):
        """Passes on what it prints, until it ends by itself: its exit status. `variables` are of its environment, `keys` the text of its credentials
        file. They are an argument of a method, of
        their own: what an actor is made with stays in a table of Ray's, and an argument that is long goes through files in its store."""
        self._keys = keys
        try:
            async for reference in self._actor.run.options(num_returns="streaming").remote(spec, variables, keys):
                kind, value = await reference
                if kind == "exit":
                    return self._judge(value)
                self._take(kind, value)
        except exceptions.RayError as error:
            self._keep([f"[its actor is lost: {type(error).__name__}]"])
            first = str(error).strip().split("\n", 1)[0][:200]
            who = f"the actor of {self.name()}" if self.pid else "an actor"
            raise Lost(f"{who} is lost ({type(error).__name__}: {first})") from None
        finally:
            if self.pid:
                self._coordinator.gone(self._key())
        raise Lost("an actor ended before its worker")

    def _keep(self, lines):
        if self.pid:
            self._coordinator.keep(self._key(), lines)

    def _take(self, kind, value):
        if kind == "place":
            self.place = value
        elif kind == "started":
            self.pid, self._started = value, time.monotonic()
        elif kind == "stdout":
            tell(value)
        elif kind == "stderr":
            self._keep(value)
            for line in value:
                say(f"[{self.name()}] {line}")
        elif kind == "unfit":
            raise Failed(f"node {self.place['address']} {value}")
        else:  # "failed"
            raise Failed(f"node {self.place['address']} cannot start a worker: {value}; --program names it on the nodes")

    def _judge(self, code):
        if code < 0:
            self._keep([f"[it was killed by signal {-code}]"])
            raise Lost(f"{self.name()} was killed by signal {-code}")
        if code == LOST_PLACE:
            raise Lost(f"{self.name()} lost its place")
        if code == LEFT:
            raise Lost(f"{self.name()} has left")
        if self._key() in self._coordinator.refused:  # it has told why; the others go on
            raise Failed(f"{self.name()} does not belong to this run", code)
        if code not in (0, INTERRUPTED):
            raise Failed(f"{self.name()} ended with status {code}", code)
        return code
