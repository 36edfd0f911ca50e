#!/usr/bin/env python3
"""Compares features of decoders that no imported family has with PyTorch in f32: attention sinks, a head with a bias,
routers with a bias, with sigmoids, with a softmax over the chosen experts.

Three small models are trained for some steps, so that sinks and biases have values of their own. Log-probabilities of
held-out text by the definitions below, from the arrays of the checkpoint (Zarr), are within 2e-4; without one of
these features, the planted error, they differ by at least 10 times that. Tokens behind a choice of experts that hangs
on less than 1e-5 do not count. Attention with sinks is that of transformers' gpt-oss.
Usage: check_features.py --ostro build/.../ostro
"""
import argparse
import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import numpy as np
import torch
import zarr
from safetensors.numpy import load_file
from tiny_run import Report, TinyRun
from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward

LIMIT, MARGIN = 2e-4, 1e-5
MIXTURE = {"num_experts": 4, "num_experts_per_tok": 2, "intermediate_dim": 64}
# name: (options of the model, planted errors: what the reference leaves out)
MODELS = {
    "sinks": ({"attention_sink": True, "head_bias": True}, ["attention_sink", "head_bias"]),
    "sigmoid": (MIXTURE | {"router_scores": "sigmoid", "norm_topk_prob": True, "routed_scaling_factor": 2.5,
                           "track_expert_load": True, "router_bias_update_rate": 0.05},
                ["router_bias_update_rate", "routed_scaling_factor", "router_scores"]),
    "softmax_chosen": (MIXTURE | {"router_scores": "softmax_chosen"}, ["router_scores"]),
}
SIZES = {"type": "decoder", "seq_len": 96, "hidden_dim": 64, "intermediate_dim": 160, "num_layers": 2, "num_heads": 4,
         "num_kv_heads": 2}
EPSILON, THETA, HEAD_DIM = 1e-5, 10000.0, 16


class Heads(torch.nn.Module):
    """What the attention of gpt-oss asks of its module."""

    def __init__(self, sinks, group):
        super().__init__()
        self.sinks, self.num_key_value_groups = sinks, group


def norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON) * weight


def turned(x):
    """[batch, heads, pos, head_dim]."""
    angle = torch.arange(x.shape[2])[:, None] * THETA ** (-torch.arange(0, HEAD_DIM, 2) / HEAD_DIM)
    a, b = x.chunk(2, -1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def attention(p, layer, h, without):
    """h [batch, pos, embed]; the weights are [embed, kv_heads, group + 2, head_dim] and [kv_heads, group, head_dim, embed]."""
    b, t, _ = h.shape
    qkv = torch.einsum("bte,ekgd->bkgtd", h, p["attention/qkv"][layer])
    q, k, v = qkv[:, :, :-2].flatten(1, 2), qkv[:, :, -2], qkv[:, :, -1]
    sinks = p["attention/sink_bias"][layer].flatten() if "attention/sink_bias" in p else torch.full((q.shape[1],), -1e9)
    if "attention_sink" in without:
        sinks = torch.full_like(sinks, -1e9)
    mask = torch.full((t, t), float("-inf")).triu(1)[None, None]
    out, _ = eager_attention_forward(Heads(sinks, q.shape[1] // k.shape[1]), turned(q), turned(k), v, mask, HEAD_DIM ** -0.5)
    return torch.einsum("btnd,nde->bte", out, p["attention/o"][layer].flatten(0, 1))


def experts(p, layer, h, o, without, margins):
    logits = h @ p["moe/router/weight"][layer]
    kind = "softmax" if "router_scores" in without else o["router_scores"]
    scores = {"sigmoid": torch.sigmoid, "softmax": lambda x: x.softmax(-1), "softmax_chosen": lambda x: x}[kind](logits)
    ranking = scores
    if "moe/router/bias" in p and "router_bias_update_rate" not in without:
        ranking = scores + p["moe/router/bias"][layer]
    top = ranking.topk(o["num_experts_per_tok"] + 1)
    margins.append((top.values[..., -2] - top.values[..., -1]).numpy())
    chosen = top.indices[..., :-1]
    weights = scores.gather(-1, chosen)
    if kind == "softmax_chosen":
        weights = weights.softmax(-1)
    if o.get("norm_topk_prob"):
        weights = weights / weights.sum(-1, keepdim=True)
    if "routed_scaling_factor" not in without:
        weights = weights * o.get("routed_scaling_factor", 1.0)
    gate, up = torch.einsum("bte,negm->gbtnm", h, p["moe/gate_up"][layer])
    all_experts = torch.einsum("btnm,nme->btne", torch.nn.functional.silu(gate) * up, p["moe/down"][layer])
    rows = all_experts.gather(2, chosen[..., None].expand(*chosen.shape, h.shape[-1]))
    return (rows * weights[..., None]).sum(2)


def log_probs(p, tokens, targets, o, without=()):
    """[sequence, pos], and the least margin of a choice of experts for each token, or infinity."""
    margins = [np.full(tokens.shape, np.inf)]
    x = p["embedding"][tokens]
    for layer in range(SIZES["num_layers"]):
        x = x + attention(p, layer, norm(x, p["attention_norm"][layer]), without)
        h = norm(x, p["mlp_norm"][layer])
        if o.get("num_experts"):
            x = x + experts(p, layer, h, o, without, margins)
        else:
            gate, up = torch.einsum("bte,egm->gbtm", h, p["mlp/gate_up"][layer])
            x = x + (torch.nn.functional.silu(gate) * up) @ p["mlp/down"][layer]
    logits = norm(x, p["norm"]) @ p["head"]
    if "head/bias" in p and "head_bias" not in without:
        logits = logits + p["head/bias"]
    return logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0].numpy(), np.min(margins, 0)


def parameters(checkpoint):
    """Path without "model/layers/" or "model/" and without "/weight" -> array, those of layers with their axis in front."""
    out = {}
    for name, array in zarr.open_group(checkpoint, mode="r")["model"].members(max_depth=None):
        if isinstance(array, zarr.Array):
            out[name.removeprefix("layers/").removesuffix("/weight")] = torch.from_numpy(array[...].astype(np.float32))
    out["moe/router/weight"] = out.pop("moe/router", None)
    return {k: v for k, v in out.items() if v is not None}


def check(report, ostro, directory, name, options, planted):
    model = SIZES | options
    run = TinyRun(ostro, directory, name, {"model": model, "trainer": {"num_train_steps": 30}})
    run.train()
    path = run.directory / f"{name}.safetensors"
    run.run("eval", "--config", run.config_path, "--checkpoint", run.run_directory, "--per_token", path, "--json")
    ours, p = load_file(path), parameters(run.checkpoint(30))
    tokens, targets = (torch.from_numpy(ours[k].astype(np.int64)) for k in ("tokens", "targets"))
    with torch.no_grad():
        theirs, margins = log_probs(p, tokens, targets, model)
        counted = (ours["mask"] == 1) & (np.minimum.accumulate(margins, 1) > MARGIN)
        differ = lambda other: np.abs(other - ours["log_prob"])[counted].max()
        worst = differ(theirs)
        report.check(worst <= LIMIT and counted.sum() >= 150,
                     f"{name}: {counted.sum()} log-probabilities, largest difference {worst:.1e} (limit {LIMIT})")
        for feature in planted:
            worst = differ(log_probs(p, tokens, targets, model, [feature])[0])
            report.check(worst >= 10 * LIMIT, f"{name}: planted: without {feature}: differs by {worst:.1e}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    report = Report()
    with tempfile.TemporaryDirectory() as directory:
        for name, (options, planted) in MODELS.items():
            check(report, args.ostro, directory, name, options, planted)
    report.finish()


if __name__ == "__main__":
    main()
