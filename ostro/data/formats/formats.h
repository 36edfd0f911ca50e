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
#include "ostro/tokenizer/model/text_ends.h"

namespace ostro::data {

// The inputs of all formats. `ends` has the tokens in front of rows of text, supervised and preference data;
// `eos_id` is the one at their end; negative: none.
struct FormatContext {
  std::string key;  // option that holds the format, for messages
  const tokenizer::Tokenizer& tokenizer;
  int64_t eos_id = -1;
  tokenizer::TextEnds ends = {};
};

// Puts the beginning of a document in front of the ids of a row, with weight 0 if they have weights, and its
// end behind them, with weight 1, by the rule of tokenizer/model/text_ends.h.
void put_ends(const tokenizer::TextEnds& ends, int64_t eos_id, FormattedRow& row);

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
