#include "ostro/cluster/slurm/batch_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "ostro/base/text_parts.h"
#include "ostro/cluster/slurm/sbatch_words.h"

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
  std::array<std::string_view, std::size(kTaken)> taken;
  std::ranges::transform(kTaken, taken.begin(), [](const auto& row) { return row.first; });
  const std::vector<SbatchUse> uses = sbatch_uses(options, taken);
  if (uses.empty()) return {};
  const SbatchUse& use = uses.front();
  if (!use.in_full)
    return invalid_argument(
        fmt::format("--sbatch: {} may stand for {}, which `{}` sets itself; write the option that you "
                    "mean in full",
                    use.word, use.option, command));
  const auto row = std::ranges::find(kTaken, use.option, [](const auto& pair) { return pair.first; });
  const std::string_view ours = command == kLaunchSlurm ? row->second : "";
  return invalid_argument(fmt::format("--sbatch: {} is set by `{}` itself{}{}", use.word, command,
                                      ours.empty() ? "" : "; use ", ours));
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

std::string slurm_output_pattern(const SlurmWorker& worker, const std::string& job) {
  return fmt::format("/tmp/{}-{}.*", worker.name, job);
}

std::string batch_script(const SlurmWorker& worker, const std::string& variables) {
  const std::string output =
      worker.spooled ? "/dev/null" : with_percents_doubled(worker.directory) + "/%j.out";
  std::string script = "#!/bin/sh\n";
  for (const std::string& option :
       {fmt::format("--job-name={}", worker.name), std::string("--nodes=1"),
        fmt::format("--ntasks={}", worker.workers), "--output=" + shell_word(output),
        std::string("--open-mode=append"), std::string(worker.requeue ? "--requeue" : "--no-requeue")})
    script += fmt::format("#SBATCH {}\n", option);
  if (worker.grace > 0) script += fmt::format("#SBATCH --signal=TERM@{}\n", worker.grace);
  if (!worker.options.empty()) script += fmt::format("#SBATCH {}\n", worker.options);
  const std::string step = fmt::format(
      "exec srun ${{SLURM_CPUS_PER_TASK:+--cpus-per-task=$SLURM_CPUS_PER_TASK}} --kill-on-bad-exit={} "
      "--wait=0 sh",
      worker.workers > 1 ? 1 : 0);
  if (!worker.spooled)
    return script + fmt::format("{} {}\n", step, shell_word(worker.directory + "/worker.sh"));
  // A name that no other user knows before: all may write the folder. srun gives its standard input to each
  // worker's script.
  return script +
         fmt::format("out=$(mktemp /tmp/{}-\"$SLURM_JOB_ID\".XXXXXX) || out=/dev/null\n", worker.name) +
         fmt::format("{} -c {} >> \"$out\" 2>&1 <<'OSTRO_VARIABLES'\n{}OSTRO_VARIABLES\n", step,
                     shell_word(slurm_worker_script(worker)), variables);
}

std::string slurm_worker_script(const SlurmWorker& worker) {
  std::string words;
  for (const std::string& word : worker.words) words += " " + shell_word(word);
  if (!worker.slices.empty()) words += " --slice \"$slice\"";
  if (worker.gpu_each) words += " --device \"cuda:${SLURM_LOCALID:-0}\"";
  constexpr std::string_view kTake =
      "IFS= read -r coordinator; while IFS= read -r line && [ -n \"$line\" ]; do export \"$line\"; done";
  // What may change while the job runs is read before each worker starts.
  std::string once, each;
  if (worker.spooled) {
    once = fmt::format("{{ {}; }}\n", kTake);
  } else {
    once = fmt::format("file={}\n", shell_word(slurm_environment_file(worker)));
    each = fmt::format(
        "  [ -r \"$file\" ] || {{ echo \"error: $file is not there: no launcher waits for this job\" >&2; "
        "exit 1; "
        "}}\n"
        "  {{ {}; }} < \"$file\"\n",
        kTake);
  }
  return fmt::format(
      R"(#!/bin/sh
# One worker of a run, as a step of a job. Slurm signals this shell and the worker.
asked=
trap 'asked=1' TERM
cd {folder} || {else_folder}exit 1
{slice}{touch}{once}threads=${{SLURM_CPUS_PER_TASK:-$(($(nproc) / {workers}))}}; [ "$threads" -ge 1 ] || threads=1
lost=0
while :; do
{each}  export OSTRO_THREADS="${{OSTRO_THREADS:-$threads}}"
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
      fmt::arg("folder", shell_word(worker.folder) + (worker.any_folder ? " 2>/dev/null" : "")),
      fmt::arg("else_folder", worker.any_folder ? "cd /tmp || " : ""), fmt::arg("once", once),
      fmt::arg("each", each), fmt::arg("slice", slice_lines(worker.slices)),
      fmt::arg("touch", worker.touched.empty()
                            ? ""
                            : fmt::format("touch -c {} 2>/dev/null\n", shell_word(worker.touched))),
      fmt::arg("workers", worker.workers), fmt::arg("program", shell_word(worker.program)),
      fmt::arg("words", words), fmt::arg("interrupted", worker.if_interrupted),
      fmt::arg("left", worker.if_left), fmt::arg("lost_place", worker.if_lost));
}

}  // namespace ostro::cluster
