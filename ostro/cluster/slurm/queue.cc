#include "ostro/cluster/slurm/queue.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
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

SlurmQueue::SlurmQueue(std::string name, std::vector<std::string> hidden)
    : name_(std::move(name)), hidden_(std::move(hidden)) {}

Result<std::string> SlurmQueue::submit(const std::string& script) const {
  std::vector<std::string> words = {"env"};
  for (const std::string& variable : hidden_) words.insert(words.end(), {"-u", variable});
  words.insert(words.end(), {"sbatch", "--parsable", script});
  const auto done = run_program(words);
  if (!done.ok()) {  // in sbatch's words alone, not in those of the program that starts it
    const std::string message = done.error().message();
    const size_t begin = message.find(": ");
    return io_error("Slurm takes no job: " +
                    (begin == std::string::npos ? message : message.substr(begin + 2)));
  }
  const std::string& said = *done;
  std::string id = parse_submission(said);
  if (id.empty()) return corrupt(fmt::format("sbatch told no number of a job: {}", said));
  return id;
}

Result<std::vector<SlurmJob>> SlurmQueue::jobs() const {
  const auto said =
      run_program({"squeue", "--noheader", "--states=all", "--name=" + name_,
                   fmt::format("--user={}", ::getuid()), fmt::format("--format={}", kQueueFormat)});
  if (!said.ok())
    return said.error().code() == ErrorCode::kNotFound
               ? not_found(said.error().message() + "; Slurm's programs must be on PATH")
               : said.error();
  return parse_queue(*said);
}

Status SlurmQueue::cancel(const std::vector<std::string>& ids) const {
  if (ids.empty()) return {};
  std::vector<std::string> words = {"scancel", "--quiet"};
  words.insert(words.end(), ids.begin(), ids.end());
  RETURN_IF_ERROR(run_program(words));
  return {};
}

}  // namespace ostro::cluster
