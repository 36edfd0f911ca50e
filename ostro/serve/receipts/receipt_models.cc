#include "ostro/serve/receipts/receipt_models.h"

#include <algorithm>

#include "ostro/train/options/options.h"

namespace ostro::serve {
namespace {

// What a precision or a context gives that the model cannot have.
bool cannot_have(const Error& error) {
  return error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kUnsupported;
}

}  // namespace

// The models before are closed first: memory need not hold two sets.
Status ReceiptModels::open(const Key& key) {
  if (key_ == key) return {};
  key_.reset();
  models_.clear();
  ASSIGN_OR_RETURN(models_, open_(key.precision, key.context));
  key_ = key;
  adapters_.clear();
  for (const auto& model : models_) adapters_.push_back(model->facts.adapter);
  return {};
}

// A context that the checkpoint cannot have is told by its programs, so that the model in its own stays open
// for all receipts of such contexts.
Result<ServedModel*> ReceiptModels::of(const Receipt& receipt) {
  const Key key{receipt.model.dtype, receipt.model.context}, own{receipt.model.dtype, {}};
  if (const auto& programs = programs_of(key); !programs.ok() && cannot_have(programs.error())) {
    RETURN_IF_ERROR(open(own));
  } else if (const Status opened = open(key); !opened.ok()) {
    if (!cannot_have(opened.error()) || !open(own).ok()) return opened.error();
  }
  for (const auto& model : models_)
    if (model->facts.adapter == receipt.model.adapter) return model.get();
  return models_.back().get();
}

Status ReceiptModels::at_hand() {
  const auto& programs = programs_of({});
  return programs.ok() ? Status() : Status(programs.error());
}

// A model need not have every precision; one that it has not is not tried again.
const Result<std::vector<ServedProgram>>& ReceiptModels::programs_of(const Key& key) {
  auto known = known_.find(key);
  if (known == known_.end()) known = known_.emplace(key, programs_(key.precision, key.context)).first;
  return known->second;
}

const ServedProgram* ReceiptModels::program_of(const Key& key, const Receipt& receipt) {
  const auto& programs = programs_of(key);
  if (!programs.ok()) return nullptr;
  size_t place = 0;  // the model without an adapter is the first
  if (!receipt.model.adapter.empty())
    place = static_cast<size_t>(std::find(adapters_.begin(), adapters_.end(), receipt.model.adapter) -
                                adapters_.begin());
  return place < programs->size() ? &(*programs)[place] : nullptr;
}

std::string ReceiptModels::precision_of_program(const Receipt& receipt, const std::string& than) {
  for (const train::MixedPrecision& precision : train::all_precisions()) {
    const std::string word = train::precision_word(precision);
    if (word == than) continue;
    const ServedProgram* const program = program_of({word, receipt.model.context}, receipt);
    if (program != nullptr && program->forward == receipt.model.forward) return word;
  }
  return "";
}

std::optional<int64_t> ReceiptModels::context_of_program(const Receipt& receipt) {
  const ServedProgram* const program = program_of({receipt.model.dtype, {}}, receipt);
  if (program == nullptr || program->forward != receipt.model.forward ||
      program->context == receipt.model.context)
    return {};
  return program->context;
}

}  // namespace ostro::serve
