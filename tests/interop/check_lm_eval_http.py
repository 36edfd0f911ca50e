#!/usr/bin/env python3
"""lm-evaluation-harness over HTTP: its model `local-completions` with the address of `ostro serve` and no tokenizer's files gets the
numbers that its adapter over `ostro score` (python/ostro_lm_eval) gets, in every bit: choices, with examples and without, rolling
texts longer than the context, generation until a line end. Control: another checkpoint's numbers differ.
Usage: check_lm_eval_http.py --ostro build/.../ostro [--log FILE]
"""
import argparse
import importlib.util
import os
import pathlib
import random
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from check_lm_eval import evaluate, log_probs, make_documents
from serve_load import Log
from serve_test import Server
from tiny_run import Report, TinyRun

CONTEXT = 96


def numbers(results, samples):
    """Every log-probability, text and score."""
    out = {name: log_probs(samples[name]) for name in ("made_choices", "made_plain")}
    out["made_texts"] = [str(sample["resps"]) for sample in samples["made_texts"]]
    out["made_prompts"] = [str(sample["resps"]) for sample in samples["made_prompts"]]
    out["scores"] = {name: {k: v for k, v in scores.items() if isinstance(v, float)} for name, scores in results.items()}
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--log", type=pathlib.Path)
    args = parser.parse_args()
    if importlib.util.find_spec("tenacity") is None:
        sys.exit("error: the harness needs the package tenacity for models behind an address; run scripts/setup.sh --python")
    report, log = Report(), Log(args.log, "lm-evaluation-harness over HTTP")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.environ["HF_HOME"] = os.environ["HF_DATASETS_CACHE"] = str(folder / "hf")
        run = TinyRun(args.ostro, folder, "run", {"trainer": {
            "id": "run", "log_dir": str(folder / "runs"), "num_train_steps": 60, "steps_per_eval": 0, "checkpointer": {"keep": [{"every": 30}]}}})
        run.train()
        make_documents(folder, random.Random(5))
        server = Server(str(run.ostro), folder, str(run.run_directory), "--listen", "127.0.0.1:0")
        try:
            # The harness asks for one token behind what it scores, so that many are left of the context.
            over_http = numbers(*evaluate("local-completions", f"base_url=http://127.0.0.1:{server.port}/v1/completions,model=run,tokenizer_backend=remote,"
                                          f"num_concurrent=4,max_length={CONTEXT}", folder))
            server.stop()
        finally:
            server.process.kill()
        def by_adapter(checkpoint, length):
            return numbers(*evaluate("ostro", f"checkpoint={checkpoint},ostro={run.ostro},seq_len={length}", folder))

        by_score, earlier = (by_adapter(checkpoint, CONTEXT - 1) for checkpoint in (run.run_directory, run.checkpoint(30)))
        # Of texts longer than the context the harness takes off one more.
        windows = by_adapter(run.run_directory, CONTEXT - 2)
        by_score["made_texts"], by_score["scores"]["made_texts"] = windows["made_texts"], windows["scores"]["made_texts"]
    for what, ours in by_score.items():
        same = over_http[what] == ours
        said = f"{what}: {len(ours)} numbers or texts over HTTP are those of `ostro score` in every bit"
        report.check(same, said if same else f"{what}: {str(over_http[what])[:600]}, ostro score: {str(ours)[:600]}")
        log.lines.append(said)
        report.check(earlier[what] != ours, f"control: {what} of another checkpoint differ")
    log.write()
    report.finish()


if __name__ == "__main__":
    main()
