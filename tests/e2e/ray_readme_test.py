#!/usr/bin/env python3
"""Runs every command of examples/ray/README.md on a Ray cluster on this machine, and compares what they print
(readme_test.py). Its cluster file must be one that Ray accepts.

    ray_readme_test.py --ostro PROGRAM [--update]
"""

import argparse
import json
import os
import pathlib
import re
import sys
import tempfile

from readme_test import ROOT, compare, examples, run

try:
    import ray
    import yaml
    from jsonschema import validate
except ImportError as missing:
    print(f"SKIPPED: {missing}; scripts/setup.sh --python installs Ray")
    sys.exit(77)


def check_cluster_file():
    text = (ROOT / "examples" / "ray" / "cluster.yaml").read_text()
    if len(re.findall(r"<[a-z-]+>", text)) < 5:
        sys.exit("FAILED: cluster.yaml has no places to fill in")
    schema = json.loads((pathlib.Path(ray.__file__).parent / "autoscaler" / "ray-schema.json").read_text())
    validate(yaml.safe_load(text), schema)
    print("cluster.yaml fits Ray's schema")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()
    check_cluster_file()
    page = ROOT / "examples" / "ray" / "README.md"
    cases = examples(page.read_text())
    os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    os.environ["PYTHONPATH"] = str(ROOT / "python")
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        for name in ("LICENSE", "configs"):
            (top / name).symlink_to(ROOT / name)
        outputs = run([command for _, command, _ in cases], args.ostro, top, {"OSTRO_THREADS": "1"})
    return 1 if compare(page, cases, outputs, args.update) else 0


if __name__ == "__main__":
    sys.exit(main())
