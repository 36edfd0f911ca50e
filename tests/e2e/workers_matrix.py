"""The cases of tests/e2e/workers_test.py: meshes, numbers of workers, schedules, precisions, threads and instruction
sets, which no chain may depend on. A group is mixed when its workers differ in threads or instruction sets; then a
coordinator and its workers are started by hand, each worker with its own environment."""

import itertools
import json
import subprocess
import time

from program import kill_all

TENSOR = ["--trainer.tensor_parallel_axes", "[kv_heads, mlp, vocab]"]
# name: (workers, options)
MESHES = {
    "FSDP": ([1, 2, 3, 4, 5, 6, 7, 8], []),
    "data": ([1, 2, 3, 4, 5, 6, 7, 8], ["--trainer.fsdp_axis", "null"]),
    "model 2": ([2], ["--trainer.mesh.axes", "{data: -1, model: 2}", *TENSOR]),
    "model 4": ([4], ["--trainer.mesh.axes", "{data: -1, model: 4}", *TENSOR]),
    "data x model 2": ([4, 6, 8], ["--trainer.mesh.axes", "{data: -1, model: 2}", *TENSOR]),
    "data x model 4": ([8], ["--trainer.mesh.axes", "{data: -1, model: 4}", *TENSOR]),
    "context 2": ([2, 4, 6, 8], ["--trainer.mesh.axes", "{data: -1, context: 2}", "--trainer.axis_resources",
                                 "{pos: context}"]),
    "replica 2 x data": ([4, 6, 8], ["--trainer.mesh.axes", "{replica: 2, data: -1}"]),
    "replica 3 x data": ([3, 6], ["--trainer.mesh.axes", "{replica: 3, data: -1}"]),
}
# Another model, so another chain. Five experts: of two or three workers some have more than others.
MIXTURE = ["--model.type", "mixtral", "--model.num_experts", "5", "--model.track_expert_load", "true",
           "--model.router_bias_update_rate", "0.01", "--model.router_aux_loss_coef", "0.01"]
MIXTURE_MESHES = {
    "mixture, FSDP": ([1, 3, 4], []),
    "expert 3": ([3], ["--trainer.mesh.axes", "{data: -1, expert: 3}", "--trainer.axis_resources", "{experts: expert}"]),
    "data x expert 2": ([4, 6, 8], ["--trainer.mesh.axes", "{data: -1, expert: 2}", "--trainer.axis_resources",
                                    "{experts: expert}"]),
    "data x expert 2, positions too": ([2, 4], ["--trainer.mesh.axes", "{data: -1, expert: 2}", "--trainer.axis_resources",
                                                "{experts: expert, pos: expert}"]),
    "data x expert 2 x model 2": ([4, 8], ["--trainer.mesh.axes", "{data: -1, expert: 2, model: 2}",
                                           "--trainer.axis_resources", "{experts: expert}", *TENSOR]),
}
MESHES |= {name: (counts, [*MIXTURE, *options]) for name, (counts, options) in MIXTURE_MESHES.items()}
EXCHANGES = ("step", "layer")
PRECISIONS = ("f32", "p=f32,c=bfloat16")
THREADS = ("1", "2", "mixed")
ISAS = ("generic", "avx2", "avx512", "avx512bf16", "amx")


def usable_isas(place):
    """The instruction sets that this machine runs."""
    usable = []
    for isa in ISAS:
        done = subprocess.run([place.ostro, "train", "--dry_run", *place.words("probe", [])], text=True, timeout=60,
                              env=place.environment({"OSTRO_ISA": isa}), capture_output=True, check=False)
        if done.returncode == 0:
            usable.append(isa)
        elif "this machine has only" not in done.stderr:
            raise OSError(f"OSTRO_ISA={isa}: {done.stderr}")
    return usable


def all_cases(isas):
    """(mesh, workers, exchange, precision, threads, instruction set); a whole group has the best instruction set, or
    one that is not, or every worker has its own."""
    cases = []
    for mesh, (counts, _) in MESHES.items():
        for workers, exchange, precision, threads, isa in itertools.product(counts, EXCHANGES, PRECISIONS, THREADS,
                                                                            (isas[-1], isas[0], "mixed")):
            if workers > 1 or "mixed" not in (threads, isa):
                cases.append((mesh, workers, exchange, precision, threads, isa))
    return list(dict.fromkeys(cases))


def is_mixture(mesh):
    return mesh in MIXTURE_MESHES


def covering(cases, rng, most):
    """A sample in which every value of every factor occurs, every mesh has both schedules, and each schedule has every
    precision and mixed instruction sets. Greedy: of 60 drawn cases the one that adds most, the cheapest of those."""
    def parts(case):
        mesh, workers, exchange, precision, threads, isa = case
        return {("workers", workers), ("threads", threads), ("isa", isa), ("mesh", mesh, exchange),
                ("precision", exchange, precision), ("mixed", exchange, isa == "mixed"), ("mixed", mesh, isa == "mixed")}
    missing = set().union(*(parts(c) for c in cases))
    chosen = []
    while missing and len(chosen) < most:
        drawn = rng.sample(cases, min(60, len(cases)))
        best = max(drawn, key=lambda c: (len(parts(c) & missing), -c[1]))
        if parts(best) & missing:
            chosen.append(best)
            missing -= parts(best)
    return chosen, missing


def settings_of(case, isas, rng):
    """The environment of each worker, with instruction sets that differ where there are enough of them."""
    _, workers, _, _, threads, isa = case
    sets = rng.sample(isas, len(isas)) * workers
    return [{"OSTRO_THREADS": threads if threads != "mixed" else str(1 + i % 2),
             "OSTRO_ISA": isa if isa != "mixed" else sets[i]} for i in range(workers)]


def launch_mixed(place, run, settings, options):
    """A coordinator and a worker with each of these environments; the run's chain."""
    words = place.words(run, options)
    secret = {"OSTRO_JOB_SECRET": run}
    count = str(len(settings))
    log = place.top / f"{run}.log"
    events = place.top / f"{run}.events"
    processes = []

    def start(command, env, out):
        with out.open("ab") as file, log.open("ab") as errors:
            processes.append(subprocess.Popen([place.ostro, *command], env=place.environment(env | secret),
                                              stdin=subprocess.DEVNULL, stdout=file, stderr=errors))
    try:
        start(["coordinator", "--min_workers", count, "--max_workers", count, *words], {}, events)
        end = time.monotonic() + 300
        while not events.exists() or b"\n" not in events.read_bytes():
            if processes[0].poll() is not None or time.monotonic() > end:
                raise OSError(f"{run}: no coordinator\n{log.read_text()}")
            time.sleep(0.01)
        port = json.loads(events.read_text().splitlines()[0])["port"]
        for env in settings:
            start(["worker", "--coordinator", f"127.0.0.1:{port}", *words], env, log)
        codes = [p.wait(timeout=300) for p in processes]
    finally:
        kill_all(processes)
    if any(codes):
        raise OSError(f"{run}: exit codes {codes}\n{log.read_text()}")
    return place.chain(run)


def run_case(place, run, case, isas, rng):
    """The chain of a group as the case wants it, and what was run, in words."""
    mesh, workers, exchange, precision, threads, isa = case
    options = ["--trainer.mp", precision, "--trainer.mesh.exchange", exchange, *MESHES[mesh][1]]
    settings = settings_of(case, isas, rng)
    text = f"{workers} workers, {mesh}, exchange {exchange}, {precision}"
    # Of half of the groups the workers are in slices; they come in any order where they are started by hand.
    cuts = sorted(rng.sample(range(1, workers), min(workers - 1, rng.randint(1, 3)))) if workers > 1 and rng.random() < 0.5 else []
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, workers])]
    if cuts:
        text += ", slices of " + ":".join(map(str, sizes))
    if "mixed" in (threads, isa):
        text += ", threads and instruction sets " + " ".join(f"{s['OSTRO_THREADS']} {s['OSTRO_ISA']}," for s in settings)
        names = [str(slice_number) for slice_number, size in enumerate(sizes) for _ in range(size)]
        rng.shuffle(names)
        named = [s | {"OSTRO_SLICE": name} for s, name in zip(settings, names)] if cuts else settings
        return launch_mixed(place, run, named, options), text.rstrip(",")
    options += ["--slices", ":".join(map(str, sizes))] if cuts else []
    return place.launch(run, workers, options, settings[0]), f"{text}, {threads} threads, {isa}"
