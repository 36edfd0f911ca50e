#!/usr/bin/env python3
"""Compares `ostro` with JAX on the CPU in f32, from the same parameters and batches.

Loss within 1e-6 relative and every gradient within 2e-5 of its largest element; the losses of 20 AdamW steps within
ten times of what JAX differs from itself when each batch's rows are permuted; threefry bits and uniforms identical to
jax.random. A sampled run takes one of the three models. The Llama and the optimizer below are written here, from their definitions, and share nothing with
ostro but the parameters (`ostro export`) and the batches (`ostro data batch`).
Usage: check_jax.py --ostro build/.../ostro --random build/.../random_helper
"""
import argparse
import math
import os
import subprocess
import tempfile

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file

from tiny_run import Report, TinyRun, seed

MODELS = {
    "plain": {},
    "tied_llama3": {"tie_word_embeddings": True, "num_kv_heads": 1, "z_loss_weight": 1e-3,
                    "rope": {"type": "llama3", "theta": 5000, "factor": 4, "low_freq_factor": 1,
                             "high_freq_factor": 3, "original_max_position_embeddings": 32}},
    "documents": {"activation_function": "gelu_new", "head_dim": 32, "num_kv_heads": 4},
}
STEPS = 20
# At twice the rate the tied model's attention dies: gradients of 1e-6 of the others', which in f32 are mostly the
# rounding of what cancels, in either framework.
LEARNING_RATE = 0.005


def rope_frequencies(o):
    d, rope = o["head_dim"], o["rope"]
    f = rope["theta"] ** (-np.arange(0, d, 2, dtype=np.float64) / d)
    if rope["type"] == "llama3":
        wavelength, old = 2 * math.pi / f, rope["original_max_position_embeddings"]
        low, high, factor = rope["low_freq_factor"], rope["high_freq_factor"], rope["factor"]
        blend = (old / wavelength - low) / (high - low)
        middle = (1 - blend) * f / factor + blend * f
        f = np.where(wavelength > old / low, f / factor, np.where(wavelength < old / high, f, middle))
    return f.astype(np.float32)


def rms_norm(x, weight, epsilon):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + epsilon) * weight


def rotate(x, cos, sin):  # x [batch, pos, heads, head_dim]; halves, not pairs
    a, b = jnp.split(x, 2, axis=-1)
    cos, sin = cos[None, :, None], sin[None, :, None]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def token_losses(p, batch, o):
    """Losses [batch, pos] of parameters under their interchange names."""
    tokens, targets = batch["tokens"], batch["targets"]
    b, t = tokens.shape
    heads, kv_heads, d = o["num_heads"], o["num_kv_heads"], o["head_dim"]
    angle = jnp.arange(t, dtype=jnp.float32)[:, None] * rope_frequencies(o)[None]
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    visible = jnp.tril(jnp.ones((t, t), bool))[None]
    if "segments" in batch:
        visible = visible & (batch["segments"][:, :, None] == batch["segments"][:, None, :])
    activation = {"silu": jax.nn.silu, "gelu": lambda x: jax.nn.gelu(x, approximate=False),
                  "gelu_new": lambda x: jax.nn.gelu(x, approximate=True)}[o["activation_function"]]
    x = p["model.embed_tokens.weight"][tokens]
    for layer in range(o["num_layers"]):
        w = lambda name: p[f"model.layers.{layer}.{name}.weight"]
        h = rms_norm(x, w("input_layernorm"), o["layer_norm_epsilon"])
        q = rotate((h @ w("self_attn.q_proj").T).reshape(b, t, heads, d), cos, sin)
        k = rotate((h @ w("self_attn.k_proj").T).reshape(b, t, kv_heads, d), cos, sin)
        v = (h @ w("self_attn.v_proj").T).reshape(b, t, kv_heads, d)
        k, v = (jnp.repeat(a, heads // kv_heads, axis=2) for a in (k, v))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(d)
        scores = jnp.where(visible[:, None], scores, -jnp.inf)
        attended = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)
        x = x + attended.reshape(b, t, heads * d) @ w("self_attn.o_proj").T
        h = rms_norm(x, w("post_attention_layernorm"), o["layer_norm_epsilon"])
        x = x + (activation(h @ w("mlp.gate_proj").T) * (h @ w("mlp.up_proj").T)) @ w("mlp.down_proj").T
    head = p["model.embed_tokens.weight"] if o["tie_word_embeddings"] else p["lm_head.weight"]
    logits = rms_norm(x, p["model.norm.weight"], o["layer_norm_epsilon"]) @ head.T
    lse = jax.nn.logsumexp(logits, axis=-1)
    chosen = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return lse - chosen + o["z_loss_weight"] * lse * lse


def mean_loss(p, batch, o):
    return jnp.sum(token_losses(p, batch, o) * batch["mask"]) / jnp.sum(batch["mask"])


def adamw(p, g, m, v, t, a, lr):
    """Step t (from 1) with clipping by global norm; norms and embeddings do not decay."""
    norm = jnp.sqrt(sum(jnp.sum(x * x) for x in g.values()))
    g = {k: x * jnp.minimum(1, a["max_grad_norm"] / norm) for k, x in g.items()}
    m = {k: a["beta1"] * m[k] + (1 - a["beta1"]) * g[k] for k in g}
    v = {k: a["beta2"] * v[k] + (1 - a["beta2"]) * g[k] ** 2 for k in g}
    out = {}
    for k in p:
        u = (m[k] / (1 - a["beta1"] ** t)) / (jnp.sqrt(v[k] / (1 - a["beta2"] ** t)) + a["epsilon"])
        decay = 0 if "norm" in k or "embed" in k else a["weight_decay"]
        out[k] = p[k] - lr * (u + decay * p[k])
    return out, m, v


def learning_rate(step, a):  # step from 0: linear warm-up, then cosine to a tenth
    if step < a["warmup"]:
        return a["learning_rate"] * step / a["warmup"]
    fraction = (step - a["warmup"]) / (STEPS - a["warmup"])
    floor = a["learning_rate"] * a["min_lr_ratio"]
    return floor + (a["learning_rate"] - floor) * 0.5 * (1 + math.cos(math.pi * fraction))


def arrays_of(batch):
    rows = batch["sequences"]
    out = {"tokens": np.array([r["tokens"] for r in rows], np.int32),
           "targets": np.array([r["targets"] for r in rows], np.int32),
           "mask": np.array([r["loss_mask"] for r in rows], np.float32)}
    if "segment_ids" in rows[0]:
        out["segments"] = np.array([r["segment_ids"] for r in rows], np.int32)
    return out


def load_gradients(path):
    with safe_open(path, "numpy") as file:
        return {k: file.get_tensor(k) for k in file.keys()}, file.metadata()


def check_gradients(report, name, run, o, step):
    """At the end of the run, where weights are no longer random, and at its beginning."""
    for where, params in ((run.run_directory, export(run, run.run_directory)),
                          ("init", export(run, run.checkpoint(1)))):
        run.run("grad", "--config", run.config_path, "--step", step, "--checkpoint", where, "--out",
                run.directory / "g.safetensors")
        ours, metadata = load_gradients(run.directory / "g.safetensors")
        batch = arrays_of(run.batch(step))
        loss, theirs = jax.jit(jax.value_and_grad(lambda p: mean_loss(p, batch, o)))(params)
        relative = abs(float(metadata["loss"]) - float(loss)) / float(loss)
        where = "init" if where == "init" else "trained"
        report.check(relative <= 1e-6, f"{name}, {where}: loss {float(loss):.7f}, differs by {relative:.1e} (limit 1e-6)")
        worst = {k: float(np.abs(ours[k] - theirs[k]).max() / np.abs(theirs[k]).max()) for k in theirs}
        key = max(worst, key=worst.get)
        report.check(set(ours) == set(theirs) == set(params) and worst[key] <= 2e-5,
                     f"{name}, {where}: {len(ours)} gradients, the worst differs by {worst[key]:.1e} of its largest "
                     f"element (limit 2e-5): {key}")


def export(run, checkpoint):
    directory = run.directory / "export"
    run.run("export", "--checkpoint", checkpoint, "--to", "hf", "--out", directory)
    return {k: jnp.asarray(v) for k, v in load_file(directory / "model.safetensors").items()}


def jax_losses(params, batches, a, o, permute=None):
    rng = np.random.default_rng(permute)
    step_fn = jax.jit(jax.value_and_grad(lambda p, batch: mean_loss(p, batch, o)))
    update = jax.jit(lambda p, g, m, v, t, lr: adamw(p, g, m, v, t, a, lr))
    m, v = ({k: jnp.zeros_like(x) for k, x in params.items()} for _ in range(2))
    losses = []
    for step, batch in enumerate(batches):
        if permute is not None:
            order = rng.permutation(len(batch["tokens"]))
            batch = {k: x[order] for k, x in batch.items()}
        loss, g = step_fn(params, batch)
        losses.append(float(loss))
        params, m, v = update(params, g, m, v, jnp.float32(step + 1), jnp.float32(learning_rate(step, a)))
    return np.array(losses)


def check_steps(report, name, run, o):
    a = {"learning_rate": LEARNING_RATE, "warmup": 4, "min_lr_ratio": 0.1, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8,
         "weight_decay": 0.1, "max_grad_norm": 1.0}
    # The first step of the warm-up has learning rate 0: after it the parameters are still the initial ones.
    params = export(run, run.checkpoint(1))
    batches = [arrays_of(run.batch(step)) for step in range(STEPS)]
    theirs = jax_losses(params, batches, a, o)
    permuted = [np.abs(jax_losses(params, batches, a, o, permute=seed) - theirs).max() for seed in range(3)]
    ours = np.abs(np.array(run.losses()) - theirs).max()
    limit = 10 * max(permuted)
    falls = theirs[-1] < theirs[0] - 0.3
    report.check(ours <= limit and falls and len(run.losses()) == STEPS,
                 f"{name}: losses of {STEPS} steps ({theirs[0]:.3f} to {theirs[-1]:.3f}) differ from JAX's by at most "
                 f"{ours:.1e}; JAX from itself with permuted batches by {max(permuted):.1e} (limit ten times that)")


def check_random(report, helper):
    def ours(kind, seed, folds, first, count):
        words = subprocess.run([helper, kind, str(seed), *map(str, folds), "--", str(first), str(count)],
                               capture_output=True, check=True, text=True).stdout.split()
        return np.array([int(w, 16) for w in words], np.uint32)

    bits = uniforms = keys = 0
    same = True
    for seed in (0, 1, 42, 2**31 - 1, 2**32 - 1):
        for folds in ((), (7,), (0, 4294967295), (3, 1, 4, 1, 5)):
            key = jax.random.PRNGKey(np.uint32(seed)) if seed < 2**31 else jnp.array([0, seed], jnp.uint32)
            for fold in folds:
                key = jax.random.fold_in(key, np.uint32(fold))
            key = jax.random.wrap_key_data(jnp.asarray(key, jnp.uint32), impl="threefry2x32")
            same &= bool((ours("key", seed, folds, 0, 1) == np.asarray(jax.random.key_data(key))).all())
            draw = np.asarray(jax.random.bits(key, (3, 7, 50), "uint32")).ravel()
            same &= bool((ours("bits", seed, folds, 0, draw.size) == draw).all())
            same &= bool((ours("bits", seed, folds, 1000, 50) == draw[1000:1050]).all())
            uniform = np.asarray(jax.random.uniform(key, (1003,), "float32")).view(np.uint32)
            same &= bool((ours("uniform", seed, folds, 0, 1003) == uniform).all())
            keys, bits, uniforms = keys + 1, bits + draw.size, uniforms + 1003
    report.check(same, f"threefry: {keys} keys, {bits} words and {uniforms} uniforms identical to jax.random")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--random", required=True)
    args = parser.parse_args()
    report = Report()
    check_random(report, args.random)
    with tempfile.TemporaryDirectory() as scratch:
        for name in seed.draw("models", MODELS, 1):
            options = MODELS[name]
            run = TinyRun(args.ostro, scratch, name, {
                "model": options, "optimizer": {"learning_rate": LEARNING_RATE},
                "data": {"block_cross_document_attention": name == "documents"},
                "trainer": {"num_train_steps": STEPS, "checkpointer": {"keep": [{"every": 1, "until": 1}]}},
                "numerics": {"leaf_examples": 3}})
            run.train()
            o = {"num_layers": 2, "activation_function": "silu", "layer_norm_epsilon": 1e-5, "z_loss_weight": 0.0,
                 "tie_word_embeddings": False, "rope": {"type": "default", "theta": 10000.0}, **run.config["model"]}
            o.setdefault("head_dim", o["hidden_dim"] // o["num_heads"])
            check_gradients(report, name, run, o, step=7)
            check_steps(report, name, run, o)
    report.finish()


if __name__ == "__main__":
    main()
