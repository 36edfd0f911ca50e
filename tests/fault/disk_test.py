#!/usr/bin/env python3
"""Tests runs in which the disk is full for one of three workers, and not for the others.

The worker leaves with an error that names it, the file and the space. Where three workers are needed, the others wait;
the checkpoints before are whole, and when there is room, the same run is continued to the chain of one process. Where two
are enough, the others continue without it to that chain, whether it leads or not.

The run's folder is a file system of its own, of which half is reserved for the members of a group. All processes but
the one worker are members. Needs to mount (root), mkfs.ext4 and setpriv; without them it is skipped, and says so.

    disk_test.py --ostro PROGRAM
"""

import argparse
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from program import kill_all  # noqa: E402
from workers_test import Gate, Place, check, hold_until_all  # noqa: E402

STEPS = 400
KEEP = 20
# Who has CAP_SYS_RESOURCE may use what is reserved, too.
WITH_RESERVES = ["setpriv", "--groups", "4242", "--"]
WITHOUT_RESERVES = ["setpriv", "--clear-groups", "--bounding-set", "-sys_resource", "--"]


class Disk:
    """A file system in a file. Only members of the group can use its second half."""

    def __init__(self, top):
        self.image, self.place = top / "disk", top / "mounted"

    def __enter__(self):
        for program in ("mkfs.ext4", "setpriv", "mount"):
            if shutil.which(program) is None and not os.access(f"/usr/sbin/{program}", os.X_OK):
                self.skip(f"no program {program}")
        with self.image.open("wb") as file:
            file.truncate(384 << 20)
        self.place.mkdir()
        env = os.environ | {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
        for command in (["mkfs.ext4", "-q", "-b", "1024", "-m", "50", "-N", "60000", self.image],
                        # Also for a user who is nobody here, instead of root.
                        ["mount", "-o", "loop,resuid=65534,resgid=4242", self.image, self.place]):
            done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
            if done.returncode != 0:
                self.skip(f"{command[0]}: {done.stderr.strip()}")
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", self.place], check=True)

    def skip(self, why):
        print(f"SKIPPED: no file system with reserved blocks here: {why}")
        sys.exit(77)

    def fill(self):
        """Takes all that is not reserved."""
        done = subprocess.run([*WITHOUT_RESERVES, "dd", "if=/dev/zero", f"of={self.place}/filler", "bs=1k"], text=True,
                              capture_output=True, check=False)
        check("No space left on device" in done.stderr, f"the disk cannot be filled: {done.stderr}")
        subprocess.run([*WITH_RESERVES, "dd", "if=/dev/zero", f"of={self.place}/still", "bs=1k", "count=100"], check=True,
                       capture_output=True)

    def make_room(self):
        (self.place / "filler").unlink()


def full_disk(place, disk, which, least, expected):
    """`which`: the rank of the worker whose disk is full. They join in the order in which they are started."""
    run = f"full-{which}"
    options = ["--trainer.log_dir", str(disk.place / "runs"), "--trainer.num_train_steps", str(STEPS),
               "--trainer.checkpointer.keep", f"[{{every: {KEEP}}}]", "--trainer.mp", "f32"]
    words = place.words(run, options)
    gate = Gate(place.top)
    gate.at(0)
    env = place.environment({"OSTRO_THREADS": "1", "OSTRO_JOB_SECRET": "secret", "OSTRO_FAULT": gate.fault()})
    folder, logs, processes = disk.place / "runs" / run, [], []
    chain = folder / "chain.jsonl"

    def start(name, command):
        logs.append(place.top / f"{run}.{name}.log")
        with logs[-1].open("w") as out:
            processes.append(subprocess.Popen(command, stdout=out, stderr=out, env=env))

    def text():
        return "\n".join(f"{log.name}:\n{log.read_text()[-3000:]}" for log in logs)

    def wait(what, told, seconds=300):
        end = time.monotonic() + seconds
        while not what():
            check(time.monotonic() < end, f"{run}: {told}\n{text()}")
            time.sleep(0.01)

    def steps():
        return chain.read_bytes().count(b'"batch"') if chain.exists() else 0

    try:
        start("coordinator", [*WITH_RESERVES, place.ostro, "coordinator", "--min_workers", str(least), "--max_workers", "3", *words])
        wait(lambda: "listening" in logs[0].read_text(), "no coordinator")
        address = "127.0.0.1:" + re.search(r'"port":\s*(\d+)', logs[0].read_text()).group(1)
        for rank in range(3):
            start(f"worker{rank}", [*(WITHOUT_RESERVES if rank == which else WITH_RESERVES), place.ostro, "worker", "--coordinator",
                                    address, *words])
            wait(lambda n=rank + 1: logs[0].read_text().count('"joined"') == n, f"worker {rank} did not join")
        # Held while the disk is filled, which may take longer than all steps. The chain has lines behind a checkpoint when a step
        # ends that found it whole.
        allowed = 2 * KEEP + 6
        hold_until_all(folder, 3, processes[0], gate, allowed)
        while steps() <= 2 * KEEP + 5:
            check(allowed < STEPS - 2 * KEEP, f"{run}: no steps\n{text()}")
            time.sleep(0.5)
            allowed += 1
            gate.at(allowed)
        disk.fill()
        at = steps()
        gate.open()
        wait(lambda: any(p.poll() is not None for p in processes), "nobody noticed", 300)
        if least < 3:
            wait(lambda: all(p.poll() is not None for p in processes), "the others did not go on", 600)
    finally:
        kill_all(processes)
    check(at < STEPS - KEEP, f"the disk was full too late, at step {at}\n{text()}")
    codes = [p.returncode for p in processes]
    alone = [0, *(1 if rank == which else 0 for rank in range(3))]
    check(codes == alone if least < 3 else 1 in codes[1:] and 0 not in codes, f"{run}: exit codes {codes}\n{text()}")
    errors = [line for log in logs for line in log.read_text().splitlines() if line.startswith("error: ")]
    named = [e for e in errors if "No space left on device" in e and str(folder) in e]
    # The leader speaks of its own files without saying who it is.
    check(len(named) == 1 and (which == 0 or f"worker {which} cannot write" in named[0] and "make room" in named[0]),
          f"{run}: no such error\n{text()}")
    print(f"the disk of worker {which} of 3 was full after step {at}, {least} are enough:\n  {named[0]}", flush=True)
    verified = subprocess.run([place.ostro, "verify", str(folder), "--from_step", str(KEEP * 2 - 1)], text=True,
                              env=place.environment({}), timeout=200, capture_output=True, check=False)
    check(verified.returncode == (3 if least == 3 else 0), f"{run}: {verified.stdout}{verified.stderr}")
    fine = int(re.search(r"(\d+) fine", verified.stdout).group(1))
    check(fine >= 2, f"{run}: checkpoints\n{verified.stdout}")
    disk.make_room()
    if least == 3:
        again = place.run(["launch", "local", "--workers", "3", *words])
        check("resuming" in again.stdout + again.stderr, f"it began anew\n{again.stdout}{again.stderr}")
    check(chain.read_bytes() == expected, f"{run}: another chain\n{text()}")
    shutil.rmtree(folder)
    print("  " + ("there was room again: it went on" if least == 3 else "the others went on without it")
          + ", with the chain of one process", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    seed = int(os.environ.get("OSTRO_TEST_SEED", "1"))
    full = os.environ.get("OSTRO_TEST_SIZE", "sample") != "sample"
    cases = [(0, 2), (1, 2), (2, 2), (0, 3), (1, 3), (2, 3)]  # whose disk, and how many workers are enough
    if not full:
        rng = random.Random(seed)
        cases = [rng.choice(cases[:3]), rng.choice(cases[3:])]
    print(f"seed {seed}: {cases}", flush=True)
    with tempfile.TemporaryDirectory() as folder, Disk(pathlib.Path(folder)) as disk:
        place = Place(args.ostro, pathlib.Path(folder))
        expected = place.train("alone", ["--trainer.num_train_steps", str(STEPS), "--trainer.checkpointer.keep",
                                         f"[{{every: {KEEP}}}]", "--trainer.mp", "f32"])
        for which, least in cases:
            full_disk(place, disk, which, least, expected)


if __name__ == "__main__":
    main()
