#!/usr/bin/env python3
"""Tests `ostro lab run --place ray` on a real Ray cluster of two nodes, both on this machine (as ray_test.py).

Kills the process of a step, an actor, the driver, and a node: the lab comes to the hash of a lab whose steps were done here, and each
step is done once. In full also: undisturbed, with the record of the local lab, and stopped by Ctrl-C. A program that computes wrongly
gives another hash. What the cluster may lack is one clear error.

    lab_ray_test.py --ostro PROGRAM --faulty PROGRAM
"""
import argparse
import os
import pathlib
import signal
import sys
import tempfile

from ray_test import HEALTH, NODE_SECONDS, ROOT, Cluster, get_default_ray_temp_dir, node_settings, wait_for_nodes_longer  # first: it may skip
from ray_chaos import parent_of

sys.path.insert(0, str(ROOT / "tests" / "suite"))
import seed  # noqa: E402
from lab_places import Placed, check_done_once, check_nothing_left, done, kill_process, record, small_lab  # noqa: E402
from lab_test import check  # noqa: E402


def ray_words(cluster, *more):
    return ["--place", "ray", "--address", cluster.address, "-j", "2", *more]


PYTHON = {"OSTRO_PYTHON": sys.executable, "PYTHONPATH": str(ROOT / "python")}


def check_errors(ostro, top, cluster):
    lab = small_lab(ostro, top / "errors")
    for words, settings, wanted in [
            (ray_words(cluster, "--cpus", "64"), {}, "no node of the Ray cluster is large enough: a step needs {CPU: 64}"),
            (["--place", "ray", "--address", "127.0.0.1:1"], {}, "--address 127.0.0.1:1: no Ray cluster can be reached"),
            (ray_words(cluster), {"PYTHONPATH": str(top)}, "no package ostro_ray"),
            (ray_words(cluster), {"OSTRO_PYTHON": "/nowhere/python3"}, "cannot start /nowhere/python3")]:
        failed = lab.start("run", "plan.yaml", *words, **PYTHON | settings)
        errors = [line for line in failed.stderr.splitlines() if line.startswith("error: ")]
        check(failed.returncode == 1 and len(errors) == 1 and wanted in errors[0], f"{words}: exit code {failed.returncode}\n{failed.stdout}{failed.stderr}")
    print("what a cluster may lack: one clear error each")


def check_undisturbed(ostro, top, cluster, local, wanted):
    lab = small_lab(ostro, top / "undisturbed")
    placed = Placed(lab, ray_words(cluster), **PYTHON)
    placed.open_gate(1000)
    found = placed.end()
    check(found == wanted, f"the lab hash is {found}, not {wanted}")
    check_done_once(done(lab))
    check(record(lab, "record.sqlite") == record(local, "record.sqlite"), "another record than that of the local lab")
    check_nothing_left(lab)


def check_faults(ostro, top, cluster, node, wanted):
    lab = small_lab(ostro, top / "disturbed")
    placed = Placed(lab, ray_words(cluster), **PYTHON)
    try:
        placed.open_gate(4)
        placed.checkpoints(4)
        first = placed.training()
        kill_process(first[0])
        second = placed.training(without=first[:1])
        print("the process of a step was killed: another goes on", flush=True)
        os.kill(parent_of(first[1]), signal.SIGKILL)
        third = placed.training(without=first)
        check(set(second) & set(third), "the step whose actor lived was begun again")
        print("an actor was killed: another goes on", flush=True)
        placed.kill()
        placed = Placed(lab, ray_words(cluster), **PYTHON)
        placed.training(without=third)
        print("the driver was killed: the next one goes on", flush=True)
        if seed.full():
            placed.process.send_signal(signal.SIGINT)
            placed.wait_for(lambda: len(list((lab.top / "small.lab/jobs").glob("*/stop"))) == 2, "the wish to stop")
            placed.open_gate(11)
            check(placed.end(75) == "stopped; the same command goes on", "Ctrl-C")
            placed = Placed(lab, ray_words(cluster), **PYTHON)
            placed.training()
            print("stopped by Ctrl-C, and gone on with", flush=True)
        node.all_processes["raylet"][0].process.kill()
        placed.training(1)
        print("a node was killed: its step waits for the other one", flush=True)
        placed.open_gate(1000)
        found = placed.end()
    finally:
        placed.kill()
    check(found == wanted, f"the lab hash is {found}, not {wanted}")
    check_done_once(done(lab))
    logs = placed.logs()
    check(sum("begun or gone on with again" in text for text in logs.values()) == 2, f"logs {logs}")
    check_nothing_left(lab)
    try:
        check_done_once([*done(lab), "rows"])
    except SystemExit:
        print("the hash of a local lab, and each step done once; a step that was done twice would be found")
        return
    check(False, "a step that was done twice is not found")


def check_planted(faulty, top, cluster, wanted):
    lab = small_lab(faulty, top / "faulty")
    ran = lab.run(*ray_words(cluster), OSTRO_TEST_FAULT="leaf_order", **PYTHON)
    found = ran.stdout.splitlines()[-1]
    check(found.startswith("lab hash: ") and found != f"lab hash: {wanted}", f"a planted fault in the tasks changed nothing: {found}")
    print("a planted fault gives another hash")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--faulty", required=True, help="tests/controls")
    args = parser.parse_args()
    # Ray has a folder of its own: its processes may write logs for some time after they were killed.
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as of_ray:
        top = pathlib.Path(folder)
        local = small_lab(args.ostro, top / "local")
        _, wanted = local.ran()
        pathlib.Path(get_default_ray_temp_dir()).mkdir(exist_ok=True)  # where Ray notes the cluster's address
        wait_for_nodes_longer()
        cluster = Cluster(initialize_head=True, head_node_args=node_settings(2) | {
            "include_dashboard": False, "_system_config": HEALTH, "temp_dir": f"{of_ray}/ray"})
        try:
            node = cluster.add_node(**node_settings(3))
            cluster.wait_for_nodes(NODE_SECONDS)
            check_errors(args.ostro, top, cluster)
            if seed.full():
                check_undisturbed(args.ostro, top, cluster, local, wanted)
                check_planted(args.faulty, top, cluster, wanted)
            check_faults(args.ostro, top, cluster, node, wanted)
        finally:
            for node in [*cluster.worker_nodes, cluster.head_node]:
                cluster.remove_node(node, allow_graceful=False)
            cluster.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
