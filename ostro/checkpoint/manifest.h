// Manifest: manifest.json, the file that makes a directory a checkpoint
// (docs/reference/formats/checkpoint.md).
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
  std::string measured;  // the arrays beside parameters that the chain's fingerprint of that step covers; may
                         // be empty
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
// Reads a manifest. Checks everything that can be checked without the arrays: the checksum, the fields, every
// array's hash
// against its cells', the name. A later format version is ErrorCode::kUnsupported, damage kCorrupt.
Result<Manifest> parse_manifest(std::string_view text, const std::string& path);

}  // namespace ostro::checkpoint
