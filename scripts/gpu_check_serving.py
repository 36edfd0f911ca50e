#!/usr/bin/env python3
"""What `ostro serve` answers on a GPU is what it answers on the CPU; a part of gpu_check.sh.

    gpu_check_serving.py --ostro PROGRAM --checkpoint RUN --device cuda:0 [--requests N] [--tokens N]

Starts a server on the GPU and asks it for all answers at once, some with the same beginning of a prompt, then a server on the
CPU, one answer after the other. Texts, tokens and log-probabilities are compared as they arrive, and every receipt of the GPU
is computed again on the CPU. Prints a line for each row: its name, a tab, its result, and where there is one a tab and a value.
"""
import argparse
import concurrent.futures
import contextlib
import http.client
import json
import pathlib
import random
import subprocess
import tempfile
import time


@contextlib.contextmanager
def server(ostro, checkpoint, device, *words):
    """Gives the port of a server."""
    process = subprocess.Popen([ostro, "serve", checkpoint, "--device", device, "--listen", "127.0.0.1:0", *words], text=True, stdout=subprocess.PIPE)
    try:
        line = process.stdout.readline()
        if not line.startswith("http://127.0.0.1:"):
            raise SystemExit(f"answers at once on the GPU\tfailed: ostro serve --device {device} did not start")
        yield int(line.split("/")[2].split(":")[1])
    finally:
        process.terminate()
        process.wait()


def ask(port, fields):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request("POST", "/v1/completions", json.dumps(fields), {"Content-Type": "application/json"})
    response = connection.getresponse()
    said = json.loads(response.read())
    if response.status != 200:
        raise SystemExit(f"answers at once on the GPU\tfailed: status {response.status}: {json.dumps(said)[:200]}")
    return said["choices"][0]


def requests(count, tokens):
    """Drawn requests; every second one begins as all of these do."""
    rng = random.Random(1)
    words = "the a of to and in that is was he for it with as his on be at by had".split()
    shared = " ".join(rng.choice(words) for _ in range(12)) + " "
    return [{"prompt": (shared if i % 2 else "") + " ".join(rng.choice(words) for _ in range(rng.randint(1, 6))), "max_tokens": tokens,
             "temperature": (0, 0.7, 1.2)[i % 3], "seed": i, "logprobs": 2, "return_token_ids": True, "receipt": True} for i in range(count)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--requests", type=int, default=24)
    parser.add_argument("--tokens", type=int, default=24)
    args = parser.parse_args()
    wanted = requests(args.requests, args.tokens)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        with server(args.ostro, args.checkpoint, args.device, "--receipts", str(folder / "log")) as port:
            begin = time.monotonic()
            with concurrent.futures.ThreadPoolExecutor(len(wanted)) as pool:
                ours = list(pool.map(lambda fields: ask(port, fields), wanted))
            seconds = time.monotonic() - begin
        receipts = [choice.pop("receipt") for choice in ours]
        with server(args.ostro, args.checkpoint, "cpu") as port:
            alone = [ask(port, {**fields, "receipt": False}) for fields in wanted]
        differ = sum(a != b for a, b in zip(ours, alone))
        print(f"answers at once on the GPU, one by one on the CPU\t{f'differs: {differ} of {len(ours)}' if differ else 'equal'}\t{len(ours)}")
        wrong = ""
        for number, receipt in enumerate(receipts):
            (folder / "r.json").write_text(json.dumps(receipt))
            done = subprocess.run([args.ostro, "verify", "--receipt", folder / "r.json", "--checkpoint", args.checkpoint], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                wrong = wrong or f"differs: receipt {number}: {(done.stdout + done.stderr).splitlines()[0][:200]}"
        print(f"receipts of the GPU, verified on the CPU\t{wrong or 'equal'}\t{len(receipts)}")
        tokens = sum(len(choice["token_ids"]) for choice in ours)
        print(f"tokens/s of {len(ours)} answers at once\tdone\t{tokens / seconds:.1f}")


main()
