// CorpusRequest: what a synthetic corpus is drawn from; corpus_row, write_corpus: its documents. The same
// request gives the same bytes on every machine, and document i is a function of the request and i alone.
// Pure functions, for any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/io/files/file_system.h"

namespace ostro::drawn {

struct CorpusRequest {
  std::string kind = "web";  // one of corpus_kinds()
  int64_t documents = 1000;
  int64_t seed = 0;
  // Shares of the documents, from 0 to 1. A duplicate has the text of an earlier document; a near duplicate
  // has one more sentence.
  double duplicates = 0, near_duplicates = 0;
  double planted = 0;  // of the others: with one of `evaluation` among its paragraphs
  double noise = 0;    // share of the words of web pages and papers that are letters without sense
  std::vector<std::string> evaluation = {};  // texts

  // Errors name the parameter, its value and what is allowed.
  Status validate() const;
};

// web, code, maths, papers, tasks
const std::vector<std::string>& corpus_kinds();

// The row of document `number`, from 0, of a request that is valid: JSON with "document", "text", of web
// pages also "html"; where it is so "copy_of" or "near_copy_of" (a document's number) and "planted" (the
// number of an evaluation text).
std::string corpus_row(const CorpusRequest& request, int64_t number);

// Writes all rows to a new file, a line each.
Status write_corpus(io::FileSystem& fs, const CorpusRequest& request, const std::string& path);

// The texts of an evaluation file: of .jsonl the field "text" of each row, of other files the paragraphs
// between empty lines.
Result<std::vector<std::string>> evaluation_texts(io::FileSystem& fs, const std::string& path);

}  // namespace ostro::drawn
