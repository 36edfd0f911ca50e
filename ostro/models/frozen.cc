#include "ostro/models/frozen.h"

namespace ostro::models {

// Reorders the list of parameters, and wraps the model's functions so that they see the old order. Frozen f32
// parameters change their dtype, except those that are read in f32.
ModelFunctions train_only(ModelFunctions model, const std::function<bool(const std::string&)>& is_trained,
                          DType compute) {
  const size_t n = model.paths.size();
  std::vector<size_t> order;  // of the new list: places in the old one
  for (size_t k = 0; k < n; ++k)
    if (is_trained(model.paths[k])) order.push_back(k);
  const size_t first = order.size();
  for (size_t k = 0; k < n; ++k)
    if (!is_trained(model.paths[k])) order.push_back(k);
  if (first == n) return model;

  ModelFunctions out;
  out.only_first = first;
  out.matrices = model.matrices;
  out.width = model.width;
  for (size_t i = 0; i < n; ++i) {
    out.paths.push_back(model.paths[order[i]]);
    out.shapes.push_back(model.shapes[order[i]]);
    out.matrix_of.push_back(model.matrix_of[order[i]]);
    if (i >= first && out.shapes[i].dtype == DType::f32 && !out.matrix_of[i].read_in_f32)
      out.shapes[i].dtype = compute;
  }
  const auto to_model = [order](const Arrays& leaves) {
    Arrays list(leaves.size());
    for (size_t i = 0; i < order.size(); ++i) list[order[i]] = leaves[i];
    return list;
  };
  out.init = [init = model.init, order, shapes = out.shapes](const Array& key) {
    const Arrays list = init(key);
    Arrays leaves;
    for (size_t i = 0; i < order.size(); ++i) leaves.push_back(cast(list[order[i]], shapes[i].dtype));
    return leaves;
  };
  out.loss = [loss = model.loss, to_model](const Arrays& leaves, const Batch& batch) {
    return loss(to_model(leaves), batch);
  };
  out.merged = [merged = model.merged, to_model](const Arrays& leaves) { return merged(to_model(leaves)); };
  out.decode.cache = model.decode.cache;
  if (model.decode.step)
    out.decode.step = [step = model.decode.step, to_model](const Arrays& leaves, const Array& tokens,
                                                           const Arrays& cache, const Array& start) {
      return step(to_model(leaves), tokens, cache, start);
    };
  return out;
}

}  // namespace ostro::models
