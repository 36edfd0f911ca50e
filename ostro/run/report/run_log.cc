#include "ostro/run/report/run_log.h"

#include "ostro/chain/clock_text.h"

namespace ostro::run {
namespace {

const char* level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo: return "info";
    case LogLevel::kWarning: return "warning";
    case LogLevel::kError: return "error";
  }
  return "";
}

}  // namespace

RunLog::RunLog(Console& console) : console_(console) {
  before_ = set_log_sink([this](LogLevel level, std::string_view line) {
    to_file(level, line);
    console_.line(level == LogLevel::kInfo ? std::string(line)
                                           : fmt::format("{}: {}", level_name(level), line));
  });
}

RunLog::~RunLog() { set_log_sink(std::move(before_)); }

Status RunLog::open(io::FileSystem& fs, const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<io::WritableFile> file, fs.open_append(path));
  const std::lock_guard lock(mutex_);
  OSTRO_CHECK(!opened_, "{}: the log is open already", path);
  opened_ = true;
  file_ = std::move(file);
  if (!kept_.empty()) write(kept_);
  kept_.clear();
  return {};
}

void RunLog::to_file(LogLevel level, std::string_view line) {
  const std::string text = fmt::format("{} {:<7} {}\n", chain::utc_now(), level_name(level), line);
  const std::lock_guard lock(mutex_);
  if (opened_)
    write(text);
  else
    kept_ += text;
}

void RunLog::write(std::string_view text) {
  if (file_ == nullptr) return;
  const Status status = file_->append(text);
  if (status.ok()) return;
  file_ = nullptr;
  console_.line(fmt::format("warning: the log ends here: {}", status.error().message()));
}

}  // namespace ostro::run
