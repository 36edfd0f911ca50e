// ostro launch slurm
#include "ostro/cli/launch/launch_slurm_jobs.h"
#include "ostro/cli/launch/slurm_call.h"
#include "ostro/cli/main/commands.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {

int launch_slurm_command(Args args) {
  SlurmCall call;
  args.summary(
      "Trains on a Slurm cluster: keeps a job for each of MAX nodes in the queue, trains as soon as workers "
      "of MIN nodes are there, and replaces jobs that are lost or taken away. The run's hash is the one of "
      "ostro train. The coordinator runs in this process, which must be able to run sbatch, squeue and "
      "scancel. All nodes see the run's folder, the data and the program under the same paths; the first two "
      "may be in an object store, and then they need to share no folder.");
  args.option("--nodes", &call.nodes, "MIN:MAX", "train on as few nodes, and on so many at most",
              Args::kRequired);
  args.option("--workers_per_node", &call.workers, "N",
              "on each node; with --device cuda each takes the GPU of its number");
  args.option("--sbatch", &call.sbatch, "WORDS",
              "further options of sbatch for each job, for instance '--partition=long --account=a1 "
              "--time=4:00:00 --gres=gpu:1 --cpus-per-task=16'");
  args.flag("--requeue", &call.requeue,
            "Slurm itself starts a job again that it took away: it keeps its number; without this a new job "
            "takes its place");
  args.option("--grace", &call.grace, "SECONDS",
              "before a job's limit of time its workers leave; 0: they are not told");
  args.option(
      "--failures", &call.failures, "N",
      "a node on which N jobs in a row failed is left out by the next ones (sbatch --exclude); 0: none is");
  args.option("--left_out", &call.left_out, "SECONDS", "so long; then it is tried again");
  args.option("--program", &call.program, "PATH",
              "this program on the nodes; without it: the same path as here");
  args.option(
      "--jobs", &call.jobs, "DIR",
      "for scripts, what jobs write and the file with the secret: a folder that this machine and the "
      "nodes share; each run has one of its own in it. Without it: slurm in the run's folder, or where that "
      "is in an object store none: sbatch gets one script that has all");
  args.option("--slices", &call.slices, "WORD",
              "what names the slice of a job's workers: partition, that of the job; switch, those above its "
              "node, where Slurm knows the topology; node: each is one");
  args.option(
      "--folder", &call.folder, "DIR",
      "where the workers run; without it: the current folder, or where nothing is shared and a node lacks "
      "it, /tmp");
  args.flag("--bring", &call.bring.on,
            "copies this program, the configuration, the tokenizer and token stores beside the scripts, so "
            "that the "
            "nodes need not see where they are");
  take_bring_mib(args, call.bring);
  args.option(
      "--bind", &call.bind, "ADDRESS",
      "where the coordinator listens on this machine, and the nodes reach it; without it: the address "
      "of this machine's name");
  args.option("--port", &call.port, "N", "where the coordinator listens; 0: any free one");
  args.flag("--dry_run", &call.dry_run, "print the scripts, and submit nothing");
  args.flag("--amend", &call.amend, "as of ostro train");
  args.device();
  args.config();
  if (auto code = args.parse()) return *code;
  const auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  const auto code = launch_slurm_jobs(call, *config, args.context(), args.typed());
  return code.ok() ? *code : report_error(code.error());
}

}  // namespace ostro::cli
