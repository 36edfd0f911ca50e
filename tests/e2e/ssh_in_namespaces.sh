#!/usr/bin/env bash
# tests/e2e/ssh_in_namespaces.sh OSTRO: `ostro launch ssh` with real daemons of OpenSSH, each in a network namespace of its own.
#
# By hand, since it needs root, `ip` and sshd. Three machines with two workers on one of them; then a worker is killed, and one machine is
# cut off for good. The run ends with the chain of `ostro train`; the last lines say so.
set -euo pipefail
ostro="$(realpath "$1")"
(( EUID == 0 )) || { echo "error: this needs root"; exit 2; }
[[ -x /usr/sbin/sshd ]] || { echo "error: no sshd; on Debian: apt-get install openssh-server"; exit 2; }
top="$(mktemp -d)"
hosts=(1 2 3)

cleanup() {
  for i in "${hosts[@]}"; do
    for pid in $(ip netns pids "ostro$i" 2>/dev/null); do kill -KILL "$pid" 2>/dev/null || true; done
    ip netns del "ostro$i" 2>/dev/null || true
  done
  ip link del ostro0 2>/dev/null || true
  rm -rf "$top"
}
trap cleanup EXIT

ip link add ostro0 type bridge
ip addr add 10.77.0.254/24 dev ostro0
ip link set ostro0 up
ssh-keygen -q -t ed25519 -N '' -f "$top/key"
ssh-keygen -q -t ed25519 -N '' -f "$top/host_key"
mkdir -p /run/sshd
for i in "${hosts[@]}"; do
  ip netns add "ostro$i"
  ip link add "ostrov$i" type veth peer name eth0 netns "ostro$i"
  ip link set "ostrov$i" master ostro0 up
  ip -n "ostro$i" addr add "10.77.0.$i/24" dev eth0
  ip -n "ostro$i" link set eth0 up
  ip -n "ostro$i" link set lo up
  ip netns exec "ostro$i" /usr/sbin/sshd -h "$top/host_key" -o AuthorizedKeysFile="$top/key.pub" -o StrictModes=no -o PidFile=none \
    -o PermitRootLogin=yes -o UsePAM=no
done
cat > "$top/ssh.conf" <<CONF
Host *
  IdentityFile $top/key
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
CONF

cd "$top"
for i in $(seq 200); do seq "$i" $((i + 300)) | tr '\n' ' '; done > text.txt
cat > c.yaml <<YAML
data: {train_urls: [text.txt], cache_dir: cache, vocab_size: 300}
model: {seq_len: 128, hidden_dim: 64, intermediate_dim: 128, num_layers: 2, num_heads: 4, num_kv_heads: 4}
trainer: {mp: f32, train_batch_size: 8, num_train_steps: 400, steps_per_eval: 0, checkpointer: {keep: [{every: 100}]}}
numerics: {leaf_examples: 1, cells: {embed: 16}}
YAML
OSTRO_THREADS=1 "$ostro" train --config c.yaml --trainer.id alone 2>/dev/null
printf '10.77.0.1 slots=2\n10.77.0.2\n10.77.0.3\n' > hosts.txt
OSTRO_THREADS=1 "$ostro" launch ssh --hosts hosts.txt --ssh "ssh -F $top/ssh.conf" --min_workers 2 --config c.yaml --trainer.id cluster \
  > out.txt 2> err.txt &
launcher=$!
steps() { if [[ -f runs/cluster/metrics.jsonl ]]; then wc -l < runs/cluster/metrics.jsonl; else echo 0; fi; }
wait_for() { for _ in $(seq 3000); do (( $(steps) < $1 )) || return 0; kill -0 $launcher 2>/dev/null || return 0; sleep 0.1; done; }
wait_for 20
"$ostro" status runs/cluster | sed -n '/^worker/,/^$/p'
pkill -KILL -f --ns "$(ip netns pids ostro2 | head -n 1)" --nslist net 'worker --coordinator' || true
wait_for 100
ip link set ostrov3 down
wait $launcher || { tail -n 20 err.txt; echo "FAILED"; exit 1; }
grep -E 'lost|ended|place|cannot|epoch' err.txt | tail -n 12
cat out.txt
cmp runs/alone/chain.jsonl runs/cluster/chain.jsonl && echo "equal: the chain of ostro train"
