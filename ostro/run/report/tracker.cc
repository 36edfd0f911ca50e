#include "ostro/run/report/tracker.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "ostro/base/log.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/run/report/event_file.h"
#include "ostro/run/report/wandb_tracker.h"

namespace ostro::run {
namespace {

using Json = nlohmann::json;

// Removes lines of steps after `step`, and lines that cannot be read.
Status drop_after(io::FileSystem& fs, const std::string& path, int64_t step) {
  ASSIGN_OR_RETURN(const bool exists, fs.exists(path));
  if (!exists) return {};
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path));
  std::string kept;
  int64_t unreadable = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t newline = text.find('\n', begin);
    if (newline == std::string::npos) break;  // incomplete last line
    const std::string_view line(text.data() + begin, newline - begin);
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    const bool readable = json.is_object() && json.contains("step") && json["step"].is_number_integer();
    if (!readable) ++unreadable;
    if (readable && json["step"].get<int64_t>() <= step) kept.append(line).push_back('\n');
    begin = newline + 1;
  }
  if (unreadable > 0) log_warning(fmt::format("{}: dropped {} unreadable lines", path, unreadable));
  return kept == text ? Status() : io::write_file_atomically(fs, path, kept);
}

int64_t unix_nanoseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

double wall_time() { return static_cast<double>(unix_nanoseconds()) * 1e-9; }

// A tracker that appends one line or record per step to a file.
class FileTracker : public Tracker {
 public:
  explicit FileTracker(std::unique_ptr<io::WritableFile> file) : file_(std::move(file)) {}

  Status log(int64_t step, const Metrics& metrics) override { return file_->append(text_of(step, metrics)); }
  Status finish() override {
    RETURN_IF_ERROR(file_->sync());
    return file_->close();
  }

 private:
  virtual std::string text_of(int64_t step, const Metrics& metrics) const = 0;

  std::unique_ptr<io::WritableFile> file_;
};

class JsonTracker final : public FileTracker {
  using FileTracker::FileTracker;
  std::string text_of(int64_t step, const Metrics& metrics) const override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    Json line(metrics);
    line["step"] = step;
    line["time"] =
        static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()) / 1000;
    return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
};

class TensorboardTracker final : public FileTracker {
  using FileTracker::FileTracker;
  std::string text_of(int64_t step, const Metrics& metrics) const override {
    return event_record(scalars_event(wall_time(), step, metrics));
  }
};

class CompositeTracker final : public Tracker {
 public:
  explicit CompositeTracker(std::vector<std::unique_ptr<Tracker>> trackers)
      : trackers_(std::move(trackers)) {}

  Status log(int64_t step, const Metrics& metrics) override {
    return each([&](Tracker& tracker) { return tracker.log(step, metrics); });
  }
  Status finish() override {
    return each([](Tracker& tracker) { return tracker.finish(); });
  }

 private:
  template <typename F>
  Status each(const F& f) {
    Status first;
    for (const auto& tracker : trackers_)
      if (Status status = f(*tracker); !status.ok() && first.ok()) first = std::move(status);
    return first;
  }

  std::vector<std::unique_ptr<Tracker>> trackers_;
};

}  // namespace

Result<std::unique_ptr<Tracker>> json_tracker(io::FileSystem& fs, const std::string& path,
                                              int64_t restored_step) {
  RETURN_IF_ERROR(drop_after(fs, path, restored_step));
  ASSIGN_OR_RETURN(std::unique_ptr<io::WritableFile> file, fs.open_append(path));
  return std::unique_ptr<Tracker>(std::make_unique<JsonTracker>(std::move(file)));
}

Result<std::unique_ptr<Tracker>> tensorboard_tracker(io::FileSystem& fs, const std::string& directory,
                                                     int64_t restored_step) {
  RETURN_IF_ERROR(fs.make_dirs(directory));
  // TensorBoard reads the files of a directory by name, and takes those with "tfevents" in it.
  const int64_t now = unix_nanoseconds();
  const std::string name =
      fmt::format("events.out.tfevents.{:010}.{:09}.ostro", now / 1'000'000'000, now % 1'000'000'000);
  ASSIGN_OR_RETURN(std::unique_ptr<io::WritableFile> file, fs.open_append(io::join_path(directory, name)));
  std::string begin = event_record(version_event(wall_time()));
  if (restored_step > 0) begin += event_record(restart_event(wall_time(), restored_step + 1));
  RETURN_IF_ERROR(file->append(begin));
  return std::unique_ptr<Tracker>(std::make_unique<TensorboardTracker>(std::move(file)));
}

std::unique_ptr<Tracker> composite_tracker(std::vector<std::unique_ptr<Tracker>> trackers) {
  return std::make_unique<CompositeTracker>(std::move(trackers));
}

Result<std::unique_ptr<Tracker>> make_trackers(io::FileSystem& fs, const std::string& run_directory,
                                               std::span<const train::TrackerOptions> options,
                                               int64_t restored_step) {
  std::vector<std::unique_ptr<Tracker>> trackers;
  const auto add = [&](Result<std::unique_ptr<Tracker>> tracker) -> Status {
    if (tracker.ok()) trackers.push_back(std::move(*tracker));
    return tracker.ok() ? Status() : Status(tracker.error());
  };
  for (const train::TrackerOptions& option : options) {
    if (std::holds_alternative<train::JsonTrackerOptions>(option))
      RETURN_IF_ERROR(add(json_tracker(fs, io::join_path(run_directory, "metrics.jsonl"), restored_step)));
    else if (const auto* wandb = std::get_if<train::WandbTrackerOptions>(&option))
      RETURN_IF_ERROR(add(wandb_tracker(fs, run_directory, *wandb)));
    else
      RETURN_IF_ERROR(add(tensorboard_tracker(fs, io::join_path(run_directory, "tb"), restored_step)));
  }
  return composite_tracker(std::move(trackers));
}

}  // namespace ostro::run
