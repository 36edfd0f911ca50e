#!/usr/bin/env python3
"""Loads what `ostro export --to hf` writes in transformers, in f32, and compares with `ostro` itself.

Log-probabilities of held-out text within 2e-4 of `ostro eval --per_token`; greedy continuations of 12 prompts equal
at every step where transformers' two largest logits differ by more than 1e-3 (at least 90 % of the steps must);
token ids identical. Four models, of which a sampled run takes two: untied and tied heads, both kinds of rope, all activations, several head layouts.
Usage: check_hf.py --ostro build/.../ostro
"""
import argparse
import json
import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from tiny_run import Report, TinyRun, seed

MODELS = {
    "plain": {},
    "tied_llama3": {"tie_word_embeddings": True, "num_kv_heads": 1, "layer_norm_epsilon": 1e-3,
                    "rope": {"type": "llama3", "theta": 5000, "factor": 4, "low_freq_factor": 1,
                             "high_freq_factor": 3, "original_max_position_embeddings": 32}},
    "gelu_wide_heads": {"activation_function": "gelu", "head_dim": 32, "num_kv_heads": 4, "num_layers": 3},
    "gelu_new_theta": {"activation_function": "gelu_new", "rope": {"type": "default", "theta": 500},
                       "num_heads": 8, "num_kv_heads": 2},
}
PROMPTS = ["def ", "import os\n", "class Node:\n    def __init__(self", "    return ", "# This is", "for i in range(",
           "\"\"\"The", "if __name__ == ", "try:\n        ", "x = [", "raise ValueError(", "self."]
MIXED = ("def f(x):\n    return {'a': x**2}  # caf\u00e9, na\u00efve\n\t\tif x:\r\n" + " " * 37 + "end\n\n\n\n" +
         "\u0416\u0443\u043a \u6771\u4eac\u90fd \u0e20\u0e32\u0e29\u0e32 \u0627\u0644\u0639\u0631\u0628\u064a\u0629 "
         "\U0001f469\u200d\U0001f680\U0001f1eb\U0001f1f7 I'LL don't we've 1234567 \u00a0\u3000\u2028 <|endoftext|> tail"
         ).encode() + b" bad \xff\xfe\xc3( \xe6\x9d bytes \xf0\x9f\x98 \x00\x01 end"


def check_log_probs(report, name, run, model):
    run.run("eval", "--config", run.config_path, "--checkpoint", run.run_directory, "--per_token",
            run.directory / "log_probs.safetensors", "--json")
    ours = load_file(run.directory / "log_probs.safetensors")
    tokens, targets = (torch.from_numpy(ours[k].astype(np.int64)) for k in ("tokens", "targets"))
    with torch.no_grad():
        log_probs = model(tokens).logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0].numpy()
    counted = ours["mask"] == 1
    worst = np.abs(log_probs - ours["log_prob"])[counted].max()
    report.check(worst <= 2e-4 and counted.sum() > 300,
                 f"{name}: {counted.sum()} log-probabilities, largest difference {worst:.1e} (limit 2e-4)")
    # The control: two query heads of one layer exchanged must be seen.
    weight = model.model.layers[0].self_attn.q_proj.weight.data
    heads = weight.view(run.config["model"]["num_heads"], -1)
    heads[[0, -1]] = heads[[-1, 0]].clone()
    with torch.no_grad():
        wrong = model(tokens).logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0].numpy()
    heads[[0, -1]] = heads[[-1, 0]].clone()
    worst = np.abs(wrong - ours["log_prob"])[counted].max()
    report.check(worst > 2e-4, f"{name}: control with two heads exchanged differs by {worst:.1e}")


def check_greedy(report, name, run, model):
    steps = compared = equal = 0
    distinct = set()
    for prompt in PROMPTS:
        out = json.loads(run.run("sample", "--checkpoint", run.run_directory, "--prompt", prompt, "--max_new_tokens",
                                 40, "--json"))
        ids, first = out["prompt_ids"] + out["ids"], len(out["prompt_ids"])
        with torch.no_grad():
            top = model(torch.tensor([ids])).logits[0, first - 1:-1].topk(2)
        for i, token in enumerate(out["ids"]):
            steps += 1
            distinct.add(token)
            if top.values[i, 0] - top.values[i, 1] > 1e-3:
                compared += 1
                equal += int(top.indices[i, 0]) == token
    report.check(equal == compared and compared >= 0.9 * steps and len(distinct) > 8,
                 f"{name}: greedy continuations of {len(PROMPTS)} prompts: {equal} of {compared} clear steps equal, "
                 f"{compared} of {steps} clear, {len(distinct)} different tokens")


def check_generate(report, name, run, model, tokenizer):
    """transformers' own loop with its cache, until the first step that is not clear."""
    prompt = PROMPTS[2]
    out = json.loads(run.run("sample", "--checkpoint", run.run_directory, "--prompt", prompt, "--max_new_tokens", 24,
                             "--json"))
    ids = tokenizer(prompt, return_tensors="pt", add_special_tokens=False)
    made = model.generate(**ids, max_new_tokens=24, do_sample=False, pad_token_id=0)[0].tolist()
    report.check(made == out["prompt_ids"] + out["ids"], f"{name}: generate() gives the same {len(out['ids'])} tokens")


def check_tokenizer(report, name, run, tokenizer):
    text = MIXED * 3
    ours = json.loads(run.run("tokenizer", "encode", "--tokenizer", run.tokenizer, "--json", stdin=text))
    theirs = tokenizer(text.decode(errors="replace"), add_special_tokens=False)["input_ids"]
    report.check(ours == theirs, f"{name}: {len(ours)} token ids of a mixed text")
    report.check(tokenizer.eos_token == "<|endoftext|>", f"{name}: eos token {tokenizer.eos_token}")


def check_directory(report, name, run, directory):
    model, info = AutoModelForCausalLM.from_pretrained(directory, output_loading_info=True)
    loose = {k: v for k, v in info.items() if v}
    report.check(not loose and model.dtype == torch.float32, f"{name}: loads as {model.dtype}, nothing missing {loose}")
    config = AutoConfig.from_pretrained(directory)
    head, embedding = model.get_output_embeddings().weight, model.get_input_embeddings().weight
    tied = run.config["model"].get("tie_word_embeddings", False)
    report.check((head.data_ptr() == embedding.data_ptr()) == tied and config.tie_word_embeddings == tied,
                 f"{name}: tied {tied}")
    return model.eval()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    report = Report()
    torch.set_num_threads(2)
    transformers.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as scratch:
        for name in seed.draw("models", MODELS, 2):
            options = MODELS[name]
            run = TinyRun(args.ostro, scratch, name, {"model": options, "trainer": {"num_train_steps": 400}})
            run.train()
            losses = run.losses()
            report.check(losses[-1] < losses[0] - 1, f"{name}: trained, loss {losses[0]:.3f} to {losses[-1]:.3f}")
            directory = run.directory / f"{name}_hf"
            run.run("export", "--checkpoint", run.run_directory, "--to", "hf", "--out", directory)
            model = check_directory(report, name, run, directory)
            tokenizer = AutoTokenizer.from_pretrained(directory)
            check_tokenizer(report, name, run, tokenizer)
            check_log_probs(report, name, run, model)
            check_greedy(report, name, run, model)
            check_generate(report, name, run, model, tokenizer)
    report.finish()


if __name__ == "__main__":
    main()
