// batch_script, slurm_worker_script: the two files of a job of Slurm that runs workers on one node.
//
// Slurm runs the first (sbatch), which starts the second as a step, once for each worker: Slurm signals steps
// when it takes a node away, and not the batch script. The second reads the coordinator's address and the
// variables for the worker from a file that only its user can read, so that no secret is in a script, in a
// program's arguments or with Slurm. In place of a worker that was killed or lost its place, it starts
// another, which reads that file again. A worker that fails for good ends the whole job, so that another job
// takes its place; one that was asked to leave leaves the others on its node alone.
//
// Where the nodes share no folder (`spooled`), sbatch reads one script from its standard input, which has
// both scripts and those variables: it is with Slurm then, which gives it to its user and to the cluster's
// operators.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::cluster {

struct SlurmWorker {
  std::string name;         // of the job
  std::string folder;       // where the workers run
  bool any_folder = false;  // on a node that lacks it they run in /tmp
  std::string program;      // ostro on the nodes
  std::string directory;    // absolute, for the files of the job: worker.sh, environment, JOB.out
  // Nothing of it is seen by the nodes: batch_script() has all, and what a job writes is in a file on its
  // node.
  bool spooled = false;
  std::vector<std::string> words;  // further arguments of `ostro worker`
  int64_t workers = 1;             // on a node
  bool gpu_each = false;           // each takes the GPU of its number on the node
  bool requeue = false;            // Slurm starts a job again that it took away
  int64_t grace = 120;             // seconds from SIGTERM to the job's limit of time; 0: no signal
  std::string options;             // further ones of sbatch, as typed
  std::string touched;  // a file that each start touches, so that the folder counts as in use; or ""
  std::string slices;   // what names the slice of a worker: a word of kSlurmSlices; "": nothing
  // The exit statuses of a worker that was stopped with the run, that has left, and that lost its place.
  int if_interrupted = 0, if_left = 0, if_lost = 0;
};

// By what Slurm says of a job's node: its partition, the switches above it (where Slurm knows the topology),
// or the node itself. Where it says nothing, a worker ends with an error.
inline constexpr std::array<const char*, 3> kSlurmSlices = {"partition", "switch", "node"};

// Checks the words of `options`: kInvalidArgument for one that this launcher sets itself, naming what sets
// it, for the beginning of such a one, and for line feeds. `command` is the one whose option they are.
inline constexpr const char* kLaunchSlurm = "ostro launch slurm";
Status check_sbatch_options(const std::string& options, const std::string& command = kLaunchSlurm);
// A path as a directive of sbatch takes it: Slurm puts a job's numbers in the place of %j and others.
std::string with_percents_doubled(const std::string& path);
// kInvalidArgument for a directory that a script cannot name.
Status check_slurm_directory(const std::string& directory);

// `variables`: where `spooled`, what slurm_environment_file() would have.
std::string batch_script(const SlurmWorker& worker, const std::string& variables = "");
std::string slurm_worker_script(const SlurmWorker& worker);

// Where `spooled`, the files on the job's node with what it writes, as a shell's pattern.
std::string slurm_output_pattern(const SlurmWorker& worker, const std::string& job);

// The file that slurm_worker_script reads: the coordinator's address and port, then lines NAME=VALUE.
std::string slurm_environment_file(const SlurmWorker& worker);

}  // namespace ostro::cluster
