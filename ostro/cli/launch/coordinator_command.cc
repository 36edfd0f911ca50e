// ostro coordinator
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "ostro/cli/launch/launch_job.h"
#include "ostro/cli/launch/worker_words.h"
#include "ostro/cli/main/commands.h"
#include "ostro/cluster/coordinator.h"
#include "ostro/cluster/watch/worker_output.h"
#include "ostro/cluster/wire/secret.h"
#include "ostro/objects/s3/routing_file_system.h"
#include "ostro/run/job/coordinator_options.h"
#include "ostro/run/notice/signals.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kFarewell{10};  // for workers to hear that the run is over

constexpr std::chrono::seconds kLastLines{2};  // for what workers wrote to come on standard input

// A line of JSON. A host's name is whatever a worker says; bytes that are no UTF-8 are replaced.
std::string event_line(const Json& event) {
  return event.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

const char* name_of(cluster::Event::Kind kind) {
  switch (kind) {
    case cluster::Event::Kind::kJoined: return "joined";
    case cluster::Event::Kind::kRefused: return "refused";
    case cluster::Event::Kind::kEpoch: return "epoch";
    case cluster::Event::Kind::kLost: return "lost";
    case cluster::Event::Kind::kLeft: return "left";
  }
  return "";
}

std::string event_line(const cluster::Event& event) {
  Json out = {{"event", name_of(event.kind)}};
  if (event.kind == cluster::Event::Kind::kEpoch) {
    Json members = Json::array();
    for (const auto& worker : event.workers)
      members.push_back({{"rank", members.size()}, {"host", worker.host}, {"pid", worker.pid}});
    out["epoch"] = event.epoch;
    out["members"] = std::move(members);
  } else {
    out["host"] = event.workers.at(0).host;
    out["pid"] = event.workers.at(0).pid;
    if (!event.why.empty()) out["why"] = event.why;
  }
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

// Lines on standard input. Never waits.
class InputLines {
 public:
  // Calls `take` with each whole line that has come, without its end.
  void read(const std::function<void(std::string_view line)>& take) {
    constexpr size_t kLongest = size_t{64} << 10;  // of a longer line the beginning is lost
    constexpr int kMostInputReads = 64;            // before something else is done
    pollfd there{STDIN_FILENO, POLLIN, 0};
    char bytes[16 << 10];
    for (int i = 0; i < kMostInputReads && open_ && ::poll(&there, 1, 0) > 0; ++i) {
      const ssize_t n = ::read(STDIN_FILENO, bytes, sizeof bytes);
      if (n <= 0) open_ = false;
      if (n > 0) text_.append(bytes, static_cast<size_t>(n));
      size_t begin = 0;
      for (size_t end = 0; (end = text_.find('\n', begin)) != std::string::npos; begin = end + 1)
        take(std::string_view(text_).substr(begin, end - begin));
      text_.erase(0, begin);
      if (text_.size() > kLongest) text_.erase(0, text_.size() - kLongest);
    }
  }

 private:
  bool open_ = true;
  std::string text_;
};

// Takes "said HOST PID TEXT" and "gone HOST PID"; other lines are passed over. `writing` has those workers
// that have said something and are not gone.
void take_output(std::string_view line, cluster::WorkerOutput& output,
                 std::set<std::pair<std::string, int64_t>>& writing) {
  const auto word = [&line] {
    const size_t end = std::min(line.find(' '), line.size());
    const std::string_view found = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    return found;
  };
  const std::string_view what = word(), host = word(), number = word();
  int64_t pid = 0;
  if (std::from_chars(number.data(), number.data() + number.size(), pid).ec != std::errc()) return;
  if (what == "said") {
    output.said(host, pid, std::string(line) + "\n");
    writing.emplace(host, pid);
  } else if (what == "gone") {
    output.gone(host, pid, "");
    writing.erase({std::string(host), pid});
  }
}

// What its launcher wants.
struct Ways {
  bool stop_by_stdin = false;    // a line on standard input does what SIGTERM does
  bool stderr_by_stdin = false;  // what workers write comes on standard input
  bool replaced = false;         // SIGTERM ends this process alone
};

// Until the run is over, and the workers know it.
Result<int> coordinate(const train::TrainConfig& config, cluster::CoordinatorOptions options, Ways ways) {
  Lines lines;
  cluster::WorkerOutput output(objects::default_file_system(), output_folder(config));
  options.observer = [&](const cluster::Event& event) { lines.add(event_line(event)); };
  if (!ways.stderr_by_stdin) keep_output(options, output);
  options.on_silence = [&](const cluster::Hello& hello) {
    lines.add(event_line({{"event", "silent"}, {"host", hello.host}, {"pid", hello.pid}}));
  };
  const run::StopSignals signals;
  ASSIGN_OR_RETURN(const auto coordinator, cluster::Coordinator::start(options));
  ASSIGN_OR_RETURN(const auto monitor, watch_job(config, "ostro coordinator", *coordinator));
  lines.add(event_line({{"event", "listening"}, {"address", options.bind}, {"port", coordinator->port()}}));
  bool asked = false, stop_line = false;
  InputLines input;
  std::set<std::pair<std::string, int64_t>> writing;
  const auto look = [&] {
    if (ways.stop_by_stdin || ways.stderr_by_stdin)
      input.read([&](std::string_view line) {
        stop_line = stop_line || (ways.stop_by_stdin && line == "stop");
        if (ways.stderr_by_stdin) take_output(line, output, writing);
      });
  };
  while (!coordinator->over() && !(asked && coordinator->members() == 0)) {
    lines.write_some();
    look();
    if (ways.replaced && !asked && signals.received() == SIGTERM) {
      monitor->end("the coordinator ended alone; another takes its place");
      return kExitReplaced;
    }
    if ((signals.stop_requested() || stop_line) && !std::exchange(asked, true)) coordinator->stop_run();
  }
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now(); (coordinator->members() > 0 && Clock::now() < end + kFarewell) ||
                                      (!writing.empty() && Clock::now() < end + kLastLines);) {
    lines.write_some();
    look();
  }
  const int status = static_cast<int>(coordinator->over().value_or(kExitInterrupted));
  lines.add(event_line({{"event", "finished"}, {"status", status}}));
  lines.write_some();
  return end_watch(*monitor, status);
}

}  // namespace

int coordinator_command(Args args) {
  std::string bind = "127.0.0.1", journal;
  int64_t port = 0, min_workers = 1, max_workers = 1;
  Ways ways;
  args.summary(
      "Decides who is in a run on several machines: workers (ostro worker) connect to it. Launchers start it "
      "(ostro launch). It prints a line of JSON for each event, and ends when the run does. Workers prove "
      "that they know OSTRO_JOB_SECRET. SIGTERM, SIGINT or SIGHUP: the workers save and stop.");
  args.option(
      "--bind", &bind, "ADDRESS",
      "where it listens, an address of this host or its name; off loopback OSTRO_JOB_SECRET is needed");
  args.option("--port", &port, "N", "where it listens; 0: any free one, which it prints");
  args.option("--min_workers", &min_workers, "N", "training goes on with as few", Args::kRequired);
  args.option("--max_workers", &max_workers, "N", "and with so many at most", Args::kRequired);
  args.option(
      "--journal", &journal, "FILE",
      "remembers the last epoch, so that a restarted coordinator goes on; only one coordinator can use "
      "it. Without it: coordinator.journal in the run's directory");
  args.flag(
      "--stop_by_stdin", &ways.stop_by_stdin,
      "a line \"stop\" on standard input does what SIGTERM does: for a launcher, beside whatever signals "
      "come");
  args.flag("--stderr_by_stdin", &ways.stderr_by_stdin,
            "lines \"said HOST PID TEXT\" and \"gone HOST PID\" on standard input are what workers write to "
            "standard error, and their ends: for a launcher that reads it; in place of what workers tell "
            "themselves it is kept in the run's directory");
  args.flag("--replaced", &ways.replaced,
            "another coordinator, at the same address and with the same journal, takes the place of this one "
            "when it ends: SIGTERM ends this process alone, with status 78, and the workers train on");
  args.config();
  if (auto code = args.parse()) return *code;
  const auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  const Status workers = check_workers(min_workers, max_workers, *config);
  if (!workers.ok()) return report_error(workers.error());
  if (port < 0 || port > 65535)
    return report_error(invalid_argument(fmt::format("--port: {} is not a number from 0 to 65535", port)));
  auto options = run::coordinator_options(*config, min_workers, max_workers);
  if (!options.ok()) return report_error(options.error());
  options->bind = bind;
  options->port = static_cast<int>(port);
  if (!journal.empty()) options->journal = journal;
  if (const char* secret = std::getenv("OSTRO_JOB_SECRET")) options->secret = secret;
  if (const Status hard = cluster::check_secret(options->secret, options->tls); !hard.ok())
    return report_error(hard.error());
  const auto code = coordinate(*config, std::move(*options), ways);
  return code.ok() ? *code : report_error(code.error());
}

}  // namespace ostro::cli
