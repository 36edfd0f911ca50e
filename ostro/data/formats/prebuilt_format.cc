// Format prebuilt: token ids made by another program, with or without loss weights.
#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "ostro/data/formats/formats.h"
#include "ostro/data/sources/row_values.h"

namespace ostro::data {
namespace {

using chat::jinja::Value;

class PrebuiltFormatter : public RowFormatter {
 public:
  PrebuiltFormatter(const FormatContext& context, const PrebuiltFormat& options)
      : context_(context), options_(options) {}

  Result<FormattedRow> format(const Row& row, tokenizer::Encoder&) const override {
    ASSIGN_OR_RETURN(FormattedRow out, read(row));
    settle_weights(out);
    return out;
  }

  bool has_weights() const override { return options_.loss_weights_key.has_value(); }

  std::string identity() const override {
    nlohmann::json out{
        {"type", "prebuilt"}, {"input_ids_key", options_.input_ids_key}, {"loss_weights_key", nullptr}};
    if (options_.loss_weights_key) out["loss_weights_key"] = *options_.loss_weights_key;
    return out.dump();
  }

 private:
  Result<FormattedRow> read(const Row& row) const {
    FormattedRow out;
    ASSIGN_OR_RETURN(
        const Value object,
        row_object(row, "prebuilt", {options_.input_ids_key, options_.loss_weights_key.value_or("")},
                   out.repaired));
    ASSIGN_OR_RETURN(const Value ids, list(object, options_.input_ids_key, "input_ids_key"));
    const int64_t vocab = context_.tokenizer.vocab_size();
    for (const Value& id : ids.as_sequence().items) {
      const size_t i = out.ids.size();
      if (!id.is_int())
        return invalid_argument(
            fmt::format("\"{}\"[{}] is a {}, not a token id", options_.input_ids_key, i, id.type_name()));
      if (id.as_int() < 0 || id.as_int() >= vocab)
        return invalid_argument(
            fmt::format("\"{}\"[{}] is {}, and the tokenizer's ids are 0 to {}: the ids were made with "
                        "another tokenizer than data.tokenizer",
                        options_.input_ids_key, i, id.as_int(), vocab - 1));
      out.ids.push_back(static_cast<uint32_t>(id.as_int()));
      if (i > 0) out.content += ' ';
      out.content += std::to_string(id.as_int());
    }
    if (options_.loss_weights_key) {
      ASSIGN_OR_RETURN(const Value weights, list(object, *options_.loss_weights_key, "loss_weights_key"));
      for (const Value& weight : weights.as_sequence().items) {
        const double w = weight.is_int() || weight.is_float() ? weight.as_double() : std::nan("");
        const auto as_float = static_cast<float>(w);
        if (!(w >= 0) || !std::isfinite(as_float))
          return invalid_argument(fmt::format("\"{}\"[{}] is not a finite number of 0 or more",
                                              *options_.loss_weights_key, out.weights.size()));
        out.weights.push_back(as_float);
      }
      if (out.weights.size() != out.ids.size())
        return invalid_argument(fmt::format("\"{}\" has {} numbers for the {} ids of \"{}\"",
                                            *options_.loss_weights_key, out.weights.size(), out.ids.size(),
                                            options_.input_ids_key));
    }
    if (out.ids.empty()) out.skip = RowSkip::kEmpty;
    return out;
  }

  Result<Value> list(const Value& object, const std::string& name, const char* option) const {
    ASSIGN_OR_RETURN(Value value, row_field(object, name, context_.key + "." + option));
    if (!value.is_sequence())
      return invalid_argument(fmt::format("\"{}\" is a {}, not a list", name, value.type_name()));
    return value;
  }

  FormatContext context_;
  PrebuiltFormat options_;
};

}  // namespace

std::unique_ptr<RowFormatter> make_prebuilt_formatter(const FormatContext& context,
                                                      const PrebuiltFormat& options) {
  return std::make_unique<PrebuiltFormatter>(context, options);
}

}  // namespace ostro::data
