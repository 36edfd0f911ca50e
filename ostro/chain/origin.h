// read_origin, check_origin: the files from which an imported checkpoint was made, and a check that they are
// still the same.
#pragma once

#include <optional>
#include <string>

#include "ostro/base/error.h"
#include "ostro/io/files/file_system.h"

namespace ostro::chain {

// Returns the text of origin.json in the directory, made by `ostro import`, in which the checkpoint lies:
// {"files": {name: SHA-256}, "format": "hf", "state": the checkpoint's name}, as canonical JSON. Nothing when
// there is no such file, as for a checkpoint of a run. Errors, with the file: it is damaged, or is about
// another state than the checkpoint's manifest.
Result<std::optional<std::string>> read_origin(io::FileSystem& fs, const std::string& checkpoint);

// Compares the origin in a genesis with the files that now lie at `from`, the run's trainer.initialize_from:
// an imported checkpoint, or the directory that was imported. Files that are gone are not compared. Error
// kCorrupt: a file has another hash (with its name and both hashes).
Status check_origin(io::FileSystem& fs, const std::string& origin, const std::string& from);

}  // namespace ostro::chain
