#!/usr/bin/env python3
"""Compares lm-evaluation-harness over `ostro score` (python/ostro_lm_eval) with its own `hf` backend on the exported
model.

Three tasks made here: four choices by log-likelihood, with two examples; rolling perplexity of documents longer than the
context; generation until a line end. Every log-probability within 1e-5 of its value, every score within 1e-6, generated
texts equal; `ostro eval --tasks` on the same choices gives the harness's accuracies and standard error.
Controls: another checkpoint's log-probabilities differ.
Usage: check_lm_eval.py --ostro build/.../ostro
"""
import argparse
import json
import os
import pathlib
import random
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ROOT / ".venv-lm-eval"
if not (PACKAGES / "lm_eval").is_dir():
    sys.exit(f"error: {PACKAGES} is not set up; run scripts/setup.sh --python")
sys.path += [str(PACKAGES), str(ROOT / "python")]
for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"):
    os.environ[name] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"

from tiny_run import Report, TinyRun, made_text

LIMIT = 1e-5  # of log-probabilities, relative


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def make_documents(folder, rng):
    """Rows of choices, long documents, and prompts."""
    lines = [line.strip() for i in range(6) for line in made_text(random.Random(1000 + i)).splitlines()]
    lines = [line for line in lines if len(line) > 16]
    choices = []
    for _ in range(28):
        line = rng.choice(lines)
        cut = rng.randrange(4, len(line) - 4)
        wrong = [other[rng.randrange(len(other) // 2):] for other in rng.sample(lines, 3)]
        options = [line[cut:], *wrong]
        rng.shuffle(options)
        choices.append({"question": line[:cut], "options": options, "label": options.index(line[cut:])})
    write_rows(folder / "choices.jsonl", choices)
    write_rows(folder / "texts.jsonl", [{"text": made_text(random.Random(2000 + i))[:1500]} for i in range(6)])
    write_rows(folder / "prompts.jsonl",
               [{"prompt": line[:len(line) // 2], "answer": line[len(line) // 2:]} for line in rng.sample(lines, 12)])


def task(folder, name, file, output_type, **more):
    return {"task": name, "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(folder / file)}},
            "test_split": "test", "output_type": output_type, **more}


def metrics(*names):
    return [{"metric": name, "aggregation": "mean", "higher_is_better": True} for name in names]


def tasks(folder):
    choices = {"doc_to_text": "Q: {{question}}\nA:", "doc_to_choice": "options", "doc_to_target": "label"}
    return [
        task(folder, "made_choices", "choices.jsonl", "multiple_choice", num_fewshot=2, fewshot_split="test",
             metric_list=metrics("acc", "acc_norm", "acc_bytes"), **choices),
        task(folder, "made_texts", "texts.jsonl", "loglikelihood_rolling", doc_to_text="", doc_to_target="{{text}}",
             metric_list=[{"metric": "bits_per_byte"}, {"metric": "byte_perplexity"}]),
        task(folder, "made_prompts", "prompts.jsonl", "generate_until", doc_to_text="{{prompt}}", doc_to_target="{{answer}}",
             generation_kwargs={"until": ["\n"], "max_gen_toks": 24, "do_sample": False},
             metric_list=metrics("exact_match")),
        task(folder, "made_plain", "choices.jsonl", "multiple_choice",
             metric_list=metrics("acc", "acc_norm", "acc_bytes", "acc_mutual_info"), **choices),
    ]


def evaluate(model, model_args, folder):
    import lm_eval
    import ostro_lm_eval  # noqa: F401 (registers the model)
    out = lm_eval.simple_evaluate(model=model, model_args=model_args, tasks=tasks(folder), batch_size=8, device="cpu",
                                  bootstrap_iters=2, random_seed=1, fewshot_random_seed=1234, verbosity="ERROR")
    return out["results"], out["samples"]


def log_probs(samples):
    """Of every request of a choice: its log-probability and whether it is greedy."""
    return [(float(response[0][0]), response[0][1]) for sample in samples for response in sample["resps"]]


def check_choices(report, name, ours, theirs):
    a, b = log_probs(ours), log_probs(theirs)
    worst = max(abs(x[0] - y[0]) / max(1.0, abs(y[0])) for x, y in zip(a, b, strict=True))
    report.check(worst <= LIMIT, f"{name}: {len(a)} log-probabilities, largest relative difference {worst:.1e}")
    report.check(sum(x[1] != y[1] for x, y in zip(a, b)) == 0, f"{name}: the same continuations are greedy")


def check_requirements(report):
    """What `pip install 'python/[lm_eval]'` asks for."""
    project = tomllib.loads((pathlib.Path(__file__).parents[2] / "python/pyproject.toml").read_text())["project"]
    wanted = project.get("dependencies", []) + project["optional-dependencies"]["lm_eval"]
    report.check([w.split(">")[0] for w in wanted] == ["lm_eval"], f"the extra lm_eval needs {wanted}")


def check_scores(report, ours, theirs):
    for name, scores in theirs.items():
        for key, value in scores.items():
            if not isinstance(value, float) or "stderr" in key:
                continue
            report.check(abs(ours[name][key] - value) <= 1e-6,
                         f"{name}: {key} {ours[name][key]:.9f}, of the hf backend {value:.9f}")


def check_own_tasks(report, run, folder, theirs):
    """`ostro eval --tasks` on the choices without examples, which the two draw in different ways."""
    (folder / "tasks.yaml").write_text(json.dumps({"tasks": {"plain": {
        "type": "multiple_choice", "files": ["choices.jsonl"], "doc_to_text": "Q: {{question}}\nA:", "doc_to_choice": "options",
        "doc_to_target": "label", "mutual_information": True}}}))
    out = json.loads(run.run("eval", "--checkpoint", run.run_directory, "--tasks", folder / "tasks.yaml", "--json"))
    measures = out["checkpoints"][0]["tasks"]["plain"]["measures"]
    for key in ("acc", "acc_norm", "acc_bytes", "acc_mutual_info"):
        ours, value = measures[key]["value"], theirs["made_plain"][f"{key},none"]
        report.check(abs(ours - value) <= 1e-6, f"ostro eval --tasks: {key} {ours:.6f}, of the harness {value:.6f}")
    ours, value = measures["acc"]["standard_error"], theirs["made_plain"]["acc_stderr,none"]
    report.check(abs(ours - value) <= 1e-6, f"standard error {ours:.6f}, of the harness {value}")


def check_template(report, run, folder):
    """Conversations as text, which --apply_chat_template asks for, and those that a model goes on with."""
    import ostro_lm_eval
    from transformers import AutoTokenizer
    template = ("{{ eos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>\n{% endfor %}"
                "{% if add_generation_prompt %}<assistant>{% endif %}")
    for place in (pathlib.Path(run.run_directory), folder / "exported"):
        (place / "chat_template.jinja").write_text(template)
    peer = AutoTokenizer.from_pretrained(folder / "exported")
    ours = ostro_lm_eval.OstroLM(checkpoint=run.run_directory, ostro=run.ostro)
    history = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "1+1 ünï"}, {"role": "assistant", "content": " It is  "}]
    same = [ours.apply_chat_template(history[:n], generation) == peer.apply_chat_template(
        history[:n], tokenize=False, add_generation_prompt=generation, continue_final_message=not generation)
        for n in (2, 3) for generation in (True, False)]
    report.check(all(same), f"apply_chat_template: {sum(same)} of {len(same)} conversations are those of transformers")
    ours.scorer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    report = Report()
    check_requirements(report)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.environ["HF_HOME"] = os.environ["HF_DATASETS_CACHE"] = str(folder / "hf")
        run = TinyRun(args.ostro, folder, "run", {"trainer": {
            "id": "run", "log_dir": str(folder / "runs"), "num_train_steps": 60, "steps_per_eval": 0,
            "checkpointer": {"keep": [{"every": 30}]}}})
        run.train()
        run.run("export", "--checkpoint", run.run_directory, "--to", "hf", "--out", folder / "exported")
        make_documents(folder, random.Random(5))
        ours, our_samples = evaluate("ostro", f"checkpoint={run.run_directory},ostro={run.ostro}", folder)
        theirs, their_samples = evaluate("hf", f"pretrained={folder / 'exported'},dtype=float32", folder)
        for task_name in ("made_choices", "made_plain"):
            check_choices(report, task_name, our_samples[task_name], their_samples[task_name])
        same = [a["resps"] == b["resps"] for a, b in zip(our_samples["made_prompts"], their_samples["made_prompts"], strict=True)]
        report.check(all(same), f"made_prompts: {sum(same)} of {len(same)} generated texts are equal")
        report.check(len({str(s["resps"]) for s in our_samples["made_prompts"]}) > 6, "made_prompts: the texts differ")
        check_scores(report, ours, theirs)
        check_own_tasks(report, run, folder, theirs)
        check_template(report, run, folder)
        earlier, earlier_samples = evaluate("ostro", f"checkpoint={run.checkpoint(30)},ostro={run.ostro}", folder)
        apart = max(abs(x[0] - y[0]) for x, y in zip(log_probs(earlier_samples["made_plain"]),
                                                     log_probs(their_samples["made_plain"]), strict=True))
        report.check(apart > 1, f"control: another checkpoint's log-probabilities differ by {apart:.1e}")
    report.finish()


if __name__ == "__main__":
    main()
