// Origin: origin.json, which names what an import was made from (docs/reference/formats/provenance.md). Every
// import writes it by write_origin; the genesis of a run contains it (chain/origin.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "ostro/provenance/provenance.h"

namespace ostro::convert {

struct Origin {
  std::string format;                                 // "hf", "peft", "grok", "upcycle"
  std::map<std::string, std::string> files;           // files of another program: name -> SHA-256
  std::string state;                                  // name of the state that was made
  std::optional<provenance::Source> from;             // the state of Ostro from which it was made
  std::optional<std::pair<int64_t, int64_t>> layers;  // grok: the first, and the one after the last
};

// When `directory`, from which an import is made, has a provenance.json: adds the hash of that file and the
// state that it names to `origin`. `below` stands in front of the names of origin.files in provenance.json.
// Error kCorrupt: provenance.json lists other hashes for these files, so it does not belong to them, or it
// cannot be read.
Status take_provenance(io::FileSystem& fs, const std::string& directory, Origin& origin,
                       const std::string& below = "");

// Writes checkpoint::kOriginFile into the directory of an import.
Status write_origin(io::FileSystem& fs, const std::string& directory, const Origin& origin);

}  // namespace ostro::convert
