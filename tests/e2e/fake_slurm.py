"""A Slurm of small programs, for tests: sbatch, squeue, scancel and srun in a folder that is first on PATH, which run the jobs on this
machine. squeue starts the jobs that wait. The file `refuse` makes sbatch refuse; squeue has more such files, below."""
import os
import signal

# A job is a file ID.state beside these programs, with the word that squeue prints; ID.group is its process group while it runs. Its script is
# a file, or where sbatch gets none the standard input; ID.words has what sbatch was given.
SBATCH = """#!/bin/sh
cd "$(dirname "$0")" || exit 1
[ ! -e refuse ] || { echo "sbatch: error: invalid partition specified: none" >&2; exit 1; }
n=1; while ! mkdir $n.job 2>/dev/null; do n=$((n + 1)); done
env > $n.env
for word; do case $word in --exclude=*) echo "${word#*=}" > $n.exclude;; esac; done
case $word in --*) cat > $n.script; chmod 700 $n.script;; *) cp "$word" $n.script;; esac
echo "$*" > $n.words
echo PENDING > $n.state
echo $n
"""
# Every job that waits gets a node, unless the file `full` is there: one of its own, or with the file `bad`, and from the second job on, the
# node `bad`, on which jobs fail, unless it leaves that out. Several may ask at a time; the folder ID.start keeps them from starting a job
# twice.
SQUEUE = """#!/bin/sh
cd "$(dirname "$0")" || exit 1
node_of() {
  [ -e $1.node ] || {
    if [ -e bad ] && [ $1 != 1 ] && ! grep -q bad $1.exclude 2>/dev/null; then echo bad; else echo node$1; fi > $1.node.$$
    mv $1.node.$$ $1.node
  }
  cat $1.node
}
[ -z "$SQUEUE_PARTITION" ] || exit 0
for word; do case $word in --name=*) name=${word#--name=};; esac; done
for state in *.state; do
  [ -e "$state" ] || continue
  n=${state%.state}
  grep -q -- "--job-name=$name\\$" $n.script || continue
  if [ "$(cat $state)" = PENDING ] && [ ! -e full ] && mkdir $n.start 2>/dev/null; then
    if [ "$(cat $state)" = PENDING ]; then
      node_of $n > /dev/null
      echo RUNNING > $state
      setsid ./run $n > /dev/null 2>&1 < /dev/null &
    fi
    rmdir $n.start
  fi
  echo "$n|$(cat $state)|None|$(node_of $n)"
done
"""
RUN = """#!/bin/sh
trap ':' TERM
echo $$ > $1.group
out=$(sed -n 's/^#SBATCH --output=//p' $1.script | sed "s/%j/$1/")
if grep -qx bad $1.node 2>/dev/null; then sleep 1; false; else
env -i PATH="$PATH" HOME="$HOME" SLURM_CPUS_PER_TASK=1 SLURM_JOB_ID="$1" SLURMD_NODENAME="node$1" SLURM_JOB_PARTITION=long sh $1.script >> "$out" 2>&1
fi
status=$?
rm $1.group
if [ -e $1.cancelled ]; then word=CANCELLED; elif [ $status = 0 ]; then word=COMPLETED; else word=FAILED; fi
echo $word > $1.state
"""
SCANCEL = """#!/bin/sh
cd "$(dirname "$0")" || exit 1
shift
for n; do
  touch $n.cancelled
  if [ -e $n.group ]; then kill -TERM -$(cat $n.group); elif [ "$(cat $n.state)" = PENDING ]; then echo CANCELLED > $n.state; fi
done
"""
SRUN = """#!/bin/sh
while [ "$1" != sh ]; do shift; done
exec "$@"
"""


class FakeSlurm:
    def __init__(self, folder):
        self.folder = folder
        self.folder.mkdir()
        for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE), ("scancel", SCANCEL), ("srun", SRUN), ("run", RUN)):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)
        self.variables = {"PATH": f"{self.folder}:{os.environ['PATH']}"}  # of a process that is to use it

    def states(self):
        return {int(path.stem): path.read_text().strip() for path in self.folder.glob("*.state")}

    def in_state(self, *words):
        """The jobs with one of these states, in the order of their numbers."""
        return [job for job, state in sorted(self.states().items()) if state in words]

    def signal(self, job, number):
        os.killpg(int((self.folder / f"{job}.group").read_text()), number)

    def lose(self, job, word):
        """Slurm takes a job's node away; the job's new state is `word`."""
        self.signal(job, signal.SIGKILL)
        (self.folder / f"{job}.group").unlink()
        (self.folder / f"{job}.state").write_text(word)

    def end(self):
        """Kills the jobs that are left."""
        for path in self.folder.glob("*.group"):
            try:
                os.killpg(int(path.read_text()), signal.SIGKILL)
            except (OSError, ValueError):
                pass  # it has ended
