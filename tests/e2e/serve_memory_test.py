#!/usr/bin/env python3
"""The memory of `ostro serve` stays: over many requests of all kinds, a part of them cancelled, resident memory moves by less
than 1 % after a warm-up; it is that of weights, pool and at most 300 MiB; and nothing is compiled once the server is ready.

The allocator has a heap for each thread, and keeps of it what that thread once needed at most: which thread is the last to answer
a dear request is up to the scheduler, on busy cores up to 1 MiB later. So the sampled form has one heap for all threads, in which
only what the server holds moves anything; the full form has both. The warm-up has dearer requests than what is measured, and more
at once.

    serve_memory_test.py --ostro BINARY [--only PART] [--log FILE]
"""
import concurrent.futures
import json
import pathlib
import random

import serve_load
from program import check
from serve_load import LoadServer, seed, serving

MIB = 1 << 20
SHARE = 0.01  # of resident memory after the warm-up
CLIENTS = 8
WARM_UP = 64  # requests


def one(server, place, number):
    """A request of a drawn kind. Returns its path if it is counted."""
    rng = random.Random(f"{seed.seed()} {number}")
    kind = rng.randrange(10)
    if kind == 0:
        server.raw("POST", "/tokenize", json.dumps({"prompt": "the work " * rng.randint(1, 200)}))
    elif kind == 1:  # an error
        server.raw("POST", "/v1/completions", json.dumps({"prompt": "a", "temprature": rng.random()}))
    elif kind <= 4:  # a client that leaves
        left = server.send(place.fields(rng, stream=True, max_tokens=rng.randint(20, 60)))
        if kind > 2:
            left.recv(rng.randint(1, 2000))
        left.close()
    else:
        more = {"stream": True} if kind == 5 else {"echo": True} if kind == 6 else {"receipt": True} if kind == 7 else {"n": 2} if kind == 8 else {}
        if kind == 9:
            more["prompt"] = [rng.randint(3, 500) for _ in range(rng.randint(100, 300))]
        status, text, _ = server.raw("POST", "/v1/completions", json.dumps(place.fields(rng, max_tokens=rng.randint(1, 8)) | more))
        check(status == 200, f"{status} {text[:300]}")


def dear(server, place, number):
    """A request that needs much memory: a prompt as long as the longest of `one`, with all that an answer can have."""
    rng = random.Random(number)
    prompt = [rng.randint(3, 500) for _ in range(300)]
    more = {"echo": True, "receipt": True} if number % 2 else {"stream": True}
    status, text, _ = server.raw("POST", "/v1/completions", json.dumps(place.fields(rng, prompt=prompt, max_tokens=20, n=2) | more))
    check(status == 200, f"{status} {text[:300]}")


def compiled(place):
    """What there is of generated code."""
    return sorted(str(path) for path in (place.folder / "kernels").rglob("*") if path.is_file())


def compilers(server):
    """Processes that the server started."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == server.process.pid:
            found.append(path.parent.name)
    return found


def resident(place, log):
    moves(place, log, "one heap", MALLOC_ARENA_MAX="1")
    if seed.full():
        moves(place, log, "a heap for each thread")


def moves(place, log, heaps, **settings):
    total = 20_000 if seed.full() else 2000
    samples = []
    with serving(LoadServer(place, "--receipts", "log", OSTRO_CACHE_DIR=str(place.folder), **settings)) as server:
        code, cpu = compiled(place), server.cpu()
        check(code, "no generated code, so the count of files shows nothing")
        with concurrent.futures.ThreadPoolExecutor(2 * CLIENTS) as pool:
            for done in [pool.submit(dear, server, place, i) for i in range(WARM_UP)]:
                done.result()
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            for begin in range(0, total, total // 20):
                for done in [pool.submit(one, server, place, i) for i in range(begin, begin + total // 20)]:
                    done.result()
                server.until_quiet()
                samples.append(server.resident())
                check(not compilers(server), "the server started processes")
        check(compiled(place) == code, f"generated code came after the server was ready: {set(compiled(place)) - set(code)}")
        metrics = server.metrics()
        pool_bytes = metrics["ostro_cache_bytes"]
        manifest = sum(p.stat().st_size for p in (place.folder / "runs/long/checkpoints").rglob("*") if p.is_file())
        server.stop()
    least, moved = min(samples), max(samples) - min(samples)
    log.say(f"{heaps}: {total} requests ({sum(server_counts(metrics).values())} counted: {server_counts(metrics)}), {len(code)} files of generated code before and after; "
            f"resident in MiB each twentieth: {', '.join(f'{s / MIB:.1f}' for s in samples)}")
    log.say(f"after a warm-up of {WARM_UP} dear requests: {least / MIB:.1f} MiB, moved by {moved / MIB:.2f} MiB = {100 * moved / least:.2f} %; pool {pool_bytes / MIB:.1f} MiB, checkpoint's "
            f"files {manifest / MIB:.1f} MiB; CPU time {cpu:.1f} s before the first request")
    check(least - pool_bytes < 300 * MIB, f"resident {least / MIB:.0f} MiB, of which the pool is {pool_bytes / MIB:.0f}")
    check(moved <= SHARE * least, f"resident memory moved by {moved / MIB:.2f} of {least / MIB:.1f} MiB")


def server_counts(metrics):
    out = {}
    for name, value in metrics.items():
        if name.startswith("ostro_requests_total") and "metrics" not in name:
            status = name.rsplit('"', 2)[1]
            out[status] = out.get(status, 0) + int(value)
    return out


if __name__ == "__main__":
    serve_load.run("Resident memory of a server", __doc__, (resident,))
