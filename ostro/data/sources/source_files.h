// Which files a data set is made of, and in which order.
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

// "train", "validation": also the names of their folders in a store.
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
  std::string path;  // as globbing found it
  FileFormat format = FileFormat::kText;
  Split list = Split::kTrain;  // data.train_urls or data.validation_urls
  int64_t size = 0;            // bytes
  int64_t mtime_ns = 0;
  bool operator==(const SourceFile&) const = default;
};

// What the lists of sources are called in messages.
struct SourceKeys {
  std::string train = "data.train_urls", validation = "data.validation_urls";
  // Those of a component, by Component::key.
  static SourceKeys of(const std::string& key) { return {key + ".train_urls", key + ".validation_urls"}; }
};

// Where texts are looked for.
struct SourcePlaces {
  std::vector<std::string> train, validation;  // files, directories, globs
  std::vector<std::string> stores = {};        // folders whose files are left out
  std::string stores_folder = {};              // left out, too, by all entries that do not lie in it
};
// Those of a component. No file in a token store of the configuration is a text, so that one inside the
// corpus does not feed on itself or on another; nor is one elsewhere in data.cache_dir, where stores of
// other configurations may be, but for entries that name a place in there.
SourcePlaces source_places(const DataOptions& options, const Component& component);

struct FoundSources {
  std::vector<SourceFile> files;
  // The first entry that names no file ("data.train_urls: b/*.txt"); empty: all name some.
  std::string missing;

  // The files; kNotFound when an entry names none.
  Result<std::vector<SourceFile>> all() const;
};

// The files of places.train, then of places.validation: in the order of the lists; within one glob or
// directory by path, bytewise; each file once. Moving the corpus to another folder does not change the order.
// Errors: a file in both lists, one whose name says that it is neither rows nor text, an entry that names
// files of stores only and lies in their folder, kIo for a link to nothing.
Result<FoundSources> find_sources(io::FileSystem& fs, const SourcePlaces& places,
                                  const SourceKeys& keys = {});

// SHA-256 of a file's bytes, 64 hexadecimal digits, read in pieces.
Result<std::string> file_sha256(io::FileSystem& fs, const std::string& path);

}  // namespace ostro::data
