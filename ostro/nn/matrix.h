// Which parameters of a model are matrices, and along which axes: for optimizers that treat them as such.
#pragma once

#include <string>
#include <vector>

#include "ostro/nn/linear.h"

namespace ostro::nn {

// A parameter as a matrix: rows are the axes that a Linear sums over, columns its other axes. `parts` of
// `fused` are matrices of their own. No `in`: the parameter is no matrix.
struct Matrix {
  Axes in;
  Fused fused;
};

// What every leaf of a model is, in the order of its tree.
template <typename T>
void add_matrices(const T& tree, std::vector<Matrix>& out) {
  using namespace tree_internal;
  if constexpr (std::same_as<T, Linear>) {
    if (tree.weight.valid()) out.push_back({tree.in, tree.fused});
    if (tree.bias.valid()) out.emplace_back();
  } else if constexpr (std::same_as<T, Array>) {
    if (tree.valid()) out.emplace_back();
  } else if constexpr (IsVector<T>::value) {
    for (const auto& one : tree) add_matrices(one, out);
  } else if constexpr (IsOptional<T>::value) {
    if (tree) add_matrices(*tree, out);
  } else {
    std::apply([&](const auto&... field) { (add_matrices(field, out), ...); }, tree.ostro_fields());
  }
}

}  // namespace ostro::nn
