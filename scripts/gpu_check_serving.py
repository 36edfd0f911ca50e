#!/usr/bin/env python3
"""What `ostro serve` answers on a GPU is what it answers on the CPU; a part of gpu_check.sh.

    gpu_check_serving.py --ostro PROGRAM --checkpoint RUN --device cuda:0 [--requests N] [--tokens N]

Starts a server on the GPU and asks it for all answers at once, then a server on the CPU, one answer after the other. Prompts
are drawn token ids, up to the length that the context allows; every second one begins as all of these do, by more than a page
of the cache where the context has room. Texts, tokens and log-probabilities are compared as they arrive, and every receipt of
the GPU is computed again on the CPU. Prints a line for each row: its name, a tab, its result, and where there is one a tab and
a value. Exit status 1 after a row that failed.
"""
import argparse
import concurrent.futures
import contextlib
import http.client
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

TITLE = "answers at once on the GPU, one by one on the CPU"


def fail(what):
    print(f"{TITLE}\tfailed: {what}")
    sys.exit(1)


@contextlib.contextmanager
def server(ostro, checkpoint, device, *words):
    """Gives the port of a server."""
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen([ostro, "serve", checkpoint, "--device", device, "--listen", "127.0.0.1:0", *words], text=True,
                                   stdout=subprocess.PIPE, stderr=said)
        try:
            line = process.stdout.readline()
            if not line.startswith("http://127.0.0.1:"):
                process.wait(60)
                said.seek(0)
                errors = [x for x in said.read().splitlines() if x.startswith("error: ")] or ["no error line"]
                fail(f"ostro serve --device {device}: {errors[0][:200]}")
            yield int(line.split("/")[2].split(":")[1])
        finally:
            process.terminate()
            process.wait(60)


def get(port, method, path, fields=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request(method, path, json.dumps(fields) if fields else None, {"Content-Type": "application/json"})
    response = connection.getresponse()
    said = json.loads(response.read())
    if response.status != 200:
        raise RuntimeError(f"{path}: status {response.status}: {json.dumps(said)[:200]}")
    return said


def ask(port, fields):
    return get(port, "POST", "/v1/completions", fields)["choices"][0]


def drawn(count, tokens, context):
    rng = random.Random(1)
    room = context - tokens
    shared = [rng.randint(3, 250) for _ in range(room * 3 // 4)]
    out = []
    for i in range(count):
        begin = shared if i % 2 else []
        prompt = begin + [rng.randint(3, 250) for _ in range(rng.randint(1, room - len(begin)))]
        out.append({"prompt": prompt, "max_tokens": tokens, "temperature": (0, 0.7, 1.2)[i % 3], "seed": i, "logprobs": 2,
                    "return_token_ids": True, "receipt": True})
    return out


def verified(args, folder, receipts):
    """Empty when the CPU finds each receipt of the log true, else what it says."""
    openings = folder / "openings"
    openings.mkdir()
    for receipt in receipts:
        (openings / f"{receipt['receipt']['number']}.json").write_text(json.dumps(receipt))
    done = subprocess.run([args.ostro, "verify", "--receipts", folder / "log/receipts.jsonl", "--sample", str(len(receipts)), "--challenge", "all",
                           "--checkpoint", args.checkpoint, "--openings", openings, "--json"], capture_output=True, text=True, check=False)
    if done.returncode == 0 and json.loads(done.stdout)["replayed"] == len(receipts):
        return ""
    return f"differs: {next(iter((done.stderr + done.stdout).splitlines()), f'exit status {done.returncode}')[:300]}"


def check(args, folder):
    with server(args.ostro, args.checkpoint, args.device, "--receipts", str(folder / "log")) as port:
        context = get(port, "GET", "/v1/models")["data"][0]["max_model_len"]
        wanted = drawn(args.requests, min(args.tokens, context // 4), context)
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(len(wanted)) as pool:
            ours = list(pool.map(lambda fields: ask(port, fields), wanted))
        seconds = time.monotonic() - begin
    receipts = [choice.pop("receipt") for choice in ours]
    with server(args.ostro, args.checkpoint, "cpu") as port:
        alone = [ask(port, {**fields, "receipt": False}) for fields in wanted]
    differ = sum(a != b for a, b in zip(ours, alone))
    print(f"{TITLE}\t{f'differs: {differ} of {len(ours)}' if differ else 'equal'}\t{len(ours)}")
    wrong = verified(args, folder, receipts)
    print(f"receipts of the GPU, verified on the CPU\t{wrong or 'equal'}\t{len(receipts)}")
    print(f"tokens/s of {len(ours)} answers at once\tdone\t{sum(len(choice['token_ids']) for choice in ours) / seconds:.1f}")
    return bool(differ or wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--requests", type=int, default=24)
    parser.add_argument("--tokens", type=int, default=24)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            sys.exit(check(args, pathlib.Path(folder)))
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            fail(" ".join(str(error).split()))


main()
