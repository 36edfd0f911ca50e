#include "ostro/run/notice/grace.h"

#include <fmt/format.h>
#include <unistd.h>

#include "ostro/base/units.h"
#include "ostro/io/files/path.h"
#include "ostro/io/files/write_rate.h"
#include "ostro/run/report/meters.h"

namespace ostro::run {

Result<SaveRate> save_rate(io::FileSystem& fs, const train::TrainConfig& config,
                           std::optional<double> stated) {
  if (stated) return SaveRate{*stated, "as stated"};
  const auto meters = read_meters(fs, train::run_directory(config));
  if (meters.ok() && meters->last_save_seconds > 0 && meters->last_save_bytes > 0)
    return SaveRate{meters->last_save_bytes / meters->last_save_seconds, "that of its last checkpoint"};
  std::string folder = io::absolute_path(config.trainer.log_dir);
  while (!fs.is_object_store(folder)) {
    ASSIGN_OR_RETURN(const bool there, fs.exists(folder));
    if (there || folder == "/") break;
    folder = io::parent_path(folder);
  }
  ASSIGN_OR_RETURN(const double rate,
                   io::write_rate(fs, io::join_path(folder, fmt::format(".ostro-rate-{}", ::getpid()))));
  return SaveRate{rate, "measured in " + folder};
}

GraceFit grace_fit(double grace_seconds, double step_seconds, double bytes, const SaveRate& rate) {
  const double save = bytes / rate.bytes_per_second;
  const double all = step_seconds + save;
  const bool fits = all <= grace_seconds;
  const std::string step = step_seconds > 0 ? fmt::format("a step of about {:.1f} s and ", step_seconds) : "";
  std::string text = fmt::format(
      "grace: {:.0f} s after a notice (trainer.notice_grace); {}a checkpoint of {:.1f} MiB at {:.1f} MB/s "
      "({}) "
      "take {:.1f} s: it {}\n",
      grace_seconds, step, mib(static_cast<int64_t>(bytes)), rate.bytes_per_second * 1e-6, rate.source, all,
      fits ? "fits" : "does not fit");
  if (fits) return {std::move(text), {}};
  return {
      std::move(text),
      invalid_argument(fmt::format(
          "trainer.notice_grace: {:.0f} s are less than the {:.1f} s that a step and a checkpoint take; a "
          "notice would cost the steps since the last checkpoint. Save more often "
          "(trainer.checkpointer.save_interval), or to a faster disk",
          grace_seconds, all))};
}

}  // namespace ostro::run
