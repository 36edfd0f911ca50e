// Output: the folder of files that a step made, with the list of them (its manifest), so that a change of any
// file is found. Functions; one thread at a time for one output.
#pragma once

#include <string>
#include <vector>

#include "ostro/experiment/journal/file_hashes.h"

namespace ostro::lab {

inline constexpr size_t kOutputNameDigits = 16;  // of a fingerprint, in the name of its output's folder

// Files and folders that steps have beside their output's folder while they work: its name with one of these
// behind it. A process that was killed leaves them there.
inline constexpr const char* kBesideOutput[] = {".sort", ".pages", ".again", ".links", ".fetched", ".begun"};
Status remove_beside(io::FileSystem& fs, const std::string& folder);

// The folder of a fingerprint's output, and the file beside it that lists the files.
std::string output_folder(const std::string& lab_directory, const std::string& fingerprint);
std::string manifest_path(const std::string& lab_directory, const std::string& fingerprint);

// Whether files and folders of this name are left out of a list; null: none are.
using NamesLeftOut = bool (*)(const std::string& name);
// The files below a folder, with paths relative to it, in the order of their names. Errors: kNotFound without
// the folder; kInvalidArgument for a link, which may lead anywhere.
Result<std::vector<std::string>> files_below(io::FileSystem& fs, const std::string& folder,
                                             NamesLeftOut left_out = nullptr);

// Which files of the folder are the output. kResult: all but locks, logs, clocks and pages for people, which
// our own steps leave beside their result; known by their names. kAll: of any program's output, which may
// have files of the same names.
enum class OutputFiles { kResult, kAll };

// Lists the files of the output, with their hashes, in the manifest, and says there if it has all. Returns
// the manifest's SHA-256.
Result<std::string> write_manifest(io::FileSystem& fs, const std::string& lab_directory,
                                   const std::string& fingerprint, OutputFiles which, FileHashes& hashes);

// Checks an output against its manifest, and that against `manifest`, its hash in the journal. Returns false
// when the folder or the manifest is gone: never made, or a process was killed while it made it again.
// Errors: kCorrupt, with the file (and both hashes): it was changed, is gone, or is no part of the output.
Result<bool> check_output(io::FileSystem& fs, const std::string& lab_directory,
                          const std::string& fingerprint, const std::string& manifest, FileHashes& hashes);

}  // namespace ostro::lab
