// Manifest: manifest.json, the file that makes a directory a checkpoint
// (docs/reference/formats/checkpoint.md). A value; the functions are pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ostro/checkpoint/tensor.h"

namespace ostro::checkpoint {

inline constexpr int64_t kFormatVersion = 1;

// Permanent checkpoints stay; temporary ones are removed when newer ones exist.
enum class Kind { kTemporary, kPermanent };

// The caller's description of a state.
struct Info {
  int64_t step = 0;
  Kind kind = Kind::kTemporary;
  std::string numerics_version;
  std::string config;      // the resolved config's text
  std::string chain_head;  // hash of the chain's last entry at that step, in hexadecimal
  // the arrays beside parameters that the chain's fingerprint of that step covers; may be empty
  std::string measured;
  bool operator==(const Info&) const = default;
};

// The content of a checkpoint without the arrays' bytes.
struct Manifest {
  Info info;
  std::vector<TensorSpec> tensors;
  std::vector<CellHashes> cells;  // of each tensor
  std::string name;               // of the state
  bool operator==(const Manifest&) const = default;
};

// The file's text. Its last field is the SHA-256 of everything before it.
std::string manifest_json(const Manifest& manifest);
// Reads the text of the file at `path`, which errors name. Checks everything that can be checked without the
// arrays: the checksum, the fields, the hash of every array against those of its cells, and the name of the
// state. Errors: kUnsupported for a later format version, kCorrupt for damage.
Result<Manifest> parse_manifest(std::string_view text, const std::string& path);

}  // namespace ostro::checkpoint
