// TensorBoard event files.
#include <chrono>

#include "ostro/io/files/path.h"
#include "ostro/train/report/event_file.h"
#include "ostro/train/report/tracker.h"

namespace ostro::train {
namespace {

int64_t unix_nanoseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

double wall_time() { return static_cast<double>(unix_nanoseconds()) * 1e-9; }

class TensorboardTracker final : public Tracker {
 public:
  explicit TensorboardTracker(std::unique_ptr<io::WritableFile> file) : file_(std::move(file)) {}

  Status log(int64_t step, const Metrics& metrics) override {
    return file_->append(event_record(scalars_event(wall_time(), step, metrics)));
  }
  Status finish() override {
    RETURN_IF_ERROR(file_->sync());
    return file_->close();
  }

 private:
  std::unique_ptr<io::WritableFile> file_;
};

}  // namespace

Result<std::unique_ptr<Tracker>> tensorboard_tracker(io::FileSystem& fs, const std::string& directory,
                                                     int64_t restored_step) {
  RETURN_IF_ERROR(fs.make_dirs(directory));
  // TensorBoard reads the files of a directory by name, and takes those with "tfevents" in it.
  const int64_t now = unix_nanoseconds();
  const std::string name =
      fmt::format("events.out.tfevents.{:010}.{:09}.ostro", now / 1'000'000'000, now % 1'000'000'000);
  ASSIGN_OR_RETURN(std::unique_ptr<io::WritableFile> file, fs.create(io::join_path(directory, name)));
  std::string begin = event_record(version_event(wall_time()));
  if (restored_step > 0) begin += event_record(restart_event(wall_time(), restored_step + 1));
  RETURN_IF_ERROR(file->append(begin));
  return std::unique_ptr<Tracker>(std::make_unique<TensorboardTracker>(std::move(file)));
}

}  // namespace ostro::train
