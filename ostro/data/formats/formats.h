// make_text_formatter and others: the five row formats; each has a file of its own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/chat/chat_template.h"
#include "ostro/data/formats/row_formatter.h"
#include "ostro/data/options/options.h"

namespace ostro::data {

// The needs of all formats. `eos_id` is put at the end of rows of text and supervised data; negative: none.
struct FormatContext {
  std::string key;  // option that holds the format, for messages
  const tokenizer::Tokenizer& tokenizer;
  int64_t eos_id = -1;
};

std::unique_ptr<RowFormatter> make_text_formatter(const FormatContext& context, const TextFormat& options);
std::unique_ptr<RowFormatter> make_chat_formatter(const FormatContext& context, const ChatFormat& options,
                                                  chat::ChatTemplate chat_template);
std::unique_ptr<RowFormatter> make_supervised_formatter(const FormatContext& context,
                                                        const SupervisedFormat& options);
std::unique_ptr<RowFormatter> make_prebuilt_formatter(const FormatContext& context,
                                                      const PrebuiltFormat& options);
// Without a template, rows of messages are errors.
std::unique_ptr<RowFormatter> make_preference_formatter(const FormatContext& context,
                                                        const PreferenceFormat& options,
                                                        std::optional<chat::ChatTemplate> chat_template);

// Appends the ids of `text` to `out`. A token has weight 1 if one of its bytes lies in one of `spans`, else
// 0. `spans` are byte ranges in order that do not overlap. Special tokens written in the text become their
// ids; no other is added.
Status encode_with_spans(const tokenizer::Tokenizer& tokenizer, tokenizer::Encoder& encoder,
                         std::string_view text, const std::vector<std::pair<size_t, size_t>>& spans,
                         FormattedRow& out);

// Removes the weights if all are 1. Marks the row as skipped if all are 0.
void settle_weights(FormattedRow& row);

}  // namespace ostro::data
