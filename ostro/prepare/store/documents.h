// DocumentReader, encode_unit: turn rows of source files into documents.
//
// DocumentReader gives the rows as units of work. encode_unit decides to which split each row of a unit
// belongs and makes its tokens and weights. Errors name the file and the line. Threads may encode units at
// the same time, each with an encoder and a parser of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/data/formats/row_formatter.h"
#include "ostro/data/ledger/ledger.h"
#include "ostro/data/rows/row_verdicts.h"
#include "ostro/data/sources/line_parser.h"
#include "ostro/data/sources/row_reader.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/io/files/file_system.h"
#include "ostro/prepare/store/encoded_unit.h"
#include "ostro/tokenizer/model/text_ends.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::prepare {

// Some consecutive rows of one file: the piece of work that one thread encodes at a time.
struct Unit {
  int64_t file = 0;  // index of the source
  std::vector<data::Row> rows;
  int64_t left_out = 0;   // rows between them that verdicts leave out
  int64_t row_bytes = 0;  // byte of the unpacked file where the rows end; 0: not known
  // Where the rows lie in the stored file (RowReader::stored_bytes()).
  int64_t stored_begin = 0, stored_end = 0;
  bool ends_file = false;
  std::string file_sha256;  // set when the unit ends the file and reading began at the file's start, else ""
};

// The verdicts on each source. They are on the training files, in order: in a store that is extended, new
// training files come behind those that are held out. Null of a source without any, whose rows are all taken.
std::vector<const data::FileVerdicts*> verdicts_by_source(const std::vector<data::SourceFile>& sources,
                                                          const data::RowVerdicts* verdicts);

// Reads the rows of all sources in order, as units. Not thread-safe. Its arguments must outlive it.
class DocumentReader {
 public:
  // Begins in source number `file`, at position `start`. Rows that `verdicts` (verdicts_by_source) leave out
  // are not given; null: all are.
  DocumentReader(io::FileSystem& fs, const std::vector<data::SourceFile>& sources,
                 const data::RowOptions& options, int64_t file, data::RowPosition start,
                 const data::RowVerdicts* verdicts = nullptr)
      : fs_(fs),
        sources_(sources),
        options_(options),
        file_(file),
        start_(start),
        verdicts_(verdicts_by_source(sources, verdicts)) {}

  // False at the end.
  Result<bool> next(Unit& unit);

 private:
  io::FileSystem& fs_;
  const std::vector<data::SourceFile>& sources_;
  const data::RowOptions& options_;
  int64_t file_;
  data::RowPosition start_;                          // where to begin in the next file
  std::vector<const data::FileVerdicts*> verdicts_;  // by source
  std::unique_ptr<data::RowReader> rows_;
};

// Whether a document is held out for validation: the first 8 bytes of its SHA-256 (big-endian), divided by
// 2^64, are below the fraction. This depends on the text alone, so equal documents are always in the same
// split.
bool is_held_out(std::string_view text, double fraction);

// What encoding needs; shared by all threads.
struct EncodeContext {
  io::FileSystem& fs;
  const std::vector<data::SourceFile>& sources;
  const data::Preprocessing& preprocessing;
  const data::RowFormatter* formatter = nullptr;  // null: rows are plain texts ...
  std::string text_key;                           // ... in this field, where rows are JSON ...
  std::string text_key_option;                    // ... and the option that sets the field: "data.text_key"
  bool skip_bad_rows = false;
  tokenizer::TextEnds ends = {};  // of plain texts: the tokens of `preprocessing`
};

// Encodes the rows of a unit. A pure function of the unit, except for the file's hash when the unit ends a
// file: it may read the file again for that, and fails when the file changed since it was listed.
Result<EncodedUnit> encode_unit(const EncodeContext& context, tokenizer::Encoder& encoder,
                                data::LineParser& parser, Unit unit);

}  // namespace ostro::prepare
