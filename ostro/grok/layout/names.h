// tensor_name, find_tensor: the names that other programs give to the tensors of Grok-1: one table, read in
// both directions. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ostro/grok/layout/leaves.h"

namespace ostro::grok {

enum class Naming {
  kHaiku,         // grok-1-hf by keyfan: Haiku's names with dots, a tensor for each expert
  kTransformers,  // hpcai-tech/grok-1, also read by vLLM and SGLang: a tensor for each expert
  kGguf,          // llama.cpp, architecture "grok": the experts of a matrix in one tensor
};
inline constexpr Naming kNamings[] = {Naming::kHaiku, Naming::kTransformers, Naming::kGguf};

// The tensor of the release that a name means, or a part of it.
struct NamedTensor {
  Part part = Part::kEmbedding;
  int64_t layer = -1;             // -1 outside of layers
  std::optional<int64_t> expert;  // only this one of kExpertGate, kExpertUp or kExpertDown
  // True for a matrix: the other programs have it as [out, in], the release as [in, out]. (gguf lists the
  // dimensions from the last, which gives the same bytes.)
  bool is_transposed = false;
  bool is_output = false;  // the output matrix, which the release has as the embedding alone

  bool operator==(const NamedTensor&) const = default;
};

// True if the naming has a tensor for each expert of kExpertGate, kExpertUp and kExpertDown.
bool splits_experts(Naming naming);

// The name of a part. `layer` is used for parts of layers. `expert` is required for a part that the naming
// splits by experts, and ignored for others.
std::string tensor_name(Naming naming, Part part, int64_t layer,
                        std::optional<int64_t> expert = std::nullopt);
// The name of the output matrix, which is the embedding.
std::string output_name(Naming naming);

// The tensor that a name means; nothing when the naming does not have the name. kGguf also reads the older
// names of gguf files: a tensor for each expert, and post_ffw_norm.
std::optional<NamedTensor> find_tensor(Naming naming, std::string_view name);

}  // namespace ostro::grok
