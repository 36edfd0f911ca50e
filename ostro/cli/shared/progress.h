// Progress lines: what long commands show on standard error of how far they are.
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>

#include "ostro/base/progress.h"
#include "ostro/prepare/store/build.h"
#include "ostro/run/report/console.h"
#include "ostro/tokenizer/files/trainer.h"

namespace ostro::cli {

// Prints lines at a limited rate. On a terminal it is one line, redrawn at most ten times a second.
// Elsewhere, as in the log of a batch job, it is a new line every 30 seconds, the first after 30 seconds.
class ProgressOutput {
 public:
  using Clock = std::chrono::steady_clock;

  static ProgressOutput standard_error();
  // `columns` is called at each drawing: the width of the terminal, 0 without one.
  ProgressOutput(std::FILE* file, run::Columns columns, std::function<Clock::time_point()> now);

  Clock::time_point now() const { return now_(); }
  double seconds_since(Clock::time_point begin) const;
  bool is_terminal() const { return columns_() > 0; }
  // Whether a line should be printed now. `last`: this is the last one, which a terminal always shows.
  bool is_due(bool last);
  // Shows the fields of the line that fit the terminal (run::fitted).
  void show(const std::string& line);
  // Ends the line; it stays on the screen.
  void end();

 private:
  std::FILE* file_;
  run::Columns columns_;
  std::function<Clock::time_point()> now_;
  Clock::time_point drawn_;
  size_t shown_ = 0;  // number of characters in the current line
};

// Which part of the work is done, and how long the rest will take. The time counts from the line's beginning,
// and after end() from there.
class PercentProgressLine final : public Progress {
 public:
  explicit PercentProgressLine(ProgressOutput output = ProgressOutput::standard_error());
  // `what` is named in front. Where it changes, something else has begun.
  void show(const std::string& what, double done) override;
  void end() override;

 private:
  ProgressOutput output_;
  ProgressOutput::Clock::time_point begin_;
  std::string what_;  // that began then, when so much of it was done
  double from_ = 0;
};

// How far a stage of the training of a tokenizer is, and how long it will take if it goes on as it began.
// While pieces are counted, `done` and `total` are bytes of the files as they are stored.
class TokenizerProgressLine {
 public:
  explicit TokenizerProgressLine(ProgressOutput output = ProgressOutput::standard_error());
  void draw(const tokenizer::TrainProgress& p);
  // Leaves the line standing.
  void end() { output_.end(); }

 private:
  using Stage = tokenizer::TrainProgress::Stage;

  ProgressOutput output_;
  Stage stage_ = Stage::kCounting;
  ProgressOutput::Clock::time_point begin_;
  double from_ = 0;    // where the stage began
  bool over_ = false;  // the last line is shown
};

// How far a command that reads all texts is.
class BuildProgressLine {
 public:
  // `name` of the component, or of what is done; empty: "tokenizing".
  explicit BuildProgressLine(std::string name = "", ProgressOutput output = ProgressOutput::standard_error());
  // For BuildSettings::progress; refers to this object.
  std::function<void(const data::BuildProgress&)> callback();
  // For BuildSettings::tokenizer_progress: of a tokenizer that is trained before; refers to this object, too.
  std::function<void(const tokenizer::TrainProgress&)> tokenizer_callback();
  // Leaves the line standing.
  void end() { output_.end(); }

 private:
  void draw(const data::BuildProgress& p);

  std::string name_;
  TokenizerProgressLine tokenizer_;
  ProgressOutput output_;
  ProgressOutput::Clock::time_point begin_;
};

// Of a store that a command builds where it is not there yet: OSTRO_THREADS threads, shown on `line`.
Result<data::BuildSettings> build_settings(BuildProgressLine& line);

}  // namespace ostro::cli
