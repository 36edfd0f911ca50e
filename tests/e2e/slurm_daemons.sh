# Daemons of Slurm on this machine, for scripts that source this: a controller, munge, and three nodes of one processor each.
#
# Needs root and Slurm (on Debian: apt-get install slurm-wlm munge). Sets $top, a folder that is removed at the end, SLURM_CONF, and the
# partitions low (default; its jobs can be preempted) and high. A script that has more to end defines `cleanup_more`.
(( EUID == 0 )) || { echo "error: this needs root"; exit 2; }
command -v slurmctld slurmd munged sbatch > /dev/null || { echo "error: no Slurm; on Debian: apt-get install slurm-wlm munge"; exit 2; }
top="$(mktemp -d)"
chmod 755 "$top"
export SLURM_CONF="$top/slurm.conf"
declare -A daemon

processes_of() { { for d in /proc/[0-9]*; do tr '\0' '\n' < "$d/environ" | grep -qx "SLURMD_NODENAME=$1" && basename "$d"; done; } 2>/dev/null || true; }
steps_daemons() {  # of the processes
  for p in $1; do p="$(ps -o ppid= -p "$p" | tr -d ' ')"; if [[ "$(cat "/proc/$p/comm" 2>/dev/null)" == slurmstepd ]]; then echo "$p"; fi; done | sort -u
}
cleanup() {
  cleanup_more
  disown -a
  for name in "${!daemon[@]}"; do kill -KILL "${daemon[$name]}" 2>/dev/null || true; done
  for node in n1 n2 n3; do lost="$(processes_of $node)"; kill -KILL $(steps_daemons "$lost") $lost 2>/dev/null || true; done
  rm -rf "$top"
}
cleanup_more() { :; }
trap cleanup EXIT

host="$(hostname -s)"
dd if=/dev/urandom of="$top/munge.key" bs=1024 count=1 2>/dev/null
chmod 400 "$top/munge.key"
mkdir "$top/state"
cat > "$SLURM_CONF" <<CONF
ClusterName=here
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16817
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$top/munge.socket
StateSaveLocation=$top/state
SlurmdSpoolDir=$top/spool.%n
SlurmctldPidFile=$top/slurmctld.pid
SlurmdPidFile=$top/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/linear
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmdParameters=config_overrides
SlurmdTimeout=10
KillWait=10
ReturnToService=2
MinJobAge=60
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=17001 CPUs=1
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=17002 CPUs=1
NodeName=n3 NodeHostname=$host NodeAddr=127.0.0.1 Port=17003 CPUs=1
PartitionName=low Nodes=ALL Default=YES PriorityTier=1 GraceTime=20
PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF
CONF
start_node() { slurmd -D -N "$1" > "$top/$1.log" 2>&1 & daemon[$1]=$!; }
munged --foreground --force --key-file="$top/munge.key" --socket="$top/munge.socket" --pid-file="$top/munge.pid" --log-file="$top/munge.log" \
  --seed-file="$top/munge.seed" > /dev/null 2>&1 & daemon[munge]=$!
for _ in $(seq 100); do [[ ! -S "$top/munge.socket" ]] || break; sleep 0.1; done
slurmctld -D > "$top/slurmctld.log" 2>&1 & daemon[ctld]=$!
for node in n1 n2 n3; do start_node $node; done
wait_for() {  # SECONDS WORDS: until the command succeeds
  local seconds=$1; shift
  for _ in $(seq $((seconds * 5))); do ! "$@" || return 0; sleep 0.2; done
  echo "FAILED: waited $seconds s for: $*"; squeue || true; tail -n 20 "$top"/err.txt || true; tail -n 5 "$top"/*.log; exit 1
}
idle() { [[ $(sinfo --noheader --format=%T --Node --partition=low | grep -c '^idle$') == "$1" ]]; }
wait_for 60 idle 3
sinfo --version

