// uses_text, uses_json: where a document is used, for `ostro data find`. Pure functions.
#pragma once

#include <span>
#include <string>

#include "ostro/batches/loader/document_uses.h"

namespace ostro::corpus_check {

// What was looked for: `name` as the user gave it, in the steps [first, end) of the components of `stores`.
struct UsesQuestion {
  const batches::DataSet& stores;
  std::string name;
  int64_t first = 0, end = 0;
};

// For people: each row that the document became, its uses, and why there are none.
std::string uses_text(const UsesQuestion& question, std::span<const batches::UsedRow> rows);
// One line of JSON, which docs/guide/data.md describes.
std::string uses_json(const UsesQuestion& question, std::span<const batches::UsedRow> rows);

}  // namespace ostro::corpus_check
