// What a run directory or a checkpoint holds, for people (text) or tools (JSON). Reads, never writes.
#pragma once

#include <string>

#include "ostro/io/files/file_system.h"

namespace ostro::train {

// The run hash of a run directory: its chain's head, after checking the whole chain.
Result<std::string> run_hash(io::FileSystem& fs, const std::string& run_directory);

// A run directory (it holds chain.jsonl): record, chain, checkpoints. A checkpoint (it holds manifest.json):
// step, names, tree with shapes, axis names, counts and hashes as the manifest has them; the manifest is
// checked, the arrays are not read. Anything else is ErrorCode::kNotFound. The text ends with a newline.
Result<std::string> inspect(io::FileSystem& fs, const std::string& path, bool json);

}  // namespace ostro::train
