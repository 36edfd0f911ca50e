#include "ostro/cli/shared/build_progress.h"

#include <fmt/core.h>

#include <algorithm>

#include "ostro/base/machine.h"

namespace ostro::cli {

BuildProgressLine::BuildProgressLine(std::string name, ProgressOutput output)
    : name_(name.empty() ? "tokenizing" : std::move(name)),
      tokenizer_(output),
      output_(std::move(output)),
      begin_(output_.now()) {}

std::function<void(const data::BuildProgress&)> BuildProgressLine::callback() {
  return [this](const data::BuildProgress& p) { draw(p); };
}

std::function<void(const tokenizer::TrainProgress&)> BuildProgressLine::tokenizer_callback() {
  return [this](const tokenizer::TrainProgress& p) {
    tokenizer_.draw(p);
    begin_ = output_.now();  // its time is not the build's
  };
}

void BuildProgressLine::draw(const data::BuildProgress& p) {
  if (!output_.is_due(p.bytes_done >= p.bytes_total)) return;
  const double seconds = std::chrono::duration<double>(output_.now() - begin_).count();
  const double rate = static_cast<double>(p.bytes_done - p.bytes_resumed) / std::max(seconds, 1e-3);
  const double left = rate > 0 ? static_cast<double>(p.bytes_total - p.bytes_done) / rate : 0;
  const double percent = p.bytes_total > 0
                             ? 100.0 * static_cast<double>(p.bytes_done) / static_cast<double>(p.bytes_total)
                             : 100.0;
  output_.show(fmt::format(
      "{}: {:5.1f}%  {} of {} files  {} documents  {:.1f}M tokens  {:.1f} of {:.1f} MB  {:.1f} MB/s  "
      "{}:{:02} left",
      name_, percent, p.files_done, p.files_total, p.documents, static_cast<double>(p.tokens) * 1e-6,
      static_cast<double>(p.bytes_done) * 1e-6, static_cast<double>(p.bytes_total) * 1e-6, rate * 1e-6,
      static_cast<int64_t>(left) / 60, static_cast<int64_t>(left) % 60));
}

Result<data::BuildSettings> build_settings(BuildProgressLine& line) {
  data::BuildSettings settings;
  ASSIGN_OR_RETURN(settings.threads, default_threads());
  settings.progress = line.callback();
  settings.tokenizer_progress = line.tokenizer_callback();
  return settings;
}

}  // namespace ostro::cli
