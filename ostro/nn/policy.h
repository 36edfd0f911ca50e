// compute: mixed precision. Parameters are held in f32 and read in a compute dtype. Those that are not
// trained may be held in the compute dtype. Products of matrices, and those of attention, may be of integers
// (numerics.md N20, N21), or summed by the rule of tensor cores (N23). Called while tracing.
#pragma once

#include <string>
#include <tuple>

#include "ostro/nn/moe.h"
#include "ostro/trace/tree.h"

namespace ostro::nn {

// Makes the products with every Linear, every tied table and all experts of a tree products of integers.
// `path` is the tree's in the model; the key of a matrix is that of its path.
template <typename T>
void use_integers(T& tree, const std::string& path, int64_t block, const Draws& draws) {
  using namespace tree_internal;
  const auto products = [&](const std::string& of_path) {
    IntegerProducts of{block, Array(), draws.first};
    if (draws.key.valid()) of.key = fold_in(draws.key, of_path);
    return of;
  };
  const auto layer_of = [&](const Array& weight) {
    const Axis& first = weight.shape().axes[0];
    return draws.key.valid() && first.name == kLayersAxis ? iota(first) : Array();
  };
  if constexpr (std::same_as<T, Linear>) {
    if (!tree.weight.valid()) return;
    tree.integers = products(path);
    tree.layer = layer_of(tree.weight);
  } else if constexpr (std::same_as<T, Embedding>) {
    if (tree.weight.valid()) tree.integers = products(path);
  } else if constexpr (std::same_as<T, Array>) {
    return;
  } else if constexpr (IsVector<T>::value) {
    for (size_t i = 0; i < tree.size(); ++i)
      use_integers(tree[i], join_path(path, element_name(tree[i], i)), block, draws);
  } else if constexpr (IsOptional<T>::value) {
    if (tree) use_integers(*tree, path, block, draws);
  } else {
    if constexpr (std::same_as<T, Moe>)
      if (tree.down.valid()) {
        tree.integers =
            ExpertIntegers{products(join_path(path, "gate_up")), products(join_path(path, "down"))};
        tree.layer = layer_of(tree.down);
      }
    auto fields = tree.ostro_fields();
    [&]<size_t... I>(std::index_sequence<I...>) {
      (use_integers(std::get<I>(fields), join_path(path, field_name(T::ostro_field_names(), I)), block,
                    draws),
       ...);
    }(std::make_index_sequence<std::tuple_size_v<decltype(fields)>>());
  }
}

// Calls visit(part) for a tree and every part of it.
template <typename T, typename Visit>
void visit_parts(T& tree, const Visit& visit) {
  using namespace tree_internal;
  visit(tree);
  if constexpr (std::same_as<T, Array>) {
    return;
  } else if constexpr (IsVector<T>::value) {
    for (auto& element : tree) visit_parts(element, visit);
  } else if constexpr (IsOptional<T>::value) {
    if (tree) visit_parts(*tree, visit);
  } else {
    auto fields = tree.ostro_fields();
    std::apply([&](auto&... field) { (visit_parts(field, visit), ...); }, fields);
  }
}

// The weights of attention have slices; linear layers, tables and mixtures have a rule.
template <typename Part>
void set_products(Part& part, const Precision& precision) {
  if constexpr (requires { part.int8_slices; })
    if (precision.attention_slices > 0) part.int8_slices = precision.attention_slices;
  if constexpr (requires { requires std::same_as<decltype(part.rule), ProductRule>; })
    if (precision.rule != ProductRule::kN7) part.rule = precision.rule;
}

// Returns the model with every leaf that is f32, or has the compute dtype, tagged with the compute dtype. The
// first op that reads a tagged leaf casts it (one `use` per program or loop body). Training, evaluation and
// generation all call this. Leaves that need no cast are tagged too, because on a mesh `use` also gathers the
// parameter. With integer products, `draws` are needed where the model is differentiated.
template <typename Model>
Model compute(const Model& model, const Precision& precision, const Draws& draws = {}) {
  Model out = tree_map(model, [&](const std::string&, const Array& a) {
    return a.dtype() == DType::f32 || a.dtype() == precision.dtype ? a.tagged(precision.dtype) : a;
  });
  if (precision.int8_block > 0) use_integers(out, "model", precision.int8_block, draws);
  visit_parts(out, [&](auto& part) { set_products(part, precision); });
  return out;
}

}  // namespace ostro::nn
