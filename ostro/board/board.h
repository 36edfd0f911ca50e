// Board: the entries of a track and what became of them, as a hash chain: board.jsonl in the board's folder
// (docs/reference/formats/board.md). Beside it lie the track, its evaluation, and the chain of every entry.
//
// One thread uses it. Several processes may: what is written goes behind what the file has then, under a
// lock. Errors are those of reading and writing, and kCorrupt for a chain that does not hold.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/board/entry.h"
#include "ostro/board/track.h"
#include "ostro/experiment/journal/line_chain.h"

namespace ostro::board {

inline constexpr const char* kBoardFile = "board.jsonl";
inline constexpr const char* kTrackFile = "track.yaml";
inline constexpr const char* kLockFile = "lock";

struct CheckRequest;
struct CheckResult;

// A line about an entry, or about its outcome.
struct BoardEntry {
  std::string bundle, head;  // hash of bundle.json, run hash
  std::string line;          // "h" of the line: the board's head behind the entry
  bool is_checked = false, counts = false;
  double bits_per_byte = 0, flops = 0;
  int64_t cuts = 0, sums = 0, memory = 0;  // with which it was checked
  std::vector<std::string> refused = {};   // names of rules
  std::vector<std::string> reasons = {};   // how each is broken; empty in lines of earlier versions
  // Steps that were done again, and all steps; nothing: none was, or an earlier version checked it.
  std::optional<std::pair<int64_t, int64_t>> replayed = {};
};

// What an entry has in common with others.
struct Copies {
  std::string copy;                 // why it is a copy of an entry that counts; empty: it is none
  std::vector<std::string> shared;  // first steps that it shares with an entry before it, a line each
};

class Board {
 public:
  // Makes a board in a new folder, with copies of the track's file and of its evaluation. Errors:
  // kInvalidArgument when the folder is there.
  static Status create(io::FileSystem& fs, const std::string& folder, const Track& track);
  // Opens one. Error: kCorrupt when the track beside it is not the one of its first line.
  static Result<Board> open(io::FileSystem& fs, const std::string& folder);

  const Track& track() const { return track_; }
  const std::vector<BoardEntry>& entries() const { return entries_; }
  std::string head() const { return lines_.head(); }

  // Appends an entry, whose draw is fixed from here on, and keeps its chain. Errors: kInvalidArgument when
  // the board has this bundle; kBusy when another process writes for long.
  Status enter(io::FileSystem& fs, const Entry& entry);
  // Appends the outcome of a check, of which copies are looked for once more: of two checks that run at the
  // same time, the one that ends first decides which entry counts. Then the refusal is added to `result`,
  // too. Errors: kInvalidArgument when the entry is not on the board, has an outcome, or got one that is not
  // final (CheckResult::is_final); kBusy.
  Status record(io::FileSystem& fs, CheckResult& result, const CheckRequest& request);

  // The board's head behind the entry. Error: kInvalidArgument when it is not on the board.
  Result<std::string> head_behind(const std::string& bundle) const;
  // Compares the steps of an entry with those of the others. Only a copy of an entry that counts is a copy:
  // anybody can enter a bundle that is broken, with the chain of another.
  Result<Copies> copies_of(io::FileSystem& fs, const Entry& entry) const;

 private:
  Board(std::string folder, Track track, lab::LineChain lines)
      : folder_(std::move(folder)), track_(std::move(track)), lines_(std::move(lines)) {}
  // Locks the board against other processes, and reads what they have written.
  Result<std::unique_ptr<io::FileLock>> lock(io::FileSystem& fs);
  // Takes a line that reading a board finds.
  Status take(const lab::HashedLine& line);
  // Appends a line that take() accepts.
  Status append(const nlohmann::json& entry);
  const BoardEntry* find(const std::string& bundle) const;
  // The chain of an entry that the board keeps.
  Result<chain::Chain> kept(io::FileSystem& fs, const BoardEntry& entry) const;
  // copies_of for the chain of the entry with this bundle.
  Result<Copies> compare(io::FileSystem& fs, const std::string& bundle, const chain::Chain& chain) const;

  std::string folder_;
  Track track_;
  lab::LineChain lines_;
  std::vector<BoardEntry> entries_;
};

// The numbers of the entries, from 0, in the order of board_text.
std::vector<size_t> ranked(const Board& board);

// The entries, the best first, then those that are not checked and those that do not count. A line each.
std::string board_text(const Board& board);

}  // namespace ostro::board
