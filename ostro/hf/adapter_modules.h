// lora_modules: the adapters of ours that a module of PEFT's stands for. Pure functions.
//
// PEFT has an adapter for each linear layer of a Hugging Face model. Ours are for the matrices of a model: a
// layer that holds several of them ("qkv_proj", "c_attn", "gate_up_proj") has several of ours.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/hf/weights.h"
#include "ostro/ir/program/shape.h"
#include "ostro/nn/adapters.h"

namespace ostro::hf {

// One of our adapters in a module: its factors for one layer of the model, a as [rank, inputs], b as
// [outputs, rank], and the rows of the module's lora_B that b's rows are.
struct LoraShare {
  std::string matrix;  // nn::AdaptedMatrix::path()
  std::string name;    // nn::AdaptedMatrix::name
  WeightPart a, b;
  std::vector<int64_t> rows;
};

struct LoraModule {
  std::string name;      // "model.layers.0.self_attn.qkv_proj"
  int64_t inputs = 0;    // columns of lora_A
  int64_t rows = 0;      // of lora_B
  bool columns = false;  // the layer's own weight is [inputs, outputs]
  std::vector<LoraShare> shares;

  std::string a_name() const { return "base_model.model." + name + ".lora_A.weight"; }
  std::string b_name() const { return "base_model.model." + name + ".lora_B.weight"; }
  // "self_attn.qkv_proj": what follows the number of a layer; the whole name where there is none.
  std::string in_layer() const;
  // The number of the layer; -1 where there is none.
  int64_t layer() const;
};

// The modules that have one of the adapters, in the order of `base`, the model's own weights. `paths` and
// `shapes` are the parameters of the model with its adapters, in one order.
std::vector<LoraModule> lora_modules(const std::vector<WeightPart>& base,
                                     const std::vector<nn::AdaptedMatrix>& matrices,
                                     const std::vector<std::string>& paths,
                                     const std::vector<ir::Shape>& shapes);

// Error: kUnsupported, with the matrix, if an adapter cannot be written for PEFT: no module has it, or, in a
// mixture, PEFT would take its name for the experts' matrices.
Status check_lora_names(const std::vector<WeightPart>& base, const std::vector<nn::AdaptedMatrix>& matrices,
                        const std::vector<LoraModule>& modules);

// The words by which adapter_config.json names these modules: "q_proj", or more of the name where modules
// without an adapter have the same last word ("mlp.c_proj"). One for each module, equal ones repeated.
std::vector<std::string> module_words(const std::vector<WeightPart>& base,
                                      const std::vector<LoraModule>& modules);

// Returns the index of the parameter at this path. It must be in the list.
size_t parameter_of(const std::vector<std::string>& paths, const std::string& path);

// Returns "lm_head.weight" for "base_model.model.lm_head.base_layer.weight", a copy of a weight of the base
// that PEFT writes beside adapters of the head. Returns an empty text for the tensors of adapters, and for
// others.
std::string lora_base_tensor(const std::string& tensor);

}  // namespace ostro::hf
