"""Runs all benchmarks beside their peers and limits and writes bench/RESULTS.md (results.py). Run by scripts/bench.sh.

training.py has the training steps, kernel_compare.py products and attention, prices.py what our own choices cost,
families.py every family beside Llama and LoRA beside PEFT, ablation.py what parts of a step give, mixtures.py mixtures of
experts, growth.py how a step's cost grows with model, batch and sequence, int8_products.py products of int8 blocks, pages.py
attention over a cache in pages, decode.py products of few rows and sampling, choices.py the choice of tokens, generation.py
generation of many texts, serving.py a server beside llama.cpp's, distributed.py several processes, audits.py audits,
data_gather.py batches, text_to_store.py token stores beside `datasets`, tokenizer_speed.py encoding,
lab_jobs.py trainings of a lab side by side, goodput.py a run whose machines are taken away.
Every ratio is taken within one run whose two sides take turns.
"""
import argparse, os, pathlib, sys, time

import ablation, audits, choices, data_gather, decode, distributed, families, generation, goodput, growth, int8_products, kernel_compare
import lab_jobs, mixtures
import pages, prices, serving
import text_to_store, tokenizer_speed, training
from report import Bench

PARTS = ["training", "prices", *(f"prices:{name}" for name in prices.SECTIONS), "families", "ablation", "mixtures", "workers",
         "audits", "kernels", "int8", "growth", "pages", "decode", *(f"decode:{name}" for name in decode.SECTIONS), "choices", "generation",
         "serving", *(f"serving:{name}" for name in serving.SECTIONS), "data", "tokenizers", "lab", "goodput"]
# Goals of tables of kernel_compare.py, by the beginning of their titles: (least geometric mean beside PyTorch, least single
# case, least share of the peak). On AMD PyTorch's f32 is the one whose MKL is told that the processor is Intel's; beside its
# own choice of kernels there the goal is twice the speed.
KERNEL_GOALS = [("Products, f32", 1.0, 0, 0.88), ("Products, bf16", 1.0, 0.85, 0.85),
                ("Causal attention forward, f32", 2.0, 0, 0), ("Causal attention forward, bf16", 5.0, 0, 0),
                ("Causal attention backward, f32", 2.2, 0, 0), ("Causal attention backward, bf16", 3.0, 0, 0)]
WITHOUT_SHIM = 2.0


def kernels(b, dtype):
    lines, summaries, wrong = kernel_compare.measure(b.benches, b.quick, sorted({1, b.threads}), dtypes=[dtype])
    b.lines += lines
    b.failed += wrong
    for s in summaries:
        goal = next(g for g in KERNEL_GOALS if s["title"].startswith(g[0]))
        _, mean, least, share = goal
        peak = f"{s['share']:.0%} of the FMA peak (lowest {s['least_share']:.0%})"
        for i, name in enumerate(s["ratio"]):
            wanted = WITHOUT_SHIM if i else mean
            b.goal(f"{s['title']} / {name}", f"geometric mean >= {wanted}x" + f", none under {least}x" * (least > 0),
                   f"{s['ratio'][name]:.2f}x (lowest {s['least'][name]:.2f}x)",
                   s["ratio"][name] >= wanted and s["least"][name] >= least, "" if share else peak)
        if share:
            b.goal(f"{s['title']}: each", f">= {share:.0%} of the FMA peak", peak, s["least_share"] >= share,
                   "forward and data gradient with weights packed beforehand")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--quick", action="store_true")
    ap.add_argument("--benches", required=True, help="folder of the benchmark programs")
    ap.add_argument("--out", required=True)
    ap.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    ap.add_argument("--sizes", nargs="+", default=["nano", "small58", "base125", "drawn"])
    ap.add_argument("--dtypes", nargs="+", default=["f32", "bf16"], choices=["f32", "bf16", "int8"],
                    help="int8 is of the part training alone")
    ap.add_argument("--parts", nargs="+", default=[part for part in PARTS if ":" not in part])
    ap.add_argument("--seed", type=int, default=int(time.time()) % 100000, help="draws three sizes, and when builds are killed")
    ap.add_argument("--levanter", help="a Python that has Levanter")
    ap.add_argument("--before", type=pathlib.Path, help="`ostro` of the commit that decode.py names; without it decoding has no such peer")
    ap.add_argument("--llama", type=pathlib.Path, help="the folder of peers/llama_cpp.sh; without it our server runs alone")
    a = ap.parse_args()
    if a.before and not a.before.is_file():
        ap.error(f"--before: there is no program {a.before}")
    if unknown := set(a.parts) - set(PARTS):
        ap.error(f"unknown part {' '.join(sorted(unknown))}; known: {' '.join(PARTS)}")
    floats = [dtype for dtype in a.dtypes if dtype != "int8"]
    b = Bench(a.benches, a.threads, a.quick, a.out, "scripts/bench.sh" + " --quick" * a.quick + f" --seed {a.seed}")
    if "training" in a.parts:
        training.report(b, a.sizes, a.dtypes, a.levanter, a.seed)
    if some := [name for name in prices.SECTIONS if {"prices", f"prices:{name}"} & set(a.parts)]:
        prices.report(b, some)
    if "families" in a.parts:
        families.report(b)
    if "ablation" in a.parts:
        ablation.report(b)
    if "mixtures" in a.parts:
        mixtures.report(b, floats)
    if "workers" in a.parts:
        distributed.report(b)
    if "audits" in a.parts:
        audits.report(b)
    if "kernels" in a.parts:
        for dtype in floats:
            with b.section(f"Products and attention: {dtype}"):
                kernels(b, dtype)
    if "int8" in a.parts:
        with b.section("Products of int8"):
            int8_products.report(b)
    if "growth" in a.parts:
        with b.section("Growth of a step"):
            growth.report(b)
    if "pages" in a.parts:
        with b.section("Pages"):
            pages.report(b)
    if some := [name for name in decode.SECTIONS if {"decode", f"decode:{name}"} & set(a.parts)]:
        decode.report(b, some, a.before.resolve() if a.before else None)
    if "choices" in a.parts:
        with b.section("Choosing tokens"):
            choices.report(b)
    if "generation" in a.parts:
        with b.section("Generation"):
            generation.report(b, floats)
    if some := [name for name in serving.SECTIONS if {"serving", f"serving:{name}"} & set(a.parts)]:
        serving.report(b, a.llama, some)
    if "data" in a.parts:
        with b.section("Data"):
            data_gather.report(b)
        with b.section("Text to token store"):
            text_to_store.report(b, a.seed)
    if "tokenizers" in a.parts:
        tokenizer_speed.report(b)
    if "lab" in a.parts:
        lab_jobs.report(b)
    if "goodput" in a.parts:
        goodput.report(b)
    return 1 if b.any_failed else 0


sys.exit(main())
