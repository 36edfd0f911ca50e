// GrokShape: the hyperparameters of a Grok-1: those of the release, or of a smaller model in the same layout.
#pragma once

#include <cstdint>
#include <string>

#include "ostro/base/error.h"
#include "ostro/grok/pickle/stored.h"
#include "ostro/io/files/file_system.h"

namespace ostro::grok {

// The defaults are those of the release.
struct GrokShape {
  int64_t vocab = 131072;
  int64_t embed = 6144;
  int64_t layers = 64;
  int64_t query_heads = 48, kv_heads = 8, head_dim = 128;
  int64_t mlp = 32768;
  int64_t experts = 8, experts_per_token = 2;
  int64_t positions = 8192;
  double embedding_multiplier = 78.38367176906169;    // sqrt(6144)
  double output_multiplier = 0.5773502691896257;      // 1/sqrt(3)
  double attention_multiplier = 0.08838834764831845;  // 1/sqrt(128), of the logits
  double attention_cap = 30;
  double norm_eps = 1e-5;
  // The dtype of matrices: int8 with scales, or plain arrays of f32 or bf16.
  Dtype matrices = Dtype::kInt8;
  // The number of parts of an int8 matrix that was split by rows over devices; each part has its own scales.
  int64_t row_groups = 8;

  int64_t query_dim() const { return query_heads * head_dim; }
  int64_t kv_dim() const { return kv_heads * head_dim; }
  bool operator==(const GrokShape&) const = default;
};

// "Grok-1" for the release's own, else "a Grok of 12 layers".
std::string shape_title(const GrokShape& shape);

// The width of an expert's hidden layer, as the release computes it from its widening factor.
int64_t mlp_width(int64_t embed, double widening_factor);

// The shape as JSON. Its fields are those of the release's configuration on Hugging Face (hidden_size,
// num_hidden_layers, ...), and head_dim, matrix_dtype and row_groups, which that configuration leaves out.
std::string shape_to_json(const GrokShape& shape);
// Reads that JSON; `path` names the file in errors. A field that is absent has the release's value; a size
// must be there, because it decides what the files must hold. Errors: kCorrupt; kUnsupported for an
// activation or base of rotations that Grok-1 does not have.
Result<GrokShape> shape_from_json(const std::string& text, const std::string& path);

// The shape that `directory`/config.json gives, or the release's if there is no such file.
Result<GrokShape> read_shape(io::FileSystem& fs, const std::string& directory);

}  // namespace ostro::grok
