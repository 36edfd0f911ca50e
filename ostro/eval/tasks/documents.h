// read_documents, read_texts: the documents of a task file: rows of .jsonl files for tasks, texts for
// corpora.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ostro/chat/value/value.h"
#include "ostro/io/files/file_system.h"

namespace ostro::eval {

struct Document {
  std::string place;          // "arc.jsonl:12"
  chat::jinja::Value fields;  // a dict
};

// The rows of the files, in the order of their paths, at most `limit`. `key` begins errors
// ("tasks.arc.files"). Errors: files that are not there or not .jsonl; rows that are not JSON objects or not
// UTF-8; no row at all.
Result<std::vector<Document>> read_documents(io::FileSystem& fs, const std::vector<std::string>& files,
                                             std::optional<int64_t> limit, const std::string& key);

// The texts of a corpus: whole text files, or the field `text_key` of rows. Empty ones are left out; none at
// all is an error.
Result<std::vector<std::string>> read_texts(io::FileSystem& fs, const std::vector<std::string>& files,
                                            const std::string& text_key, std::optional<int64_t> limit,
                                            const std::string& key);

}  // namespace ostro::eval
