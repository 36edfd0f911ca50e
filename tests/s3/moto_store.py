"""A run whose directory is on moto, an S3 server that is not ours."""
import contextlib
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "fault"))
from harness import check, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUCKET, KEY = "moto-runs", "of-a-test"
# moto reads from it where a request belongs, and checks no signature.
SIGNED = {"Authorization": f"AWS4-HMAC-SHA256 Credential={KEY}/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"}


def program():
    """moto_server of the repository's .venv, or of this machine; None where there is none."""
    own = ROOT / ".venv" / "bin" / "moto_server"
    return str(own) if own.exists() else shutil.which("moto_server")


def ask(url, method="GET"):
    """What the server answers; empty where it has no such object."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method, headers=SIGNED), timeout=60) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return b""
        raise


@contextlib.contextmanager
def server():
    """Its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([program(), "-H", "127.0.0.1", "-p", str(port)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def listens():
            check(process.poll() is None, "moto_server ended")
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0
        try:
            wait_for(listens, 300, "moto_server")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def on_moto(test):
    """`test` is that of run_store_test.py. One process that is killed, two workers that go on and lose one of them, and again one process."""
    if program() is None:
        print("    NOT TRIED: a run on moto: there is no moto_server (scripts/setup.sh --python)", flush=True)
        return
    with server() as url:
        ask(f"{url}/{BUCKET}", "PUT")
        env = {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": "any", "AWS_REGION": "us-east-1",
               "NO_PROXY": "127.0.0.1", "HOME": str(test.w.root)}
        name = "moto"
        config = test.config(name, log_dir=f"s3://{BUCKET}/all")

        def chain():
            return ask(f"{url}/{BUCKET}/all/{name}/chain.jsonl")
        killed, wanted = 0, test.rng.randint(4, 7)
        process = test.w.start("train", "--config", config, env=env)
        while process.poll() is None and chain().count(b'"batch"') < wanted:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate(timeout=300)
        check(process.returncode in (0, -signal.SIGKILL), f"status {process.returncode}\n{out}{err}")
        killed += process.returncode != 0
        once = test.w.root / "moto.once"
        once.mkdir()
        fault = f"{test.rng.choice(['leaf', 'exchange', 'update', 'commit'])}:{test.rng.randint(14, 20)}:{test.rng.randint(0, 1)}:kill"
        test.w.good("launch", "local", "--workers", "2", "--min_workers", "1", "--config", config,
                    env=env | {"OSTRO_FAULT": fault, "OSTRO_FAULT_ONCE": str(once)})
        killed += len(list(once.iterdir()))
        check(chain() == test.chain, "another chain than that on a disk")
        lock = ask(f"{url}/{BUCKET}/all/{name}/lock")
        check(lock.startswith(b"free; last held by process "), f"the lock is held: {lock}")
        listed = ask(f"{url}/{BUCKET}?list-type=2&prefix=all/{name}/checkpoints/").decode()
        keys = set(re.findall(r"<Key>all/moto/(checkpoints/[^<]+)</Key>", listed))
        states = {key.split("/")[1] for key in keys}
        torn = [state for state in states if f"checkpoints/{state}/manifest.json" not in keys]
        check(states and not torn, f"of checkpoints {states} these are torn: {torn}")
        uploads = ask(f"{url}/{BUCKET}?uploads").decode()
        test.w.verdict("equal", f"s3://{BUCKET}/all/{name}", env=env)
        test.w.good("sample", "--checkpoint", f"s3://{BUCKET}/all/{name}", "--prompt", "eta", "--max_new_tokens", "8", "--json", env=env)
        test.w.good("export", "--checkpoint", f"s3://{BUCKET}/all/{name}", "--to", "hf", "--out", "out-moto", env=env)
        plain, moto = [(test.w.root / out / "model.safetensors").read_bytes() for out in ("out-local", "out-moto")]
        check(plain == moto, "the exported weights differ")
        print(f"    {killed} kills ({fault}), {len(states)} checkpoints, {uploads.count('<Upload>')} uploads left by killed processes")
