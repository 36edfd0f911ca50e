"""The section on encoding: tokenizer_compare.py in a process of its own, since it keeps `tokenizers` to one thread and all on
one core."""
import json, os, statistics, subprocess, sys

from report import HERE, spread

# What the process is asked for, by title of the section; the least ratios, warm and cold, and the awkward documents' share.
RUNS = [("Tokenizers: byte-level BPE", ["--vocab", "4096", "32768", "131072"], 7),
        ("Tokenizers: other families", ["--vocab", "--families", "all", "--size", "2"], 3)]
WARM, COLD, SHARE = 20, 8, 0.1


def report(bench):
    core = max(os.sched_getaffinity(0))
    for title, words, rounds in RUNS[:1] if bench.quick else RUNS:
        with bench.section(title):
            out = bench.folder / "tokenizers.json"
            subprocess.run(["taskset", "-c", str(core), sys.executable, HERE / "tokenizer_compare.py", "--build",
                            bench.benches.parent, "--folder", bench.folder / "tokenizers", "--json", out, "--rounds",
                            str(3 if bench.quick else rounds), *words], check=True)
            say(bench, title, json.loads(out.read_text()))


def say(bench, title, result):
    rows = []
    for r in result["seen"]:
        cells = [f"{r[state]['theirs']:.2f}; {r[state]['ours']:.1f}; {spread(r[state]['ratios'], 1)}"
                 for state in ("cold", "warm")]
        rows.append([r["tokenizer"], r["kind"], f"{r['mb']:.1f}", *cells])
    bench.say("One core, CPU time, loading excluded, ids equal. Cold: the first pass of a new tokenizer; warm: the one after "
              "it. MB/s there; here; the ratio, median (range).")
    bench.say()
    bench.table(["tokens or family", "text", "MB", "cold", "warm"], rows)
    bench.say("Single awkward documents, the slowest of each tokenizer beside the average rate of its texts: "
              + "; ".join(f"{a['tokenizer']} {a['share']:.2f} ({a['slowest']})" for a in result["awkward"]) + ".")
    bench.say()
    for state, least in (("warm", WARM), ("cold", COLD)):
        seen = {f"{r['tokenizer']}, {r['kind']}": statistics.median(r[state]["ratios"]) for r in result["seen"]}
        low = min(seen, key=seen.get)
        bench.goal(f"{title}, {state}", f">= {least}x", f"{min(seen.values()):.1f}-{max(seen.values()):.1f}x",
                   seen[low] >= least, f"lowest: {low}; {sum(v >= least for v in seen.values())} of {len(seen)} reach it")
    low = min(result["awkward"], key=lambda a: a["share"])
    bench.goal(f"{title}: slowest awkward document", f">= {SHARE} of the average rate", f"{low['share']:.2f}",
               low["share"] >= SHARE, f"{low['tokenizer']}: {low['slowest']}")
