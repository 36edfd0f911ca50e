#include "ostro/run/report/meters.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>
#include <vector>

#include "ostro/base/log.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/io/json/file_header.h"
#include "ostro/io/json/json_fields.h"

namespace ostro::run {
namespace {

constexpr io::FileHeader kMetersHeader = {"ostro meters", 1};
constexpr int64_t kMostBytesOfMeters = 1 << 16;
constexpr size_t kMedianOf = 32;  // steps
constexpr int64_t kMostCount = int64_t{1} << 53;

double meter_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The numbers of the file, by name.
template <class M, class Visit>
Status visit_numbers(M& m, const Visit& visit) {
  for (const auto& [name, value] : {std::pair{"updated", &m.updated},
                                    {"ended", &m.ended},
                                    {"loss", &m.loss},
                                    {"gradient_norm", &m.gradient_norm},
                                    {"learning_rate", &m.learning_rate},
                                    {"tokens_per_second", &m.tokens_per_second},
                                    {"step_seconds", &m.step_seconds},
                                    {"data_seconds", &m.data_seconds},
                                    {"save_seconds", &m.save_seconds},
                                    {"median_seconds", &m.median_seconds},
                                    {"longest_pause", &m.longest_pause},
                                    {"save_bytes", &m.save_bytes},
                                    {"save_write_seconds", &m.save_write_seconds},
                                    {"last_save", &m.last_save},
                                    {"last_save_bytes", &m.last_save_bytes},
                                    {"last_save_seconds", &m.last_save_seconds}})
    RETURN_IF_ERROR(visit(name, *value));
  return {};
}

template <class M, class Visit>
Status visit_counts(M& m, const Visit& visit) {
  for (const auto& [name, value] : {std::pair{"step", &m.step},
                                    {"total", &m.total},
                                    {"processes", &m.processes},
                                    {"held_out_step", &m.held_out_step},
                                    {"saves", &m.saves},
                                    {"last_save_step", &m.last_save_step}})
    RETURN_IF_ERROR(visit(name, *value));
  return {};
}

// JSON has no word for what is no finite number; it is null.
Result<double> number_or_null(const io::JsonFields& fields, std::string_view key) {
  ASSIGN_OR_RETURN(const nlohmann::json* value, fields.get(key));
  if (value->is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!value->is_number()) return fields.bad(key, "is not a number");
  return value->get<double>();
}

}  // namespace

void StepTimes::add(double seconds) {
  ++count;
  sum += seconds;
  for (size_t i = 0; i < kLimits.size(); ++i) at_most[i] += seconds <= kLimits[i] ? 1 : 0;
}

std::string meters_json(const Meters& meters) {
  nlohmann::ordered_json json = io::begin_file(kMetersHeader);
  (void)visit_counts(meters, [&](const char* name, int64_t value) {
    json[name] = value;
    return Status();
  });
  (void)visit_numbers(meters, [&](const char* name, double value) {
    json[name] = value;
    return Status();
  });
  json["held_out_loss"] =
      meters.held_out_loss ? nlohmann::ordered_json(*meters.held_out_loss) : nlohmann::ordered_json();
  json["checked_leaves"] = meters.checked_leaves, json["check_seconds"] = meters.check_seconds;
  json["step_times"] = {{"limits", StepTimes::kLimits},
                        {"at_most", meters.steps.at_most},
                        {"count", meters.steps.count},
                        {"sum", meters.steps.sum}};
  return json.dump(1) + "\n";
}

Result<Meters> read_meters(io::FileSystem& fs, const std::string& run_directory) {
  const std::string path = io::join_path(run_directory, kMetersFile);
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path, kMostBytesOfMeters));
  ASSIGN_OR_RETURN(const nlohmann::json root, io::parse_json(text, path));
  const io::JsonFields fields(root, path);
  RETURN_IF_ERROR(io::check_header(fields, kMetersHeader));
  Meters meters;
  RETURN_IF_ERROR(visit_counts(meters, [&](const char* name, int64_t& value) -> Status {
    ASSIGN_OR_RETURN(value, fields.integer(name, 0, kMostCount));
    return {};
  }));
  RETURN_IF_ERROR(visit_numbers(meters, [&](const char* name, double& value) -> Status {
    ASSIGN_OR_RETURN(value, number_or_null(fields, name));
    return {};
  }));
  ASSIGN_OR_RETURN(const nlohmann::json* held_out, fields.get("held_out_loss"));
  if (!held_out->is_null()) {
    ASSIGN_OR_RETURN(meters.held_out_loss, number_or_null(fields, "held_out_loss"));
  }
  if (fields.has("checked_leaves")) {  // later than the format
    ASSIGN_OR_RETURN(meters.checked_leaves, fields.integer("checked_leaves", 0, kMostCount));
    ASSIGN_OR_RETURN(meters.check_seconds, number_or_null(fields, "check_seconds"));
  }
  ASSIGN_OR_RETURN(const io::JsonFields times, fields.object("step_times"));
  ASSIGN_OR_RETURN(meters.steps.count, times.integer("count", 0, kMostCount));
  ASSIGN_OR_RETURN(meters.steps.sum, number_or_null(times, "sum"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> at_most, times.integers("at_most", 0, meters.steps.count));
  if (at_most.size() != StepTimes::kLimits.size()) return times.bad("at_most", "has another length");
  std::copy(at_most.begin(), at_most.end(), meters.steps.at_most.begin());
  return meters;
}

MeterFile::MeterFile(io::FileSystem& fs, const std::string& run_directory)
    : fs_(fs), path_(io::join_path(run_directory, kMetersFile)) {
  auto read = read_meters(fs, run_directory);
  if (read.ok())
    meters_ = std::move(*read);
  else if (read.error().code() != ErrorCode::kNotFound)
    log_warning(fmt::format("the meters of the run begin anew: {}", read.error().message()));
  // The times of another session, perhaps on other machines, say nothing of this one's.
  meters_.median_seconds = meters_.longest_pause = 0;
}

void MeterFile::step_ended(double seconds) {
  meters_.step_seconds = seconds;
  meters_.steps.add(seconds);
  last_.push_back(seconds);
  if (last_.size() > kMedianOf) last_.pop_front();
  std::vector<double> sorted(last_.begin(), last_.end());
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2), sorted.end());
  meters_.median_seconds = sorted[sorted.size() / 2];
  meters_.ended = meter_time();
  if (const double before = std::exchange(before_, meters_.ended); before > 0)
    meters_.longest_pause = std::max(meters_.longest_pause, meters_.ended - before);
  if (meters_.ended - meters_.updated >= 1 || meters_.updated > meters_.ended) write();
}

void MeterFile::saved(int64_t step, double bytes, double seconds) {
  ++meters_.saves;
  meters_.save_bytes += bytes;
  meters_.save_write_seconds += seconds;
  meters_.last_save = meter_time();
  meters_.last_save_step = step, meters_.last_save_bytes = bytes, meters_.last_save_seconds = seconds;
}

void MeterFile::write() {
  meters_.updated = meter_time();
  const Status status = fs_.write_later(path_, meters_json(meters_));
  if (!status.ok() && !std::exchange(failed_, true))
    log_warning(fmt::format("the meters of the run are lost: {}", status.error().message()));
}

}  // namespace ostro::run
