// read_origin, check_origin: where the parameters of an imported checkpoint are from, and whether its files
// are still the same.
#pragma once

#include <optional>
#include <string>

#include "ostro/base/error.h"
#include "ostro/io/files/file_system.h"

namespace ostro::chain {

// Of a checkpoint that is no run's but lies in a directory made by `ostro import`: the text of origin.json
// there, {"files": {name: SHA-256}, "format": "hf", "state": the checkpoint's name}, as canonical JSON.
// Nothing where there is no such file. Errors name the file: damaged, or of another state than the
// checkpoint's manifest.
Result<std::optional<std::string>> read_origin(io::FileSystem& fs, const std::string& checkpoint);

// Compares a genesis's origin with what lies now at `from`, the run's trainer.initialize_from: an imported
// checkpoint or the directory itself. Error kCorrupt: a file has another hash (names it and both). What is
// not there any more is not compared.
Status check_origin(io::FileSystem& fs, const std::string& origin, const std::string& from);

}  // namespace ostro::chain
