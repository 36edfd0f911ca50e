#!/usr/bin/env python3
"""Tests the worked example of docs/guide/evaluate.md: its commands print what the page says.

The report is the same file with other batches and another number of threads, and its figures follow from the lines of
--samples. Errors name their place. The page has every key of a task file. With a tokenizer that has a beginning token, a
store, samples, scores and conversations begin with it, in a run without it none does, and closed standard streams move no
hash.

    evaluate_test.py --ostro BINARY [--update]
"""
import argparse
import functools
import json
import math
import operator
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from readme_test import ROOT, compare, examples, run

from program import check

PAGE = ROOT / "docs/guide/evaluate.md"


class Program:
    def __init__(self, ostro, folder):
        self.ostro, self.folder = str(pathlib.Path(ostro).resolve()), folder

    def __call__(self, *words, code=0, **settings):
        env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")} | settings
        done = subprocess.run([self.ostro, *words], cwd=self.folder, env=env, capture_output=True, text=True, check=False)
        check(done.returncode == code, f"{' '.join(words)}: exit {done.returncode}, not {code}: {done.stderr}")
        return done.stdout if code == 0 or done.stdout else done.stderr


def serial(values):
    return functools.reduce(operator.add, values, 0.0)


def check_report(ostro, folder):
    eval_words = ("eval", "--checkpoint", "runs/sums", "--tasks", "tasks.yaml", "--out")
    report = (folder / "report.json").read_bytes()
    for batch, threads in (("7", "1"), ("600", "3")):
        ostro(*eval_words, "other.json", "--batch_tokens", batch, OSTRO_THREADS=threads)
        check((folder / "other.json").read_bytes() == report, f"another report with batches of {batch} tokens")
    samples = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    one = json.loads(report)["checkpoints"][0]
    entries = one["corpora"] | one["tasks"]
    for name, entry in entries.items():
        rows = [row for row in samples if row.get("corpus", row.get("task")) == name]
        check(len(rows) == entry["documents"] > 0, f"{name}: {len(rows)} samples")
        for measure, figures in entry["measures"].items():
            if measure == "perplexity":
                expected = math.exp(-entry["measures"]["log_likelihood"]["value"])
            elif measure == "bits_per_byte":
                expected = -serial(row["log_prob"] for row in rows) / math.log(2) / sum(row["bytes"] for row in rows)
            elif measure == "loss":
                expected = -serial(row["log_prob"] for row in rows) / sum(row["tokens"] for row in rows)
            else:
                expected = serial(row["measures"][measure] for row in rows) / len(rows)
            check(abs(figures["value"] - expected) < 1e-9, f"{name}: {measure} {figures['value']}, of samples {expected}")
    node = one["corpora_averages"]["sums"]
    check(node["members"] == ["sums/held_out", "sums/train"], node)
    values = [one["corpora"][member]["measures"]["bits_per_byte"]["value"] for member in node["members"]]
    check(abs(node["measures"]["bits_per_byte"]["macro"]["value"] - sum(values) / 2) < 1e-12, node)
    choose = one["tasks"]["add/choose"]["measures"]
    check(choose["acc"]["value"] > 0.5, f"the model learned nothing: {choose}")


def check_errors(ostro, folder):
    text = (folder / "tasks.yaml").read_text()

    def said(old, new, *words):
        check(old in text, old)
        (folder / "bad.yaml").write_text(text.replace(old, new, 1))
        return ostro("eval", "--checkpoint", "runs/sums", "--tasks", "bad.yaml", *words, code=2)

    def expect(got, *parts):
        for part in parts:
            check(part in got and got.count("\n") == 1, f"{part!r} is not in {got!r}")

    expect(said("doc_to_choice", "doc_to_choices"), "bad.yaml:", "tasks.add/choose.doc_to_choices", "tasks.add/choose.doc_to_choice\"")
    expect(said("doc_to_target: label", "doc_to_target: lable"), "questions.jsonl:1", "lable", "label")
    expect(said("{{a}}+{{b}}=", "{{a}}+{{c}}="), "questions.jsonl:1", "'c' is undefined")
    expect(said("num_fewshot: 2", "num_fewshot: 50"), "num_fewshot: 50", "35")
    expect(said("doc_to_choice: choices", 'doc_to_choice: ["", "b"]'), "doc_to_choice", "choice 0 is empty")
    expect(said("type: loglikelihood", "type: logprob"), "tasks.add/sure.type", "loglikelihood")
    expect(said("limit: 4", "limit: 0"), "corpora.sums/train.limit: 0")
    expect(said("max_gen_toks: 8", "max_gen_toks: 64"), "tasks.add/write: questions.jsonl:1", "64", "use 1 to 63")
    expect(said("    numeric: true", '    regex: {pattern: "("}'), "tasks.add/write.regex.pattern")
    (folder / "empty.jsonl").write_text("\n")
    expect(said("files: [text/prose.jsonl]", "files: [empty.jsonl]"), "corpora.prose.files", "no text", "empty.jsonl")
    expect(said("files: [questions.jsonl]", "files: [empty.jsonl]"), "tasks.add/choose.files", "no document", "empty.jsonl")
    (folder / "bad.yaml").write_text("corpora: {}\n")
    expect(ostro("eval", "--checkpoint", "runs/sums", "--tasks", "bad.yaml", code=2), "bad.yaml", "neither corpora nor tasks")
    expect(ostro("eval", "--checkpoint", "runs/sums", code=2), "--config", "--tasks")
    expect(ostro("eval", "--checkpoint", "runs/sums", "--tasks", "tasks.yaml", "--only", "ad", code=1), '"ad"', "add")
    expect(ostro("diff", "runs/sums", code=2), "two checkpoints")
    expect(ostro("diff", "runs/sums", "text", code=2), "text: neither a checkpoint")
    expect(ostro("diff", "runs/sums", "runs/sums", "--only", "head", code=2), '"head" matches no parameter')


def check_keys(page):
    source = (ROOT / "ostro" / "eval" / "tasks" / "options.cc").read_text()
    keys = re.findall(r't\.(?:add|section)\(&\w+, "(\w+)"', source)
    check(len(keys) > 25, f"only {len(keys)} keys are found")
    missing = [key for key in keys if not re.search(rf"`{key}`|[{{ ]{key}[,}}]", page)]
    check(not missing, f"{PAGE.name} does not have the keys {', '.join(missing)}")


def check_diff(ostro):
    first, second = "runs/sums/checkpoints/step-00000100", "runs/sums"
    out = json.loads(ostro("diff", first, second, "--json", "--optimizer", code=1))
    check(not out["equal"] and all(t["kind"] == "changed" for t in out["tensors"]), out)
    check(sum(t["elements"] for t in out["tensors"]) == out["all"]["elements"] > 0, out["all"])
    check(json.loads(ostro("diff", second, second, "--json"))["equal"], "a checkpoint differs from itself")


TEMPLATE = ("{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>{% endif %}")
TINY = """data: {train_urls: [begin/texts], tokenizer: begin/tok, cache_dir: begin/cache, validation_fraction: 0}
model: {seq_len: 32, hidden_dim: 16, intermediate_dim: 24, num_layers: 1, num_heads: 2, num_kv_heads: 1, initializer_range: 0.3}
trainer: {id: begin, train_batch_size: 2, num_train_steps: 3, steps_per_eval: 0, mp: f32}
"""


def check_beginning(ostro, folder):
    place = folder / "begin"
    (place / "texts").mkdir(parents=True)
    for i in range(30):
        (place / "texts" / f"{i}.txt").write_text(" ".join(str(k) for k in range(i, i + 20)))
    (place / "tok").mkdir()
    tokenizer = place / "tok" / "tokenizer.json"
    ostro("tokenizer", "train", "--input", "begin/texts/*.txt", "--vocab_size", "280", "--out", str(tokenizer),
          "--special_tokens", "<|bos|>", "<|eos|>", "<|im_start|>", "<|im_end|>")
    config = {"bos_token": "<|bos|>", "eos_token": "<|eos|>"}
    (place / "tok" / "tokenizer_config.json").write_text(json.dumps(config))
    (place / "tok" / "chat_template.jinja").write_text(TEMPLATE)
    parsed = json.loads(tokenizer.read_text())
    ids = {t["content"]: t["id"] for t in parsed["added_tokens"]}
    bos, end = ids["<|bos|>"], ids["<|im_end|>"]
    (place / "tok" / "generation_config.json").write_text(json.dumps({"eos_token_id": [ids["<|eos|>"], end]}))
    (folder / "begin.yaml").write_text(TINY)
    train = ("train", "--config", "begin.yaml")
    parsed["post_processor"] = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|bos|>", "type_id": 0}},
                                                                         {"Sequence": {"id": "A", "type_id": 0}}],
                                "pair": [], "special_tokens": {"<|bos|>": {"id": "<|bos|>", "ids": [bos], "tokens": ["<|bos|>"]}}}
    tokenizer.write_text(json.dumps(parsed))
    ostro(*train)
    ledger = json.loads((place / "cache" / "ledger.json").read_text())
    check(ledger["content"]["preprocessing"]["before"] == [bos], "the ledger has no beginning token")
    template = json.loads(ostro("sample", "--checkpoint", "runs/begin", "--prompt", "1 2", "--max_new_tokens", "6", "--json"))
    check(template["prompt_ids"][0] == bos, f"a sample begins with {template['prompt_ids']}")
    streamed = ostro("sample", "--checkpoint", "runs/begin", "--prompt", "1 2", "--max_new_tokens", "6", "--json", "--stream_weights")
    check(json.loads(streamed) == template, "--stream_weights makes another prompt")
    # A run on plain texts copies no template: it is put beside the run's tokenizer.
    (folder / "runs" / "begin" / "chat_template.jinja").write_text(TEMPLATE)
    chat = json.loads(ostro("sample", "--checkpoint", "runs/begin", "--prompt", "1 2", "--max_new_tokens", "6", "--json", "--chat"))
    check(chat["prompt_ids"][:2] == [bos, ids["<|im_start|>"]], f"a conversation begins with {chat['prompt_ids']}")
    # A template that writes no beginning token gets none.
    (folder / "runs" / "begin" / "chat_template.jinja").write_text(TEMPLATE.replace("{{ bos_token }}", ""))
    without = json.loads(ostro("sample", "--checkpoint", "runs/begin", "--prompt", "1 2", "--max_new_tokens", "6", "--json", "--chat"))
    check(without["prompt_ids"] == chat["prompt_ids"][1:], f"a template without a beginning token: {without['prompt_ids']}")
    (folder / "runs" / "begin" / "chat_template.jinja").write_text(TEMPLATE)
    messages = [{"role": "user", "content": "1 2"}]
    asked = [{"prompt": "1 2", "max_tokens": 6}, {"messages": messages, "max_tokens": 6}, {"chat": messages},
             {"chat": messages + [{"role": "assistant", "content": "3"}], "add_generation_prompt": False}]
    done = subprocess.run([ostro.ostro, "score", "--checkpoint", "runs/begin"], cwd=folder, capture_output=True, text=True, check=True,
                          input="".join(json.dumps(line) + "\n" for line in asked))
    scored = [json.loads(line) for line in done.stdout.splitlines()]
    check([line["text"] for line in scored] == [template["text"], chat["text"], "<|bos|><|im_start|>1 2<|im_end|><|im_start|>",
                                                "<|bos|><|im_start|>1 2<|im_end|><|im_start|>3"], f"ostro score says {scored}")
    # Without it: as before there was such a token, and a model says how it was trained.
    ostro(*train, "--trainer.id", "none", "--data.cache_dir", "begin/none", "--data.enforce_bos", "false")
    none = json.loads(ostro("sample", "--checkpoint", "runs/none", "--prompt", "1 2", "--max_new_tokens", "1", "--json"))
    check(none["prompt_ids"] == template["prompt_ids"][1:], f"a run without beginning tokens begins with {none['prompt_ids']}")
    closed = subprocess.run(["sh", "-c", f"exec {ostro.ostro} {' '.join(train)} --trainer.id closed <&- >&- 2>&-"], cwd=folder, check=False)
    check(closed.returncode == 0, f"training with closed streams: exit {closed.returncode}")
    check(ostro("hash", "runs/closed").strip() == ostro("hash", "runs/begin").strip(), "closed streams move the hash")
    # Weights of one tokenizer and text of another: named, since nothing else would show it.
    done = subprocess.run([ostro.ostro, *train, "--trainer.id", "other", "--data.cache_dir", "begin/other", "--data.tokenizer", "null",
                           "--data.vocab_size", "280", "--trainer.initialize_from", "runs/begin"],
                          cwd=folder, capture_output=True, text=True, check=False)
    check("made with another tokenizer than the text: runs/begin/tokenizer.json" in done.stderr, f"nothing about tokenizers: {done.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()
    page = PAGE.read_text()
    cases = examples(page)
    check(len(cases) >= 8, "the page has no commands")
    check_keys(page)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file, content in re.findall(r"^```\w+ (\S+)\n(.*?)^```$", page, re.M | re.S):
            (folder / file).write_text(content)
        wrong = compare(PAGE, cases, run([command for _, command, _ in cases], args.ostro, folder), args.update)
        ostro = Program(args.ostro, folder)
        check_report(ostro, folder)
        check_diff(ostro)
        check_errors(ostro, folder)
        check_beginning(ostro, folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
