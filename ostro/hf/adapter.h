// export_lora, open_lora, lora_targets, take_lora: adapters in the format of PEFT, in adapter_config.json and
// adapter_model.safetensors.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ostro/hf/adapter_modules.h"
#include "ostro/hf/weights.h"
#include "ostro/io/arrays/safetensors.h"
#include "ostro/io/files/file_system.h"
#include "ostro/nn/adapters.h"

namespace ostro::hf {

// The fields of an adapter_config.json.
struct LoraConfig {
  int64_t rank = 8;
  double alpha = 8;
  bool use_rslora = false;
  // Other ranks and alphas, by the end of a module's name; the first that fits counts.
  std::vector<std::pair<std::string, int64_t>> rank_pattern = {};
  std::vector<std::pair<std::string, double>> alpha_pattern = {};
  std::optional<std::vector<int64_t>> layers = {};  // that have the adapter; nothing: all
  bool some_modules = false;                        // the modules are named one by one, so some may have none

  int64_t rank_of(const std::string& module) const;
  // The factor of B A x.
  double scale_of(const std::string& module) const;
};

// Writes both files into the directory, which is created. `paths` and `values` are the model's parameters, in
// one order. A module that holds several matrices gets one adapter: of the same rank where their A are equal
// (as in an adapter that PEFT made), else of the sum of their ranks. `base`: name or path of the model that
// they belong to, for people and for PEFT's loader; `base_hash`: SHA-256 of its parameters (parameters_hash).
// Errors: as check_lora_names.
Status export_lora(io::FileSystem& fs, const std::string& directory, const LoraConfig& config,
                   const std::vector<WeightPart>& base_weights,
                   const std::vector<nn::AdaptedMatrix>& matrices, const std::vector<std::string>& paths,
                   std::span<const runtime::Buffer> values, const std::string& base,
                   const std::string& base_hash);

// An adapter that PEFT, or export_lora, wrote.
struct LoraFiles {
  LoraConfig config;
  std::vector<std::string> modules;  // names of the modules that have an adapter
  std::string base_hash;             // parameters_hash of the base; empty if the file does not have it
  std::string path;                  // of adapter_model.safetensors
  io::SafetensorsReader tensors;

  // The largest rank of a module, which all adapters of ours have, and the alpha that gives them the scale of
  // a module without a pattern.
  int64_t rank() const;
  double alpha() const;
};

// Opens both files. Errors: a file is missing, pickled or damaged; an adapter that is not LoRA, or has a
// feature that is not supported (DoRA, biases, saved modules, ...), named with its value.
Result<LoraFiles> open_lora(io::FileSystem& fs, const std::string& directory);

// The values of adapter.target_modules that give a model the adapters of `files`: names of matrices, or paths
// where only some matrices of a name have one. `modules` are those of the model with adapters on all its
// matrices. Error: kInvalidArgument, with the tensor, for one of a module that the model does not have.
Result<std::vector<std::string>> lora_targets(const LoraFiles& files, const std::vector<LoraModule>& modules);

// Copies the tensors of `files` into the adapters of a model. `modules` are the model's; `values` are its
// parameters, in the order of `paths`, zero where they are adapters. A module of a smaller rank has zeros
// beyond it; a module or layer that the adapter leaves out has zeros. A tensor that is a copy of one of
// `base`, the model's own weights, is compared with it. Errors: a tensor without a matrix in the model, a
// matrix or layer without a tensor, another shape, another value of a copy; each with the name and both
// values.
Status take_lora(const LoraFiles& files, const std::vector<WeightPart>& base,
                 const std::vector<LoraModule>& modules, const std::vector<std::string>& paths,
                 std::span<runtime::Buffer> values);

// SHA-256 over the parameters that are not adapters, sorted by path: "<path> <type>\n", then the bytes.
std::string parameters_hash(const std::vector<std::string>& paths, std::span<const runtime::Buffer> values);

}  // namespace ostro::hf
