// export_model, NamedWeights, streamed_weights: write a model as a Hugging Face directory.
//
// Inputs are parameters in the order of models::ModelFunctions, either in memory or read piece by piece while
// the files are written.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/checkpoint/boxes.h"
#include "ostro/hf/families/family.h"
#include "ostro/io/arrays/safetensors.h"
#include "ostro/io/files/file_system.h"
#include "ostro/runtime/buffer.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::hf {

// Larger weights are split into several files (shards). transformers uses the same limit.
inline constexpr int64_t kMaxFileBytes = int64_t{5} * 1000 * 1000 * 1000;

// The parameters of a model, or their gradients, in the form that Hugging Face uses: its names, weights split
// or fused as it does, layers unstacked.
class NamedWeights {
 public:
  NamedWeights(NamedWeights&&) = default;
  NamedWeights& operator=(NamedWeights&&) = default;

  // `paths` and `values` are in the order of models::ModelFunctions; `dtype` is "F32", "BF16" or "F16".
  // Errors: kInvalidArgument if a path that the model needs is missing, kUnsupported if an array is not f32
  // or the family has no such form.
  static Result<NamedWeights> create(const models::DecoderOptions& options,
                                     const std::vector<std::string>& paths,
                                     std::span<const runtime::Buffer> values, std::string_view dtype = "F32");

  // All weights in a fixed order, layer by layer. Their bytes belong to this object.
  const std::vector<io::SafetensorsEntry>& entries() const { return entries_; }

 private:
  NamedWeights() = default;

  std::vector<std::vector<std::byte>> storage_;
  std::vector<io::SafetensorsEntry> entries_;
};

// Parameters that are read when they are written, in the order of models::ModelFunctions.
struct WeightSource {
  std::vector<std::string> paths;
  std::vector<ir::Shape> shapes;
  checkpoint::ReadBox read;
};

// The number of elements of one tensor that are in memory at a time. A larger tensor is read in blocks of
// the rows that the file has. Our weight has these rows as columns, so the bytes of a block are not
// contiguous; few models have a matrix so large.
inline constexpr int64_t kBlockElements = int64_t{64} << 20;

// The entries of NamedWeights, with the same bytes, for parameters that are not in memory. Each is read in
// blocks of rows when it is written. Errors: as NamedWeights::create.
Result<std::vector<io::SafetensorsEntry>> streamed_weights(const models::DecoderOptions& options,
                                                           WeightSource source, std::string_view dtype,
                                                           int64_t block_elements = kBlockElements);

// Writes a directory that AutoModelForCausalLM and AutoTokenizer of current transformers can load:
// model.safetensors (or shards and their index), config.json, generation_config.json and the files of
// export_tokenizer. The directory is created. Each file is replaced atomically, config.json last.
Status export_model(io::FileSystem& fs, const std::string& directory, const HfModel& model,
                    const tokenizer::Tokenizer& tokenizer, std::span<const io::SafetensorsEntry> weights,
                    int64_t max_file_bytes = kMaxFileBytes);

// Writes a tokenizer as AutoTokenizer reads it for a model of the family: tokenizer_config.json, the files
// that tokenizer_config() (model_files.h) adds, and tokenizer.json or, for a SentencePiece .model, that file.
// The tokenizer puts the same ids in front of a text as in training (tokenizer/model/text_ends.h). `seq_len`:
// the most tokens that the model takes. Error: kUnsupported for a unigram .model for which transformers has
// no known class.
Status export_tokenizer(io::FileSystem& fs, const std::string& directory, const HfFamily& family,
                        const tokenizer::Tokenizer& tokenizer, int64_t seq_len);

}  // namespace ostro::hf
