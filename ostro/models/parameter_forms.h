// add_parameter_forms: in which form programs read each parameter of a model: in the compute dtype, in f32,
// or as integers that were cut from it. Called outside of any trace.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ostro/models/layer_functions.h"
#include "ostro/nn/adapters.h"
#include "ostro/nn/matrix.h"
#include "ostro/nn/policy.h"

namespace ostro::models {

// Sets read_in_f32 and integers of `out`. `places`: of the parameters, by path. `tied_table`: the path of a
// table with which products are computed, too; empty: there is none.
template <typename Model>
void add_parameter_forms(const Model& model, const nn::Precision& compute, const std::string& tied_table,
                         const std::map<std::string, size_t>& places, LayerFunctions& out) {
  out.read_in_f32.resize(places.size());
  out.integers.resize(places.size());
  std::vector<nn::Matrix> matrices;
  nn::add_matrices(model, matrices);
  size_t leaf = 0;
  for_each_leaf(
      model,
      [&](const std::string& path, const Array& parameter) {
        const nn::Matrix& matrix = matrices[leaf++];
        const size_t at = places.at(path);
        const int64_t block = compute.int8_block;
        out.read_in_f32[at] = matrix.read_in_f32;
        if (block > 0 && path == tied_table)
          out.integers[at] = {{"embed"}, block, /*alone=*/false};
        else if (block > 0 && !matrix.in.empty() && !nn::is_adapter(path) &&
                 parameter.dtype() != DType::i8)  // a stored one is made whole first
          out.integers[at] = {matrix.in, block};
      },
      "model");
}

}  // namespace ostro::models
