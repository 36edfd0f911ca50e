// RowFormatter: turns a row of a source into token ids, by a component's `format`. The result depends on the
// row alone: not on a clock, randomness or other rows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/data/options/options.h"
#include "ostro/data/sources/row_reader.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::data {

// The reason why a well-formed row gives no tokens. (A malformed row is an error, which data.on_bad_row may
// skip.)
enum class RowSkip {
  kNone,
  kEmpty,   // no text, no messages, no ids
  kNoLoss,  // every loss weight would be 0, so there is nothing to learn
};

// The fields that a format reads, for RowOptions::fields.
std::vector<RowField> row_fields(const RowFormat& format);

// True if texts of this format get the tokenizer's beginning and end (data.enforce_bos, data.enforce_eos).
// Conversations begin and end as their template says, and so do rows of ids.
bool ends_rows(const RowFormat& format);

// The tokens of a row. A preference row has two sequences, the chosen one and then the rejected one, and its
// `weights` are the parts that its tokens belong to (pair_parts.h).
struct FormattedRow {
  RowSkip skip = RowSkip::kNone;
  std::vector<uint32_t> ids;
  // weights[i] is the loss weight of predicting ids[i] from the ids before it. Empty when all are 1.
  std::vector<float> weights;
  // Two rows with equal content count as the same document. It is the text, the rendered conversation, input
  // and output, or the ids in decimal (data check decodes them). It decides whether the row is held out, and
  // its size is counted as bytes of text.
  std::string content;
  bool repaired = false;  // bytes that are not valid UTF-8 became U+FFFD
};

// Immutable: threads share one object, and each uses an Encoder of its own.
class RowFormatter {
 public:
  virtual ~RowFormatter() = default;

  // Errors say what is wrong with the row; the caller adds its place (row_place). A row with a `problem` must
  // not be passed.
  virtual Result<FormattedRow> format(const Row& row, tokenizer::Encoder& encoder) const = 0;

  // True if rows may have weights other than 1. The store then has an array for them.
  virtual bool has_weights() const { return false; }

  // Canonical JSON, for the ledger, of everything besides the tokenizer that ids and weights depend on. It
  // holds a chat template by its content.
  virtual std::string identity() const = 0;
};

// data.enforce_bos and data.enforce_eos.
struct EndOptions {
  std::optional<bool> enforce_bos = {};
  bool enforce_eos = true;
};

// Makes the formatter for these options. A chat template that the options do not hold is read from beside
// `tokenizer_path` (data.tokenizer); `tokenizer` must outlive the result. Rows of the text, supervised and
// preference formats begin and end as tokenizer/model/text_ends.h says. `key`
// ("data.components.web.format") stands at the beginning of errors.
Result<std::unique_ptr<RowFormatter>> make_row_formatter(io::FileSystem& fs, const RowFormat& options,
                                                         const std::string& key,
                                                         const std::string& tokenizer_path,
                                                         const tokenizer::Tokenizer& tokenizer,
                                                         const EndOptions& end_options);

}  // namespace ostro::data
