// Matrix, add_matrices: the parameters of a model that are matrices, and their axes, for optimizers that
// treat them as such. Pure functions.
#pragma once

#include <vector>

#include "ostro/nn/moe.h"
#include "ostro/nn/norm.h"

namespace ostro::nn {

// The kind of a parameter whose gradient counts the rows that chose each expert (moe.h, counted): no rule of
// an optimizer applies to it.
enum class Counts { kNo, kLoad, kRouterBias };

// A parameter as a matrix: rows are the axes that a Linear sums over, columns its other axes. The parts of
// `fused` are matrices of their own. No `in`: the parameter is no matrix.
struct Matrix {
  Axes in;
  Fused fused;
  bool of_experts = false;   // each expert has its part of it, along its axis "experts"
  bool read_in_f32 = false;  // whatever the compute dtype
  Counts counts = Counts::kNo;
  double bias_rate = 0;  // of kRouterBias
};

// Appends one entry for every leaf of a model, in the order of its tree.
template <typename T>
void add_matrices(const T& tree, std::vector<Matrix>& out) {
  using namespace tree_internal;
  const auto add = [&](const Array& leaf, Matrix matrix) {
    if (leaf.valid()) out.push_back(std::move(matrix));
  };
  if constexpr (std::same_as<T, Linear>) {
    add(tree.weight, {tree.in, tree.fused});
    add(tree.scales, {});
    add(tree.bias, {});
    for (const LowRank& lora : tree.lora) {
      add(lora.a, {tree.in, {}});
      add(lora.b, {{kRankAxis}, {}});
    }
  } else if constexpr (std::same_as<T, Norm>) {
    add(tree.weight, {.in = {}, .fused = {}, .read_in_f32 = tree.in_f32});
    add(tree.bias, {.in = {}, .fused = {}, .read_in_f32 = tree.in_f32});
  } else if constexpr (std::same_as<T, MoeRouter>) {
    add(tree.weight, {.in = {}, .fused = {}, .read_in_f32 = true});
    add(tree.bias, {.in = {},
                    .fused = {},
                    .read_in_f32 = true,
                    .counts = Counts::kRouterBias,
                    .bias_rate = tree.bias_rate});
  } else if constexpr (std::same_as<T, Moe>) {
    add_matrices(tree.router, out);
    add(tree.gate_up, {{"embed"}, {"gate_up", {{"gate_proj"}, {"up_proj"}}}, true});
    add(tree.gate_up_scales, {.in = {}, .fused = {}, .of_experts = true});
    add(tree.down, {{"mlp"}, {}, true});
    add(tree.down_scales, {.in = {}, .fused = {}, .of_experts = true});
    add_matrices(tree.shared, out);
    add(tree.shared_gate, {});
    add(tree.load, {.in = {}, .fused = {}, .read_in_f32 = true, .counts = Counts::kLoad});
  } else if constexpr (std::same_as<T, Array>) {
    add(tree, {});
  } else if constexpr (IsVector<T>::value) {
    for (const auto& one : tree) add_matrices(one, out);
  } else if constexpr (IsOptional<T>::value) {
    if (tree) add_matrices(*tree, out);
  } else {
    std::apply([&](const auto&... field) { (add_matrices(field, out), ...); }, tree.ostro_fields());
  }
}

}  // namespace ostro::nn
