#include "ostro/run/report/run_status.h"

#include <fmt/format.h>
#include <signal.h>

#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "ostro/audit/audit_run.h"
#include "ostro/audit/bare_model.h"
#include "ostro/base/host_name.h"
#include "ostro/chain/chain.h"
#include "ostro/chain/lock.h"
#include "ostro/chain/record.h"
#include "ostro/cluster/watch/cluster_file.h"
#include "ostro/io/files/path.h"

namespace ostro::run {
namespace {

constexpr double kFresh = 10;        // seconds; cluster.json is written every second
constexpr int64_t kTail = 64 << 10;  // bytes of metrics.jsonl that are read

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool is_alive(int64_t pid) { return pid > 0 && (::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM); }

// The last lines of metrics.jsonl that are whole.
std::vector<nlohmann::json> last_metrics(io::FileSystem& fs, const std::string& path) {
  std::vector<nlohmann::json> out;
  const auto file = fs.open(path);
  if (!file.ok()) return out;
  const int64_t size = std::min((*file)->size(), kTail);
  std::string text(static_cast<size_t>(size), '\0');
  if (!(*file)->read((*file)->size() - size, std::as_writable_bytes(std::span(text))).ok()) return out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.contains("train/loss")) out.push_back(std::move(json));
  }
  return out;
}

std::optional<double> number_of(const nlohmann::json& row, const char* name) {
  const auto found = row.find(name);
  if (found == row.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

// Speed from the last steps: their times, without an evaluation or a pause that took longer than all of them.
void read_speed(const std::vector<nlohmann::json>& rows, RunStatus& status) {
  if (rows.empty()) return;
  if (const auto speed = number_of(rows.back(), "throughput/tokens_per_second"); speed && *speed > 0)
    status.tokens_per_second = speed;
  const auto& first = rows[rows.size() - std::min<size_t>(rows.size(), 30)];
  const auto from = number_of(first, "time"), to = number_of(rows.back(), "time");
  const auto begin = number_of(first, "step"), end = number_of(rows.back(), "step");
  if (from && to && begin && end && *end > *begin && status.total > status.step)
    status.eta_seconds = (*to - *from) / (*end - *begin) * static_cast<double>(status.total - status.step);
}

std::string state_of(io::FileSystem& fs, const std::string& lock_path, const std::string& outcome,
                     const RunStatus& status) {
  if (chain::is_locked_here(fs, lock_path)) return "running";
  if (status.job_is_live) return "waiting";
  if (outcome != "running" && !outcome.empty()) return outcome;
  const bool here = status.lock.empty() || chain::names_this_host(status.lock);
  return here ? "gone" : "elsewhere";
}

}  // namespace

Result<RunStatus> read_status(const Context& context, const std::string& directory) {
  io::FileSystem& fs = context.fs;
  const auto in = [&](const char* name) { return io::join_path(directory, name); };
  RunStatus status;
  status.directory = directory;
  const auto job = cluster::read_cluster_file(fs, in(cluster::kClusterFile));
  if (job.ok()) {
    status.job = *job;
    status.job_is_live =
        job->host == host_name() ? is_alive(job->pid) : now_seconds() - job->written < kFresh;
    if (job->host == host_name() && now_seconds() - job->written >= kFresh) status.job_is_live = false;
  } else if (job.error().code() != ErrorCode::kNotFound) {
    return job.error();
  }
  ASSIGN_OR_RETURN(const bool has_chain, fs.exists(in(chain::kChainFile)));
  if (!has_chain) {
    if (!status.job_is_live)
      return audit::no_run(
          fs, directory,
          not_found(fmt::format("{} is no run directory: it has no {}", directory, chain::kChainFile)));
    status.state = "waiting";
    return status;
  }
  ASSIGN_OR_RETURN(const chain::Chain chain, chain::read_chain(fs, in(chain::kChainFile)));
  status.step = chain.last_step();
  std::string outcome;
  if (const auto record = chain::read_record(fs, in(chain::kRecordFile)); record.ok()) {
    status.sessions = static_cast<int64_t>(record->sessions.size());
    if (!record->sessions.empty()) outcome = record->sessions.back().outcome;
  }
  // Of loss and length, what the chain says: metrics.jsonl and config.yaml are in no hash.
  status.total = audit::length_of(chain).value_or(0);
  if (const chain::ChainLink* last = chain.find_step(status.step))
    status.loss = std::get<chain::StepEntry>(last->entry).loss;
  if (const auto text = fs.read_file(in(chain::kLockFile)); text.ok())
    status.lock = text->substr(0, text->find('\n'));
  if (const auto totals = read_goodput(fs, in(kGoodputFile)); totals.ok()) status.goodput = *totals;
  status.state = state_of(fs, in(chain::kLockFile), outcome, status);
  if (status.state == "finished" && status.step < status.total) status.state = "incomplete";
  read_speed(last_metrics(fs, in("metrics.jsonl")), status);
  if (status.state != "running" && status.state != "elsewhere") status.eta_seconds.reset();
  return status;
}

}  // namespace ostro::run
