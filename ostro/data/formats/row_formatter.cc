#include "ostro/data/formats/row_formatter.h"

#include <fmt/core.h>

#include <algorithm>
#include <variant>

#include "ostro/data/formats/formats.h"
#include "ostro/tokenizer/model/token_spans.h"

namespace ostro::data {

std::vector<RowField> row_fields(const RowFormat& format) {
  using Type = RowField::Type;
  if (const auto* text = std::get_if<TextFormat>(&format)) return {{text->text_key, Type::kText, true}};
  if (const auto* pair = std::get_if<SupervisedFormat>(&format))
    return {{pair->input_field, Type::kText, true}, {pair->output_field, Type::kText, true}};
  if (const auto* ids = std::get_if<PrebuiltFormat>(&format)) {
    std::vector<RowField> out = {{ids->input_ids_key, Type::kInts, true}};
    if (ids->loss_weights_key) out.push_back({*ids->loss_weights_key, Type::kNumbers, true});
    return out;
  }
  if (const auto* pair = std::get_if<PreferenceFormat>(&format))
    return {{pair->chosen_field, Type::kJson, true},  {pair->rejected_field, Type::kJson, true},
            {pair->prompt_field, Type::kJson, false}, {"tools", Type::kJson, false},
            {"documents", Type::kJson, false},        {"chat_template_kwargs", Type::kJson, false}};
  return {{std::get<ChatFormat>(format).messages_field, Type::kJson, true},
          {"tools", Type::kJson, false},
          {"documents", Type::kJson, false},
          {"chat_template_kwargs", Type::kJson, false}};
}

bool ends_rows(const RowFormat& format) {
  return std::holds_alternative<TextFormat>(format) || std::holds_alternative<SupervisedFormat>(format) ||
         is_preference(format);
}

// Walks through tokens and spans in parallel: both are in order, so each span is looked at once. A token
// without bytes of its own (the space that a tokenizer puts before a text) counts only inside a span.
Status encode_with_spans(const tokenizer::Tokenizer& tokenizer, tokenizer::Encoder& encoder,
                         std::string_view text, const std::vector<std::pair<size_t, size_t>>& spans,
                         FormattedRow& out) {
  encoder.encode(text, {.add_special_tokens = false, .parse_special_tokens = true}, out.ids);
  ASSIGN_OR_RETURN(const std::vector<size_t> ends, tokenizer::token_ends(tokenizer, text, out.ids));
  out.weights.assign(out.ids.size(), 0.0f);
  auto span = spans.begin();
  for (size_t i = 0, begin = 0; i < ends.size(); begin = ends[i++]) {
    while (span != spans.end() && span->second <= begin) ++span;
    if (span != spans.end() && begin < span->second && ends[i] > span->first &&
        (ends[i] > begin || begin > span->first))
      out.weights[i] = 1.0f;
  }
  return {};
}

void put_ends(const tokenizer::TextEnds& ends, int64_t eos_id, FormattedRow& row) {
  const bool weighs = !row.weights.empty();
  const size_t put = ends.begin(row.ids);
  if (weighs) row.weights.insert(row.weights.begin(), put, 0.0f);
  const auto eos = static_cast<uint32_t>(eos_id);
  if (eos_id < 0 || (!row.ids.empty() && row.ids.back() == eos)) return;
  row.ids.push_back(eos);
  if (weighs) row.weights.push_back(1.0f);
}

void settle_weights(FormattedRow& row) {
  if (row.ids.empty()) {
    row.skip = RowSkip::kEmpty;
  } else if (std::all_of(row.weights.begin(), row.weights.end(), [](float w) { return w == 1.0f; })) {
    row.weights.clear();
  } else if (std::all_of(row.weights.begin(), row.weights.end(), [](float w) { return w == 0.0f; })) {
    row.skip = RowSkip::kNoLoss;
  }
}

Result<std::unique_ptr<RowFormatter>> make_row_formatter(io::FileSystem& fs, const RowFormat& options,
                                                         const std::string& key,
                                                         const std::string& tokenizer_path,
                                                         const tokenizer::Tokenizer& tokenizer,
                                                         const EndOptions& end_options) {
  FormatContext context{key, tokenizer, -1};
  if (ends_rows(options)) {
    ASSIGN_OR_RETURN(context.ends, tokenizer::text_ends(tokenizer, end_options.enforce_bos));
  }
  if (end_options.enforce_eos && ends_rows(options)) {
    if (!tokenizer.eos_id())
      return invalid_argument(
          "data.enforce_eos: the tokenizer names no end-of-text token; name one in a tokenizer_config.json "
          "beside it, or set data.enforce_eos: false");
    context.eos_id = *tokenizer.eos_id();
  }
  if (const auto* text = std::get_if<TextFormat>(&options)) return make_text_formatter(context, *text);
  if (const auto* supervised = std::get_if<SupervisedFormat>(&options))
    return make_supervised_formatter(context, *supervised);
  if (const auto* prebuilt = std::get_if<PrebuiltFormat>(&options))
    return make_prebuilt_formatter(context, *prebuilt);
  if (const auto* preference = std::get_if<PreferenceFormat>(&options)) {
    auto its_template = chat::ChatTemplate::load(fs, tokenizer_path, tokenizer, preference->chat_template);
    std::optional<chat::ChatTemplate> given;
    if (its_template.ok())
      given = std::move(*its_template);
    else if (its_template.error().code() != ErrorCode::kNotFound || preference->chat_template)
      return its_template.error().with_context(key + ".chat_template");
    return make_preference_formatter(context, *preference, std::move(given));
  }
  const auto& chat = std::get<ChatFormat>(options);
  auto chat_template = chat::ChatTemplate::load(fs, tokenizer_path, tokenizer, chat.chat_template);
  if (!chat_template.ok()) return chat_template.error().with_context(key + ".chat_template");
  return make_chat_formatter(context, chat, std::move(*chat_template));
}

}  // namespace ostro::data
