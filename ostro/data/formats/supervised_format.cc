// Format supervised: an input and an output. The output is the target.
#include <nlohmann/json.hpp>

#include "ostro/data/formats/formats.h"
#include "ostro/data/sources/row_values.h"

namespace ostro::data {
namespace {

class SupervisedFormatter : public RowFormatter {
 public:
  SupervisedFormatter(const FormatContext& context, const SupervisedFormat& options)
      : context_(context), options_(options) {}

  // Input and output are tokenized as one text. A token with characters of both counts as output.
  Result<FormattedRow> format(const Row& row, tokenizer::Encoder& encoder) const override {
    size_t input = 0;
    ASSIGN_OR_RETURN(FormattedRow out, joined(row, input));
    if (out.skip != RowSkip::kNone) return out;
    if (options_.mask_inputs) {
      RETURN_IF_ERROR(
          encode_with_spans(context_.tokenizer, encoder, out.content, {{input, out.content.size()}}, out));
    } else {
      encoder.encode(out.content, {.add_special_tokens = false, .parse_special_tokens = true}, out.ids);
    }
    put_ends(context_.ends, context_.eos_id, out);
    settle_weights(out);
    return out;
  }

  bool has_weights() const override { return options_.mask_inputs; }

  std::string identity() const override {
    nlohmann::json out{{"type", "supervised"},
                       {"input_field", options_.input_field},
                       {"output_field", options_.output_field},
                       {"separate_with", nullptr},
                       {"mask_inputs", options_.mask_inputs},
                       {"eos_id", context_.eos_id}};
    if (options_.separate_with) out["separate_with"] = *options_.separate_with;
    return out.dump();
  }

 private:
  // Joins input, separator and output. `input` is set to the byte where the output begins. A row without an
  // output is empty.
  Result<FormattedRow> joined(const Row& row, size_t& input) const {
    FormattedRow out;
    ASSIGN_OR_RETURN(
        const auto object,
        row_object(row, "supervised", {options_.input_field, options_.output_field}, out.repaired));
    ASSIGN_OR_RETURN(out.content, row_text(object, options_.input_field, context_.key + ".input_field"));
    ASSIGN_OR_RETURN(const std::string output,
                     row_text(object, options_.output_field, context_.key + ".output_field"));
    if (options_.separate_with) out.content += *options_.separate_with;
    input = out.content.size();
    out.content += output;
    if (output.empty()) out.skip = RowSkip::kEmpty;
    return out;
  }

  FormatContext context_;
  SupervisedFormat options_;
};

}  // namespace

std::unique_ptr<RowFormatter> make_supervised_formatter(const FormatContext& context,
                                                        const SupervisedFormat& options) {
  return std::make_unique<SupervisedFormatter>(context, options);
}

}  // namespace ostro::data
