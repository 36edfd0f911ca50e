// ostro coordinator
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "ostro/cli/main/commands.h"
#include "ostro/cli/main/exit_code.h"
#include "ostro/cluster/coordinator.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/train/options/mesh.h"
#include "ostro/train/run/signals.h"

namespace ostro::cli {
namespace {

using Json = nlohmann::ordered_json;

// A line of JSON. A host's name is whatever a worker says; bytes that are no UTF-8 are replaced.
std::string event_line(const Json& event) {
  return event.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string event_line(const cluster::Event& event) {
  if (event.kind == cluster::Event::Kind::kEpoch) {
    Json members = Json::array();
    for (const auto& worker : event.workers)
      members.push_back({{"rank", members.size()}, {"host", worker.host}, {"pid", worker.pid}});
    return event_line({{"event", "epoch"}, {"epoch", event.epoch}, {"members", members}});
  }
  const bool joined = event.kind == cluster::Event::Kind::kJoined;
  const bool lost = event.kind == cluster::Event::Kind::kLost;
  Json out = {{"event", joined ? "joined"
                        : lost ? "lost"
                               : "refused"},
              {"host", event.workers.at(0).host},
              {"pid", event.workers.at(0).pid}};
  if (!joined) out["why"] = event.why;
  return event_line(out);
}

// Lines on their way from the coordinator's thread, which must not wait, to standard output.
class Lines {
 public:
  void add(std::string line) {
    const std::scoped_lock lock(mutex_);
    lines_.push_back(std::move(line));
    changed_.notify_one();
  }
  // Writes what is there, after waiting a little for something. A reader that has gone is no reason to stop.
  void write_some() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(100), [this] { return !lines_.empty(); });
    const auto lines = std::exchange(lines_, {});
    lock.unlock();
    for (const std::string& line : lines) std::fputs(line.c_str(), stdout);
    if (!lines.empty()) std::fflush(stdout);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;
};

struct CoordinatorCall {
  int64_t port = 0, min_workers = 1, max_workers = 0;
  cluster::CoordinatorOptions options;
};

Result<int> coordinate(CoordinatorCall& call, const train::TrainConfig& config) {
  if (call.port < 0 || call.port > 65535)
    return invalid_argument(fmt::format("--port: {} is not a number from 0 to 65535", call.port));
  if (call.min_workers < 1 || call.min_workers > call.max_workers || call.max_workers > 1024)
    return invalid_argument(
        fmt::format("--min_workers {} --max_workers {}: 1 <= min_workers <= max_workers <= 1024 must hold",
                    call.min_workers, call.max_workers));
  Lines lines;
  call.options.port = static_cast<int>(call.port);
  call.options.min_workers = call.min_workers;
  call.options.max_workers = call.max_workers;
  call.options.multiple = train::mesh_multiple(config.trainer.sharding);
  call.options.observer = [&](const cluster::Event& event) { lines.add(event_line(event)); };
  const train::StopSignals signals;
  ASSIGN_OR_RETURN(const auto coordinator, cluster::Coordinator::start(call.options));
  lines.add(
      event_line({{"event", "listening"}, {"address", call.options.bind}, {"port", coordinator->port()}}));
  bool asked = false;
  while (!coordinator->over()) {
    lines.write_some();
    if (!signals.stop_requested()) continue;
    // Without workers there is nothing to save.
    if (coordinator->members() == 0) return kExitInterrupted;
    if (!std::exchange(asked, true)) coordinator->stop_run();
  }
  const int64_t status = *coordinator->over();
  lines.add(event_line(Json{{"event", "over"}, {"status", status}}));
  lines.write_some();
  // The workers have been told when they leave.
  while (coordinator->members() > 0) lines.write_some();
  return static_cast<int>(status);
}

// The journal lies in the run's directory, so two coordinators of one run find each other.
Result<std::string> journal_of(const train::TrainConfig& config) {
  const std::string directory = train::run_directory(config);
  if (directory.find("://") != std::string::npos)
    return invalid_argument(fmt::format(
        "trainer.log_dir: {} is no local folder; name the coordinator's file with --journal", directory));
  RETURN_IF_ERROR(io::local_file_system().make_dirs(directory));
  return directory + "/coordinator.journal";
}

}  // namespace

int coordinator_command(Args args) {
  CoordinatorCall call;
  args.summary(
      "Decides who is in a run on several machines: workers (ostro worker) connect to it. Launchers start it "
      "(ostro launch). It prints a line of JSON for each event. Workers prove that they know "
      "OSTRO_JOB_SECRET.");
  args.option("--bind", &call.options.bind, "ADDRESS",
              "where it listens, in numbers; other addresses than 127.0.0.1 need OSTRO_JOB_SECRET");
  args.option("--port", &call.port, "N", "where it listens; 0: any free one, which it prints");
  args.option("--min_workers", &call.min_workers, "N", "training goes on with so many workers",
              Args::kRequired);
  args.option("--max_workers", &call.max_workers, "N", "and with so many at most", Args::kRequired);
  args.option(
      "--journal", &call.options.journal, "FILE",
      "remembers the last epoch, so that a restarted coordinator goes on; only one coordinator can use "
      "it. Without it: coordinator.journal in the run's directory");
  args.config();
  if (auto code = args.parse()) return *code;
  const auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  if (const char* secret = std::getenv("OSTRO_JOB_SECRET")) call.options.secret = secret;
  if (call.options.journal.empty()) {
    auto journal = journal_of(*config);
    if (!journal.ok()) return report_error(journal.error());
    call.options.journal = std::move(*journal);
  }
  const auto code = coordinate(call, *config);
  return code.ok() ? *code : report_error(code.error());
}

}  // namespace ostro::cli
