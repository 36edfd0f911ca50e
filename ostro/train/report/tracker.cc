#include "ostro/train/report/tracker.h"

#include "ostro/io/files/path.h"

namespace ostro::train {
namespace {

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

std::unique_ptr<Tracker> composite_tracker(std::vector<std::unique_ptr<Tracker>> trackers) {
  return std::make_unique<CompositeTracker>(std::move(trackers));
}

Result<std::unique_ptr<Tracker>> make_trackers(io::FileSystem& fs, const std::string& run_directory,
                                               std::span<const TrackerOptions> options,
                                               int64_t restored_step) {
  std::vector<std::unique_ptr<Tracker>> trackers;
  for (const TrackerOptions& option : options) {
    const bool is_json = std::holds_alternative<JsonTrackerOptions>(option);
    const std::string path = io::join_path(run_directory, is_json ? "metrics.jsonl" : "tb");
    ASSIGN_OR_RETURN(auto tracker, is_json ? json_tracker(fs, path, restored_step)
                                           : tensorboard_tracker(fs, path, restored_step));
    trackers.push_back(std::move(tracker));
  }
  return composite_tracker(std::move(trackers));
}

}  // namespace ostro::train
