#include "ostro/serve/receipts/receipt_models.h"

#include "ostro/train/options/options.h"

namespace ostro::serve {
namespace {

ServedModel* with_adapter_of(const ReceiptModels::Models& models, const Receipt& receipt) {
  for (const auto& model : models)
    if (model->facts.adapter == receipt.model.adapter) return model.get();
  return models.back().get();
}

}  // namespace

Result<ServedModel*> ReceiptModels::of(const Receipt& receipt) {
  const std::string& precision = receipt.model.dtype;
  auto found = models_.find(precision);
  if (found == models_.end()) {
    ASSIGN_OR_RETURN(Models opened, open_(precision));
    found = models_.emplace(precision, std::move(opened)).first;
  }
  return with_adapter_of(found->second, receipt);
}

// A model need not have every precision; one that it has not is not tried again.
std::string ReceiptModels::precision_of_program(const Receipt& receipt, const std::string& than) {
  for (const train::MixedPrecision& precision : train::all_precisions()) {
    const std::string word = train::precision_word(precision);
    if (word == than) continue;
    auto known = forward_.find(word);
    if (known == forward_.end()) {
      known = forward_.try_emplace(word).first;
      const auto keep = [&](const Models& models) {
        for (const auto& model : models) known->second[model->facts.adapter] = model->facts.forward;
      };
      if (const auto open = models_.find(word); open != models_.end()) {
        keep(open->second);
      } else if (const auto opened = open_(word); opened.ok()) {
        keep(*opened);
      }
    }
    const auto program = known->second.find(receipt.model.adapter);
    if (program != known->second.end() && program->second == receipt.model.forward) return word;
  }
  return "";
}

}  // namespace ostro::serve
