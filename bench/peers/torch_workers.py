"""Peer: the train step of torch_llama.py on several processes over Gloo, by DistributedDataParallel or FSDP2.

    python torch_workers.py --size small58 --workers 2 --threads 1 --how ddp|fsdp [--compile]

Every process has --threads threads and an equal share of the batch; rank 0 is driven as the other peers are (common.py)
and tells the others when to do a step. f32.
"""
import argparse, os, subprocess, sys
import common as C

ap = argparse.ArgumentParser()
ap.add_argument("--compile", action="store_true")
ap.add_argument("--workers", type=int, default=2)
ap.add_argument("--how", choices=["ddp", "fsdp"], default="ddp")
ap.add_argument("--rank", type=int, default=0, help="for the processes that rank 0 starts")
a, c = C.arguments(ap)
if a.dtype != "f32" or c["batch"] % a.workers:
    ap.error("f32, and a batch that the workers share equally")
for v in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[v] = str(a.threads)
import torch
import torch.distributed as dist
from torch_model import Llama, adam, rope_tables
torch.set_num_threads(a.threads)

children = []
if a.rank == 0:
    store = dist.TCPStore("127.0.0.1", 0, a.workers, is_master=True, wait_for_workers=False)
    for rank in range(1, a.workers):
        words = [sys.executable, *sys.argv, "--rank", str(rank)]
        children.append(subprocess.Popen(words, env=dict(os.environ, PEER_PORT=str(store.port)), stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL))
else:
    store = dist.TCPStore("127.0.0.1", int(os.environ["PEER_PORT"]), a.workers, is_master=False)
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
dist.init_process_group("gloo", store=store, rank=a.rank, world_size=a.workers)

model = Llama(c, C.init(c))
if a.how == "ddp":
    model = torch.nn.parallel.DistributedDataParallel(model)
else:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (a.workers,))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
params = list(model.parameters())
opt = adam(params)
cos, sin = rope_tables(c)
fn = torch.compile(model) if a.compile else model
share = c["batch"] // a.workers
mine = slice(a.rank * share, (a.rank + 1) * share)


def step(i):
    x, y = C.batch(c, c["batch"], c["seq"], i)
    loss = fn(torch.from_numpy(x[mine]).long(), torch.from_numpy(y[mine]).long(), cos, sin)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(params, C.ADAM["clip"])
    opt.step()
    opt.zero_grad(set_to_none=True)
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    return mean.item() / a.workers


def go(more):
    """Rank 0 says whether there is another step; the others wait for it."""
    word = torch.tensor([1 if more else 0])
    dist.broadcast(word, 0)
    return bool(word.item())


def led_step(i):
    go(True)
    return step(i)


if a.rank == 0:
    C.drive(f"torch {torch.__version__} {a.how} {'compile' if a.compile else 'eager'}, Gloo, {a.workers} x {a.threads}", led_step)
    go(False)
else:
    i = 0
    while go(False):
        step(i)
        i += 1
dist.destroy_process_group()
sys.exit(max([child.wait() for child in children], default=0))
