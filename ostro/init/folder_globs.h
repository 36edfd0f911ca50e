// folder_texts: the texts of a folder, and globs for data.train_urls that name them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/data/sources/source_files.h"
#include "ostro/io/files/file_system.h"

namespace ostro::init {

// The reason why a file is left out whose name a configuration, which is UTF-8, cannot hold.
inline constexpr const char* kNotUtf8 = "its name is not UTF-8";

struct FolderTexts {
  std::vector<std::string> globs;     // for data.train_urls
  std::vector<std::string> files;     // the texts that were found
  std::vector<std::string> left_out;  // "a.jpg: no text, it has a NUL byte at 12": the first ones
  int64_t left_out_count = 0;
};

// The texts in a folder and all folders below it, without files that begin with a dot. `outputs` are files
// and folders that a run writes: no glob matches a file in them. Error: the folder cannot be read.
Result<FolderTexts> folder_texts(io::FileSystem& fs, const std::string& folder,
                                 const std::vector<std::string>& outputs);

// The field of the rows of a file that holds the text: "text" where there is one, else a usual name, else the
// longest string of the first row. Errors: rows without a string.
Result<std::string> text_field(io::FileSystem& fs, const data::SourceFile& file);

}  // namespace ostro::init
