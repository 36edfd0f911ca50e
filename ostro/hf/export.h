// Writing a model as a Hugging Face directory.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/io/arrays/safetensors.h"
#include "ostro/io/files/file_system.h"
#include "ostro/models/decoder/decoder_options.h"
#include "ostro/runtime/buffer.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::hf {

// Larger weights are split into several files (shards). transformers uses the same limit.
inline constexpr int64_t kMaxFileBytes = int64_t{5} * 1000 * 1000 * 1000;

// The parameters of a Llama, or their gradients, in the form that Hugging Face uses: its names, fused weights
// split, layers unstacked, matrices as [out, in].
class NamedWeights {
 public:
  NamedWeights(NamedWeights&&) = default;
  NamedWeights& operator=(NamedWeights&&) = default;

  // `paths` and `values` are in the order of models::ModelFunctions. Errors: kInvalidArgument if a path that
  // the model needs is missing, kUnsupported if an array is not f32.
  static Result<NamedWeights> create(const models::DecoderOptions& options,
                                     const std::vector<std::string>& paths,
                                     std::span<const runtime::Buffer> values);

  // All weights in a fixed order, layer by layer. Their bytes belong to this object.
  const std::vector<io::SafetensorsEntry>& entries() const { return entries_; }

 private:
  NamedWeights() = default;

  std::vector<std::vector<std::byte>> storage_;
  std::vector<io::SafetensorsEntry> entries_;
};

// Writes a directory that AutoModelForCausalLM and AutoTokenizer of current transformers can load:
// model.safetensors (or shards and their index), config.json, generation_config.json, tokenizer.json and
// tokenizer_config.json. The directory is created. Each file is replaced atomically, config.json last.
Status export_llama(io::FileSystem& fs, const std::string& directory, const models::DecoderOptions& options,
                    const tokenizer::Tokenizer& tokenizer, const NamedWeights& weights,
                    int64_t max_file_bytes = kMaxFileBytes);

}  // namespace ostro::hf
