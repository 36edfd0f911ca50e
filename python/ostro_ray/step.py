"""Runs `ostro lab step TASK` on a node of a Ray cluster: python3 -m ostro_ray.step. `ostro lab run --place ray` starts it for
each step (ostro/lab/places/ray_tasks.cc), and takes what the step gave from the task's folder.

Exit status: 0 when the process has ended by itself, with a line that says how; 3, with a reason, when it lost its place, so that
another attempt makes sense, or was no longer wanted before it had one; 1 with one line "error: ..." when there can be no process. Killed, or with its parent gone, it
leaves nothing behind: Ray ends the actor, and that its process."""

import argparse
import asyncio
import json
import os
import signal
import sys

from ostro_ray import cluster, output, place, processes

LOST = 3  # exit status
LOOK = 0.5  # seconds


class NoPlace(Exception):
    """The process cannot be started, and why."""


class Unwanted(Exception):
    """The step is no longer wanted."""


def parse(words):
    parser = argparse.ArgumentParser(prog="ostro_ray.step", description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--task", required=True)
    parser.add_argument("--parent", type=int, required=True, help="the process that starts this one")
    parser.add_argument("--address", default="auto")
    parser.add_argument("--cpus", type=int, default=1)
    parser.add_argument("--resources", type=json.loads, default={})
    return parser.parse_args(words)


def environment(args):
    """The process's, beside its node's."""
    passed = {k: v for k, v in os.environ.items() if k.startswith(("OSTRO_", "AWS_")) and not k.startswith("AWS_CONTAINER_")
              and k not in ("OSTRO_PYTHON", "OSTRO_ADVERTISE", "OSTRO_SLICE")}
    return passed | {"OSTRO_THREADS": str(args.cpus)}


async def follow(args):
    """The exit status of this program, and the words for it."""
    import ray
    from ray import exceptions
    options, need = cluster.request(args.cpus, args.resources)
    if cluster.capacity(need, set()) == 0:
        raise NoPlace("no node of the Ray cluster is large enough: " + cluster.room_text(need, "a step"))
    ray.cloudpickle.register_pickle_by_value(place)
    actor = ray.remote(place.Place).options(max_restarts=0, max_concurrency=2, scheduling_strategy="SPREAD", **options).remote()
    spec = {"program": args.program, "command": ["lab", "step", args.task], "folder": os.getcwd()}
    where, last, told = None, [], False
    stop = os.path.join(os.path.dirname(args.task), "stop")
    try:
        stream = actor.run.options(num_returns="streaming").remote(spec, environment(args))
        async for kind, value in _with_looks(stream):
            if kind == "look":
                if not where and os.path.exists(stop):  # nobody else reads it yet
                    raise Unwanted
                if where and not told and where["node"] in cluster.draining():
                    told = True
                    actor.signal.remote(signal.SIGTERM)
            elif kind == "place":
                where = value
            elif kind in ("stdout", "stderr"):
                last = [*last, *value][-5:]
            elif kind == "failed":
                raise NoPlace(f"node {where['address']} cannot start the step: {value}")
            elif kind == "exit":
                at = f"the process of the step on node {where['address']}"
                said = f" ({' '.join(last)})" if last else ""
                how = f"was killed by signal {-value}" if value < 0 else f"ended with status {value}"
                if told:
                    return LOST, f"{at}, which Ray drains, {how}{said}"
                return 0, f"{at} {how}{said}"
        return LOST, "an actor ended before its process"
    except Unwanted:
        return LOST, "the step had no place yet when it was no longer wanted"
    except exceptions.RayError as error:
        first = str(error).strip().split("\n", 1)[0][:200]
        return LOST, f"the actor{' on node ' + where['address'] if where else ''} is lost ({type(error).__name__}: {first})"
    finally:
        ray.kill(actor, no_restart=True)


async def _with_looks(stream):
    """What the actor yields, and ("look", None) every now and then."""
    waiting = stream.__aiter__()
    following = None
    while True:
        following = following or asyncio.ensure_future(anext(waiting))
        done, _ = await asyncio.wait([following], timeout=LOOK)
        if not done:
            yield ("look", None)
            continue
        try:
            reference = following.result()
        except StopAsyncIteration:
            return
        following = None
        yield await reference


def main():
    args = parse(sys.argv[1:])
    processes.dies_with(args.parent)()
    output.hide_from_ray()
    try:
        cluster.connect(args.address)
        code, words = asyncio.run(follow(args))
    except ImportError as error:
        sys.exit(f"error: {error}; install Ray with `{sys.executable} -m pip install ray`")
    except (cluster.ClusterError, NoPlace) as error:
        sys.exit(f"error: {error}")
    output.tell([words])
    sys.stderr.flush()
    os._exit(code)  # Ray's own end takes seconds


if __name__ == "__main__":
    main()
