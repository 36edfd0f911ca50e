#include "ostro/monitor/monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "ostro/base/host_name.h"
#include "ostro/base/log.h"
#include "ostro/base/utc_text.h"
#include "ostro/chain/record.h"
#include "ostro/http/gate.h"
#include "ostro/http/prometheus_text.h"
#include "ostro/http/server.h"
#include "ostro/io/files/path.h"
#include "ostro/io/files/rotated_file.h"
#include "ostro/monitor/alert_command.h"
#include "ostro/monitor/alert_rules.h"
#include "ostro/monitor/run_metrics.h"

namespace ostro::monitor {
namespace {

using EventJson = nlohmann::ordered_json;

constexpr std::chrono::milliseconds kLook{1000};
constexpr int64_t kMostBytesOfEvents = int64_t{8} << 20, kMostBytesOfAlerts = int64_t{1} << 20;

double clock_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string json_line(const EventJson& json) {
  return json.dump(-1, ' ', false, EventJson::error_handler_t::replace) + "\n";
}

class ThreadMonitor final : public Monitor {
 public:
  ThreadMonitor(io::FileSystem& fs, const train::TrainConfig& config)
      : fs_(fs),
        directory_(train::run_directory(config)),
        rules_({.stall_factor = config.trainer.alert_stall_factor,
                .disk_free = static_cast<double>(config.trainer.alert_disk_free)}),
        command_(config.trainer.alert_command),
        events_(fs, io::join_path(directory_, kEventsFile), kMostBytesOfEvents),
        alerts_(fs, io::join_path(directory_, kAlertsFile), kMostBytesOfAlerts) {
    sessions_ = sessions().first;
  }

  ~ThreadMonitor() override {
    server_.reset();  // before what it reads
    stop();
  }

  Status listen(const std::string& at) {
    auto address = http::parse_address(at);
    if (!address.ok()) return address.error().with_context("trainer.metrics_listen");
    std::string token;
    if (!address->is_loopback()) {
      const char* given = std::getenv("OSTRO_METRICS_TOKEN");
      token = given != nullptr && *given != '\0' ? given : http::new_token();
      if (token != (given == nullptr ? "" : given)) log_info("the token of the metrics: " + token);
    }
    gate_ = std::make_unique<http::Gate>(token);
    auto server =
        http::Server::start(*address, [this](const http::Request& request) { return answer(request); });
    if (!server.ok()) return server.error().with_context("trainer.metrics_listen");
    server_ = std::move(*server);
    log_info(fmt::format("metrics for Prometheus: http://{}/metrics",
                         host_and_port(address->host, server_->port())));
    return {};
  }

  void begin(const std::string& what, WatchedJob job) override {
    job_ = std::move(job);
    began_ = clock_now();
    if (const auto meters = run::read_meters(fs_, directory_); meters.ok())
      saves_ = meters->saves, updated_ = meters->updated;
    note("begin", fmt::format("{} on {}", what, host_name()));
    thread_ = std::thread([this] { watch(); });
  }

  void note(const std::string& kind, const std::string& text) override {
    const std::lock_guard lock(mutex_);
    write_event(clock_now(), kind, text);
  }

  void end(const std::string& outcome) override {
    if (!thread_.joinable()) return;
    stop();
    outcome_ = outcome;
    look();
    note("end", outcome);
    server_.reset();  // the job may be gone soon
  }

 private:
  void stop() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(stop_mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void watch() {
    std::unique_lock lock(stop_mutex_);
    while (!stopped_) {
      lock.unlock();
      look();
      lock.lock();
      changed_.wait_for(lock, kLook, [this] { return stopped_; });
    }
  }

  // The number of sessions that the run has had, and how the last one ended.
  std::pair<size_t, std::string> sessions() const {
    const auto record = chain::read_record(fs_, io::join_path(directory_, chain::kRecordFile));
    if (!record.ok() || record->sessions.empty()) return {0, ""};
    return {record->sessions.size(), record->sessions.back().outcome};
  }

  // One thread at a time: the monitor's, then end().
  void look() {
    RunFigures figures = present_figures();
    const std::lock_guard lock(mutex_);
    if (figures.meters) {
      step_ = figures.meters->step;
      if (figures.meters->saves > std::exchange(saves_, figures.meters->saves))
        write_event(figures.meters->last_save, "saved",
                    fmt::format("the checkpoint of step {} was written in {:.2f} s, {:.0f} bytes",
                                figures.meters->last_save_step, figures.meters->last_save_seconds,
                                figures.meters->last_save_bytes));
    }
    Sight sight;
    if (figures.job) sight.lost_count = figures.job->lost_count;
    if (job_ && figures.job) {
      take_events(*figures.job);
      sight.last_loss = last_loss_;
    }
    sight.meters = figures.meters;
    if (figures.meters) sight.still = seconds_without_step(*figures.meters);
    sight.trains = trains_ && outcome_.empty();
    sight.disk_free = figures.disk_free;
    sight.outcome = ended_how();
    for (const Alert& alert : rules_.look(sight)) give(alert);
    for (const char* name : kAlerts) counts_[name].active = rules_.is_active(name);
  }

  // Other machines' clocks may be minutes off, so their times are compared with each other only.
  double seconds_without_step(const run::Meters& meters) {
    const auto now = std::chrono::steady_clock::now();
    const std::pair step(meters.step, meters.ended);
    if (std::exchange(shown_, step) != step) moved_ = now;
    // The file of before this session is there until the session writes its own.
    if (meters.updated != updated_ && !std::exchange(trains_, true)) moved_ = now;
    return std::chrono::duration<double>(now - moved_).count();
  }

  // The record knows of a number that is not finite; how it ended otherwise the caller knows.
  std::string ended_how() const {
    if (outcome_.empty()) return "";
    const auto [count, how] = sessions();
    return count > sessions_ && how.starts_with("failed") ? how : outcome_;
  }

  void take_events(const cluster::JobState& job) {
    const auto kept = static_cast<int64_t>(job.events.size());
    const int64_t fresh = job.event_count - std::exchange(seen_, job.event_count);
    if (fresh > kept)
      write_event(clock_now(), "missed",
                  fmt::format("{} events came at once and are not told", fresh - kept));
    for (int64_t i = std::max<int64_t>(0, kept - fresh); i < kept; ++i) {
      const cluster::JobEvent& event = job.events[static_cast<size_t>(i)];
      write_event(event.time, event.kind, event.text);
      if (event.kind == "lost") last_loss_ = event.text;
    }
  }

  void give(const Alert& alert) {
    const double now = clock_now();
    ++counts_[alert.name].raised;
    log_warning(fmt::format("alert {}: {}", alert.name, alert.text));
    write_event(now, "alert", fmt::format("{}: {}", alert.name, alert.text));
    const std::string line = json_line({{"time", now},
                                        {"at", utc_text(static_cast<int64_t>(now))},
                                        {"alert", alert.name},
                                        {"text", alert.text},
                                        {"step", step_},
                                        {"run", directory_},
                                        {"host", host_name()}});
    told(alerts_.append(line), kAlertsFile);
    command_.run(line);
  }

  // Requires mutex_.
  void write_event(double time, const std::string& kind, const std::string& text) {
    if (began_ <= 0) return;
    told(events_.append(json_line({{"time", time},
                                   {"at", utc_text(static_cast<int64_t>(time))},
                                   {"event", kind},
                                   {"step", step_},
                                   {"text", text}})),
         kEventsFile);
  }

  void told(const Status& written, const char* file) {
    if (!written.ok() && !std::exchange(failed_, true))
      log_warning(fmt::format("{} of the run has a gap: {}", file, written.error().message()));
    if (written.ok()) failed_ = false;
  }

  RunFigures present_figures() const {
    RunFigures figures = read_figures(fs_, directory_);
    figures.counts_workers = static_cast<bool>(job_);
    if (job_)
      figures.job = job_();
    else
      figures.job.reset();  // of an earlier job
    return figures;
  }

  http::Response answer(const http::Request& request) {
    // It says nothing of the run; probes of a cluster have no token.
    if (request.path == "/health") return {200, "text/plain; charset=utf-8", "ok\n"};
    if (auto refusal = gate_->refusal(request)) return *refusal;
    if (request.path != "/metrics")
      return {404, "text/plain; charset=utf-8", "this server has /metrics and /health\n"};
    RunFigures figures;
    figures.directory = directory_;
    if (began_ > 0) figures = present_figures();
    {
      const std::lock_guard lock(mutex_);
      figures.alerts = counts_;
    }
    return {200, http::kPrometheusType, run_metrics_text(figures)};
  }

  io::FileSystem& fs_;
  const std::string directory_;
  WatchedJob job_;  // set before began_
  std::atomic<double> began_ = 0;
  size_t sessions_ = 0;  // before this process
  std::string outcome_;  // set when the thread has ended

  std::mutex mutex_;  // of what follows, and of the files
  AlertRules rules_;
  AlertCommand command_;
  io::RotatedFile events_, alerts_;
  std::map<std::string, RunFigures::AlertCount> counts_;
  int64_t seen_ = 0;  // events of the job
  int64_t saves_ = 0, step_ = 0;
  double updated_ = 0;                             // the meters of before this session; 0: there were none
  bool trains_ = false;                            // there are meters of this session
  std::pair<int64_t, double> shown_;               // the newest step, and when it ended
  std::chrono::steady_clock::time_point moved_{};  // when that was seen to change
  std::string last_loss_;
  bool failed_ = false;

  std::unique_ptr<http::Gate> gate_;
  std::unique_ptr<http::Server> server_;
  std::mutex stop_mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Monitor>> Monitor::create(io::FileSystem& fs, const train::TrainConfig& config) {
  auto monitor = std::make_unique<ThreadMonitor>(fs, config);
  if (config.trainer.metrics_listen) RETURN_IF_ERROR(monitor->listen(*config.trainer.metrics_listen));
  return std::unique_ptr<Monitor>(std::move(monitor));
}

}  // namespace ostro::monitor
