#include "ostro/shell/shared/progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "ostro/base/machine.h"

namespace ostro::cli {
namespace {

// "1:05 left"
std::string left_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  return fmt::format("{}:{:02} left", whole / 60, whole % 60);
}

}  // namespace

ProgressOutput ProgressOutput::standard_error() { return {stderr, run::stderr_columns, Clock::now}; }

ProgressOutput::ProgressOutput(std::FILE* file, run::Columns columns, std::function<Clock::time_point()> now)
    : file_(file), columns_(std::move(columns)), now_(std::move(now)), drawn_(now_()) {}

double ProgressOutput::seconds_since(Clock::time_point begin) const {
  return std::chrono::duration<double>(now() - begin).count();
}

bool ProgressOutput::is_due(bool last) {
  const Clock::time_point now = now_();
  constexpr std::chrono::milliseconds kShortest{100};  // before anything is asked of the terminal
  if (!last && now - drawn_ < kShortest) return false;
  const bool terminal = is_terminal();
  const auto pause = terminal ? kShortest : std::chrono::milliseconds(30'000);
  if (!(last && terminal) && now - drawn_ < pause) return false;
  drawn_ = now;
  return true;
}

void ProgressOutput::show(const std::string& line) {
  const int columns = columns_();
  const std::string shown = columns > 0 ? run::fitted(line, columns) : line;
  const std::string text = columns > 0 ? run::erase_line(shown_, columns) + shown : shown + "\n";
  std::fputs(text.c_str(), file_);
  std::fflush(file_);
  shown_ = columns > 0 ? shown.size() : 0;
}

void ProgressOutput::end() {
  if (shown_ > 0) std::fputc('\n', file_);
  shown_ = 0;
}

PercentProgressLine::PercentProgressLine(ProgressOutput output)
    : output_(std::move(output)), begin_(output_.now()) {}

void PercentProgressLine::show(const std::string& what, double done) {
  if (what != what_) what_ = what, begin_ = output_.now(), from_ = done;
  if (!output_.is_due(done >= 1)) return;
  constexpr double kEnough = 0.001;  // before that nothing can be said of the rate
  const double made = std::min(done, 1.0) - from_;
  std::string left;
  if (made >= kEnough)
    left = "  " + left_text(output_.seconds_since(begin_) / made * std::max(0.0, 1 - done));
  output_.show(fmt::format("{}: {:5.1f}%{}", what, 100 * std::min(done, 1.0), left));
}

void PercentProgressLine::end() {
  output_.end();
  what_.clear();
}

TokenizerProgressLine::TokenizerProgressLine(ProgressOutput output)
    : output_(std::move(output)), begin_(output_.now()) {}

void TokenizerProgressLine::draw(const tokenizer::TrainProgress& p) {
  const bool counting = p.stage == Stage::kCounting;
  const auto done = static_cast<double>(p.done), total = static_cast<double>(p.total);
  if (p.stage != stage_) {
    stage_ = p.stage;
    begin_ = output_.now();
    from_ = done;
    over_ = false;
  }
  const bool last = !counting && p.done >= p.total;
  if (over_ || !output_.is_due(last)) return;
  over_ = last;
  const double rate = (done - from_) / std::max(output_.seconds_since(begin_), 1e-3);
  const double percent = total > 0 ? 100 * done / total : 100;
  const std::string what =
      counting ? fmt::format("tokenizer, counting pieces: {:5.1f}%  {:.1f} of {:.1f} MB", percent,
                             done * 1e-6, total * 1e-6)
               : fmt::format("tokenizer, merging pairs: {:5.1f}%  {} of {} tokens", percent, p.done, p.total);
  output_.show(fmt::format("{}  {}", what, left_text(rate > 0 ? (total - done) / rate : 0)));
  if (last) output_.end();
}

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
  const auto done = static_cast<double>(p.bytes_done), total = static_cast<double>(p.bytes_total);
  const double rate =
      static_cast<double>(p.bytes_done - p.bytes_resumed) / std::max(output_.seconds_since(begin_), 1e-3);
  output_.show(fmt::format(
      "{}: {:5.1f}%  {} of {} files  {} documents  {:.1f}M tokens  {:.1f} of {:.1f} MB  {:.1f} MB/s  {}",
      name_, total > 0 ? 100 * done / total : 100.0, p.files_done, p.files_total, p.documents,
      static_cast<double>(p.tokens) * 1e-6, done * 1e-6, total * 1e-6, rate * 1e-6,
      left_text(rate > 0 ? (total - done) / rate : 0)));
}

Result<data::BuildSettings> build_settings(BuildProgressLine& line) {
  data::BuildSettings settings;
  ASSIGN_OR_RETURN(settings.threads, default_threads());
  settings.progress = line.callback();
  settings.tokenizer_progress = line.tokenizer_callback();
  return settings;
}

}  // namespace ostro::cli
