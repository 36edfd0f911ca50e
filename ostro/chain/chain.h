// Chain: reads chain.jsonl, the hash chain of a run (numerics.md N15, docs/reference/formats/chain.md).
//
// Every hash and the order of entries are checked. kCorrupt names the file and the line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/chain/chain_entry.h"
#include "ostro/io/files/file_system.h"

namespace ostro::chain {

inline constexpr const char* kChainFile = "chain.jsonl";

// A chain whose every hash was checked: one genesis, then steps by one upwards, each followed by the amend
// and checkpoint entries that bear its number. A value.
struct Chain {
  std::vector<ChainLink> links;
  int64_t bytes = 0;       // of the lines in `links`
  int64_t torn_bytes = 0;  // of an unfinished last line, which is not in `links`

  const GenesisEntry& genesis() const;
  // The run hash: the last entry's h.
  const std::string& head() const { return links.back().hash; }
  // Steps done at the end: the fork's step (or 0) when there is no step entry yet.
  int64_t last_step() const { return entry_step(links.back().entry); }
  // Of the step's own entry; null when the chain has none.
  const ChainLink* find_step(int64_t step) const;
  // The name in the checkpoint entry of that step; null when there is none.
  const std::string* find_checkpoint(int64_t step) const;
  // The step of the last checkpoint entry; -1 when there is none.
  int64_t newest_checkpoint() const;
  // The entry of this hash; null when there is none.
  const ChainLink* find_hash(std::string_view hash) const;
};

// The whole chain. A last line without its newline is torn (the process died while writing it) and left out;
// anything else that is wrong is ErrorCode::kCorrupt and names the line.
Result<Chain> read_chain(io::FileSystem& fs, const std::string& path);

// The chain up to `step` steps done, with the amend and checkpoint entries of that step; what follows is not
// looked at (a power cut may have damaged what was not synced). It may end before `step`, and of a fork that
// began after it there is only the genesis.
Result<Chain> read_chain_until(io::FileSystem& fs, const std::string& path, int64_t step);
// The same; a chain that does not reach as far as `step` is ErrorCode::kCorrupt.
Result<Chain> read_chain_to(io::FileSystem& fs, const std::string& path, int64_t step);

// Makes the file end where read_chain_to ends, atomically. Gives the chain that is left.
Result<Chain> truncate_to_step(io::FileSystem& fs, const std::string& path, int64_t step);

// Whether `entry` may follow in the chain: a genesis first and nowhere else, steps one by one, amend and
// checkpoint entries of the step before them, one checkpoint entry a step and in front of the step's amends,
// no amend before the first step. ErrorCode::kInvalidArgument.
Status check_order(const std::vector<ChainLink>& links, const ChainEntry& entry);

}  // namespace ostro::chain
