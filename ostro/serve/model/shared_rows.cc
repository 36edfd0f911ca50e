#include "ostro/serve/model/shared_rows.h"

#include <map>

#include "ostro/infer/decode_program.h"
#include "ostro/infer/weights/resident_weights.h"
#include "ostro/nn/adapters.h"
#include "ostro/serve/model/adapter_rows.h"
#include "ostro/train/programs/programs.h"
#include "ostro/trained/opened_model.h"

namespace ostro::serve {
namespace {

using runtime::Buffer;
using trained::LoadedModel;

Result<std::string> program_of(const LoadedModel& model, const models::ModelFunctions& functions) {
  return infer::forward_hash(functions, model.config.model_options().seq_len(),
                             train::inference_leaf_table(model.config));
}

// The program of a model as if it had no adapter and all its parameters were trained.
Result<std::string> bare_program(const LoadedModel& model) {
  return program_of(model,
                    model.config.model_options().evaluation_functions(
                        static_cast<int64_t>(model.tokenizer->vocab_size()), train::precision(model.config)));
}

// Whether programs of the base read the same bytes of its parameters as those of a model with an adapter:
// share_parameters made them equal but for their types.
bool reads_the_same(const LoadedModel& base, const LoadedModel& with) {
  std::map<std::string, const Buffer*> of_base;
  for (size_t k = 0; k < base.functions.paths.size(); ++k)
    of_base[base.functions.paths[k]] = &base.parameters.values[k];
  for (size_t k = 0; k < with.functions.paths.size(); ++k) {
    if (nn::is_adapter(with.functions.paths[k])) continue;
    const auto at = of_base.find(with.functions.paths[k]);
    if (at == of_base.end() || at->second->shape() != with.parameters.values[k].shape()) return false;
  }
  return true;
}

}  // namespace

Result<std::vector<RowGroup>> row_groups(const LoadedModel& base, std::span<const LoadedModel> with) {
  std::vector<RowGroup> out;
  std::map<std::string, size_t> groups;  // by the program of their models
  for (size_t i = 0; i < with.size(); ++i) {
    ASSIGN_OR_RETURN(const std::string program, program_of(with[i], with[i].functions));
    const auto [at, is_new] = groups.try_emplace(program, out.size());
    if (is_new) out.push_back({{}, program, {}});
    out[at->second].with.push_back(i);
  }
  ASSIGN_OR_RETURN(const std::string bare, bare_program(base));
  for (RowGroup& group : out) {
    const LoadedModel& one = with[group.with[0]];
    ASSIGN_OR_RETURN(const std::string program, bare_program(one));
    if (program != bare || !reads_the_same(base, one)) continue;
    ASSIGN_OR_RETURN(group.base, program_of(base, base.functions));
    break;
  }
  return out;
}

Result<std::shared_ptr<infer::LayerRows>> shared_rows(std::span<LoadedModel* const> with,
                                                      runtime::Engine& engine,
                                                      const infer::RowLimits& limits) {
  LoadedModel& first = *with[0];
  const auto one = trained::layers_of(first);
  const auto several = trained::layers_of(first, std::ssize(with));
  OSTRO_CHECK(one && several, "a model with adapters is a decoder");
  std::vector<Buffer> values;
  for (size_t k = 0; k < first.functions.paths.size(); ++k) {
    if (!nn::is_adapter(first.functions.paths[k])) {
      values.push_back(first.parameters.values[k]);
      continue;
    }
    std::vector<Buffer> factors;
    for (LoadedModel* model : with) {
      ASSIGN_OR_RETURN(Buffer factor, infer::as_read(*one, k, std::move(model->parameters.values[k])));
      factors.push_back(std::move(factor));
    }
    ASSIGN_OR_RETURN(Buffer all, side_by_side(std::move(factors)));
    values.push_back(std::move(all));
  }
  ASSIGN_OR_RETURN(
      auto out, infer::LayerRows::create(
                    {first.functions, *several, train::inference_leaf_table(first.config), std::ssize(with)},
                    std::move(values), engine, limits));
  return std::shared_ptr<infer::LayerRows>(std::move(out));
}

}  // namespace ostro::serve
