// ChainEntry, ChainLink: the entries of a run's hash chain and their canonical text
// (docs/reference/formats/chain.md). Values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "ostro/base/error.h"
#include "ostro/chain/genesis.h"

namespace ostro::chain {

// One finished step. Steps count from 1; the first of a fork is fork.step + 1.
struct StepEntry {
  int64_t step = 0;
  double loss = 0;     // finite
  int64_t tokens = 0;  // that had a loss in this step
  std::string batch;   // fingerprint of the batch, hexadecimal
  std::string state;   // fingerprint of parameters, loss, gradient norm and token count, hexadecimal
  std::string leaves;  // Merkle root over the leaves (merkle.h)
  bool operator==(const StepEntry&) const = default;
};

// A change of the config or the program after `step` steps.
struct AmendEntry {
  int64_t step = 0;
  std::string difference;  // a JSON object: what changed, from what, to what
  bool operator==(const AmendEntry&) const = default;
};

// The name (SHA-256) of the state after `step` steps. Only checkpoints that are due by step, and the last
// one, have an entry.
struct CheckpointEntry {
  int64_t step = 0;
  std::string name;
  bool operator==(const CheckpointEntry&) const = default;
};

using ChainEntry = std::variant<GenesisEntry, StepEntry, AmendEntry, CheckpointEntry>;

// Returns the canonical JSON of an entry without its hash. Error: kInvalidArgument when a hash is not
// lower-case hexadecimal, the loss is not finite, or config or difference is no JSON object.
Result<std::string> entry_json(const ChainEntry& entry);

// Returns an entry's "h": the SHA-256 of the hash of the entry before it (64 digits; "" for the first entry)
// followed by the entry's text.
std::string entry_hash(std::string_view previous, std::string_view json);

// The line of the file, without its newline: the canonical JSON of the entry with "h".
std::string chain_line(std::string_view json, std::string_view hash);

struct ChainLink {
  ChainEntry entry;
  std::string hash;
  bool operator==(const ChainLink&) const = default;
};

// Reads a line and checks its hash, with `previous`, the hash of the line before. `where`
// ("runs/a/chain.jsonl: line 3") begins errors, which are kCorrupt.
Result<ChainLink> parse_chain_line(std::string_view line, std::string_view previous,
                                   const std::string& where);

// The number of steps done when the entry was written: its step, or the fork's for the genesis.
int64_t entry_step(const ChainEntry& entry);

}  // namespace ostro::chain
