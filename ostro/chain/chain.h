// Chain: reads chain.jsonl, the hash chain of a run (numerics.md N15, docs/reference/formats/chain.md).
//
// The functions check every hash and the order of entries. Errors: kCorrupt, with the file and the line, and
// those of reading. Any thread may call them.
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
  // The step's own entry; null when the chain has none.
  const ChainLink* find_step(int64_t step) const;
  // The name in the checkpoint entry of that step; null when there is none.
  const std::string* find_checkpoint(int64_t step) const;
  // The step of the last checkpoint entry; -1 when there is none.
  int64_t newest_checkpoint() const;
  // The entry of this hash; null when there is none.
  const ChainLink* find_hash(std::string_view hash) const;
};

// Reads the whole chain. A last line without its newline is torn (the process died while writing it) and left
// out.
Result<Chain> read_chain(io::FileSystem& fs, const std::string& path);

// Reads the chain up to `step` steps done, with the amend and checkpoint entries of that step. Lines after it
// are not checked, because a power cut may have damaged what was not synced. The result may end before
// `step`; for a fork that began after `step` it is the genesis alone.
Result<Chain> read_chain_until(io::FileSystem& fs, const std::string& path, int64_t step);
// The same; a chain that does not reach as far as `step` is ErrorCode::kCorrupt.
Result<Chain> read_chain_to(io::FileSystem& fs, const std::string& path, int64_t step);

// Makes the file end where read_chain_to ends, atomically. Returns the chain that is left. Error: kIo when,
// in an object store, another process has written the file meanwhile; it then stays as that one left it.
Result<Chain> truncate_to_step(io::FileSystem& fs, const std::string& path, int64_t step);

// Checks that `entry` may follow `links`: a genesis is the first entry and no other; steps follow one by one;
// amend and checkpoint entries have the number of the step before them; a step has at most one checkpoint
// entry, in front of its amends; neither comes before the first step. Error: kInvalidArgument.
Status check_order(const std::vector<ChainLink>& links, const ChainEntry& entry);

}  // namespace ostro::chain
