// Provenance: provenance.json, which says from which states a model directory was made, and how
// (docs/reference/formats/provenance.md).
//
// It is a function of the checkpoint, the record and the options of the export alone: it holds no date, host,
// path or program. The structs are values; the functions that take a FileSystem only read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ostro/io/files/file_system.h"

namespace ostro::provenance {

inline constexpr const char* kProvenanceFile = "provenance.json";

// How the directory was made. In the file: "export", "merge", "adapter", "quantize", "convert".
enum class Made {
  kExport,    // the parameters in another type of floats, or in their own
  kMerge,     // with the adapter added to the weights
  kAdapter,   // the adapter alone
  kQuantize,  // in a type with scales
  kConvert    // in the layout of Grok-1's release, in a type without scales
};
const char* made_word(Made made);

struct FileDigest {
  int64_t bytes = 0;
  std::string sha256;  // 64 lower-case hexadecimal digits, as all hashes here
  bool operator==(const FileDigest&) const = default;
};

// The choices that decide the bytes of the files, besides the sources.
struct Weights {
  std::string layout;                    // "hf", "peft", "grok"
  std::string dtype;                     // "f32", "bf16", "f16", "int8"
  std::optional<int64_t> shard_bytes;    // hf: the most bytes of a file
  std::optional<std::string> base;       // peft: the name of the base that the adapter's configuration has
  std::optional<std::string> hash;       // merge and peft: SHA-256 of the base's parameters (hf/adapter.h)
  std::optional<std::string> tokenizer;  // hash of the tokenizer, as a genesis has it
  bool operator==(const Weights&) const = default;
};

// A state from which the directory was made.
struct Source {
  std::string role;                    // "model", "base", "adapter"
  std::string state;                   // its name
  int64_t step = 0;                    // steps done
  std::optional<std::string> head;     // hash of the chain's entry that the checkpoint's manifest names
  std::optional<std::string> genesis;  // hash of the chain's first entry; nothing: no chain was at hand
  std::optional<std::string> origin;   // of an import, or of a run that began with one: canonical JSON object
  bool operator==(const Source&) const = default;
};

struct Provenance {
  Made made = Made::kExport;
  std::string numerics;                     // version of the numerics of the first source
  std::map<std::string, FileDigest> files;  // every file that was written but this one, by path below it
  Weights weights;
  std::vector<Source> sources;  // at least one: the state whose parameters were written comes first
  bool operator==(const Provenance&) const = default;
};

// The file's text: canonical JSON and a line feed.
std::string provenance_text(const Provenance& provenance);
// Reads the file's text. Errors, which begin with `where`: kCorrupt, with the field, or for a text that is
// not in canonical form; kUnsupported for a later format.
Result<Provenance> parse_provenance(std::string_view text, const std::string& where);

// Reads provenance.json in a directory; nothing when there is none. Errors: as parse_provenance.
Result<std::optional<Provenance>> read_provenance(io::FileSystem& fs, const std::string& directory);

// Describes the checkpoint in the directory `checkpoint` as a source. `run` is the directory with the chain
// above it; empty: there is none, then an origin.json beside an import is its origin. Errors: of the
// manifest, the chain and origin.json. The manifest is not compared with the chain (audit/record/witness.h).
Result<Source> source_of(io::FileSystem& fs, const std::string& checkpoint, const std::string& run,
                         const std::string& role);

// Returns the state of an Ostro run from which an imported model was made, as the text of its origin (in a
// genesis, or origin.json) says; nothing when the origin names no such state. Error: kCorrupt when the text
// is not the JSON of an origin.
Result<std::optional<Source>> made_from(const std::string& origin, const std::string& where);
// Returns the JSON object that is the member "from" of the origin.json of a model made from this source.
std::string from_json(const Source& source);

}  // namespace ostro::provenance
