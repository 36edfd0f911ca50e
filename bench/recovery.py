#!/usr/bin/env python3
"""bench/recovery.py --ostro PROGRAM [--workers 4] [--kills 20] [--every 20] [--seed 1]: what a killed worker costs.

`ostro launch local` trains a small model; every so many seconds a worker that the seed draws is killed (SIGKILL), the
leader as often as any other. Prints for each the time from the kill until the coordinator says that the worker is lost,
and until the chain has another step; then the medians, and the goodput of the whole run by cause, as `ostro status`
gives it. The run is stopped by SIGTERM at the end."""

import argparse
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from workers_test import Place  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--every", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        place = Place(args.ostro, pathlib.Path(folder))
        words = place.words("recovery", ["--trainer.num_train_steps", "1000000", "--trainer.checkpointer.keep",
                                         "[{every: 5000}]", "--trainer.mp", "f32"])
        process = subprocess.Popen([place.ostro, "launch", "local", "--workers", str(args.workers), *words],
                                   env=place.environment({"OSTRO_THREADS": "1"}), text=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        lost = []  # times at which the coordinator said so

        def read():
            for line in process.stderr:
                if line.startswith("epoch ") and "is lost" in line:
                    lost.append(time.monotonic())
        threading.Thread(target=read, daemon=True).start()
        chain = place.top / "runs" / "recovery" / "chain.jsonl"

        def size():
            return chain.stat().st_size if chain.exists() else 0

        def wait(what, seconds=60):
            end = time.monotonic() + seconds
            while not what():
                if time.monotonic() > end:
                    sys.exit("waited in vain")
                time.sleep(0.002)
        wait(lambda: size() > 20000)
        noticed, resumed = [], []
        for number in range(args.kills):
            time.sleep(args.every)
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            before = len(lost)
            begin = time.monotonic()
            os.kill(int(rng.choice(children)), signal.SIGKILL)
            wait(lambda: len(lost) > before)
            at = size()
            noticed.append(lost[before] - begin)
            wait(lambda: size() > at)
            resumed.append(time.monotonic() - begin)
            print(f"kill {number + 1}: noticed after {1000 * noticed[-1]:.0f} ms, the next step after "
                  f"{resumed[-1]:.2f} s", flush=True)
        time.sleep(args.every)
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        status = json.loads(place.run(["status", str(place.top / "runs" / "recovery"), "--json"]).stdout)
        print(f"medians of {args.kills}: noticed after {1000 * statistics.median(noticed):.0f} ms, the next step after "
              f"{statistics.median(resumed):.2f} s; at most {max(resumed):.2f} s")
        print(f"goodput {100 * status['goodput']['goodput']:.1f} %: " +
              ", ".join(f"{k} {v:.1f} s" for k, v in status["goodput"]["seconds"].items() if v > 0.05))


if __name__ == "__main__":
    main()
