// From a row of a source to token ids: what a component's `format` says. One object for one format; what it
// gives is a function of the row alone: no clock, no randomness, nothing kept between rows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/data/options/options.h"
#include "ostro/data/sources/row_reader.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::data {

// Why a well-formed row gives no tokens. (A malformed one is an error, and data.on_bad_row decides.)
enum class RowSkip {
  kNone,
  kEmpty,   // no text, no messages, no ids
  kNoLoss,  // every loss weight would be 0: there is nothing to learn from it
};

// The fields of a row that a format reads: RowOptions::fields.
std::vector<RowField> row_fields(const RowFormat& format);

// What a row becomes.
struct FormattedRow {
  RowSkip skip = RowSkip::kNone;
  std::vector<uint32_t> ids;
  // One for each id, or none when all are 1: weights[i] is that of the loss of predicting ids[i] from what
  // stands before it.
  std::vector<float> weights;
  // What makes two rows the same: the text, the rendered conversation, the input and the output, or the ids
  // in decimal (data check decodes them). Decides what is held out; its size is what counts as bytes of text.
  std::string content;
  bool repaired = false;  // bytes that are not UTF-8 were read as U+FFFD
};

// Immutable: threads share one object, each with an Encoder of its own.
class RowFormatter {
 public:
  virtual ~RowFormatter() = default;

  // Errors say what is wrong with the row; the caller adds its place (row_place). A row with a `problem` must
  // not be given.
  virtual Result<FormattedRow> format(const Row& row, tokenizer::Encoder& encoder) const = 0;

  // Whether rows may have weights other than 1, so that the store needs an array for them.
  virtual bool has_weights() const { return false; }

  // Canonical JSON of everything that ids and weights depend on besides the tokenizer: for the ledger. A chat
  // template is in it by content.
  virtual std::string identity() const = 0;
};

// The format that the options ask for. `tokenizer_path` (data.tokenizer) is where a chat template is looked
// for when the options hold none; `tokenizer` must outlive the result. With `enforce_eos` the rows of text
// and supervised formats end with the tokenizer's end-of-text id. `key` ("data.components.web.format") begins
// errors.
Result<std::unique_ptr<RowFormatter>> make_row_formatter(io::FileSystem& fs, const RowFormat& options,
                                                         const std::string& key,
                                                         const std::string& tokenizer_path,
                                                         const tokenizer::Tokenizer& tokenizer,
                                                         bool enforce_eos);

}  // namespace ostro::data
