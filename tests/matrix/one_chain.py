#!/usr/bin/env python3
"""One chain: each configuration of a table, trained by every means of this machine, has one chain.

  one_chain.py --ostro PATH [--emulated PATH] [--faulty PATH] [--device cuda[:N]] [--rows A:B] [--only TEXT] [--work DIR] [--jobs N]

A configuration of one_chain_table.py is trained for 12 steps by the interpreter; on each instruction set, natively or by the
program with emulated instructions (--emulated); with two threads; on the device for GPUs that is emulated on the CPU; by 2 to 6
workers on a mesh. The policy of rematerialisation changes from one way to the next. A run of the interpreter that is not
finite, whose loss does not fall, or that has the chain of another configuration, fails. A planted fault (--faulty, the program
tests/controls/faulty_ostro: one bit of a gradient) must give another chain in every configuration that it is tried on.

With --device the ways are the CPU with all it has and that GPU. What was not run is listed. A sampled run (OSTRO_TEST_SIZE)
draws the configurations. Exits 1 if a chain differs or a run fails.
"""
import argparse
import collections
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "suite")]
import one_chain_table  # noqa: E402
import runs  # noqa: E402
import seed  # noqa: E402

STEPS = 12
BASE = {
    "model.seq_len": 12, "model.hidden_dim": 16, "model.intermediate_dim": 24, "model.num_layers": 2,
    "optimizer.learning_rate": 0.02, "optimizer.warmup": 0, "trainer.num_train_steps": STEPS, "numerics.leaf_examples": 2, "trainer.max_eval_batches": 1,
    "chain.leaf_gradients": False,
}
REMAT = (False, True, "qkv,mlp_out", "everything")
MODEL_AXIS = {"trainer.mesh.axes": {"data": -1, "model": 2}}
# Name: workers, changes, and what a configuration must have for this mesh.
MESHES = {
    "2 workers": (2, {}, None),
    "3 workers, every parameter everywhere": (3, {"trainer.fsdp_axis": None}, None),
    "4 workers, exchange in every layer": (4, {"trainer.mesh.exchange": "layer"}, None),
    "5 workers": (5, {}, None),
    "6 workers, two replicas": (6, {"trainer.mesh.axes": {"replica": 2, "data": -1}}, None),
    "2 workers, model axis": (2, {**MODEL_AXIS, "trainer.tensor_parallel_axes": ["kv_heads", "mlp"]}, "features"),
    "6 workers, model axis": (6, {**MODEL_AXIS, "trainer.tensor_parallel_axes": ["kv_heads", "mlp"]}, "features"),
    "4 workers, positions split": (4, {"trainer.mesh.axes": {"data": -1, "context": 2}, "trainer.axis_resources": {"pos": "context"}}, "pos"),
    "4 workers, experts split": (4, {"trainer.mesh.axes": {"data": -1, "expert": 2}, "trainer.axis_resources": {"experts": "expert"}}, "experts"),
}
SAMPLED_ROWS = 1
# Configurations whose loss barely moves in 12 steps: adapters on matrices that are as they were drawn, sequences of one token.
MAY_RISE = ("LoRA", "DPO", "sgd", "sequences of 1")


def fits(mesh, changes):
    """Whether a configuration can be trained on a mesh."""
    leaves = changes.get("numerics.leaves", {})
    # Integer products gather the features that they sum over; other sums over them (norms, adapters) need leaves.
    gathers = "c=int8" in changes["trainer.mp"] and "adapter.type" not in changes and "num_kv_heads" not in str(changes)
    gathers = gathers and changes.get("model.type") not in one_chain_table.NORMS_OF_HEADS
    return {None: True, "features": {"kv_heads", "mlp"} <= set(leaves) or gathers, "pos": "pos" in leaves,
            "experts": "model.num_experts" in changes}[MESHES[mesh][2]]


class Workspace(runs.Workspace):
    """Configurations may lack keys of the base of runs.py. What says how a GPU is used stays in the environment."""

    def environment(self, settings):
        kept = {k: v for k, v in os.environ.items() if k in ("OSTRO_NVRTC", "OSTRO_GPU_KERNELS")}
        return {**super().environment({}), **kept, **settings}

    def config(self, changes):
        tree = super().config({k: v for k, v in changes.items() if v != one_chain_table.ABSENT})
        for key in (k for k, v in changes.items() if v == one_chain_table.ABSENT):
            section, name = key.split(".")
            del tree[section][name]
        return tree


class OneChain:
    def __init__(self, options):
        self.options = options
        self.work = Workspace(options.ostro, options.work)
        self.not_run, self.failures, self.runs = [], [], 0
        self.write_rows()
        self.programs = {}  # instruction set -> program
        if not options.device:
            usable, lacking = runs.usable_isas(self.work)
            self.programs = {isa: self.work.ostro for isa in usable}
            self.emulate(lacking)
            self.not_run.append("a GPU (--device cuda)")

    def emulate(self, lacking):
        """Instruction sets that the processor lacks, by the program with emulated instructions."""
        emulated = self.options.emulated
        config = self.work.config_file("probe", self.work.config({}))
        for isa, why in lacking.items():
            if emulated and self.work.command([emulated, "train", "--dry_run", "--config", config], {"OSTRO_ISA": isa}, check=False).returncode == 0:
                self.programs[isa] = emulated
            else:
                self.not_run.append(f"OSTRO_ISA={isa}: {why}" + ("" if emulated else " (--emulated emulates it)"))

    def write_rows(self):
        """Rows of conversations and of preferences."""
        with open(self.work.directory / "chats.jsonl", "w", encoding="utf-8") as chats, \
                open(self.work.directory / "pairs.jsonl", "w", encoding="utf-8") as pairs:
            for i in range(10, 170):
                chats.write(json.dumps({"messages": [{"role": "user", "content": str(i)}, {"role": "assistant", "content": f" {i + 1}"}]}) + "\n")
                pairs.write(json.dumps({"prompt": f"{i} >", "chosen": f" {i + 1}", "rejected": f", {i + 1}"}) + "\n")

    def ways(self, index, changes):
        """(name, program, settings, changes) for each way; the first is what the others are compared with."""
        remat = [{"model.gradient_checkpointing": REMAT[(index + k) % len(REMAT)]} for k in range(len(REMAT))]
        if self.options.device:
            yield "the CPU", None, {}, {}
            yield self.options.device, None, {}, {"trainer.device": self.options.device}
            return
        yield "interpreter", None, {"OSTRO_EXECUTOR": "interpreter"}, {}
        for k, (isa, program) in enumerate(self.programs.items()):
            name = isa if program == self.work.ostro else f"{isa}, emulated"
            yield name, program, {"OSTRO_ISA": isa, "OSTRO_THREADS": str(1 + k % 2)}, remat[k % len(REMAT)]
        yield "the device for GPUs, emulated", None, {"OSTRO_EXECUTOR": "cuda_emulated", "OSTRO_THREADS": "1"}, remat[(index + 1) % len(REMAT)]
        meshes = [mesh for mesh in MESHES if fits(mesh, changes)]
        special = [mesh for mesh in meshes if MESHES[mesh][2]]
        for mesh in dict.fromkeys([meshes[index % len(meshes)], *([special[index % len(special)]] if special else [])]):
            workers, more, _ = MESHES[mesh]
            yield mesh, None, {"OSTRO_SIM_WORKERS": str(workers), "OSTRO_THREADS": "2"}, {**remat[2], **more}

    def train(self, name, changes, way):
        _, program, settings, more = way
        # Kernels by -O1: the compiler and its options are the business of equality_matrix.py.
        settings = {"OSTRO_THREADS": "1", "OSTRO_CC_OPT": "-O1", **settings}
        self.runs += 1
        return self.work.run(name, {**BASE, **changes, **more}, settings, program)

    def check_row(self, index, name, changes):
        """Trains one configuration in every way; the first chain, and the ways of which each was equal or not run."""
        ways = list(self.ways(index, changes))
        first = self.train(f"r{index}-0", changes, ways[0])
        losses = first.losses()
        problems = []
        if len(losses) != STEPS or not all(map(math.isfinite, losses)):
            problems.append(f"a run that proves nothing: losses {losses}")
        if not losses[-1] < losses[0] and not any(word in name for word in MAY_RISE):
            problems.append(f"the loss does not fall: {losses[0]} to {losses[-1]}")
        for k, way in enumerate(ways[1:], 1):
            try:
                other = self.train(f"r{index}-{k}", changes, way)
            except (runs.RunFailed, subprocess.SubprocessError) as e:
                problems.append(f"{way[0]}: {e}")
                continue
            if other.hash != first.hash:
                problems.append(f"{way[0]} differs from {ways[0][0]}: {runs.first_difference(first, other)}")
            shutil.rmtree(other.directory)
        if self.options.faulty and index % self.options.fault_every == 0:
            fault = ("", self.options.faulty, {"OSTRO_TEST_FAULT": "gradient_bit"}, {})
            if self.train(f"r{index}-fault", changes, fault).hash == first.hash:
                problems.append("a planted fault, one bit of a gradient, has the same chain")
            ways.append(("a planted fault is told", None, {}, {}))
        return first, [way[0] for way in ways], problems

    def go(self):
        table = list(enumerate(one_chain_table.table().items()))
        chosen = [row for row in table if self.options.only in row[1][0]][self.options.rows]
        if not seed.full() and not self.options.only and self.options.rows == slice(None):
            numbers = seed.draw("configurations", [name for _, (name, _) in chosen], SAMPLED_ROWS)
            chosen = [row for row in chosen if row[1][0] in numbers]
        if any("DPO" in name for _, (name, _) in chosen):
            self.train("origin", {**one_chain_table.BF16, **self.origin()}, ("", None, {}, {}))
        print(f"{len(table)} configurations in the table, {len(chosen)} of them here", flush=True)
        hashes = collections.defaultdict(list)
        for (index, (name, _)), outcome in runs.at_once(self.options.jobs, lambda row: self.check_row(row[0], *row[1]), chosen):
            if isinstance(outcome, Exception):
                self.note(name, f"{outcome}")
                continue
            first, ways, problems = outcome
            hashes[first.hash].append(name)
            for problem in problems:
                self.note(name, problem)
            if not problems:
                print(f"one chain  {index:2}  {name:36} {first.hash[:16]}  {len(ways)} ways: {'; '.join(ways)}", flush=True)
        for names in hashes.values():
            if len(names) > 1:
                self.note(" and ".join(names), "two configurations with one chain")
        for what in self.not_run:
            print(f"not run: {what}")
        print(f"result: {len(chosen)} configurations, {self.runs} runs, {len(self.failures)} failures")
        return 1 if self.failures or not chosen else 0

    @staticmethod
    def origin():
        """What the runs with preferences begin with."""
        return {"trainer.num_train_steps": 2}

    def note(self, name, text):
        self.failures.append(name)
        print(f"FAILED     {name}: {text}", flush=True)


def rows(text):
    begin, _, end = text.partition(":")
    return slice(int(begin) if begin else None, int(end) if end else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True, type=pathlib.Path, help="the program")
    parser.add_argument("--emulated", type=pathlib.Path, help="tests/emulated/ostro_emulated of a build, for instruction sets that lack here")
    parser.add_argument("--faulty", type=pathlib.Path, help="tests/controls/faulty_ostro of a build, for the planted fault")
    parser.add_argument("--fault-every", type=int, default=1, help="try the fault on one of so many configurations")
    parser.add_argument("--device", default="", help="compare the CPU with this GPU, and nothing else")
    parser.add_argument("--rows", type=rows, default=slice(None), help="A:B, a part of the table")
    parser.add_argument("--only", default="", help="configurations whose names have this text")
    parser.add_argument("--work", type=pathlib.Path, help="kept; default: a temporary directory")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="configurations at once")
    options = parser.parse_args()
    options.emulated = options.emulated and options.emulated.resolve()
    options.faulty = options.faulty and options.faulty.resolve()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ostro-one-chain-") as temporary:
        options.work = options.work or pathlib.Path(temporary)
        options.work.mkdir(parents=True, exist_ok=True)
        code = OneChain(options).go()
    print(f"{time.monotonic() - started:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
