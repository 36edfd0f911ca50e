// row_groups, shared_rows: models that differ in their adapters alone get one runner, so that rows of
// requests to all of them go through the layers together.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ostro/infer/layer_rows.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::serve {

// Models that one runner can have.
struct RowGroup {
  bool has_base = false;
  std::vector<size_t> with;  // places among the models with adapters, in order
};

// The groups of these models, which are those of with_adapter after share_parameters. Adapters are in one
// group when their programs are equal: the same base, rank, scale and matrices, precision and context. The
// base is in the first group whose models are it but for the adapter and read its parameters as it does
// (with integer products they do not); else it is in none.
Result<std::vector<RowGroup>> row_groups(const trained::LoadedModel& base,
                                         std::span<const trained::LoadedModel> with);

// The runner of a group: adapter i is that of the i-th of `with`, which are of one group. Their parameters
// are moved into it.
Result<std::shared_ptr<infer::LayerRows>> shared_rows(std::span<trained::LoadedModel* const> with,
                                                      runtime::Engine& engine,
                                                      const infer::RowLimits& limits);

}  // namespace ostro::serve
