// From the bytes of a file to documents: text, which split it belongs to, tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/data/build/encoded_unit.h"
#include "ostro/data/formats/row_formatter.h"
#include "ostro/data/ledger/ledger.h"
#include "ostro/data/sources/line_parser.h"
#include "ostro/data/sources/row_reader.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::data {

// A run of rows of one file, in order: what a thread encodes at a time.
struct Unit {
  int64_t file = 0;  // index of the source
  std::vector<Row> rows;
  int64_t row_bytes = 0;  // byte of the unpacked file that they end at; 0: not known
  // Where the rows lie in the file as it is stored: RowReader::stored_bytes().
  int64_t stored_begin = 0, stored_end = 0;
  bool ends_file = false;
  std::string file_sha256;  // when it ends the file and reading began at its start, else ""
};

// Hands out the rows of sources in order. Not thread-safe; refers to its arguments.
class DocumentReader {
 public:
  // Starts at source `file`, at a position in it.
  DocumentReader(io::FileSystem& fs, const std::vector<SourceFile>& sources, const RowOptions& options,
                 int64_t file, RowPosition start)
      : fs_(fs), sources_(sources), options_(options), file_(file), start_(start) {}

  // False at the end.
  Result<bool> next(Unit& unit);

 private:
  io::FileSystem& fs_;
  const std::vector<SourceFile>& sources_;
  const RowOptions& options_;
  int64_t file_;
  RowPosition start_;  // in the file that comes next
  std::unique_ptr<RowReader> rows_;
};

// Whether a document belongs to the held-out share: its SHA-256 (first 8 bytes, big-endian, over 2^64) falls
// below the fraction. A function of the text alone, so that the same document is never on both sides.
bool is_held_out(std::string_view text, double fraction);

// What encoding needs, shared by threads.
struct EncodeContext {
  io::FileSystem& fs;
  const std::vector<SourceFile>& sources;
  const Preprocessing& preprocessing;
  const RowFormatter* formatter = nullptr;  // null: rows are texts
  std::string text_key;                     // ... in this field, where they are JSON ...
  std::string text_key_option;              // ... which this option names: "data.text_key"
  bool skip_bad_rows = false;
};

// A pure function of the unit, but for the file's hash, which reads the file once more, and fails when the
// file changed since it was listed.
Result<EncodedUnit> encode_unit(const EncodeContext& context, tokenizer::Encoder& encoder, LineParser& parser,
                                Unit unit);

}  // namespace ostro::data
