// Board: the entries of a track and what became of them, as a hash chain: board.jsonl in the board's folder
// (docs/reference/formats/board.md). Beside it lie the track, its evaluation, and the chain of every entry.
//
// One thread uses it. Errors are those of reading and writing, and kCorrupt for a chain that does not hold.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/board/entry.h"
#include "ostro/board/track.h"
#include "ostro/lab/journal/line_chain.h"

namespace ostro::board {

inline constexpr const char* kBoardFile = "board.jsonl";
inline constexpr const char* kTrackFile = "track.yaml";

struct CheckResult;

// A line about an entry, or about its outcome.
struct BoardEntry {
  std::string bundle, head;  // hash of bundle.json, run hash
  std::string line;          // "h" of the line: the board's head behind the entry
  bool is_checked = false, counts = false;
  double bits_per_byte = 0, flops = 0;
  std::vector<std::string> refused = {};  // names of rules
  std::vector<std::string> reasons = {};  // how each is broken; empty in lines of earlier versions
  // Steps that were done again, and all steps; nothing: none was, or an earlier version checked it.
  std::optional<std::pair<int64_t, int64_t>> replayed = {};
};

// What an entry has in common with earlier ones.
struct Copies {
  std::string copy;                 // why it is a copy; empty: it is none
  std::vector<std::string> shared;  // first steps that it shares with an entry, a line each
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

  // Appends an entry, whose draw is fixed from here on, and keeps its chain. Error: kInvalidArgument when the
  // board has this bundle.
  Status enter(io::FileSystem& fs, const Entry& entry);
  // Appends the outcome of a check. Error: kInvalidArgument when the entry is not on the board, or has one.
  Status record(const CheckResult& result, const std::string& beacon);

  // The board's head behind the entry. Error: kInvalidArgument when it is not on the board.
  Result<std::string> head_behind(const std::string& bundle) const;
  // Compares the steps of an entry with those of the entries before it.
  Result<Copies> copies_of(io::FileSystem& fs, const Entry& entry) const;

 private:
  Board(std::string folder, Track track, lab::LineChain lines)
      : folder_(std::move(folder)), track_(std::move(track)), lines_(std::move(lines)) {}
  Status take(const lab::HashedLine& line);
  const BoardEntry* find(const std::string& bundle) const;

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
