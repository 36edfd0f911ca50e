"""What slow clients of `ostro serve` take from others: 500 connections that say nothing, 200 on which a request drips in, a byte a
second, and some that ask for a stream and read a byte a second of it. They are in a process of their own, so that they do not hold up
the clients that are measured:

    serving_slow.py PORT BODY READERS

Prints "ready" when idle and dripping connections stand. For the line "go" it sends BODY, the fields of a request, READERS times; at
the end of its input it prints, as JSON, what it did: the times of `/health` in milliseconds, each by a connection of its own, bytes that
dripped, connections that the server ended.
"""
import json, resource, select, socket, statistics, subprocess, sys, time

import serving_load
from report import spread

IDLE, DRIPPING = 500, 200
HEALTH = 0.05  # seconds between two looks at /health


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def health(port):
    began = time.monotonic()
    with connected(port) as one:
        one.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        if b" 200 " not in b"".join(iter(lambda: one.recv(4096), b"")):
            raise RuntimeError("/health")
    return 1000 * (time.monotonic() - began)


def main(port, body, count):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    def drop():
        one = connected(port)
        one.sendall(head + body[:1].encode())
        return one

    idle, drops, readers = [connected(port) for _ in range(IDLE)], [drop() for _ in range(DRIPPING)], []
    print("ready", flush=True)
    times, dripped, ended, turn, began = [], 0, 0, 0, time.monotonic()
    while True:
        if select.select([sys.stdin], [], [], max(0, began + turn * HEALTH - time.monotonic()))[0]:
            if sys.stdin.readline().strip() != "go":
                break
            readers = [connected(port) for _ in range(count)]
            for one in readers:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.sendall(head + body.encode())
            continue
        times.append(health(port))
        part = int(1 / HEALTH)  # each second every connection has its turn
        for i in range(turn % part, DRIPPING, part):
            try:
                drops[i].send(b" ")
                dripped += 1
            except OSError:
                drops[i], ended = drop(), ended + 1
        if turn % part == 0:
            for one in readers:
                one.recv(1)
        turn += 1
    print(json.dumps({"health": times, "dripped": dripped, "ended": ended}))
    for one in idle + drops + readers:
        one.close()


class Slow:
    """The process. Use it with `with`; `seen` is what it did, once it ended."""

    def __init__(self, side, prompt, tokens, readers):
        self.command = [sys.executable, __file__, str(side.port), json.dumps(side.fields(prompt, tokens)), str(readers)]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError("the slow clients did not come up")
        return self

    def go(self):
        print("go", file=self.process.stdin, flush=True)

    def __exit__(self, *failed):
        out, _ = self.process.communicate()
        if not failed[0]:
            self.seen = json.loads(out)


def report(s, size="base125"):
    """Eight answers beside four others, whose clients read them or do not; the latter together with idle and dripping connections."""
    tokens, readers = 32 if s.b.quick else 320, 4
    side = s.ours(size).start()
    try:
        ratios, rates, health, ended = [], [], [], 0
        side.together([s.prompt(size, 16) for _ in range(8)], tokens)  # until weights lie in panels
        for turn in range(s.turns):
            rate = {}
            for is_slow in ((False, True) if turn % 2 == 0 else (True, False)):
                prompts = readers * [s.prompt(size, 16)] + [s.prompt(size, 16) for _ in range(8)]
                if not is_slow:
                    rate[is_slow] = serving_load.rate_of_all(side.together(prompts, tokens)[readers:])
                    continue
                with Slow(side, prompts[0], tokens, readers) as clients:
                    clients.go()
                    rate[is_slow] = serving_load.rate_of_all(side.together(prompts[readers:], tokens))
                health += clients.seen["health"]
                ended += clients.seen["ended"]
            rates.append(rate[False])
            ratios.append(rate[True] / rate[False])
    finally:
        side.stop()
    health.sort()
    late = health[min(len(health) - 1, int(0.99 * len(health)))]
    share = statistics.median(ratios)
    s.b.say(f"{size}, 8 answers beside {readers} others: {spread(rates, 1)} tokens/s where all clients read; {spread(ratios, 3)} times that where the others "
            f"do not, beside {IDLE} idle connections and {DRIPPING} that drip ({ended} were ended by the server). /health meanwhile: "
            f"median {statistics.median(health):.1f} ms, 99 % {late:.1f} ms, most {health[-1]:.1f} ms, of {len(health)}.")
    s.b.say()
    s.b.goal(f"serve beside slow clients, {size}: tokens/s of others", "within 5 %", f"{share - 1:+.1%}", share >= 0.95, f"{len(ratios)} turns")
    s.b.goal("serve beside slow clients: /health, 99th percentile", "< 50 ms", f"{late:.1f} ms", late < 50, f"{len(health)} requests")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
