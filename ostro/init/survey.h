// survey: reads the texts that a run will train on, and counts them. The first half of `ostro init`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/data/sources/source_files.h"
#include "ostro/io/files/file_system.h"

namespace ostro::init {

// The facts about a document from which choose_hold_out chooses.
struct DocumentSize {
  double place = 0;  // in [0, 1): it is held out by a fraction above this (prepare::is_held_out)
  int64_t bytes = 0;
};

struct Survey {
  std::vector<std::string> urls;        // entries for data.train_urls ...
  std::vector<data::SourceFile> files;  // ... which name these
  int64_t stored_bytes = 0;             // of the files
  std::string text_key = "text";        // of rows
  std::vector<std::string> left_out;    // files of a folder that are not texts, and why: the first ones
  int64_t left_out_count = 0;

  // True if all of the text was read; else the numbers are estimates from a sample.
  bool is_whole = false;
  int64_t documents = 0, text_bytes = 0;
  std::vector<DocumentSize> sizes;  // by document; only when all was read
  std::vector<std::string> sample;  // documents, or parts of them, about 1 MiB

  bool has_rows() const;  // some file holds a document a row
  bool is_all_text_files() const;
};

struct SurveyPlaces {
  std::vector<std::string> places;  // files, folders and globs, as typed
  // Files and folders that the run will write; they are not texts.
  std::vector<std::string> outputs;
};

// Texts of more bytes than this are estimated from a sample.
inline constexpr int64_t kReadWhole = int64_t{64} << 20;

// Reads the places. A folder gives globs by the extensions of its texts, so that files which training writes
// beside the texts are not read as texts later. Errors: a place that does not exist or cannot be read; no
// place with text (the error names the files there); a named file that is not a text; rows that cannot be
// read.
Result<Survey> survey(io::FileSystem& fs, const SurveyPlaces& places);

}  // namespace ostro::init
