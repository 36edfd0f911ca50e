#include "ostro/cluster/slurm/batch_script.h"

#include <fmt/format.h>

#include <sstream>
#include <string_view>
#include <utility>

#include "ostro/base/text_parts.h"

namespace ostro::cluster {
namespace {

// Options of sbatch that this launcher sets, or that it cannot work with; and what says the same to it.
constexpr std::pair<std::string_view, std::string_view> kTaken[] = {
    {"--nodes", "--nodes"},
    {"-N", "--nodes"},
    {"--ntasks", "--workers_per_node"},
    {"-n", "--workers_per_node"},
    {"--ntasks-per-node", "--workers_per_node"},
    {"--requeue", "--requeue"},
    {"--no-requeue", "--requeue"},
    {"--signal", "--grace"},
    {"--chdir", "--folder"},
    {"-D", "--folder"},
    {"--job-name", "trainer.id"},
    {"-J", "trainer.id"},
    {"--output", ""},
    {"-o", ""},
    {"--error", ""},
    {"-e", ""},
    {"--array", ""},
    {"-a", ""},
    {"--wrap", ""},
    {"--wait", ""},
    {"-W", ""},
    {"--parsable", ""},
    {"--export", ""},
    {"--export-file", ""},
    {"--open-mode", ""},
    {"--clusters", ""},
    {"-M", ""},
    {"--test-only", "--dry_run"},
};

// -N4, -N 4, --nodes=4 and --nodes 4 are the same option.
bool is_option(std::string_view word, std::string_view option) {
  if (option.starts_with("--")) return word.substr(0, word.find('=')) == option;
  return word.starts_with(option) && !word.starts_with("--");
}

// sbatch takes --node=4 for --nodes=4.
bool is_beginning(std::string_view word, std::string_view option) {
  const std::string_view name = word.substr(0, word.find('='));
  return name.starts_with("--") && name.size() < option.size() && option.starts_with(name);
}

// Lines of a shell that put the slice of this node into $slice, or end with an error.
std::string slice_lines(const std::string& by) {
  if (by.empty()) return "";
  std::string out;
  if (by == "partition") out = "slice=${SLURM_JOB_PARTITION:-}\n";
  if (by == "node") out = "slice=${SLURMD_NODENAME:-$(uname -n)}\n";
  if (by == "switch")
    out =
        "slice=\n"
        "case ${SLURM_TOPOLOGY_ADDR_PATTERN:-} in *switch*)\n"
        "  slice=${SLURM_TOPOLOGY_ADDR:-}; slice=${slice%\".${SLURMD_NODENAME:-}\"};; esac\n";
  return out +
         fmt::format(
             "[ -n \"$slice\" ] || {{ echo \"error: --slices {}: Slurm says none on $(uname -n); use another "
             "word, or trainer.mesh.slices: auto\" >&2; exit 1; }}\n",
             by);
}

}  // namespace

Status check_sbatch_options(const std::string& options, const std::string& command) {
  if (options.find_first_of("\r\n") != std::string::npos)
    return invalid_argument("--sbatch: has a line feed; write all options in one line");
  std::istringstream words(options);
  for (std::string word; words >> word;) {
    for (const auto& [option, ours] : kTaken)
      if (is_option(word, option))
        return invalid_argument(fmt::format("--sbatch: {} is set by `{}` itself{}{}", word, command,
                                            ours.empty() || command != kLaunchSlurm ? "" : "; use ",
                                            command != kLaunchSlurm ? "" : ours));
    for (const auto& [option, ours] : kTaken)
      if (is_beginning(word, option))
        return invalid_argument(
            fmt::format("--sbatch: {} may stand for {}, which `{}` sets itself; write the option that you "
                        "mean in full",
                        word, option, command));
  }
  return {};
}

std::string with_percents_doubled(const std::string& path) {
  std::string out;
  for (const char c : path) out += c == '%' ? std::string("%%") : std::string(1, c);
  return out;
}

Status check_slurm_directory(const std::string& directory) {
  if (directory.find_first_of("\r\n") == std::string::npos) return {};
  return invalid_argument(
      fmt::format("'{}': a path with a line feed cannot be written into a script for sbatch", directory));
}

std::string slurm_environment_file(const SlurmWorker& worker) { return worker.directory + "/environment"; }

std::string batch_script(const SlurmWorker& worker) {
  const std::string output = with_percents_doubled(worker.directory) + "/%j.out";
  std::string script = "#!/bin/sh\n";
  for (const std::string& option :
       {fmt::format("--job-name={}", worker.name), std::string("--nodes=1"),
        fmt::format("--ntasks={}", worker.workers), "--output=" + shell_word(output),
        std::string("--open-mode=append"), std::string(worker.requeue ? "--requeue" : "--no-requeue")})
    script += fmt::format("#SBATCH {}\n", option);
  if (worker.grace > 0) script += fmt::format("#SBATCH --signal=TERM@{}\n", worker.grace);
  if (!worker.options.empty()) script += fmt::format("#SBATCH {}\n", worker.options);
  return script +
         fmt::format(
             "exec srun ${{SLURM_CPUS_PER_TASK:+--cpus-per-task=$SLURM_CPUS_PER_TASK}} --kill-on-bad-exit={} "
             "--wait=0 sh {}\n",
             worker.workers > 1 ? 1 : 0, shell_word(worker.directory + "/worker.sh"));
}

std::string slurm_worker_script(const SlurmWorker& worker) {
  std::string words;
  for (const std::string& word : worker.words) words += " " + shell_word(word);
  if (!worker.slices.empty()) words += " --slice \"$slice\"";
  if (worker.gpu_each) words += " --device \"cuda:${SLURM_LOCALID:-0}\"";
  return fmt::format(
      R"(#!/bin/sh
# One worker of a run, as a step of a job. Slurm signals this shell and the worker.
asked=
trap 'asked=1' TERM
cd {folder} || exit 1
{slice}{touch}file={file}
threads=${{SLURM_CPUS_PER_TASK:-$(($(nproc) / {workers}))}}; [ "$threads" -ge 1 ] || threads=1
lost=0
while :; do
  [ -r "$file" ] || {{ echo "error: $file is not there: no launcher waits for this job" >&2; exit 1; }}
  {{
    IFS= read -r coordinator
    while IFS= read -r line && [ -n "$line" ]; do export "$line"; done
  }} < "$file"
  export OSTRO_THREADS="${{OSTRO_THREADS:-$threads}}"
  begun=$(date +%s)
  {program} worker --coordinator "$coordinator" --bind auto{words} </dev/null &
  worker=$!
  wait $worker; status=$?
  while kill -0 $worker 2>/dev/null; do wait $worker; status=$?; done
  case $status in 0|{interrupted}|{left}) exit 0;; esac
  [ -z "$asked" ] || exit 0
  [ $status -eq {lost_place} ] || [ $status -gt 128 ] || exit $status
  [ $(($(date +%s) - begun)) -lt 60 ] || lost=0
  lost=$((lost + 1)); [ $lost -le 5 ] || exit $status
  echo "the worker ended with status $status; another takes its place" >&2
done
)",
      fmt::arg("folder", shell_word(worker.folder)), fmt::arg("slice", slice_lines(worker.slices)),
      fmt::arg("touch", worker.touched.empty()
                            ? ""
                            : fmt::format("touch -c {} 2>/dev/null\n", shell_word(worker.touched))),
      fmt::arg("workers", worker.workers), fmt::arg("file", shell_word(slurm_environment_file(worker))),
      fmt::arg("program", shell_word(worker.program)), fmt::arg("words", words),
      fmt::arg("interrupted", worker.if_interrupted), fmt::arg("left", worker.if_left),
      fmt::arg("lost_place", worker.if_lost));
}

}  // namespace ostro::cluster
