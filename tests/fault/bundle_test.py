#!/usr/bin/env python3
"""Bundles: an honest one passes every check, is signed and stamped so that OpenSSL's own tool agrees, and can be gone on
with. What was changed in one is found and named, however many of its hashes were made to fit again.

    bundle_test.py --ostro BINARY [--positions N] [--kill_times N] [--seed N] [CASE...]
"""

import argparse
import os
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "suite"))
import seed
from bundle_crashes import BundleCrashes
from bundle_files import BundleFiles
from bundle_frauds import BundleFrauds
from bundle_uses import BundleUses
from bundles import Bundles
from harness import Failure, Skip, Workspace, case_names


class Cases(BundleFiles, BundleFrauds, BundleUses, BundleCrashes):
    """All cases, in the order of these classes, over one workspace and two bundles."""


def main():
    names = case_names(Cases, vars(Bundles))
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--positions", type=int, default=60)
    parser.add_argument("--kill_times", type=int, default=3)
    parser.add_argument("--seed", type=int, default=seed.seed())
    parser.add_argument("cases", nargs="*", default=names, metavar="CASE")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    w = Workspace(args.ostro)
    failed = []
    try:
        cases = Cases(w, rng, args.positions, args.kill_times)
        for name in args.cases:
            begin = time.monotonic()
            try:
                getattr(cases, name)()
            except Skip as reason:
                print(f"  skipped: {name}: {reason}")
            except (Failure, OSError, subprocess.SubprocessError) as failure:
                failed.append(name)
                print(f"  FAILED: {name}: {failure}")
            print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)
    finally:
        w.close()
    print(f"FAILED: {failed}" if failed else "passed")
    return 1 if failed else 0


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    sys.exit(main())
