// with_lora, without_lora: adapters, low-rank additions to the matrices of any model that is made of Linear
// (LoRA, arXiv 2106.09685).
//
// All functions of arrays are called while tracing, and throw TraceError for arrays that do not fit.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "ostro/nn/linear.h"

namespace ostro::nn {

// The adapters of a model: their rank, scale and matrices.
struct LoraSpec {
  int64_t rank = 8;
  double scale = 1;  // of (x a) b
  // Globs over the name of a matrix ("q_proj") and its path ("model/layers/attention/qkv/q_proj"). Nothing:
  // all but the head, that is, the matrix onto the vocabulary.
  std::optional<std::vector<std::string>> targets;
  int64_t adapters = 0;  // this many of one shape, side by side (kAdaptersAxis); 0: one, without that axis

  // Returns whether the matrix `name` of the Linear at `path` gets an adapter.
  bool wants(const std::string& path, const std::string& name, bool is_head) const;
};

// A matrix of a model that can have an adapter.
struct AdaptedMatrix {
  std::string linear;  // "model/layers/attention/qkv"
  std::string name;    // "q_proj"
  bool has_adapter = false;

  std::string path() const { return linear + "/" + name; }
};

// The path of an adapter's factor, 'a' or 'b': "model/layers/attention/qkv/lora/q_proj/a".
std::string adapter_path(const std::string& linear, const std::string& name, char factor);
// Returns whether a parameter's path is that of a factor.
bool is_adapter(const std::string& path);

// Adds the adapters of one Linear, and all its matrices to the list. a is uniform in +-1 / sqrt(inputs), as
// in PEFT, from the key of its own path; b is zero, so the model's results do not change.
void add_lora(Linear& linear, const std::string& path, const LoraSpec& spec, const Array& key,
              std::vector<AdaptedMatrix>& matrices);
// Returns the weight with its adapters added, f32.
Array merged_weight(const Linear& linear);

// Calls visit(path, Linear&) for every Linear of a tree that has a weight, in the order of its fields. `path`
// is the tree's in the model.
template <typename T, typename Visitor>
void for_each_linear(T& tree, const std::string& path, Visitor&& visit) {
  using Bare = std::remove_const_t<T>;
  using namespace tree_internal;
  if constexpr (std::same_as<Bare, Linear>) {
    if (tree.weight.valid()) visit(path, tree);
  } else if constexpr (std::same_as<Bare, Array>) {
    return;
  } else if constexpr (IsVector<Bare>::value) {
    for (size_t i = 0; i < tree.size(); ++i)
      for_each_linear(tree[i], join_path(path, element_name(tree[i], i)), visit);
  } else if constexpr (IsOptional<Bare>::value) {
    if (tree) for_each_linear(*tree, path, visit);
  } else {
    auto fields = tree.ostro_fields();
    [&]<size_t... I>(std::index_sequence<I...>) {
      (for_each_linear(std::get<I>(fields), join_path(path, field_name(Bare::ostro_field_names(), I)), visit),
       ...);
    }(std::make_index_sequence<std::tuple_size_v<decltype(fields)>>());
  }
}

// Returns the model with adapters on all matrices that the spec wants. Sets `matrices` to the list of all
// matrices.
template <typename Model>
Model with_lora(Model model, const LoraSpec& spec, const Array& key, std::vector<AdaptedMatrix>& matrices) {
  matrices.clear();
  for_each_linear(model, "model", [&](const std::string& path, Linear& linear) {
    add_lora(linear, path, spec, key, matrices);
  });
  return model;
}

// Returns a model without adapters that has the same results, up to rounding.
template <typename Model>
Model without_lora(Model model) {
  for_each_linear(model, "model", [](const std::string&, Linear& linear) {
    if (linear.lora.empty()) return;
    linear.weight = merged_weight(linear);
    linear.lora.clear();
  });
  return model;
}

}  // namespace ostro::nn
