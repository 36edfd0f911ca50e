// Adapters in the format of PEFT: adapter_config.json and adapter_model.safetensors.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ostro/hf/weights.h"
#include "ostro/io/files/file_system.h"
#include "ostro/nn/adapters.h"

namespace ostro::hf {

// The hyper-parameters that adapter_config.json has.
struct LoraConfig {
  int64_t rank = 8;
  double alpha = 8;
  bool use_rslora = false;
};

// The tensors of the adapters, by PEFT's names
// ("base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", [rank, in]; lora_B, [out, rank]). `base`
// are the model's own weights.
std::vector<WeightPart> lora_weights(const std::vector<WeightPart>& base,
                                     const std::vector<nn::AdaptedMatrix>& matrices);

// Writes both files into the directory, which is created. `paths` and `values` are the model's parameters, in
// one order. `base`: name or path of the model that they belong to, for people and for PEFT's loader;
// `base_hash`: SHA-256 of its parameters (parameters_hash). Errors: a matrix has an adapter but no name of
// Hugging Face's.
Status export_lora(io::FileSystem& fs, const std::string& directory, const LoraConfig& config,
                   const std::vector<WeightPart>& base_weights,
                   const std::vector<nn::AdaptedMatrix>& matrices, const std::vector<std::string>& paths,
                   std::span<const runtime::Buffer> values, const std::string& base,
                   const std::string& base_hash);

// SHA-256 over the parameters that are no adapters, in the order of their paths: "<path> <type>\n", then the
// bytes.
std::string parameters_hash(const std::vector<std::string>& paths, std::span<const runtime::Buffer> values);

}  // namespace ostro::hf
