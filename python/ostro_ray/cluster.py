"""The Ray cluster: connecting to it, and the room that it has."""

import logging
import os
import pathlib
import socket


class ClusterError(Exception):
    """An error in one line."""


def connect(address):
    """Connects this process to the cluster."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else Ray warns of a change that is none here
    import ray
    from ray._private import services
    if "://" in address:
        raise ClusterError(f"--address {address}: not by Ray's client; give HOST:PORT or auto on a node of the "
                           "cluster, or use `ray job submit`")
    asked = address
    try:
        address = services.canonicalize_bootstrap_address_or_die(asked)
    except ValueError:
        raise ClusterError(f"--address {asked}: not HOST:PORT, and not auto") from None
    except ConnectionError:
        raise ClusterError("--address auto: no Ray cluster runs on this machine; start one with `ray start --head`, or "
                           "give HOST:PORT") from None
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ClusterError(f"--address {asked}: no Ray cluster can be reached at {address}: {error}; give HOST:PORT of "
                           "its head node") from None
    try:
        ray.init(address=address, log_to_driver=False, configure_logging=True, logging_level=logging.ERROR,
                 namespace="ostro")
    except (ConnectionError, RuntimeError, ValueError) as error:
        token = pathlib.Path("~/.ray/auth_token").expanduser()
        hint = (f"; {token} is there, so its head may ask for this token: set RAY_AUTH_MODE=token"
                if "RAY_AUTH_MODE" not in os.environ and token.exists() else "")
        raise ClusterError(f"--address {asked}: {' '.join(str(error).split())}{hint}") from None


def draining():
    """The nodes that will go soon (preempted, or idle in the autoscaler's eyes); Ray places nothing there any more."""
    from ray._private import state
    return set(state.state.get_draining_nodes())


def request(cpus, resources):
    """What an actor is asked for, as its options, and what a node needs for it: resource -> amount."""
    others = dict(resources)
    options = {"num_cpus": cpus, "resources": others}
    if gpus := others.pop("GPU", 0):
        options["num_gpus"] = gpus
    return options, {name: amount for name, amount in {"CPU": cpus, **resources}.items() if amount > 0}


def startable(need):
    """For how many workers the nodes have room now. `need`: resource -> amount."""
    from ray._private import state
    return sum(_workers(free, need) for free in state.available_resources_per_node().values())


def capacity(need, without):
    """For how many workers the nodes have room when they are empty, but for those of the set `without`."""
    import ray
    return sum(_workers(node["Resources"], need) for node in ray.nodes() if node["Alive"] and node["NodeID"] not in without)


def _workers(have, need):
    return min((int((have.get(name, 0) + 1e-9) / amount) for name, amount in need.items() if amount > 0), default=1024)


def _amounts(resources):
    return "{" + ", ".join(f"{name}: {amount:g}" for name, amount in sorted(resources.items())) + "}"


def room_text(need, who="a worker"):
    """What `who` needs, and what the nodes have of it."""
    import ray
    from ray._private import state
    free = state.available_resources_per_node()
    nodes = []
    for node in ray.nodes():
        if not node["Alive"]:
            continue
        have = {name: node["Resources"].get(name, 0) for name in need}
        now = {name: free.get(node["NodeID"], {}).get(name, 0) for name in need}
        nodes.append(f"node {node['NodeManagerAddress']} has {_amounts(have)}, of which {_amounts(now)} is free")
    shown = nodes[:8] + ([f"and {len(nodes) - 8} more nodes"] if len(nodes) > 8 else [])
    return f"{who} needs {_amounts(need)}; " + "; ".join(shown)
