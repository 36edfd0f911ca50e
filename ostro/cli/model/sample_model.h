// The model of `ostro sample`: in memory, or read layer by layer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/infer/generator.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::cli {

struct SampleModel {
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  int64_t context = 0;  // positions at most
  // New tokens of each prompt; `room` positions are enough for each. `on_token` may be empty, and is called
  // only when there is one prompt.
  std::function<Result<std::vector<std::vector<int32_t>>>(
      runtime::Engine& engine, const std::vector<std::vector<int32_t>>& prompts,
      const infer::SampleOptions& options, int64_t room, const std::function<bool(int32_t)>& on_token)>
      generate;
};

Result<SampleModel> load_resident(const std::string& checkpoint, const std::string& tokenizer,
                                  const models::ModelChoices& models, trained::Trust trust);

// Looks at every file of the parameters, and hashes them all, before it returns: a damaged or missing one is
// an error that names it. `keep_bytes` of weights stay in memory; nothing: half of what is free.
Result<SampleModel> open_streamed(const std::string& checkpoint, const std::string& tokenizer,
                                  const models::ModelChoices& models, trained::Trust trust,
                                  std::optional<int64_t> keep_bytes);

}  // namespace ostro::cli
