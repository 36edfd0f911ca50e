// row_groups, shared_rows: models that differ in their adapters alone get one runner, so that rows of
// requests to all of them go through the layers together.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ostro/infer/layer_rows.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::serve {

// Models that one runner can have.
struct RowGroup {
  std::vector<size_t> with;         // places among the models with adapters, in order
  std::string program;              // infer::forward_hash of each of them alone
  std::optional<std::string> base;  // that of the base, if it is in the group
};

// The groups of these models, which are those of with_adapter after share_parameters. Adapters are in one
// group when their programs are equal: the same rank, scale, matrices, precision and context, held in the
// same types. The base is in the first group whose models are it but for the adapter and read its parameters
// as it does (where it holds them in f32 they do not with integer products); else it is in none.
Result<std::vector<RowGroup>> row_groups(const trained::LoadedModel& base,
                                         std::span<const trained::LoadedModel> with);

// The runner of a group: adapter i is that of the i-th of `with`, which are of one group. Their factors are
// moved into it.
Result<std::shared_ptr<infer::LayerRows>> shared_rows(std::span<trained::LoadedModel* const> with,
                                                      runtime::Engine& engine,
                                                      const infer::RowLimits& limits);

}  // namespace ostro::serve
