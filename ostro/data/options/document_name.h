// DocumentName: how people name a document of a source file: FILE:N. A pure function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ostro/base/error.h"

namespace ostro::data {

struct DocumentName {
  std::string file;    // the path in the store's ledger, or the end of that path behind a slash
  int64_t number = 0;  // in the file, from 1: the line of a .jsonl, the row of a .parquet, 1 for a text file

  std::string text() const { return file + ":" + std::to_string(number); }
  bool operator==(const DocumentName&) const = default;
};

// Reads "a/b.jsonl:7": what stands before the last colon, and the number behind it. Error: kInvalidArgument
// for any other form.
Result<DocumentName> parse_document_name(std::string_view text);

}  // namespace ostro::data
