// find_sources: finds the files that a data set is made of, and puts them in order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/data/options/options.h"
#include "ostro/io/files/file_system.h"

namespace ostro::data {

enum class Split { kTrain, kValidation };
inline constexpr Split kSplits[] = {Split::kTrain, Split::kValidation};

// "train" or "validation"; these are also the folder names in a store.
const char* split_name(Split split);

enum class FileFormat {
  kText,     // the whole file is one document
  kJsonl,    // .jsonl, .ndjson, .json: every line is an object that holds a document; .gz, .zst are unpacked
  kParquet,  // every row is a document
};
// "text", "jsonl", "parquet"
const char* file_format_name(FileFormat format);
std::optional<FileFormat> parse_file_format(std::string_view name);

struct SourceFile {
  std::string path;  // as the glob gave it
  FileFormat format = FileFormat::kText;
  Split list = Split::kTrain;  // which list names it: data.train_urls or data.validation_urls
  int64_t size = 0;            // bytes
  int64_t mtime_ns = 0;
  bool operator==(const SourceFile&) const = default;
};

// The option names of the two lists, for messages.
struct SourceKeys {
  std::string train = "data.train_urls", validation = "data.validation_urls";
  // Of a component; `key` is Component::key.
  static SourceKeys of(const std::string& key) { return {key + ".train_urls", key + ".validation_urls"}; }
};

// The places that are searched for texts.
struct SourcePlaces {
  std::vector<std::string> train, validation;  // files, directories, globs
  std::vector<std::string> stores = {};        // token stores; their files are not texts
  std::string stores_folder = {};              // data.cache_dir, see source_places
};
// The places of a component's texts. Files inside token stores of this configuration are left out, so that a
// store inside the corpus is not read as text. Files in data.cache_dir are left out, too, because stores of
// other configurations may be there, unless an entry names a place inside that folder.
SourcePlaces source_places(const DataOptions& options, const Component& component);

struct FoundSources {
  std::vector<SourceFile> files;
  // The first entry that matches no file ("data.train_urls: b/*.txt"). Empty when all match.
  std::string missing;

  // The files; kNotFound when an entry matches none.
  Result<std::vector<SourceFile>> all() const;
};

// The files of places.train, then those of places.validation, each file once. Their order is that of the
// entries in the lists; within one glob or directory it is by path, bytewise. So moving the corpus to another
// folder keeps the order. Errors: a file in both lists; a file whose name says that it is neither rows nor
// text; an entry that lies in the folder of stores and matches only files of stores; kIo for a broken
// symbolic link.
Result<FoundSources> find_sources(io::FileSystem& fs, const SourcePlaces& places,
                                  const SourceKeys& keys = {});

}  // namespace ostro::data
