// The line that shows how far the training of a tokenizer is.
#pragma once

#include <functional>

#include "ostro/cli/shared/progress_output.h"
#include "ostro/tokenizer/files/trainer.h"

namespace ostro::cli {

// How far a stage is, and how long it will take if it goes on as it began. While pieces are counted, `done`
// and `total` are bytes of the files as they are stored.
class TokenizerProgressLine {
 public:
  explicit TokenizerProgressLine(ProgressOutput output = ProgressOutput::standard_error());
  // For BuildSettings::tokenizer_progress; refers to this object.
  std::function<void(const tokenizer::TrainProgress&)> callback();
  void draw(const tokenizer::TrainProgress& p);
  // Leaves the line standing.
  void end() { output_.end(); }

 private:
  using Stage = tokenizer::TrainProgress::Stage;

  ProgressOutput output_;
  Stage stage_ = Stage::kCounting;
  ProgressOutput::Clock::time_point begin_;
  double from_ = 0;  // where the stage began
};

}  // namespace ostro::cli
