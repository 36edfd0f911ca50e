#!/usr/bin/env python3
"""Tests `ostro launch kubernetes`: the manifests are validated against the schema of Kubernetes' API (by kubernetes-validate, where that
package is there), they agree with each other, and the commands of their pods, run on this machine, train to the chain of `ostro train`,
also when the coordinator's pod is drained and the workers' Job deleted. As root each pod is another user in a network namespace of its
own, with the address of a pod and the Service's name. What is wrong is one error. The RayJob of
examples/kuberay has the fields of KubeRay's API (kuberay_rayjob.json), pods that Kubernetes takes, and an entry point that the program
takes.

    kubernetes_test.py --ostro PROGRAM
"""

import argparse
import copy
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

from program import kill_all
from slow_link import Link
from workers_test import Gate, Place, check, steps_of, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = 30
OPTIONS = ["--trainer.num_train_steps", str(STEPS), "--trainer.checkpointer.keep", "[{every: 5}]"]
USER = 10_001
REPLACED = 78
VERSIONS = ("1.33", "1.34")


def parse(text):
    """Block YAML whose scalars are those of JSON, as the command writes it."""
    lines = [(len(line) - len(line.lstrip()), line.strip()) for line in text.splitlines()]

    def block(at, indent):
        is_list = lines[at][1].startswith("-")
        out = [] if is_list else {}
        while at < len(lines) and lines[at][0] == indent:
            line = lines[at][1]
            key, rest = ("", line[1:]) if is_list else re.fullmatch(r"([A-Za-z0-9./_-]+):(.*)", line).groups()
            at += 1
            if rest:
                value = json.loads(rest)
            else:
                value, at = block(at, lines[at][0])
            if is_list:
                out.append(value)
            else:
                check(key not in out, f"{key} twice")
                out[key] = value
        check(at == len(lines) or lines[at][0] < indent, f"line {at + 1}: {lines[at - 1:at + 1]}")
        return out, at

    return block(0, 0)[0]


def validate(manifests, job="Job ostro-nano-workers"):
    """Returns whether the package is there."""
    sys.path += map(str, ROOT.glob(".venv/lib/python3.*/site-packages"))
    try:
        import kubernetes_validate
        import yaml
    except ImportError:
        return False
    for text, manifest in manifests.values():
        check(yaml.safe_load(text) == manifest, f"another YAML reader reads other things:\n{text}")
        for version in VERSIONS:
            kubernetes_validate.validate(manifest, version, strict=True)
    for path, value in ((("spec", "completions"), "three"), (("spec", "template", "spec", "containers", 0, "imagee"), "x"),
                        (("spec", "podFailurePolicy", "rules", 0), {})):
        wrong = at = copy.deepcopy(manifests[job][1])
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value
        try:
            kubernetes_validate.validate(wrong, VERSIONS[0], strict=True)
        except kubernetes_validate.ValidationError:
            continue
        check(False, f"{path} = {value} is valid")
    return True


def written(place, name, more=(), cwd=None, options=(), secret=None):
    out = place.top / name
    words = {"--image": "registry.example.org/ostro:1", "--workers": "3", "--min_workers": "2", "--claim": "runs", "--mount": str(place.top),
             "--out": str(out)} | dict(zip(more[::2], more[1::2]))
    done = subprocess.run([place.ostro, "launch", "kubernetes", *place.words("nano", [*OPTIONS, *options]), *(w for pair in words.items() for w in pair)],
                          env=place.environment({"OSTRO_JOB_SECRET": secret} if secret else {}), text=True, capture_output=True, check=False,
                          timeout=300, cwd=cwd)
    return done, out


def check_manifests(place):
    done, out = written(place, "manifests", ["--cpus", "4", "--memory", "1Gi", "--gpus", "1", "--trainer.notice_grace", "90s"])
    check(done.returncode == 0 and f"kubectl apply -f {out}" in done.stdout, done.stdout + done.stderr)
    manifests = {}
    for path in sorted(out.iterdir()):
        text = path.read_text()
        manifest = parse(text)
        manifests[manifest["kind"] + " " + manifest["metadata"]["name"]] = (text, manifest)
        check((stat.S_IMODE(path.stat().st_mode) == 0o600) == (manifest["kind"] == "Secret"), f"{path}: who can read it")
    check(sorted(manifests) == ["ConfigMap ostro-nano", "Job ostro-nano-coordinator", "Job ostro-nano-workers", "Secret ostro-nano",
                                "Service ostro-nano-coordinator"], sorted(manifests))
    by_package = validate(manifests)
    workers, coordinator = manifests["Job ostro-nano-workers"][1], manifests["Job ostro-nano-coordinator"][1]
    service = manifests["Service ostro-nano-coordinator"][1]
    spec = workers["spec"]
    check(spec["completionMode"] == "Indexed" and spec["completions"] == spec["parallelism"] == 3 and spec["maxFailedIndexes"] == 1, spec)
    check(spec["template"]["spec"]["terminationGracePeriodSeconds"] == 90, "the grace of workers")
    check(coordinator["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 90, "the grace of the coordinator")
    labels = coordinator["spec"]["template"]["metadata"]["labels"]
    check(service["spec"]["clusterIP"] == "None" and service["spec"]["selector"].items() <= labels.items(), service)
    port = {p["name"]: p["port"] for p in service["spec"]["ports"]}
    only = coordinator["spec"]["template"]["spec"]["containers"][0]
    check({p["name"]: p["containerPort"] for p in only["ports"]} == port, only["ports"])
    check(only["livenessProbe"]["httpGet"] == {"path": "/health", "port": "metrics"}, only["livenessProbe"])
    secret = manifests["Secret ostro-nano"][1]["stringData"]
    check(len(secret["OSTRO_JOB_SECRET"]) == 64 and len(secret["OSTRO_METRICS_TOKEN"]) == 32, "the secret")
    check(not any(value in text for value in secret.values() for name, (text, _) in manifests.items() if not name.startswith("Secret")),
          "the secret is in another manifest")
    again = written(place, "again")[1]
    check(parse((again / "ostro-nano-secret.yaml").read_text())["stringData"] != secret, "two jobs have one secret")
    return {name: manifest for name, (_, manifest) in manifests.items()}, by_package


class Network:
    """A network namespace for each of some pods, the coordinator's first, in which the Service's name leads to the coordinator."""

    def __init__(self, pods):
        """Raises CalledProcessError or FileNotFoundError where namespaces cannot be made."""
        self.link = Link(None, sides=pods)
        for name in self.link.names:
            folder = pathlib.Path("/etc/netns", name)  # `ip netns exec` lays its files over those of /etc
            folder.mkdir(parents=True)
            (folder / "hosts").write_text(f"127.0.0.1 localhost\n{self.link.address(0)} ostro-nano-coordinator\n")

    def inside(self, side, words):
        return ["ip", "netns", "exec", self.link.names[side], "setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", *words]

    def remove(self):
        for name in self.link.names:
            shutil.rmtree(pathlib.Path("/etc/netns", name), ignore_errors=True)
        self.link.remove()


class Pod:
    """Runs a pod's container here: its words, its variables, its user. With a network in the namespace `side`."""

    all = []

    def __init__(self, place, manifests, job, where, network=None, side=0):
        container = manifests[f"Job {job}"]["spec"]["template"]["spec"]["containers"][0]
        secret = manifests["Secret ostro-nano"]["stringData"]
        env = {e["name"]: secret[e["valueFrom"]["secretKeyRef"]["key"]] for e in container["env"] if "secretKeyRef" in e["valueFrom"]}
        words = [place.ostro]
        for word in container["args"]:
            for old, new in where.items():
                word = word.replace(old, new)
            words.append(word)
        words = network.inside(side, words) if network else words
        other = {"user": USER, "group": USER, "extra_groups": []} if os.geteuid() == 0 and not network else {}
        self.process = subprocess.Popen(words, env={"PATH": os.environ["PATH"], "OSTRO_THREADS": "1", "HOME": str(place.top),
                                                    "OSTRO_CACHE_DIR": str(place.top / "kernels"), "OSTRO_FAULT": place.gate.fault()} | env,
                                        cwd=container["workingDir"],
                                        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **other)
        Pod.all.append(self.process)


def events(place):
    lines = (place.top / "runs" / "nano" / "events.jsonl").read_text().splitlines(keepends=True)
    return [json.loads(line)["event"] for line in lines if line.endswith("\n")]


def drain(place, coordinator, workers, start_coordinator):
    """What `kubectl drain` does to the coordinator's pod: SIGTERM, and another pod in its place. The workers train on."""
    steps = steps_of(place, "nano")
    coordinator.process.send_signal(signal.SIGTERM)
    out = coordinator.process.communicate(timeout=300)[0]
    check(coordinator.process.returncode == REPLACED and "finished" not in out, f"the coordinator ended with {coordinator.process.returncode}\n{out}")
    check(all(pod.process.poll() is None for pod in workers), "a worker ended with the coordinator")
    coordinator, _ = start_coordinator()
    wait_for(lambda: events(place).count("joined") >= 6 or any(pod.process.poll() is not None for pod in workers))
    place.gate.at(10)
    wait_for(lambda: steps_of(place, "nano") >= 9 or any(pod.process.poll() is not None for pod in workers))
    check(steps_of(place, "nano") >= 9 > steps, f"{steps_of(place, 'nano')} steps after {steps}: the run does not go on")
    return coordinator


def check_commands(place, manifests, expected, network):
    """The coordinator's pod and three of workers; without a network with the address of this machine in place of the Service's name. The
    coordinator is drained, the workers' Job is deleted and made again."""
    config = place.top / "config.yaml"
    text = manifests["ConfigMap ostro-nano"]["data"]["config.yaml"]
    check("0.0.0.0:9500" in text, text)
    config.write_text(text if network else text.replace("0.0.0.0:9500", "127.0.0.1:0"))
    place.gate = Gate(place.top)
    if os.geteuid() == 0:
        for folder, _, files in os.walk(place.top):
            for path in [folder, *(os.path.join(folder, name) for name in files)]:
                os.chown(path, USER, USER)
    where = {"/etc/ostro/config.yaml": str(config)}
    port = "4711" if network else "0"

    def on(side):
        if network:
            return where | {"$(POD_IP)": network.link.address(side)}
        return {"ostro-nano-coordinator:4711": f"127.0.0.1:{port}"} | where | {"0.0.0.0": "127.0.0.1", "$(POD_IP)": "127.0.0.1"}

    def start_coordinator():
        pod = Pod(place, manifests, "ostro-nano-coordinator", on(0) | {"4711": port}, network)
        said = []
        for line in pod.process.stdout:
            said.append(line)
            if line.startswith("{") and json.loads(line)["event"] == "listening":
                return pod, str(json.loads(line)["port"])
        check(False, "".join(said))

    def start_workers():
        return [Pod(place, manifests, "ostro-nano-workers", on(side), network, side) for side in (1, 2, 3)]

    def end(pods, statuses):
        for pod in pods:
            out = pod.process.communicate(timeout=300)[0]
            check(pod.process.returncode in statuses, f"a pod ended with {pod.process.returncode}, not with {statuses}\n{out}")

    place.gate.at(4)
    coordinator, port = start_coordinator()
    workers = start_workers()
    wait_for(lambda: steps_of(place, "nano") >= 3 or any(pod.process.poll() is not None for pod in workers))
    coordinator = drain(place, coordinator, workers, start_coordinator)
    for pod in workers:  # kubectl delete job/ostro-nano-workers
        pod.process.send_signal(signal.SIGTERM)
    wait_for(lambda: events(place).count("notice") >= 3)
    place.gate.open()
    end(workers, (75, 77))
    end([coordinator], (75,))
    done = steps_of(place, "nano")
    check(9 <= done < STEPS, f"{done} steps: SIGTERM came too late")
    coordinator, port = start_coordinator()
    end(start_workers(), (0,))
    end([coordinator], (0,))
    check(place.chain("nano") == expected, "another chain than that of ostro train")


def check_errors(place):
    for more, says in ((["--mount", "/elsewhere"], "is not below --mount /elsewhere"), (["--name", "Nano"], '--name: "Nano" cannot name'),
                       (["--min_workers", "4"], "--min_workers: 4 is not a number from 1 to --workers, 3"),
                       (["--user", "0"], "--user: 0 is no number of a user"), (["--workers", "2000"], "1024 at most"),
                       (["--failures", "-1"], "--failures: -1 is not a number from 0 to"), (["--cpus", "four"], '--cpus: "four" is no quantity'),
                       (["--memory", "16gb"], '--memory: "16gb" is no quantity'), (["--gpus", "0.5"], '--gpus: "0.5" is not a number'),
                       (["--claim", "a/b"], '--claim: "a/b" names no'),
                       (["--claim", "", "--mount", ""], "is a folder, which pods see on a volume: name it by --claim"),
                       (["--credentials", "A"], '--credentials: "A" names no Secret'), (["--slices", "a:3"], "--slice_label must say"),
                       (["--slice_label", "zone"], "--slices must say how many"),
                       (["--slices", "a:2,b", "--slice_label", "zone"], '--slices: "b" is not NAME:N'),
                       (["--slices", "a:3,", "--slice_label", "zone"], '--slices: "" is not NAME:N'),
                       (["--slices", "a:2,a:1", "--slice_label", "zone"], "--slices: a is there twice"),
                       (["--slices", "a:2,b:2", "--slice_label", "zone"], "4 workers together, but --workers 3"),
                       (["--slices", "a:3", "--slice_label", "a zone"], '"a zone" is no key of a label'), (["--image", ""], '--image: "" names no image')):
        done, out = written(place, "errors", more)
        check(done.returncode == 2 and says in done.stderr and done.stderr.count("error: ") == 1 and not out.exists(),
              f"{more}: {done.returncode} {done.stderr}")
    done, out = written(place, "errors", secret=os.fsdecode(b"a secret \xff"))
    check(done.returncode == 2 and "OSTRO_JOB_SECRET: is no UTF-8" in done.stderr and not out.exists(), done.stderr)


def check_slices(place):
    """A Job for each slice, on the nodes of its label; with everything in an object store no volume is shared, and keys come from a Secret."""
    store = ["--trainer.log_dir", "s3://runs/all", "--data.cache_dir", "s3://runs/store"]
    done, out = written(place, "sliced", ["--claim", "", "--mount", "", "--credentials", "keys", "--slices", "west:2,1:1", "--slice_label",
                                          "topology.kubernetes.io/zone"], options=store)
    check(done.returncode == 0 and "kubectl delete job -l app.kubernetes.io/instance=ostro-nano,app.kubernetes.io/component=worker" in done.stdout,
          done.stdout + done.stderr)
    manifests = {}
    for path in sorted(out.iterdir()):
        text = path.read_text()
        manifests[path.name] = (text, parse(text))
    validate(manifests, "ostro-nano-workers-0.yaml")
    for number, (name, workers) in enumerate((("west", 2), ("1", 1))):
        spec = manifests[f"ostro-nano-workers-{number}.yaml"][1]["spec"]
        pod = spec["template"]["spec"]
        (only,) = pod["containers"]
        check(spec["completions"] == workers and spec["maxFailedIndexes"] == number, spec)  # of both together one
        check(pod["nodeSelector"] == {"topology.kubernetes.io/zone": name} and only["args"][-2:] == ["--slice", name], pod)
    for part in ("workers-0", "coordinator"):
        pod = manifests[f"ostro-nano-{part}.yaml"][1]["spec"]["template"]["spec"]
        (only,) = pod["containers"]
        check(only["envFrom"] == [{"secretRef": {"name": "keys"}}] and only["workingDir"] == "/work", only)
        check({"name": "run", "emptyDir": {}} in pod["volumes"] and "persistentVolumeClaim" not in str(pod), pod["volumes"])
    check("ostro-nano-workers.yaml" not in manifests, sorted(manifests))


def check_relative(place):
    """Relative paths of a command that is typed on the volume mean the same in the pods; typed elsewhere, they must be absolute."""
    project = place.top / "project"
    project.mkdir()
    relative = ["--trainer.log_dir", "runs", "--data.cache_dir", "cache"]
    done, out = written(place, "relative", cwd=project, options=relative)
    check(done.returncode == 0, done.stderr)
    for part in ("workers", "coordinator"):
        spec = parse((out / f"ostro-nano-{part}.yaml").read_text())["spec"]["template"]["spec"]
        check(spec["containers"][0]["workingDir"] == str(project), f"{part} runs in {spec['containers'][0]['workingDir']}")
    done, out = written(place, "elsewhere", cwd="/", options=relative)
    check(done.returncode == 2 and "/cache is not below --mount" in done.stderr and not out.exists(), done.stderr)
    done, out = written(place, "absolute", cwd="/")
    check(done.returncode == 0, done.stderr)
    spec = parse((out / "ostro-nano-workers.yaml").read_text())["spec"]["template"]["spec"]
    check(spec["containers"][0]["workingDir"] == str(place.top), "without a folder on the volume pods run at its mount")


def check_kuberay(place):
    """The example for KubeRay. The entry point runs with a Python that has no Ray, which is what it then says."""
    sys.path += map(str, ROOT.glob(".venv/lib/python3.*/site-packages"))
    try:
        import jsonschema
        import kubernetes_validate
        import yaml
    except ImportError:
        return False
    schema = json.loads((ROOT / "tests" / "e2e" / "kuberay_rayjob.json").read_text())
    job = yaml.safe_load((ROOT / "examples" / "kuberay" / "rayjob.yaml").read_text())
    jsonschema.validate(job, schema)
    cluster = job["spec"]["rayClusterSpec"]
    (group,) = cluster["workerGroupSpecs"]
    pods = [cluster["headGroupSpec"]["template"], group["template"]]
    for template in pods:
        for version in VERSIONS:
            kubernetes_validate.validate({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"}, "template": template}, version, strict=True)
    # Negative controls: what is wrong in a field is found.
    for path, value in ((("spec", "rayClusterSpec", "workerGroupSpecs", 0, "maxReplica"), 3), (("spec", "submissionMode"), "K8sJob"),
                        (("spec", "rayClusterSpec", "headGroupSpec", "rayStartParams", "num-cpus"), 0), (("spec", "rayClusterSpec", "headGroupSpec"), {})):
        wrong = at = copy.deepcopy(job)
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value
        try:
            jsonschema.validate(wrong, schema)
        except jsonschema.ValidationError:
            continue
        check(False, f"{path} = {value} is valid")
    words = shlex.split(job["spec"]["entrypoint"])
    option = dict(zip(words[3::2], words[4::2]))
    (worker,) = pods[1]["spec"]["containers"]
    check(words[:3] == ["ostro", "launch", "ray"] and int(option["--min_workers"]) == group["minReplicas"]
          and int(option["--max_workers"]) == group["maxReplicas"] and option["--cpus_per_worker"] == worker["resources"]["limits"]["cpu"],
          f"the pods are not those of the entry point: {words}")
    check(len({pod["spec"]["containers"][0]["image"] for pod in pods}) == 1, "two images")
    dockerfile = (ROOT / "examples" / "kuberay" / "Dockerfile").read_text()
    check(f"ray[default]=={cluster['rayVersion']}" in dockerfile, f"rayVersion {cluster['rayVersion']} is not that of the image")
    python = place.top / "no_ray"
    python.write_text("#!/bin/sh\nexit 40\n")
    python.chmod(0o755)
    config = ["--config", str(place.top / "c.yaml") if option.pop("--config") == "/runs/nano.yaml" else ""]
    for more, status, says in (([], 1, "has no package ray"), (["--max_worker", "3"], 2, "--max_worker")):
        done = subprocess.run([place.ostro, *words[1:3], *(w for pair in option.items() for w in pair), *config, "--trainer.id", "kuberay", *more],
                              env=place.environment({"OSTRO_PYTHON": str(python)}), text=True, capture_output=True, check=False, timeout=300)
        check(done.returncode == status and says in done.stderr, f"{words} {more}: {done.returncode} {done.stderr}")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ostro-kubernetes-") as top:
        place = Place(args.ostro, pathlib.Path(top))
        expected = place.train("alone", OPTIONS)
        check_errors(place)
        check_relative(place)
        check_slices(place)
        by_schema = check_kuberay(place)
        manifests, by_package = check_manifests(place)
        network = None
        try:
            if os.geteuid() == 0:
                try:
                    network = Network(4)
                except (subprocess.CalledProcessError, FileNotFoundError) as error:
                    print(f"no network namespaces: {error}", flush=True)
            check_commands(place, manifests, expected, network)
        finally:
            kill_all(Pod.all)
            if network:
                network.remove()
    print(f"manifests for Kubernetes are valid{' (kubernetes-validate)' if by_package else ''}; their commands train to the same chain"
          f"{', each pod in a network namespace' if network else ''}")
    print("examples/kuberay fits the fields of KubeRay and the program" if by_schema else "examples/kuberay was not checked: no kubernetes-validate")
    return 0


if __name__ == "__main__":
    sys.exit(main())
