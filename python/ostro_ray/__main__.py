"""Runs `ostro worker WORDS` on a Ray cluster: python3 -m ostro_ray OPTIONS -- WORDS. `ostro launch ray` starts it and
checks its options."""

import argparse
import asyncio
import json
import os
import pathlib
import secrets
import sys

INTERRUPTED = 75  # exit status of a run that was saved and stopped (`ostro --help`)


def parse(words):
    own, _, rest = (words[:words.index("--")], "--", words[words.index("--") + 1:]) if "--" in words else (words, "", [])
    parser = argparse.ArgumentParser(prog="ostro_ray", description=__doc__)
    parser.add_argument("--ostro", required=True, help="the program, on this node")
    parser.add_argument("--program", help="the program, on the nodes of the workers; default: as --ostro")
    parser.add_argument("--address", default="auto")
    parser.add_argument("--min_workers", type=int, required=True)
    parser.add_argument("--max_workers", type=int, required=True)
    parser.add_argument("--cpus_per_worker", type=float, default=1)
    parser.add_argument("--resources_per_worker", type=json.loads, default={})
    parser.add_argument("--slice_label", help="the label of a node whose value is the name of its workers' slice")
    parser.add_argument("--failures", type=int, default=3, help="a node is left out at its failure of this number in a row; 0: never")
    parser.add_argument("--left_out", type=float, default=600, help="for so many seconds")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--wait", type=float)
    parser.add_argument("--stop_timeout", type=float, default=600, help="the seconds in which a run that is to stop saves")
    parser.add_argument("--restarts", type=int, default=1000, help="how many workers are replaced, in all")
    args = parser.parse_args(own)
    workers = argparse.ArgumentParser(prog="ostro_ray ... --", allow_abbrev=False)
    workers.add_argument("--config", required=True)
    found, rest = workers.parse_known_args(rest)
    args.config = found.config
    return args, rest


def settings(args):
    """Environment of the workers, beside their node's."""
    passed = {k: v for k, v in os.environ.items() if k.startswith(("OSTRO_", "AWS_")) and not k.startswith("AWS_CONTAINER_")
              and k not in ("OSTRO_PYTHON", "OSTRO_ADVERTISE", "OSTRO_SLICE")}
    if args.cpus_per_worker >= 1:
        passed.setdefault("OSTRO_THREADS", str(int(args.cpus_per_worker)))
    return passed


def configuration(path):
    """What the workers and the coordinator get of it: the text of a file of this node, or where it is in an object store."""
    if "://" in path:
        return {"config_at": path}
    file = pathlib.Path(path)
    return {"config": file.read_text(encoding="utf-8"), "config_name": file.name}


def main():
    args, words = parse(sys.argv[1:])
    from ostro_ray import cluster, output
    output.hide_from_ray()
    try:
        cluster.connect(args.address)
    except ImportError as error:
        sys.exit(f"error: {error}; install Ray with `{sys.executable} -m pip install ray`")
    except cluster.ClusterError as error:
        sys.exit(f"error: {error}")
    import ray
    from ostro_ray.supervisor import Supervisor
    secret = os.environ.get("OSTRO_JOB_SECRET") or secrets.token_hex(32)
    spec = {"program": args.program or args.ostro, "words": words, "folder": os.getcwd(), "slice_label": args.slice_label} | configuration(args.config)
    variables = settings(args) | {"OSTRO_JOB_SECRET": secret}

    async def supervise():
        supervisor = Supervisor(args, spec, variables)
        return await supervisor.run(), supervisor.stopping

    try:
        code, stopped = asyncio.run(supervise())
        while code == INTERRUPTED and not stopped:
            # A worker had to leave, and fewer than min_workers would have stayed: the run is saved.
            output.say("too few workers are left; the run goes on when there are enough")
            code, stopped = asyncio.run(supervise())
    except cluster.ClusterError as error:
        sys.exit(f"error: {error}")
    finally:
        ray.shutdown()
    sys.exit(code)


if __name__ == "__main__":
    main()
