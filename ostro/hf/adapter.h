// lora_weights, export_lora, open_lora, take_lora: adapters in the format of PEFT, in adapter_config.json and
// adapter_model.safetensors.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ostro/hf/weights.h"
#include "ostro/io/arrays/safetensors.h"
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

// An adapter that PEFT, or export_lora, wrote.
struct LoraFiles {
  LoraConfig config;
  std::vector<std::string> modules;  // last words of the names of the adapted matrices ("q_proj")
  std::string base_hash;             // parameters_hash of the base; empty if the file does not have it
  std::string path;                  // of adapter_model.safetensors
  io::SafetensorsReader tensors;
};

// Opens both files. Errors: a file is missing, pickled or damaged; an adapter that is not LoRA, or has a
// feature that is not supported (DoRA, ranks or factors by module, biases, saved modules, ...), named with
// its value.
Result<LoraFiles> open_lora(io::FileSystem& fs, const std::string& directory);

// Copies the tensors of `files` into the adapters of a model. `parts` (lora_weights) are the model's
// adapters; `values` are its parameters, in the order of `paths`. Errors: a tensor without a matrix in the
// model, a matrix or layer without a tensor, another shape; each with the name and both values.
Status take_lora(const LoraFiles& files, const std::vector<WeightPart>& parts,
                 const std::vector<std::string>& paths, std::span<runtime::Buffer> values);

// SHA-256 over the parameters that are not adapters, sorted by path: "<path> <type>\n", then the bytes.
std::string parameters_hash(const std::vector<std::string>& paths, std::span<const runtime::Buffer> values);

}  // namespace ostro::hf
