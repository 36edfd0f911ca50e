// Format text: a string. Every token is a target.
#include <nlohmann/json.hpp>

#include "ostro/data/formats/formats.h"
#include "ostro/data/sources/row_values.h"

namespace ostro::data {
namespace {

class TextFormatter : public RowFormatter {
 public:
  TextFormatter(const FormatContext& context, const TextFormat& options)
      : context_(context), options_(options) {}

  Result<FormattedRow> format(const Row& row, tokenizer::Encoder& encoder) const override {
    FormattedRow out;
    if (row.is_text) {
      out.content = as_utf8(row.bytes, out.repaired);
    } else {
      ASSIGN_OR_RETURN(const auto object, row_object(row, "text", {options_.text_key}, out.repaired));
      ASSIGN_OR_RETURN(out.content, row_text(object, options_.text_key, context_.key + ".text_key"));
    }
    if (out.content.empty()) {
      out.skip = RowSkip::kEmpty;
      return out;
    }
    encoder.encode(out.content, {.add_special_tokens = false, .parse_special_tokens = true}, out.ids);
    put_ends(context_.ends, context_.eos_id, out);
    settle_weights(out);
    return out;
  }

  std::string identity() const override {
    return nlohmann::json{{"type", "text"}, {"text_key", options_.text_key}, {"eos_id", context_.eos_id}}
        .dump();
  }

 private:
  FormatContext context_;
  TextFormat options_;
};

}  // namespace

std::unique_ptr<RowFormatter> make_text_formatter(const FormatContext& context, const TextFormat& options) {
  return std::make_unique<TextFormatter>(context, options);
}

}  // namespace ostro::data
