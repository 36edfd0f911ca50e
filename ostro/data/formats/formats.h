// The four formats, one file each.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ostro/chat/chat_template.h"
#include "ostro/data/formats/row_formatter.h"
#include "ostro/data/options/options.h"

namespace ostro::data {

// What the formats share. `eos_id` ends rows of text and supervised data; negative: nothing does.
struct FormatContext {
  std::string key;  // of the option that holds the format, for messages
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

// Appends the ids of `text`, with a weight of 1 for every token that has a byte in one of `spans` (in order,
// apart) and 0 for the others. Special tokens in the text become their ids; none is added.
Status encode_with_spans(const tokenizer::Tokenizer& tokenizer, tokenizer::Encoder& encoder,
                         std::string_view text, const std::vector<std::pair<size_t, size_t>>& spans,
                         FormattedRow& out);

// Drops weights that are all 1; a row whose weights are all 0 is skipped.
void settle_weights(FormattedRow& row);

}  // namespace ostro::data
