// Writing a model as a Hugging Face directory.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/io/arrays/safetensors.h"
#include "ostro/io/files/file_system.h"
#include "ostro/models/llama_options.h"
#include "ostro/runtime/buffer.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::hf {

// Files are split above this, as transformers does.
inline constexpr int64_t kMaxFileBytes = int64_t{5} * 1000 * 1000 * 1000;

// Arrays shaped like a Llama's parameters (its weights, or their gradients) under Hugging Face's names:
// fused weights split, layers unstacked, [out, in].
class NamedWeights {
 public:
  NamedWeights(NamedWeights&&) = default;
  NamedWeights& operator=(NamedWeights&&) = default;

  // `paths` and `values` as models::ModelFunctions lists them. ErrorCode::kInvalidArgument when a path that
  // the model needs is missing; kUnsupported: an array that is not f32.
  static Result<NamedWeights> create(const models::LlamaOptions& options,
                                     const std::vector<std::string>& paths,
                                     std::span<const runtime::Buffer> values);

  // In a fixed order, layer by layer; the bytes belong to this object.
  const std::vector<io::SafetensorsEntry>& entries() const { return entries_; }

 private:
  NamedWeights() = default;

  std::vector<std::vector<std::byte>> storage_;
  std::vector<io::SafetensorsEntry> entries_;
};

// Writes model.safetensors (or shards and their index), config.json, generation_config.json, tokenizer.json
// and tokenizer_config.json, which current transformers load with AutoModelForCausalLM and AutoTokenizer. The
// directory is made; each file is replaced atomically, config.json last.
Status export_llama(io::FileSystem& fs, const std::string& directory, const models::LlamaOptions& options,
                    const tokenizer::Tokenizer& tokenizer, const NamedWeights& weights,
                    int64_t max_file_bytes = kMaxFileBytes);

}  // namespace ostro::hf
