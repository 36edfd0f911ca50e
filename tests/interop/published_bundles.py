"""Checks of tools/verify_chain.py beside `ostro verify` on published bundles: with what planted_bundles.py plants in them, of runs whose
optimizer keeps averages, and with drawn bytes changed."""
import contextlib
import io
import pathlib
import re
import subprocess
import sys

import planted_bundles as planted
from checks import check

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/verify_chain.py"
sys.path.insert(0, str(TOOL.parent))
import verify_chain as tool

LINE = re.compile("(differs|incomplete|cannot check): .|equal: steps |steps |compared with |bundle.json is |not checked: |run hash: |$")


def printed(bundle):
    """What the program prints about a bundle: its exit code, the first word, and all lines."""
    out, arguments = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), sys.argv
    sys.argv = [str(TOOL), str(bundle)]
    try:
        with contextlib.redirect_stdout(out):
            code = tool.main()
    finally:
        sys.argv = arguments
    out.seek(0)
    lines = out.read().splitlines()
    word = lines[0].split(":")[0]
    check(code == tool.EXIT_CODES.get(word) and all(LINE.match(line) for line in lines), f"{bundle}: exit code {code}: {lines}")
    return code, word, lines


def ostro_says(ostro, bundle):
    """Exit code and first line of `ostro verify`."""
    done = subprocess.run([str(ostro), "verify", str(bundle)], capture_output=True, check=False, timeout=100)
    return done.returncode, done.stdout.decode(errors="replace").split("\n")[0]


class Published:
    """Bundles of runs, published below `root`. The first is one of `run`, with two checkpoints."""

    def __init__(self, run, root):
        self.ostro, self.root, self.copy = run.ostro, root, root / "planted"
        self.honest = self.publish(run, "honest", "--checkpoints", "1")

    def publish(self, run, name, *words):
        run.run("publish", run.run_directory, "--out", self.root / name, "--cache", self.root / "cache", *words)
        _, word, lines = printed(self.root / name)
        check(word == "equal", f"{name}: {lines}")
        return self.root / name

    def differs(self, bundle, change, part, what):
        """Both programs say so, and this one has the part in a finding."""
        copy = planted.make(bundle, change, self.copy)
        (code, _, lines), other = printed(copy), ostro_says(self.ostro, copy)
        check(code == other[0] == 1 and part in "\n".join(lines), f"{what}: {lines}; ostro verify: {other}")

    def check_planted(self):
        for what, change, word, part in planted.PLANTED:
            copy = planted.make(self.honest, change, self.copy)
            (code, found, lines), other = printed(copy), ostro_says(self.ostro, copy)
            fits = found == "equal" if word == planted.LISTED else found == word and code == other[0]
            check(fits and part in "\n".join(lines), f"{what}: {lines}; ostro verify: {other}")
        for what, change in [*planted.DAMAGED, *planted.ENTRIES]:
            copy = planted.make(self.honest, change, self.copy)
            _, found, lines = printed(copy)
            check(found != "equal", f"{what}: {lines}")

    def check_averages(self, runs):
        """The weights are those that an optimizer averages; where a bundle has no moments, their hashes are compared with the manifest."""
        for run in runs:
            run.train()
            self.publish(run, f"{run.name}-bf16", "--dtype", "bf16")
            bundle = self.publish(run, f"{run.name}-f32", "--parameters_only")
            self.differs(bundle, planted.first_weight, "not the cast to F32", "one weight of averages")
        bundle = self.publish(runs[0], "shards", "--shard_size", "60000")
        check((bundle / "model.safetensors.index.json").exists(), "the weights are one file")
        self.differs(bundle, planted.moved_in_index, "stands in", "a tensor in two files")

    def check_any_byte(self, rng, changes, cuts):
        """Drawn bytes that are changed, and files that are cut off there: never equal. Half of the draws are over bytes."""
        files = sorted(path for path in self.honest.rglob("*") if path.is_file())
        sizes = [path.stat().st_size for path in files]
        for i in range(changes + cuts):
            path = rng.choice(files) if i % 2 else rng.choices(files, sizes)[0]
            data, how = path.read_bytes(), "changed" if i < changes else "cut off"
            at = rng.randrange(max(len(data), 1))
            other = bytes([data[at] ^ rng.randrange(1, 256)]) + data[at + 1:] if i < changes else b""
            path.write_bytes(data[:at] + other)
            _, found, lines = printed(self.honest)
            path.write_bytes(data)
            check(found != "equal", f"byte {at} of {path} {how}: {lines}")
