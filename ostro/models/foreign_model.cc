#include "ostro/models/foreign_model.h"

#include <utility>

#include "ostro/base/check.h"

namespace ostro::models {

ForeignModel::ForeignModel(std::string type, const config::Node& canonical, const config::Node& written,
                           int64_t seq_len, config::IntMap leaf_axes, config::IntMap cell_axes)
    : type_(std::move(type)),
      seq_len_(seq_len),
      leaf_axes_(std::move(leaf_axes)),
      cell_axes_(std::move(cell_axes)) {
  for (const config::Node& option : canonical.items)
    if (option.key != "type") fields_.push_back({option.key, config::Effect::kBits, {option}});
  for (const config::Node& option : written.items)
    if (option.key != "type" && canonical.find(option.key) == nullptr)
      fields_.push_back({option.key, config::Effect::kOutput, {option}});
}

void ForeignModel::visit_options(config::OptionTable& table) {
  for (Field& field : fields_)
    table.add(&field.value, field.name, field.effect, "", "of a model that this program does not have");
}

ModelFunctions ForeignModel::functions(int64_t, const nn::Precision&,
                                       const std::optional<nn::LoraSpec>&) const {
  OSTRO_CHECK(false, "the model {} has no functions here: only its stored programs can run", type_);
}

ModelFunctions ForeignModel::evaluation_functions(int64_t vocab, const nn::Precision& compute,
                                                  const std::optional<nn::LoraSpec>& lora) const {
  return functions(vocab, compute, lora);
}

Status read_value(const config::Node& node, const std::string&, ForeignModel::AnyValue* out) {
  out->node = node;
  return {};
}

config::Node write_value(const ForeignModel::AnyValue& value, config::Write) { return value.node; }

std::string type_text(const ForeignModel::AnyValue*) { return "any value"; }

}  // namespace ostro::models
