"""For check_serve_text.py: texts of drawn ids that come in pieces, by text_stream_helper, for one tokenizer of
tokenizer_families.py. What arrives is what `tokenizers` or `sentencepiece` decode of all ids; stop strings cut where one pass
over the whole text cuts."""
import json
import random
import subprocess

import seed


def cut(text, stops):
    """Where one pass over the text cuts it: the stop string that ends first, of those that end together the longest."""
    for end in range(1, len(text) + 1):
        longest = max((len(stop) for stop in stops if text[:end].endswith(stop)), default=0)
        if longest:
            return text[:end - longest]
    return text


def drawn_stops(rng, text):
    """Pieces of the text, some with another last character, so that they only almost come."""
    out = []
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text))
        stop = text[at:at + rng.randint(1, 6)]
        out.append(stop[:-1] + rng.choice("a e") if rng.random() < 0.4 else stop)
    return out


def parts(rng, count):
    """A drawn way to cut `count` tokens into steps."""
    out = []
    while count > 0:
        out.append(min(count, rng.choice((1, 1, 1, 2, 3, 8))))
        count -= out[-1]
    return out


def run(helper, tokenizer, lines):
    data = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([helper, str(tokenizer)], input=data, capture_output=True, encoding="utf-8", check=False)
    out = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    if done.returncode or len(out) != len(lines):
        raise RuntimeError(f"text_stream_helper ended with {done.returncode} after {len(out)} of {len(lines)} lines: {done.stderr}")
    return out


def drawn(rng, size):
    """A prompt, often empty, and an answer: ids of the whole vocabulary, or of a few tokens that come again and again."""
    some = range(size) if rng.random() < 0.7 else [rng.randrange(size) for _ in range(5)]
    prompt = [rng.choice(some) for _ in range(rng.choice((0, 0, rng.randint(1, 40))))]
    ids = [rng.choice(some) for _ in range(rng.randint(1, rng.choice((4, 24))))]
    return {"prompt": prompt, "ids": ids, "counts": parts(rng, len(ids)), "stops": []}


def check_streams(family, helper, tokenizer, same):
    """Compares; `same(got, expected, what)` notes a difference. Returns what was done: sequences, those compared with the
    peer, those whose tokens have another text one by one (without them nothing would be shown), with bytes that are no text; stop
    strings, answers that one cut."""
    rng, peer = random.Random(f"{seed.seed()} streams {family.name}"), family.peer()
    is_json, by_bytes = family.file.endswith(".json"), b"<0x00>" in family.content
    size = peer.get_vocab_size() if is_json else peer.get_piece_size()

    def decoded(all_ids):
        return peer.decode_batch(all_ids, skip_special_tokens=True) if is_json else peer.decode(all_ids)

    lines = [drawn(rng, size) for _ in range(20_000 if seed.full() else 100)]
    before, every = decoded([line["prompt"] for line in lines]), decoded([line["prompt"] + line["ids"] for line in lines])
    out = run(helper, tokenizer, lines)
    compared = apart = broken = 0
    for line, of_prompt, of_all, got in zip(lines, before, every, out, strict=True):
        same("".join(got["pieces"]), got["whole"], f"in pieces, {line}")
        # Peers write U+FFFD for every byte of a run that is not all text; and a prompt may end inside of a character.
        if of_all.startswith(of_prompt) and not of_prompt.endswith("\ufffd") and not (by_bytes and "\ufffd" in of_all):
            same(got["whole"], of_all[len(of_prompt):], f"decoded, {line}")
            compared += 1
        apart += got["apart"] != got["whole"]
        broken += "\ufffd" in got["whole"]
    stopping = []
    for line, got in list(zip(lines, out, strict=True))[:2000 if seed.full() else 40]:
        if got["whole"]:
            stopping.append((line | {"stops": drawn_stops(rng, got["whole"])}, got["whole"]))
    stops = stopped = 0
    for (line, whole), got in zip(stopping, run(helper, tokenizer, [line for line, _ in stopping]), strict=True):
        expected, came = cut(whole, line["stops"]), ""
        for piece in got["pieces"]:
            came += piece
            if not expected.startswith(came):
                same(came, expected, f"leaks, {line}")
        same((came, got["stopped"]), (expected, expected != whole), f"cut, {line}")
        stops += len(line["stops"])
        stopped += got["stopped"]
    return len(lines), compared, apart, broken, stops, stopped
