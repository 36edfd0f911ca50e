#include "ostro/cluster/slurm/queue.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include "ostro/base/run_program.h"

namespace ostro::cluster {
namespace {

constexpr std::pair<std::string_view, SlurmFate> kFates[] = {
    {"PENDING", SlurmFate::kWaits},        {"REQUEUED", SlurmFate::kWaits},
    {"REQUEUE_HOLD", SlurmFate::kWaits},   {"REQUEUE_FED", SlurmFate::kWaits},
    {"SPECIAL_EXIT", SlurmFate::kWaits},   {"RESV_DEL_HOLD", SlurmFate::kWaits},
    {"COMPLETED", SlurmFate::kEnded},      {"CANCELLED", SlurmFate::kCancelled},
    {"PREEMPTED", SlurmFate::kTaken},      {"NODE_FAIL", SlurmFate::kTaken},
    {"TIMEOUT", SlurmFate::kTaken},        {"REVOKED", SlurmFate::kTaken},
    {"FAILED", SlurmFate::kFailed},        {"BOOT_FAIL", SlurmFate::kFailed},
    {"OUT_OF_MEMORY", SlurmFate::kFailed}, {"DEADLINE", SlurmFate::kFailed},
    {"LAUNCH_FAILED", SlurmFate::kFailed}, {"RECONFIG_FAIL", SlurmFate::kFailed},
};

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

SlurmFate fate_of(std::string_view state) {
  const auto* found =
      std::find_if(std::begin(kFates), std::end(kFates), [&](const auto& f) { return f.first == state; });
  return found == std::end(kFates) ? SlurmFate::kRuns : found->second;
}

bool is_alive(const SlurmJob& job) {
  const SlurmFate fate = fate_of(job.state);
  return fate == SlurmFate::kWaits || fate == SlurmFate::kRuns;
}

bool is_ending(const SlurmJob& job) { return job.state == "COMPLETING"; }

std::vector<SlurmJob> parse_queue(std::string_view text) {
  std::vector<SlurmJob> jobs;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    SlurmJob job;
    if (std::getline(fields, job.id, '|') && is_number(job.id) && std::getline(fields, job.state, '|')) {
      std::getline(fields, job.reason, '|');
      std::getline(fields, job.nodes, '|');
      jobs.push_back(std::move(job));
    }
  }
  return jobs;
}

std::string parse_submission(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::string id;
  for (std::string line; std::getline(in, line);)  // NUMBER, or NUMBER;CLUSTER
    if (const std::string number = line.substr(0, line.find(';')); is_number(number)) id = number;
  return id;
}

std::vector<std::string> hidden_from_slurm(const char* const* environment) {
  constexpr std::string_view kWherever[] = {"SLURM_CONF", "SLURM_CLUSTERS", "SLURM_JWT"};
  constexpr std::string_view kPrefixes[] = {"OSTRO_", "AWS_", "SLURM_", "SQUEUE_", "SCANCEL_"};
  // A variable of sbatch has more weight than the same option in the script.
  constexpr std::string_view kSet[] = {"SBATCH_ARRAY_INX", "SBATCH_CLUSTERS", "SBATCH_ERROR",
                                       "SBATCH_EXPORT",    "SBATCH_JOB_NAME", "SBATCH_NO_REQUEUE",
                                       "SBATCH_OPEN_MODE", "SBATCH_OUTPUT",   "SBATCH_REQUEUE",
                                       "SBATCH_SIGNAL",    "SBATCH_WAIT"};
  const auto has = [](const auto& names, std::string_view name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  std::vector<std::string> out;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const std::string_view name = entry.substr(0, entry.find('='));
    const bool prefixed = std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                                      [&](std::string_view prefix) { return name.starts_with(prefix); });
    if ((prefixed && !has(kWherever, name)) || has(kSet, name)) out.emplace_back(name);
  }
  return out;
}

SlurmQueue::SlurmQueue(std::string name, std::vector<std::string> hidden)
    : name_(std::move(name)), hidden_(std::move(hidden)) {}

// An error has the words of Slurm's program alone, not those of `env`, which starts it.
Result<std::string> SlurmQueue::run(const std::vector<std::string>& words, const std::string& input) const {
  std::vector<std::string> all = {"env"};
  for (const std::string& variable : hidden_) all.insert(all.end(), {"-u", variable});
  all.insert(all.end(), words.begin(), words.end());
  auto done = run_program(ProgramCall{all, input, std::nullopt, {}});
  if (done.ok()) return done;
  const std::string message = done.error().message();
  const size_t begin = message.find(": ");
  if (begin == std::string::npos || begin + 2 == message.size())
    return io_error(words[0] + message.substr(std::min(message.find(' '), message.size())));
  const bool missing = message.substr(0, begin).ends_with(" 127");
  return io_error(message.substr(begin + 2) + (missing ? "; Slurm's programs must be on PATH" : ""));
}

Result<std::string> SlurmQueue::submit(const std::string& script, const std::string& without,
                                       const std::string& text) const {
  std::vector<std::string> words = {"sbatch", "--parsable"};
  if (!without.empty()) words.push_back("--exclude=" + without);
  if (text.empty()) words.push_back(script);
  const auto said = run(words, text);
  if (!said.ok()) return said.error().with_context("Slurm takes no job");
  std::string id = parse_submission(*said);
  if (id.empty()) return corrupt(fmt::format("sbatch told no number of a job: {}", *said));
  return id;
}

Result<std::vector<SlurmJob>> SlurmQueue::jobs() const {
  ASSIGN_OR_RETURN(const std::string said,
                   run({"squeue", "--all", "--noheader", "--states=all", "--name=" + name_,
                        fmt::format("--user={}", ::getuid()), fmt::format("--format={}", kQueueFormat)}));
  return parse_queue(said);
}

Status SlurmQueue::cancel(const std::vector<std::string>& ids) const {
  if (ids.empty()) return {};
  std::vector<std::string> words = {"scancel", "--quiet"};
  words.insert(words.end(), ids.begin(), ids.end());
  RETURN_IF_ERROR(run(words));
  return {};
}

}  // namespace ostro::cluster
