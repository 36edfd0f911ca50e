#!/usr/bin/env python3
"""A GPU that is not there, too old, busy, full, lost or killed in the middle, without a GPU: a fake driver (tests/cuda) runs the
device text on an emulated device, with faults at drawn places.

Each fault is one error line that says what to do, with an exit code, and nothing is lost: the same command goes on, on the
GPU or on the CPU, and the chain is that of a run that met no fault.

    gpu_test.py --ostro PROGRAM --fake FOLDER
"""
import argparse
import json
import pathlib
import random
import re
import subprocess
import sys

from harness import Workspace, check, killed

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/suite"), str(ROOT / "tests/e2e")]
import seed  # noqa: E402
from workers_test import run_together  # noqa: E402

# FAKE_CUDA: the words of the error.
AT_START = {
    "no_device": ["sees no GPU", "--gpus all"],
    "old": ["runs CUDA 11.4", "needs CUDA 12.0", "install a newer driver"],
    "stub": ["stand-in for linking", "LD_LIBRARY_PATH"],
    "busy": ["cuda:0", "another process has this GPU for itself", "nvidia-smi -c DEFAULT"],
    "sm:70": ["compute capability 7.0", "needs 7.5 or newer"],
}
# FAKE_NVRTC
COMPILER = {
    "old": ["NVRTC 11.8", "older than 12.0", "pip install nvidia-cuda-nvrtc"],
    "new": ["NVRTC 14.0", "too new", "pip install nvidia-cuda-nvrtc"],
    "no_90": ["does not compile for compute capability 9.0"],
    "error": ["device text", "does not compile", "expected a declaration"],
}


# What training takes of a GPU's memory is foretold for each of these: options beside those of `wide_config`.
PLANNED = [
    {},
    {"trainer.mp": "c=bfloat16", "trainer.train_batch_size": "4"},
    {"trainer.mp": "c=int8"},
    {"optimizer.type": "muon", "optimizer.learning_rate": "0.02"},
    {"model.gradient_checkpointing": "true", "model.num_layers": "3"},
    {"model.gradient_checkpointing": "everything", "trainer.steps_per_eval": "1"},
    {"trainer.mp": "c=bfloat16", "optimizer.type": "lion", "model.gradient_checkpointing": "attention,gate_up"},
    {"trainer.mp": "c=int8,a=int8", "optimizer.ema_beta": "0.9", "trainer.train_batch_size": "3"},
]
PLAN = (r"memory: ([\d.]+) MiB to be allocated on cuda:0 at the peak of a run: ([\d.]+) MiB of state, ([\d.]+) of gradients, "
        r"([\d.]+) of programs, ([\d.]+) of batches")


class Machine:
    """A workspace with the fake driver, or without one."""

    def __init__(self, workspace, fake):
        self.workspace = workspace
        self.with_gpu = {"LD_LIBRARY_PATH": str(fake), "OSTRO_NVRTC": str(fake)}
        self.without = {"LD_LIBRARY_PATH": "", "OSTRO_NVRTC": ""}

    def gpu(self, fault="", **more):
        return self.with_gpu | {"FAKE_CUDA": fault} | more


def check_devices(w, m):
    out = w.good("devices", env=m.gpu())
    for part in ("cpu  ", "instruction sets:", "cuda:0    Fake GPU: ", "compute capability 9.0", "CUDA 13.0", "nvrtc     13.0"):
        check(part in out, f"devices has no {part!r}:\n{out}")
    told = json.loads(w.good("devices", "--json", env=m.gpu("gpus:2,memory:2000000000")))
    check([g["device"] for g in told["gpus"]] == ["cuda:0", "cuda:1"], told)
    check(told["gpus"][1]["memory_bytes"] == 2000000000 and told["gpus"][1]["missing"] is None, told)
    check(told["driver"]["cuda"] == "13.0" and told["nvrtc"]["version"] == "13.0" and not told["missing"], told)
    busy = json.loads(w.good("devices", "--json", env=m.gpu("busy")))
    check("another process" in busy["gpus"][0]["missing"] and busy["gpus"][0]["free_bytes"] is None, busy)
    for fault in ("no_device", "old", "stub"):
        out = w.good("devices", env=m.gpu(fault))
        check(all(part in out for part in ["missing   ", *AT_START[fault]]), f"devices with {fault}:\n{out}")
    out = w.good("devices", env=m.gpu("sm:70"))
    check("cannot be used: " in out and "needs 7.5" in out, out)
    none = json.loads(w.good("devices", "--json", env=m.without))
    check(none["gpus"] == [] and none["driver"] is None and none["cpu"]["threads"] == 1, none)
    check("no NVIDIA driver" in none["missing"][0] and "apt install nvidia-driver" in none["missing"][0], none)


def check_refused_at_start(w, m, config):
    """Before anything begins: there is no run directory afterwards."""
    run = ["train", "--config", config, "--trainer.id", "refused"]
    w.bad(*run, "--device", "cuda", says=["no NVIDIA driver", "apt install nvidia-driver", "--device cpu"], env=m.without)
    w.bad(*run, "--trainer.device", "cuda", "--dry_run", says=["no NVIDIA driver"], env=m.without)
    for fault, says in AT_START.items():
        w.bad(*run, "--device", "cuda", says=says, env=m.gpu(fault))
    for fault, says in COMPILER.items():
        if fault != "error":  # that is met by the first text, when the run is open
            w.bad(*run, "--device", "cuda", says=says, env=m.gpu(FAKE_NVRTC=fault))
    w.bad(*run, "--device", "cuda", says=["no NVRTC", "/nowhere", "pip install nvidia-cuda-nvrtc"],
          env=m.gpu(OSTRO_NVRTC="/nowhere/libnvrtc.so"))
    w.bad(*run, "--device", "cuda:3", says=["there is no cuda:3", "sees 1 GPU, cuda:0"], env=m.gpu())
    w.bad(*run, "--device", "gpu", says=['--device: "gpu"', "cpu, cuda, cuda:N or auto"], env=m.gpu())
    w.bad(*run, "--trainer.device", "cuda:x", says=['trainer.device: "cuda:x"'], env=m.gpu())
    w.bad(*run, "--device", "cuda", says=["OSTRO_EXECUTOR"], env=m.gpu(OSTRO_EXECUTOR="interpreter"))
    # A GPU that is too small is refused as a machine is, with what fits.
    w.bad(*run, "--device", "cuda", "--model.hidden_dim", "512", "--model.intermediate_dim", "1536",
          says=["does not fit", "free on cuda:0"], env=m.gpu("memory:20000000"))
    check(not (w.root / "runs/refused").exists(), "a run that was refused left its directory")
    for words in (["selftest"], ["sample", "--checkpoint", "runs/cpu", "--prompt", "a", "--max_new_tokens", "2"],
                  ["score", "--checkpoint", "runs/cpu"], ["verify", "runs/cpu"],
                  ["eval", "--config", config, "--checkpoint", "runs/cpu"],
                  ["grad", "--config", config, "--checkpoint", "runs/cpu", "--step", "0", "--out", "g.safetensors"]):
        w.bad(*words, "--device", "cuda", says=["no NVIDIA driver"], env=m.without)


def check_one_chain(w, m, config):
    """Trained on the CPU, on the GPU, and where `auto` finds none; each verified on the other."""
    w.train(config, "--trainer.id", "cpu")
    counts = w.root / "counts"
    # The trial of fast kernels is made here, so every run that follows has as many launches.
    w.verdict("equal", "runs/cpu", "--device", "cuda", env=m.gpu())
    w.train(config, "--trainer.id", "gpu", "--device", "cuda", env=m.gpu(FAKE_CUDA_COUNTS=str(counts)))
    check(w.chain("gpu") == w.chain("cpu"), "the chain of the GPU is another than that of the CPU")
    w.verdict("equal", "runs/gpu", env=m.without)
    said = w.train(config, "--trainer.id", "auto", "--trainer.device", "auto", env=m.without)
    check("device auto: the processors (no NVIDIA driver" in said, f"auto says what it chose:\n{said}")
    check(w.chain("auto") == w.chain("cpu"), "the chain of auto is another")
    out = w.good("train", "--config", config, "--trainer.id", "dry", "--dry_run", "--device", "auto", env=m.gpu())
    check("to be allocated on cuda:0" in out and "(free on cuda:0): it fits" in out, f"a dry run knows the GPU:\n{out}")
    return [int(n) for n in counts.read_text().split()]


def check_same_answers(w, m, config):
    for words in (["sample", "--checkpoint", "runs/cpu", "--prompt", "the", "--max_new_tokens", "4", "--json"],
                  ["eval", "--config", config, "--checkpoint", "runs/cpu"]):
        on_gpu = w.run(*words, "--device", "cuda", env=m.gpu())
        on_cpu = w.run(*words, env=m.without)
        check(on_gpu[:2] == on_cpu[:2] and on_cpu[0] == 0, f"{words}: {on_gpu} on the GPU, {on_cpu} on the CPU")


def check_cut_off(w, m, config, allocations, launches, rng):
    """Faults in the middle. The run goes on from its newest checkpoint, on the CPU and on the GPU in turn."""
    middle = rng.randrange(launches // 2, launches)
    # How often memory is asked for after the first checkpoint depends on how fast that is copied.
    cases = [(f"fault:{middle}", ["CUDA_ERROR_ILLEGAL_ADDRESS", "running: "]),
             (f"lost:{rng.randrange(launches // 3, launches)}", ["CUDA_ERROR_ECC_UNCORRECTABLE", "goes on from the newest"]),
             (f"launch:{rng.randrange(1, launches)}", ["LAUNCH_OUT_OF_RESOURCES", "launch of "]),
             (f"full:{rng.randrange(1, allocations // 2)}", ["has no room for", "this process uses"]),
             (f"kill:{rng.randrange(launches // 2, launches)}", None)]
    for number, (fault, says) in enumerate(cases):
        name = f"cut{number}"
        words = ["train", "--config", config, "--trainer.id", name]
        print(f"  {fault}")
        if says is None:
            status, out, err = w.run(*words, "--device", "cuda", env=m.gpu(fault))
            check(killed(status), f"{fault}: exit status {status}\n{out}{err}")
        else:
            w.bad(*words, "--device", "cuda", says=says, env=m.gpu(fault))
        before = w.newest_step(name)
        on_gpu = number % 2 == 0
        w.good(*words, *(["--device", "cuda"] if on_gpu else []), env=m.gpu() if on_gpu else m.without)
        check(w.chain(name) == w.chain("cpu"), f"{fault}, then on from step {before}: another chain")
        w.verdict("equal", f"runs/{name}", env=m.without)


def check_cut_off_saving(w, m, config, rng):
    """Killed while a checkpoint of the GPU's state is made: before its arrays are copied, beside the next step, after one of them, in a
    file, before the manifest."""
    points = ["snapshot", "device_copy:4", "array_write", "manifest"]
    for number, point in enumerate(points if seed.full() else rng.sample(points, 1)):
        words = ["train", "--config", config, "--trainer.id", f"saving{number}"]
        print(f"  killed at {point}")
        status, out, err = w.run(*words, "--device", "cuda", env=m.gpu(OSTRO_FAILPOINT=point))
        check(killed(status), f"{point}: exit status {status}\n{out}{err}")
        w.good(*words, *(["--device", "cuda"] if number % 2 else []), env=m.gpu() if number % 2 else m.without)
        check(w.chain(f"saving{number}") == w.chain("cpu"), f"killed at {point}: another chain")


def check_workers(w, m, config):
    """Several workers: on one GPU, on two, beside the CPU; one that fails or is killed leaves alone."""
    def launch(name, devices, *words, env):
        return w.run("launch", "local", "--workers", str(devices.count(",") + 1), "--devices", devices, "--config", config,
                     "--trainer.id", name, *words, env=env)

    for number, (devices, told, words) in enumerate([
            ("cuda,cuda", "cuda:0, cuda:1", []),
            ("cuda:0,cpu,cuda:0", "cuda:0, cpu, cuda:0", ["--trainer.mesh.exchange", "layer"]),
            ("auto,cpu", "cuda:0, cpu", ["--trainer.fsdp_axis", "null"])]):
        name = f"workers{number}"
        status, out, err = launch(name, devices, *words, env=m.gpu("gpus:2"))
        check(status == 0 and f"the devices of the workers: {told}" in err, f"{devices}: exit status {status}\n{out}{err}")
        check(w.chain(name) == w.chain("cpu"), f"{devices}: another chain than that of one process")
    # A GPU that fails is no lost worker, after which all would begin again with it: it leaves, the other goes on.
    for number, (fault, says) in enumerate([("fault:40", "CUDA_ERROR_ILLEGAL_ADDRESS"), ("full:6", "has no room for"),
                                            ("kill:60", "was killed by signal 9")]):
        # The processor does not train before both have been in an epoch, or the GPU has failed: else it may be done by then.
        name = f"alone{number}"
        words = [w.ostro, "launch", "local", "--workers", "2", "--devices", "cpu,cuda", "--config", config, "--trainer.id", name]
        status, err = run_together(words, w.env | m.gpu(fault), w.root / "runs" / name, 2, cwd=w.root, or_when=lambda said, word=says: word in said)
        check(status == 0 and says in err, f"{fault}: exit status {status}\n{err}")
        check(w.chain(name) == w.chain("cpu"), f"{fault}: another chain\n{err}")
    # What cannot be is told before anything begins.
    words = ["launch", "local", "--workers", "2", "--config", config, "--trainer.id", "none"]
    w.bad(*words, "--device", "cuda", says=["no NVIDIA driver", "--device cpu"], env=m.without)
    w.bad(*words, "--devices", "cuda", says=["--devices cuda: 1 names for 2 workers"], env=m.gpu())
    w.bad(*words, "--devices", "cpu,gpu", says=['--devices: "gpu"', "cpu, cuda, cuda:N or auto"], env=m.gpu())
    check(not (w.root / "runs/none").exists(), "a run that was refused left its directory")
    # One worker has room, two that share a GPU do not.
    small = ["--model.hidden_dim", "512", "--model.intermediate_dim", "1536", "--trainer.id", "room"]
    dry = ["train", "--config", config, "--device", "cuda", "--dry_run", *small]
    fits = w.good(*dry, env=m.gpu("memory:200000000,gpus:2", OSTRO_SIM_WORKERS="2"))
    check("on cuda:0 by each of the 1 workers" in fits and "it fits" in fits, fits)
    w.bad(*dry, says=["does not fit into the memory of cuda:0", "each of the 2 workers", "model.gradient_checkpointing"],
          env=m.gpu("memory:100000000", OSTRO_SIM_WORKERS="2"))
    status, out, err = launch("room", "cuda,cuda", *small, env=m.gpu("memory:100000000"))
    check(status != 0 and "each of the 2 workers that share it takes" in err, f"exit status {status}\n{out}{err}")


def check_planned_memory(w, m, rng):
    """What --dry_run foretells is what the GPU's memory counts, within 2 percent; a plan that leaves a part out is found."""
    config = w.config("wide", steps=2, every=2, model__seq_len=16, model__hidden_dim=64, model__intermediate_dim=96,
                      model__num_layers=2, trainer__train_batch_size=2, trainer__max_eval_batches=1, numerics__leaf_examples=1,
                      numerics__cells={})
    cases = list(enumerate(PLANNED))
    for number, options in cases if seed.full() else rng.sample(cases, 1):
        words = ["train", "--config", config, "--trainer.id", f"planned{number}", "--device", "cuda",
                 *(word for name, value in options.items() for word in (f"--{name}", value))]
        said = w.good(*words, "--dry_run", env=m.gpu())
        found = re.search(PLAN, said)
        check(found, f"no plan in:\n{said}")
        total, *parts = (float(part) for part in found.groups())
        log = w.good(*words, env=m.gpu())
        counted = int(re.search(r"cuda:0: at most (\d+) bytes of its memory were in use", log)[1])
        metrics = [json.loads(line) for line in (w.root / "runs" / f"planned{number}" / "metrics.jsonl").read_text().splitlines()]
        check(0 < metrics[-1]["memory/device_peak_bytes"] <= counted, metrics[-1])
        off = abs(total * 2**20 / counted - 1)
        print(f"  {options or 'as configured'}: {total} MiB planned, {counted / 2**20:.2f} MiB counted, {100 * off:.2f} % off; parts {parts}")
        check(off < 0.02, f"{options}: {total} MiB planned, {counted / 2**20:.2f} MiB counted\n{said}")
        check(abs(total - sum(parts)) < 0.03, f"{options}: the parts {parts} are not {total} MiB")
        for part in parts[:3]:
            check(abs((total - part) * 2**20 / counted - 1) > 0.02, f"{options}: a plan without {part} MiB of {total} is not found wrong")


def check_planned_while_copied(w, m):
    """A checkpoint after every step: what is held for its copy comes on top of what was planned, and is no more than the state."""
    config = w.config("copied", steps=4, every=1, model__seq_len=16, model__hidden_dim=64, model__intermediate_dim=96,
                      model__num_layers=1, trainer__max_eval_batches=1, numerics__leaf_examples=1, numerics__cells={},
                      trainer__train_batch_size=[[0, 2], [2, 3]])
    words = ["train", "--config", config, "--device", "cuda"]
    found = re.search(PLAN + r".*?([\d.]+) MiB of state more while a checkpoint is copied", w.good(*words, "--dry_run", env=m.gpu()))
    check(found, "no plan of a run with a checkpoint after every step")
    total, state, more = (2**20 * float(found[group]) for group in (1, 2, 6))
    check(state == more > 0, f"{state} bytes of state, {more} more while a checkpoint is copied")
    log = w.good(*words, env=m.gpu())
    counted = int(re.search(r"cuda:0: at most (\d+) bytes of its memory were in use", log)[1])
    print(f"  a checkpoint after every step: {total:.0f} bytes planned, {more:.0f} more for copies, {counted} counted")
    check(0.95 * total < counted < 1.05 * (total + more), f"{total} and {more} bytes planned, {counted} counted")


def check_no_copies_beside(w, m, config):
    """Without pinned memory for a second stream steps wait for the copies of checkpoints; that is said once."""
    said = w.train(config, "--trainer.id", "unpinned", "--device", "cuda", env=m.gpu("pinned:1"))
    check(said.count("checkpoints are not copied beside steps") == 1, f"said once that steps wait:\n{said}")
    check(w.chain("unpinned") == w.chain("cpu"), "without copies beside steps the chain is another")
    w.bad("train", "--config", config, "--trainer.id", "none", "--device", "cuda", says=["taking pinned memory"], env=m.gpu("pinned:0"))


def check_text_that_fails(w, m, config):
    name = "texts"
    w.bad("train", "--config", config, "--trainer.id", name, "--device", "cuda", says=COMPILER["error"],
          env=m.gpu(FAKE_NVRTC="error", OSTRO_CACHE_DIR=str(w.root / "other-cache")))
    w.good("train", "--config", config, "--trainer.id", name, env=m.without)
    check(w.chain(name) == w.chain("cpu"), "the chain after a text that did not compile is another")


def check_script(w, m):
    """scripts/gpu_check.sh finds a sound device sound: nothing differs, and nothing fails."""
    out = w.root / "check"
    done = subprocess.run(["bash", ROOT / "scripts/gpu_check.sh", "--quick", "--program", w.ostro, "--out", out, "--one-chain",
                           ROOT / "tests/matrix/one_chain.py"], env={**w.env, **m.gpu()}, capture_output=True, text=True, check=False)
    rows = [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]
    bad = [row for row in rows if row["result"] not in ("equal", "done") and not row["result"].startswith("not run")]
    check(done.returncode == 0 and not bad, f"gpu_check.sh: exit {done.returncode}, {bad}, {done.stderr[-1000:]}")
    check(sum(row["result"] in ("equal", "done") for row in rows) >= 34, f"gpu_check.sh ran little: {rows}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--fake", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    rng = random.Random(seed.seed())
    w = Workspace(arguments.ostro)
    try:
        m = Machine(w, arguments.fake)
        w.env |= {"LD_LIBRARY_PATH": "", "HOME": str(w.root)}
        config = w.config("gpu", steps=4, every=2, model__seq_len=8, model__hidden_dim=8, model__intermediate_dim=8,
                          model__num_layers=1, trainer__train_batch_size=2, trainer__max_eval_batches=1, numerics__leaf_examples=1, numerics__cells={})
        check_devices(w, m)
        allocations, launches = check_one_chain(w, m, config)
        print(f"  {allocations} requests for memory, {launches} launches")
        check_refused_at_start(w, m, config)
        check_same_answers(w, m, config)
        check_cut_off(w, m, config, allocations, launches, rng)
        check_cut_off_saving(w, m, config, rng)
        check_planned_memory(w, m, rng)
        check_planned_while_copied(w, m)
        check_no_copies_beside(w, m, config)
        check_workers(w, m, config)
        check_text_that_fails(w, m, config)
        check_script(w, m)
    finally:
        w.close()
    print("result: gpu: every fault is one error, and every run went on to the same chain")


if __name__ == "__main__":
    main()
