// make_tokenizer, make_tokens, make_run, make_evaluation: what the kinds of steps do, for perform() in
// work.h. Private to the sub-room.
#pragma once

#include "ostro/lab/steps/work.h"

namespace ostro::lab {

Result<std::string> make_tokenizer(const Work& work, const std::string& folder);
Result<std::string> make_tokens(const Work& work, const std::string& folder);
Result<std::optional<std::string>> make_run(const Work& work, const std::string& folder);
Result<std::string> make_evaluation(const Work& work, const std::string& folder);

// The configuration of a training: the plan's file with `set`, on the data of its tokens step. `folder` is
// the run's. Errors: of the configuration; one that names data, run or output, which follow from the plan.
Result<train::TrainConfig> training_config(const Work& work, const std::string& folder);
// The SHA-256 of the training's canonical programs.
Result<std::string> programs_of(const Work& work, const train::TrainConfig& config);

// Literal globs for the files of a source.
std::vector<std::string> urls_of(const Made& source);
// A text parameter.
const std::string& text_of(const Step& step, const char* parameter);
// A list of texts.
std::vector<std::string> texts_of(const Step& step, const char* parameter);

}  // namespace ostro::lab
