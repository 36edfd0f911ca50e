"""Peer: the same training step in plain JAX: jit with donated state, lax.scan over the layers, value_and_grad, optax's
AdamW behind clipping by the global norm.

    python jax_llama.py --size small58 --dtype bf16 --threads 2 [--remat]

bf16 = parameters in f32, cast where they are used. XLA takes as many threads as the process may run on. How it is
driven: common.py.
"""
import argparse, os
import common as C

ap = argparse.ArgumentParser()
ap.add_argument("--remat", action="store_true", help="keep each layer's input only")
a, c = C.arguments(ap)
B, S = c["batch"], c["seq"]
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:a.threads])
import jax
import jax.numpy as jnp
import optax

L, H, NH, KV = c["L"], c["H"], c["heads"], c["kv"]
D, G = H // NH, NH // KV
compute = jnp.bfloat16 if a.dtype == "bf16" else jnp.float32

angles = jnp.outer(jnp.arange(S, dtype=jnp.float32), C.THETA ** (-jnp.arange(0, D, 2, dtype=jnp.float32) / D))
angles = jnp.concatenate([angles, angles], -1)[None, :, None, :]


def rms_norm(x, weight):
    x32 = x.astype(jnp.float32)
    scale = jax.lax.rsqrt(jnp.mean(jnp.square(x32), -1, keepdims=True) + C.EPS)
    return (x32 * scale * weight).astype(x.dtype)


def rope(x):  # [batch, pos, heads, head_dim]
    x32 = x.astype(jnp.float32)
    first, second = jnp.split(x32, 2, -1)
    turned = jnp.concatenate([-second, first], -1)
    return (x32 * jnp.cos(angles) + turned * jnp.sin(angles)).astype(x.dtype)


def linear(x, weight):
    return x @ weight.astype(compute).T


def layer(x, w):
    h = rms_norm(x, w["n1"])
    q = rope(linear(h, w["q"]).reshape(B, S, NH, D)).reshape(B, S, KV, G, D)
    k = rope(linear(h, w["k"]).reshape(B, S, KV, D))
    v = linear(h, w["v"]).reshape(B, S, KV, D)
    scores = jnp.einsum("bqhgd,bkhd->bhgqk", q, k).astype(jnp.float32) / jnp.sqrt(jnp.float32(D))
    causal = jnp.arange(S)[:, None] >= jnp.arange(S)[None, :]
    weights = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf), -1).astype(compute)
    mixed = jnp.einsum("bhgqk,bkhd->bqhgd", weights, v).reshape(B, S, H)
    x = x + linear(mixed, w["o"])
    h = rms_norm(x, w["n2"])
    return x + linear(jax.nn.silu(linear(h, w["gate"])) * linear(h, w["up"]), w["down"])


def loss_fn(p, tokens, targets):
    one = jax.checkpoint(layer) if a.remat else layer
    stacked = {n: w for n, w in p.items() if n not in ("emb", "head", "norm")}
    x, _ = jax.lax.scan(lambda x, w: (one(x, w), None), p["emb"][tokens].astype(compute), stacked)
    logits = linear(rms_norm(x, p["norm"]), p["head"]).astype(jnp.float32)
    return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()


optimizer = optax.chain(
    optax.clip_by_global_norm(C.ADAM["clip"]),
    optax.adamw(C.ADAM["lr"], *C.ADAM["betas"], eps=C.ADAM["eps"], weight_decay=C.ADAM["wd"]))


def train_step(p, state, tokens, targets):
    loss, gradients = jax.value_and_grad(loss_fn)(p, tokens, targets)
    updates, state = optimizer.update(gradients, state, p)
    return optax.apply_updates(p, updates), state, loss


compiled = jax.jit(train_step, donate_argnums=(0, 1))
params = {n: jnp.asarray(w) for n, w in C.init(c).items()}
state = optimizer.init(params)


def step(i):
    global params, state
    params, state, loss = compiled(params, state, *C.batch(c, B, S, i))
    return float(jax.block_until_ready((params, loss))[1])


C.drive(f"jax {jax.__version__}" + (" remat" if a.remat else ""), step)
