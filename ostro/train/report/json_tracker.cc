// metrics.jsonl.
#include <chrono>
#include <nlohmann/json.hpp>

#include "ostro/base/log.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/train/report/tracker.h"

namespace ostro::train {
namespace {

using Json = nlohmann::json;

// Removes lines of later steps and lines that are no such line.
Status drop_after(io::FileSystem& fs, const std::string& path, int64_t step) {
  ASSIGN_OR_RETURN(const bool exists, fs.exists(path));
  if (!exists) return {};
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path));
  std::string kept;
  int64_t unreadable = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t newline = text.find('\n', begin);
    if (newline == std::string::npos) break;  // torn
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

class JsonTracker final : public Tracker {
 public:
  explicit JsonTracker(std::unique_ptr<io::WritableFile> file) : file_(std::move(file)) {}

  Status log(int64_t step, const Metrics& metrics) override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    Json line(metrics);
    line["step"] = step;
    line["time"] =
        static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()) / 1000;
    return file_->append(line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }
  Status finish() override {
    RETURN_IF_ERROR(file_->sync());
    return file_->close();
  }

 private:
  std::unique_ptr<io::WritableFile> file_;
};

}  // namespace

Result<std::unique_ptr<Tracker>> json_tracker(io::FileSystem& fs, const std::string& path,
                                              int64_t restored_step) {
  RETURN_IF_ERROR(drop_after(fs, path, restored_step));
  ASSIGN_OR_RETURN(std::unique_ptr<io::WritableFile> file, fs.open_append(path));
  return std::unique_ptr<Tracker>(std::make_unique<JsonTracker>(std::move(file)));
}

}  // namespace ostro::train
