// SampleModel: a trained model that continues texts, in memory or read layer by layer. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/context/context.h"
#include "ostro/infer/generate.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::trained {

struct SampleModel {
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  std::string tokenizer_path;  // where it was read
  int64_t context = 0;         // the most positions
  std::string other_mp;        // LoadedModel::other_mp
  // Returns the new tokens of each prompt. `room` is the number of positions that is enough for each.
  // `on_token` may be empty, and is called only when there is one prompt. Errors: those of the engine and of
  // reading.
  std::function<Result<std::vector<std::vector<int32_t>>>(
      runtime::Engine& engine, const std::vector<std::vector<int32_t>>& prompts,
      const infer::SampleOptions& options, int64_t room, const std::function<bool(int32_t)>& on_token)>
      generate;
};

// The progress of a model whose weights are read layer by layer.
struct StreamCounts {
  int64_t tokens = 0;
  int64_t sweeps = 0;             // passes over all layers
  int64_t layer = 0, layers = 0;  // the last layer that was computed, from 1; the number of layers
  int64_t bytes_read = 0, bytes_kept = 0;
  double tokens_per_second = 0;
  double sweep_speed = 0, hash_speed = 0;  // bytes a second: read in a sweep, and hashed before
  bool over = false;
};

Result<SampleModel> load_resident(const Context& context, const std::string& checkpoint,
                                  const std::string& tokenizer, Trust trust, const UseOptions& use);

// Opens a model that is read layer by layer. It hashes every file of the parameters before it returns.
// `keep_bytes` bytes of weights stay in memory; nothing: half of the free memory. `observer` is called after
// each layer and at the end of generate(). Errors: those of trained::open_model; a file that is damaged or
// missing, with its name.
Result<SampleModel> open_streamed(const Context& context, const std::string& checkpoint,
                                  const std::string& tokenizer, Trust trust, const UseOptions& use,
                                  std::optional<int64_t> keep_bytes,
                                  const std::function<void(const StreamCounts&)>& observer);

}  // namespace ostro::trained
