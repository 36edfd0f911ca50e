#!/usr/bin/env python3
"""What `ostro serve` answers on a GPU is what it answers on the CPU; a part of gpu_check.sh.

    gpu_check_serving.py --ostro PROGRAM --checkpoint RUN --device cuda:0 [--per_token FILE] [--beside_vllm] [--requests N] [--tokens N]

Starts a server on the GPU and asks it for all answers at once, then a server on the CPU, one answer after the other. Prompts
are drawn token ids, up to the length that the context allows; every second one begins as all of these do, by more than a page
of the cache where the context has room. Texts, tokens and log-probabilities are compared as they arrive, and every receipt of
the GPU is computed again on the CPU. FILE is what `ostro eval --per_token` wrote of the run on the CPU: what the server says of
these tokens is minus their losses. With --beside_vllm, and where this Python has vLLM, that makes the same answers of the run as Hugging Face has it, on
the same GPU, and the ratio of tokens a second is a row. Prints a line for each row: its name, a tab, its result, and where there is one a tab and
a value. Exit status 1 after a row that failed.
"""
import argparse
import concurrent.futures
import contextlib
import http.client
import importlib.util
import json
import os
import pathlib
import random
import struct
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


def tensors(path):
    """The arrays of a safetensors file with f32 and i32, as lists, and their shapes."""
    data = path.read_bytes()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, one in json.loads(data[8:end]).items():
        if name != "__metadata__":
            begin, stop = (end + at for at in one["data_offsets"])
            out[name] = struct.unpack(f"<{(stop - begin) // 4}{'f' if one['dtype'] == 'F32' else 'i'}", data[begin:stop]), one["shape"]
    return out


def losses(port, path):
    """How many log-probabilities of the server are not minus the losses of the file, and how many there are."""
    there = tensors(path)
    (tokens, (sequences, length)), log_probs = there["tokens"], there["log_prob"][0]
    differ = count = 0
    for begin in range(0, min(sequences, 4) * length, length):
        answer = ask(port, {"prompt": tokens[begin:begin + length], "max_tokens": 0, "echo": True, "logprobs": 0})
        said, expected = answer["logprobs"]["token_logprobs"][1:], log_probs[begin:begin + length - 1]
        if len(said) != len(expected):
            raise RuntimeError(f"{len(said)} log-probabilities of {length} tokens")
        differ += sum(a != b for a, b in zip(said, expected))
        count += len(expected)
    return differ, count


def beside_vllm(args, folder, wanted, rate):
    """A row: our tokens a second by those of vLLM, which makes answers of the same lengths to the same prompts."""
    title = "tokens/s beside vLLM"
    if importlib.util.find_spec("vllm") is None:
        print(f"{title}\tnot run: this python3 has no vLLM")
        return
    done = subprocess.run([args.ostro, "export", "--checkpoint", args.checkpoint, "--to", "hf", "--out", folder / "hf"], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{title}\tnot run: {' '.join(done.stderr.split())[:200]}")
        return
    sys.stdout.flush()
    failed, rows = "", os.dup(1)
    os.dup2(2, 1)  # it prints, and its processes do
    try:
        import vllm
        model = vllm.LLM(model=str(folder / "hf"), skip_tokenizer_init=True)
        tokens = wanted[0]["max_tokens"]
        choose = vllm.SamplingParams(temperature=0, max_tokens=tokens, min_tokens=tokens, detokenize=False)
        prompts = [{"prompt_token_ids": fields["prompt"]} for fields in wanted]
        model.generate(prompts[:1], choose)  # what is compiled first is not measured
        begin = time.monotonic()
        made = sum(len(answer.outputs[0].token_ids) for answer in model.generate(prompts, choose))
        theirs = made / (time.monotonic() - begin)
    except Exception as error:  # of another program: whatever it is, the rest of the check goes on
        failed = f"not run: vLLM: {' '.join(str(error).split())[:200] or type(error).__name__}"
    finally:
        sys.stdout.flush()
        os.dup2(rows, 1)
        os.close(rows)
    print(f"{title}\t{failed}" if failed else f"{title}\tdone\t{rate / theirs:.3f}")


def check(args, folder):
    with server(args.ostro, args.checkpoint, args.device, "--receipts", str(folder / "log")) as port:
        context = get(port, "GET", "/v1/models")["data"][0]["max_model_len"]
        wanted = drawn(args.requests, min(args.tokens, context // 4), context)
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(len(wanted)) as pool:
            ours = list(pool.map(lambda fields: ask(port, fields), wanted))
        seconds = time.monotonic() - begin
        lost, rated = losses(port, args.per_token) if args.per_token else (0, 0)
    receipts = [choice.pop("receipt") for choice in ours]
    with server(args.ostro, args.checkpoint, "cpu") as port:
        alone = [ask(port, {**fields, "receipt": False}) for fields in wanted]
    differ = sum(a != b for a, b in zip(ours, alone))
    print(f"{TITLE}\t{f'differs: {differ} of {len(ours)}' if differ else 'equal'}\t{len(ours)}")
    wrong = verified(args, folder, receipts)
    print(f"receipts of the GPU, verified on the CPU\t{wrong or 'equal'}\t{len(receipts)}")
    if args.per_token:
        print(f"log-probabilities over HTTP on the GPU, minus training's losses on the CPU\t{f'differs: {lost} of {rated}' if lost else 'equal'}\t{rated}")
    rate = sum(len(choice["token_ids"]) for choice in ours) / seconds
    print(f"tokens/s of {len(ours)} answers at once\tdone\t{rate:.1f}", flush=True)
    if args.beside_vllm:
        beside_vllm(args, folder, wanted, rate)
    return bool(differ or wrong or lost)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--per_token", type=pathlib.Path)
    parser.add_argument("--beside_vllm", action="store_true")
    parser.add_argument("--requests", type=int, default=24)
    parser.add_argument("--tokens", type=int, default=24)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            sys.exit(check(args, pathlib.Path(folder)))
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            fail(" ".join(str(error).split()))


main()
