// The texts of a folder, as globs that will name them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/data/sources/source_files.h"
#include "ostro/io/files/file_system.h"

namespace ostro::init {

// What is wrong with a file that a configuration, which is UTF-8, cannot name.
inline constexpr const char* kNotUtf8 = "its name is not UTF-8";

struct FolderTexts {
  std::vector<std::string> globs;     // for data.train_urls
  std::vector<std::string> files;     // the texts that were found
  std::vector<std::string> left_out;  // "a.jpg: no text, it has a NUL byte at 12": the first ones
  int64_t left_out_count = 0;
};

// What the folder holds below it, files that begin with a dot left out. `outputs` are files and folders that
// a run writes: no glob names what lies in them. Errors: the folder cannot be read.
Result<FolderTexts> folder_texts(io::FileSystem& fs, const std::string& folder,
                                 const std::vector<std::string>& outputs);

// The field of the rows of a file that holds the text: "text" where there is one, else a usual name, else the
// longest string of the first row. Errors: rows without a string.
Result<std::string> text_field(io::FileSystem& fs, const data::SourceFile& file);

}  // namespace ostro::init
