// Genesis: the first entry of a run's chain, which names everything that the run is a function of
// (docs/reference/formats/chain.md). Values, and a pure function.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "ostro/base/error.h"

namespace ostro::chain {

// The format of new chains. Chains of format 1 are read, and continued in format 1.
inline constexpr int64_t kChainFormat = 2;

// The parent of a run that began with the state of another run, and the step of that state.
struct Fork {
  std::string head;  // hash of the entry in the parent's chain that names the state
  int64_t step = 0;  // steps that the state has already seen
  bool operator==(const Fork&) const = default;
};

// The published model whose parameters a run began with.
struct Maker {
  std::string head;   // hash of the entry of the state's step in the chain of the run that made it
  std::string state;  // name of the state that was published, as that run's chain has it
  bool operator==(const Maker&) const = default;
};

// The values of GenesisEntry::numerics_options for runs whose products are not those of N6, N7 and N9: on
// integers, of matrices (numerics.md N20), of attention (N21) or of both; by the rule of tensor cores (N23).
inline constexpr const char* kIntegerProducts = R"({"block":256,"products":"int8"})";
inline constexpr const char* kIntegerAttention = R"({"attention":"int8"})";
inline constexpr const char* kIntegersEverywhere = R"({"attention":"int8","block":256,"products":"int8"})";
inline constexpr const char* kTensorRule = R"({"products":"bf16_tc16"})";
inline constexpr const char* kTensorRuleAndIntegers = R"({"attention":"int8","products":"bf16_tc16"})";

// All hashes are 64 lower-case hexadecimal digits.
struct GenesisEntry {
  std::string numerics_version;
  std::string program_hash;    // SHA-256 of the canonical program's text
  std::string config;          // the canonical config, a JSON object; written as canonical_object gives it
  std::string data_hash;       // SHA-256 of the data ledger
  std::string tokenizer_hash;  // SHA-256 of tokenizer.json's content
  std::optional<Fork> fork;
  std::optional<std::string> initial = {};  // name of the initial state, where it is not the init program's
  // SHA-256 of the log-probabilities that the initial state gives to preference pairs (reference.h).
  std::optional<std::string> reference = {};
  std::optional<std::string> origin = {};  // of `initial`, where it was imported: a JSON object (origin.h)
  int64_t format = kChainFormat;
  // The rest is empty in format 1.
  std::string numerics_options = "{}";  // what numerics.md leaves to the run: a JSON object
  // Component -> Merkle root of its rows. The only component of data.train_urls has the name "".
  std::map<std::string, std::string> data_roots = {};
  std::optional<Maker> maker = {};

  // Steps done before the first of this run.
  int64_t step() const { return fork ? fork->step : 0; }
  bool operator==(const GenesisEntry&) const = default;
};

// Checks that this program can compute the steps of a run with this genesis. Errors, which begin with `run`:
// kUnsupported for another numerics version or other numerics options; kCorrupt for a fork without the name
// of the state that it began with.
Status check_computable(const GenesisEntry& genesis, const std::string& run);

}  // namespace ostro::chain
