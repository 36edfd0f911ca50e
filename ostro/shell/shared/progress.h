// Progress lines: the lines on standard error by which long commands show how far they are. Not thread-safe,
// except where it says so.
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
  // Returns true when a line should be printed now. `last`: this is the last one, which a terminal always
  // shows.
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

// Shows the part of the work that is done, and how long the rest will take. The time counts from the
// construction of the line, and after end() from there.
class PercentProgressLine final : public Progress {
 public:
  explicit PercentProgressLine(ProgressOutput output = ProgressOutput::standard_error());
  // Shows `what` in front. When it changes, other work has begun, and the time counts from now.
  void show(const std::string& what, double done) override;
  void end() override;

 private:
  ProgressOutput output_;
  ProgressOutput::Clock::time_point begin_;
  std::string what_;  // the work that began at begin_
  double from_ = 0;   // the part of it that was done then
};

// Shows how far a stage of the training of a tokenizer is, and how long it will take at the present speed.
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

// Shows how far a command is that reads all texts.
class BuildProgressLine {
 public:
  // `name` is that of the component or of the work; empty: "tokenizing".
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

// Returns the settings for building a store that a command needs: OSTRO_THREADS threads, progress on `line`.
// Error: that of default_threads().
Result<data::BuildSettings> build_settings(BuildProgressLine& line);

}  // namespace ostro::cli
