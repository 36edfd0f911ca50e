#!/usr/bin/env python3
"""Clients of `ostro serve` that vanish, read slowly, send a byte now and then, or nothing at all.

vanishing: clients leave while they wait, in prompts and in streams. Their work ends, pages and rows are free again, every
request that came whole is counted once, and who stays gets the bits that it gets alone. slow: connections that drip or idle
do not hold up others.

    serve_clients_test.py --ostro BINARY [--only PART] [--log FILE]
"""
import concurrent.futures
import random
import socket
import struct
import threading
import time

import serve_load
from program import check
from serve_load import LoadServer, percentile, seed, serving


def leave(server, place, rng, number):
    """One client that vanishes. Returns whether its request was whole, and the tokens that it asked for."""
    kind = ("waiting", "prompt", "stream", "reset", "half")[number % 5]
    fields = place.fields(rng, max_tokens=rng.randint(30, 100), stream=kind in ("stream", "reset"))
    if kind == "prompt":
        fields["prompt"] = [rng.randint(3, 500) for _ in range(rng.randint(200, 400))]
    one = server.send(fields, rng.random() if kind == "half" else 1.0)
    if kind in ("stream", "reset"):
        wanted, got = rng.randint(1, 4000), 0
        while got < wanted and (piece := one.recv(min(512, wanted - got))):
            got += len(piece)
        if kind == "reset":
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif kind == "prompt":
        time.sleep(rng.random() * 0.03)
    one.close()
    return kind != "half", fields["max_tokens"]


def vanishing(place, log):
    clients, rng = 1000 if seed.full() else 60, random.Random(seed.seed())
    with serving(LoadServer(place)) as server:
        asked = [place.fields(rng) for _ in range(12)]
        alone = [server.complete(**fields)["choices"] for fields in asked]
        check(len({str(choices) for choices in alone}) == len(alone), "all answers are alike")
        before, over, stayed = server.metrics(), threading.Event(), []

        def stay():
            while not over.is_set() or not stayed:
                i = len(stayed) % len(asked)
                stayed.append(server.complete(**asked[i])["choices"] == alone[i])

        with concurrent.futures.ThreadPoolExecutor(25) as pool:
            staying = pool.submit(stay)
            try:
                left = list(pool.map(lambda i: leave(server, place, random.Random(f"{seed.seed()} {i}"), i), range(clients)))
            finally:
                over.set()
        staying.result()
        server.until_quiet()
        check(all(stayed), f"{stayed.count(False)} of {len(stayed)} answers depend on clients that left")
        counts, after = server.answered(), server.metrics()
        whole = sum(was_whole for was_whole, _ in left)
        check(sum(counts.values()) == whole + len(stayed) + len(asked), f"{whole} left, {len(stayed)} stayed, {len(asked)} alone; counted {counts}")
        check(set(counts) <= {200, 499}, f"{counts}")
        wanted = sum(tokens for was_whole, tokens in left if was_whole)
        made = after["ostro_generated_tokens_total"] - before["ostro_generated_tokens_total"]
        log.say(f"{clients} clients left, {whole} of them after their whole request; {len(stayed)} answers in between have their bits; counted {counts}")
        log.say(f"those that left asked for {wanted} tokens; with those that stayed {made:.0f} were made")
        steps(place, server, log)
        server.stop()


def steps(place, server, log):
    """How many tokens a lone stream still makes when its client is gone, and how long until its pages are free."""
    rng, tokens, times = random.Random(seed.seed()), [], []
    for _ in range(200 if seed.full() else 10):
        one = server.send(place.fields(rng, max_tokens=400, stream=True, prompt=[5, 6, 7]))
        one.recv(600)
        before = server.metrics()["ostro_generated_tokens_total"]
        began = time.monotonic()
        one.close()
        server.until_quiet()
        times.append(1000 * (time.monotonic() - began))
        tokens.append(int(server.metrics()["ostro_generated_tokens_total"] - before))
    check(sum(tokens) < 200 * len(tokens), f"lone streams of 400 tokens go on: {tokens}")
    log.say(f"a lone stream whose client leaves: tokens made after the counter was read: median {percentile(tokens, .5)}, 99 % {percentile(tokens, .99)}; "
            f"until all is free by /metrics: median {percentile(times, .5):.1f} ms, 99 % {percentile(times, .99):.1f} ms")


def health(server, count):
    """Times of /health in milliseconds, each by a new connection."""
    out = []
    for _ in range(count):
        began = time.monotonic()
        check(server.raw("GET", "/health")[0] == 200, "/health")
        out.append(1000 * (time.monotonic() - began))
    return out


def slow(place, log):
    """Idle connections, dripping ones and slow readers, all at once. /health is answered within 50 ms (in the full form); that others
    do not wait for these connections' deadlines is a case of http_test.cc."""
    idle, dripping, readers = (500, 200, 20) if seed.full() else (500, 40, 4)
    with serving(LoadServer(place)) as server:
        rng = random.Random(seed.seed())
        asked = [place.fields(rng) for _ in range(4)]
        alone = [server.complete(**fields)["choices"] for fields in asked]
        quiet, cpu = health(server, 50), server.cpu()
        kept = [server.send(place.fields(rng, max_tokens=480, stream=True, prompt=[i + 3])) for i in range(readers)]  # which never read
        idling = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(idle)]
        drops = [server.send(place.fields(rng), 0.001) for _ in range(dripping)]
        began, times, dripped = time.monotonic(), [], 0
        while time.monotonic() - began < 30 if seed.full() else len(times) < 50:
            for one in rng.sample(drops, 10):
                try:
                    one.send(b"x")
                    dripped += 1
                except OSError:  # the server ended it
                    drops.remove(one)
                    drops.append(server.send(place.fields(rng), 0.001))
            times += health(server, 5)
            i = len(times) % len(asked)
            check(server.complete(**asked[i])["choices"] == alone[i], "an answer depends on slow clients")
        cpu = server.cpu() - cpu
        for one in kept + idling + drops:
            one.close()
        server.until_quiet()
        if seed.full():  # by the clock, so not in the sampled form
            check(percentile(times, .99) < 50, f"/health took {percentile(times, .99):.0f} ms at the 99th percentile")
        log.say(f"{idle} idle, {dripping} dripping ({dripped} bytes), {readers} that do not read: {len(times)} times /health, median "
                f"{percentile(times, .5):.1f} ms, 99 % {percentile(times, .99):.1f} ms, most {max(times):.1f} ms; without them 99 % {percentile(quiet, .99):.1f} ms; "
                f"the server took {cpu:.1f} s of CPU time in all")
        server.stop()


if __name__ == "__main__":
    serve_load.run("Clients that vanish or are slow", __doc__, (vanishing, slow))
