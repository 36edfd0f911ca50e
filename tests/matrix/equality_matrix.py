#!/usr/bin/env python3
"""Equality matrix: no process-wide setting may change the chain of a run.

  equality_matrix.py --ostro PATH [--quick] [--one-host] [--seed N] [--work DIR] [--build-dir DIR] [--jobs N]

One chain belongs to one basis: precision, MLP or experts, sequence length, tied or untied head, feature leaves, mask, leaf size. Everything else
(threads, instruction set, workers, rematerialisation, the compiler of generated kernels and of the program itself,
compiled or interpreted) is run alone against the basis's baseline, in all pairs by a covering array, and in 40
random combinations whose seed is printed (default: tests/suite/seed.py). A sampled run (OSTRO_TEST_SIZE) takes every
factor alone on one basis, dense or with experts, some of the pairs and few random combinations, and compiles a drawn sixth of the rooms by the
other compiler: the libraries of the others are the given program's build. 2 layers, 30 steps, 6 examples a step; the
interpreter runs a smaller config with a baseline of its own. Every basis must also have falling losses, finite
weights and moments, and another end state from another seed. Exits 1 if anything differs.
"""
import argparse
import collections
import itertools
import os
import pathlib
import random
import shutil
import shlex
import subprocess
import sys
import tempfile
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "suite")]
import runs  # noqa: E402
import seed  # noqa: E402

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
CUTS = {"kv_heads": 2, "mlp": 2, "vocab": 3, "pos": 2}
BASIS = {
    "precision": ["bf16", "f32", "int8"],
    "mlp": ["dense", "experts"],
    "seq_len": [100, 1, 300],  # and 96 on the plain basis of singles()
    "head": ["untied", "tied"],
    "leaves": ["cut", "one"],
    "mask": ["causal", "documents"],
    "leaf": [1, 6],  # examples: a sixth of the batch, all of it
}
PRECISIONS = {"bf16": "p=f32,c=bfloat16", "f32": "f32", "int8": "p=f32,c=int8"}
REMAT = {"none": False, "all": True, "named": "qkv,mlp_out", "keep": "everything"}
# Every part of a router that reads or changes state of its own; experts that no token of a leaf goes to are common.
EXPERTS = {"model.type": "decoder", "model.num_experts": 8, "model.num_experts_per_tok": 2, "model.intermediate_dim": 24,
           "model.router_scores": "sigmoid", "model.norm_topk_prob": True, "model.track_expert_load": True,
           "model.router_aux_loss_coef": 0.01, "model.router_z_loss_coef": 0.001, "model.router_bias_update_rate": 0.01,
           "model.shared_intermediate_dim": 16}
# A small f32 range: products of weights and squares of gradients fall below 2^-126.
TINY = {"model.initializer_range": 1e-19, "optimizer.epsilon": 1e-20}


def cuts(seq_len, mlp):
    """Feature leaves; an axis of one element cannot be cut."""
    return {axis: n for axis, n in CUTS.items() if axis != "pos" or seq_len > 1} | ({"experts": 3} if mlp == "experts" else {})


HOSTS = (("g++ -O3", "g++", "-O3"), ("clang++ -O1", "clang++-19", "-O1"))
# The rooms in parts that each take a few minutes of CPU time.
PARTS = ("numerics;compile;machine;products;kernels;cpu;interp", "tls;dist;cluster;optim;chain;scaling;train;fleet", "tokenizer;chat;data;prepare;batches;corpus_check",
         "base;config;io;objects;ir;runtime;gpu;cuda;engines;context",
         "trace;grad;spmd;nn;models", "checkpoint;audit;run;trained;infer;eval;hf;cli;convert;init;page;http;monitor;grok;provenance;leaf_audit;lineage;bundle;sql;attest;serve;drawn;experiment;lab;shell;lab_commands;paper;site;publication;board;without;cluster_check;simulate")
SAMPLED_PAIRS, SAMPLED_RANDOM = 6, 3


def host_builds(build_dir, given, libraries):
    """The program built by other compilers than the given one was: name -> path, building what is missing. In a sampled
    run a sixth of the rooms, with `libraries`, a build folder, for the rest."""
    builds = {}
    assert set(";".join(PARTS).split(";")) == {p.parent.name for p in (REPOSITORY / "ostro").glob("*/CMakeLists.txt")}
    rooms = [] if seed.full() or not libraries else seed.draw("rooms by another compiler", PARTS, 1)
    for name, compiler, opt in HOSTS:
        if name == given:
            continue
        if shutil.which(compiler) is None:
            builds[name] = f"{compiler} is not installed"
            continue
        folder = build_dir / (name.replace(" ", "") + ("-part" if rooms else ""))
        words = ["cmake", "-S", str(REPOSITORY), "-B", str(folder), "-G", "Ninja", "-DOSTRO_BUILD_TESTS=OFF",
                 f"-DCMAKE_CXX_COMPILER={compiler}", "-DCMAKE_BUILD_TYPE=Matrix",
                 f"-DCMAKE_CXX_FLAGS_MATRIX={opt} -DNDEBUG", f"-DOSTRO_KERNEL_OPT={opt}"]
        if rooms:
            words += [f"-DOSTRO_LIBRARIES_FROM={libraries}", f"-DOSTRO_BUILD_ROOMS={rooms[0]}"]
        if shutil.which("ccache") and "CCACHE_DISABLE" not in os.environ:
            words += ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache", "-DCMAKE_C_COMPILER_LAUNCHER=ccache"]
        print(f"building the program with {name}", flush=True)
        for command in (words, ["ninja", "-C", str(folder), "-j", str(os.cpu_count()), "ostro"]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                runs.fail(f"{shlex.join(command)}\n{(done.stdout + done.stderr)[-3000:]}")
        builds[name] = folder / "ostro" / "cli" / "ostro"
    return builds


class Matrix:
    def __init__(self, options):
        self.options = options
        self.work = runs.Workspace(options.ostro, options.work, options.kernel_cache)
        self.skipped = collections.Counter()  # (factor, level, reason) -> times
        self.failures, self.done = [], 0
        self.lock = threading.Lock()
        self.baselines, self.basis_locks = {}, collections.defaultdict(threading.Lock)
        isas, lacking = runs.usable_isas(self.work)
        self.hosts = {options.built_by: self.work.ostro}
        if not options.quick and not options.one_host:
            self.hosts.update(host_builds(options.build_dir, options.built_by, options.libraries))
        self.factors = {
            "threads": ["1", "2", "5"],
            "isa": isas,
            "workers": ["1", "2", "3", "5"],
            "remat": ["none", "all", "named", "keep"],
            "kernels": ["gcc -O3", "gcc -O1", "clang -O3", "clang -O1"],
            "host": [name for name, path in self.hosts.items() if isinstance(path, pathlib.Path)],
            "executor": ["compiled", "interpreter"],
        }
        for isa, why in lacking.items():
            self.skipped["isa", isa, why] += 1
        for name, path in self.hosts.items():
            if isinstance(path, str):
                self.skipped["host", name, path] += 1
        self.clang = shutil.which("clang-19") or shutil.which("clang")
        if self.clang is None:
            self.factors["kernels"] = [k for k in self.factors["kernels"] if "clang" not in k]
            self.skipped["kernels", "clang", "clang is not installed"] += 1
        if options.quick or options.one_host:
            self.skipped["host", ", ".join(name for name, _, _ in HOSTS), "not asked for"] += 1

    def baseline_levels(self):
        levels = {name: values[0] for name, values in self.factors.items()}
        levels["isa"] = "avx2"
        return levels

    def changes(self, combination):
        """The config of a combination; only its basis and rematerialisation reach it. Integer products have no
        experts: there this level changes nothing."""
        integers = combination["precision"] == "int8"
        out = {
            "trainer.mp": PRECISIONS[combination["precision"]],
            "model.seq_len": combination["seq_len"],
            "model.tie_word_embeddings": combination["head"] == "tied",
            "numerics.leaves": cuts(combination["seq_len"], "dense" if integers else combination["mlp"]) if combination["leaves"] == "cut" else {},
            "numerics.leaf_examples": combination["leaf"],
            "data.block_cross_document_attention": combination["mask"] == "documents",
            "model.gradient_checkpointing": REMAT[combination["remat"]],
        }
        if combination["mlp"] == "experts" and not integers:
            out.update(EXPERTS)
        if combination["executor"] == "interpreter" or combination.get("micro"):
            out.update({"model.hidden_dim": 16, "model.intermediate_dim": 24, "model.head_dim": 4,
                        "trainer.num_train_steps": 3, "optimizer.warmup": 0, "optimizer.learning_rate": 0.02})
        if combination.get("tiny"):
            out.update(TINY)
        return out

    def settings(self, combination):
        compiler, opt = combination["kernels"].split()
        return {"OSTRO_THREADS": combination["threads"], "OSTRO_ISA": combination["isa"],
                "OSTRO_SIM_WORKERS": combination["workers"], "OSTRO_EXECUTOR": combination["executor"],
                "OSTRO_CC": self.clang if compiler == "clang" else "gcc", "OSTRO_CC_OPT": opt}

    def train(self, name, combination, extra=None):
        result = self.work.run(name, {**self.changes(combination), **(extra or {})}, self.settings(combination),
                               self.hosts[combination["host"]])
        return result

    def basis_of(self, c):
        micro = c["executor"] == "interpreter" or bool(c.get("micro"))
        return tuple(c[k] for k in BASIS) + (("micro",) if micro else ()) + (("tiny",) if c.get("tiny") else ())

    def baseline(self, combination):
        """The chain of the combination's basis, run at its first use and checked to prove something."""
        basis = self.basis_of(combination)
        with self.basis_locks[basis]:
            if basis in self.baselines:
                return self.baselines[basis]
            plain = {**self.baseline_levels(), **{k: combination[k] for k in BASIS},
                     "tiny": combination.get("tiny"), "micro": "micro" in basis}
            name = "base-" + "-".join(map(str, basis))
            result = self.train(name, plain)
            losses = result.losses()
            if not losses[-1] < losses[0]:
                self.note_failure(f"{name}: the loss does not fall: {losses[0]} to {losses[-1]}")
            if "micro" not in basis and len(losses) != 30:
                self.note_failure(f"{name}: {len(losses)} steps")
            if bad := result.not_finite():
                self.note_failure(f"{name}: not finite: {', '.join(bad[:5])}")
            other = self.train(name + "-seed", plain, {"trainer.seed": 1})
            if other.final_state() == result.final_state() or other.hash == result.hash:
                self.note_failure(f"{name}: another seed gives the same chain or end state")
            shutil.rmtree(other.directory)
            self.baselines[basis] = result
            return result

    def note_failure(self, text):
        with self.lock:
            self.failures.append(text)
            print(f"FAILED {text}", flush=True)

    def check(self, item):
        """Runs one combination and compares its chain with its basis's."""
        kind, c = item
        base = self.baseline(c)
        with self.lock:
            self.done += 1
            name = f"{kind}-{self.done:03}"
        result = self.train(name, c)
        words = " ".join(f"{k}={v}" for k, v in c.items() if v is not None)
        if result.hash == base.hash:
            print(f"equal {name} {result.seconds:.1f} s: {words}", flush=True)
            shutil.rmtree(result.directory)
            return
        settings = " ".join(f"{k}='{v}'" for k, v in self.settings(c).items())
        self.note_failure(f"{name}: {words}\n    differs from {base.name}: {runs.first_difference(base, result)}\n"
                          f"    {settings} {self.hosts[c['host']]} train --config "
                          f"{self.work.directory}/configs/{name}.yaml  (in {self.work.directory})")

    def combination(self, **levels):
        return {**{k: v[0] for k, v in BASIS.items()}, **self.baseline_levels(), **levels}

    def singles(self):
        """Every level of every factor alone, on a basis with all hard parts and on a plain one."""
        plain = {"precision": "f32", "mlp": "experts", "seq_len": 96, "head": "tied", "leaves": "one", "mask": "documents", "leaf": 6}
        bases = ({}, plain, {"mlp": "experts"})
        if self.options.quick or not seed.full():
            bases = [{"mlp": random.Random(self.options.seed).choice(BASIS["mlp"])}]
        for basis in bases:
            for factor, values in self.factors.items():
                for value in values:
                    if value != self.baseline_levels()[factor]:
                        yield self.combination(**{**basis, factor: value})
        for value in self.factors["isa"]:
            yield self.combination(tiny=True, isa=value, threads="2")
            yield self.combination(tiny=True, mlp="experts", isa=value, threads="5", workers="2")
        for precision, head in (("bf16", "tied"), ("f32", "untied"), ("int8", "tied")):
            yield self.combination(tiny=True, precision=precision, head=head, workers="3", threads="5")

    def pairs(self):
        """A covering array: every two levels of different factors, bases included, in one run at least."""
        factors = {**BASIS, **self.factors}
        names = list(factors)
        open_pairs = {(a, x, b, y) for a, b in itertools.combinations(names, 2)
                      for x in factors[a] for y in factors[b]}
        rng = random.Random(7)

        def gain(row):
            return sum((a, row[a], b, row[b]) in open_pairs for a, b in itertools.combinations(row, 2))

        while open_pairs:
            best = None
            for _ in range(30):
                a, x, b, y = rng.choice(sorted(open_pairs, key=str))
                row = {a: x, b: y}
                for name in sorted(set(names) - {a, b}, key=lambda _: rng.random()):
                    def ordered(r):
                        return {n: r[n] for n in names if n in r}
                    row[name] = max(factors[name], key=lambda v: (gain(ordered({**row, name: v})), rng.random()))
                row = {n: row[n] for n in names}
                if best is None or gain(row) > gain(best):
                    best = row
            open_pairs -= {(a, best[a], b, best[b]) for a, b in itertools.combinations(names, 2)}
            yield best

    def random_combinations(self, seed, count):
        rng = random.Random(seed)
        factors = {**BASIS, **self.factors}
        for _ in range(count):
            yield {name: rng.choice(values) for name, values in factors.items()}

    def go(self):
        plan = [("alone", c) for c in self.singles()]
        if self.options.quick:
            plan += [("random", c) for c in self.random_combinations(self.options.seed, 4)]
        else:
            pairs = list(self.pairs())
            numbers = seed.draw("rows of the pairs", range(len(pairs)), SAMPLED_PAIRS)
            plan += [("pair", pairs[i]) for i in numbers]
            plan += [("random", c) for c in self.random_combinations(self.options.seed, self.options.random)]
        kinds = collections.Counter(kind for kind, _ in plan)
        print(f"seed {self.options.seed}; " + ", ".join(f"{n} {k}" for k, n in kinds.items()), flush=True)
        for (kind, c), outcome in runs.at_once(self.options.jobs, self.check, plan):
            if isinstance(outcome, Exception):
                self.note_failure(f"{kind} {c}: {outcome}")
        print(f"result: {self.done} combinations run, {len(self.baselines)} chains, {len(self.failures)} failures")
        for (factor, level, why), _ in self.skipped.items():
            print(f"skipped {factor} {level}: {why}")
        return 1 if self.failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True, type=pathlib.Path, help="the program")
    parser.add_argument("--quick", action="store_true", help="one basis, no host builds, 4 random combinations")
    parser.add_argument("--one-host", action="store_true", help="do not build the program by other compilers")
    parser.add_argument("--built-by", default="as given", help="how the program was built, \"g++ -O3\": not built again")
    parser.add_argument("--seed", type=int, default=None, help="of the random combinations")
    parser.add_argument("--random", type=int, default=40 if seed.full() else SAMPLED_RANDOM, help="how many of them")
    parser.add_argument("--work", type=pathlib.Path, help="kept; default: a temporary directory")
    parser.add_argument("--kernel-cache", type=pathlib.Path, help="default: in the working directory")
    parser.add_argument("--build-dir", type=pathlib.Path, default=REPOSITORY / "build" / "matrix",
                        help="where the program is built by other compilers")
    parser.add_argument("--libraries", type=pathlib.Path, help="the build folder of the program, for sampled runs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at once")
    options = parser.parse_args()
    options.build_dir = options.build_dir.resolve()
    options.libraries = options.libraries and options.libraries.resolve()
    if options.seed is None:
        options.seed = seed.seed()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ostro-matrix-") as temporary:
        options.work = options.work or pathlib.Path(temporary)
        options.work.mkdir(parents=True, exist_ok=True)
        code = Matrix(options).go()
    print(f"{time.monotonic() - started:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
