// Boards: what is written stays readable, several processes write in turn, and only what counts can be
// copied.
#include "ostro/board/board.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <limits>

#include "ostro/base/sha256.h"
#include "ostro/board/check.h"
#include "ostro/board/evaluation.h"
#include "ostro/chain/example_chain_for_test.h"
#include "ostro/io/files/faulty_file_system.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/io/files/path.h"

namespace ostro::board {
namespace {

// An entry whose chain is the documented example, with other steps where `seed` is another.
Entry entry_in(io::FileSystem& fs, const std::string& record, const std::string& name, int64_t seed) {
  check_ok(fs.make_dirs(record));
  const std::string file = io::join_path(record, chain::kChainFile);
  auto writer = chain::ChainWriter::create(fs, file, chain::genesis()).value();
  for (int64_t n = 1; n <= 2; ++n) {
    chain::StepEntry step = chain::step(n);
    if (seed != 0) step.state = std::string(32, static_cast<char>('0' + seed));
    check_ok(writer.append(step));
  }
  Entry out;
  out.folder = out.record = record;
  out.hash = sha256_hex(name);
  out.chain = chain::read_chain(fs, file).value();
  return out;
}

// The file "text" is the evaluation of this track.
Track track_in(io::FileSystem& fs, const std::string& folder) {
  check_ok(fs.write_file(io::join_path(folder, "text"), "a text"));
  Track track;
  track.name = "t", track.data = {sha256_hex(std::string_view("rows"))};
  track.tokenizer = sha256_hex(std::string_view("tokenizer"));
  track.evaluation = {{"text"}, read_files(fs, folder, {"text"}).value().sha256};
  track.flops = 1e9, track.folder = folder;
  return track;
}

// A board in a folder of its own, which goes with it.
class BoardFolder {
 public:
  BoardFolder()
      : root_(std::filesystem::temp_directory_path() / ("ostro_board_test_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
    check_ok(Board::create(fs, path("board"), track_in(fs, root_.string())));
  }
  ~BoardFolder() { std::filesystem::remove_all(root_); }

  std::string path(const std::string& name) const { return (root_ / name).string(); }
  Board open() { return Board::open(fs, path("board")).value(); }
  Entry entry(const std::string& name, int64_t seed = 0) { return entry_in(fs, path(name), name, seed); }

  io::FileSystem& fs = io::local_file_system();

 private:
  std::filesystem::path root_;
};

CheckResult outcome(const Entry& entry, std::optional<Rule> refused = {}) {
  CheckResult out;
  out.bundle = entry.hash, out.flops = 5, out.bits_per_byte = 2;
  if (refused) out.refusals.push_back({*refused, "words"});
  return out;
}

CheckRequest asked() {
  CheckRequest out;
  out.beacon = "12 31 44", out.cuts = 30, out.sums = 2, out.memory = 1 << 20;
  return out;
}

Status record(Board& board, io::FileSystem& fs, CheckResult result) {
  return board.record(fs, result, asked());
}

}  // namespace

TEST_CASE("a line that could not be read again is not written") {
  BoardFolder folder;
  const Entry one = folder.entry("one");
  Board board = folder.open();
  check_ok(board.enter(folder.fs, one));
  CheckResult bad = outcome(one, Rule::kFlops);
  bad.flops = std::numeric_limits<double>::infinity();
  const Status refused = board.record(folder.fs, bad, asked());
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message().find("\"inf\" is not a hex float") != std::string::npos);
  CHECK_FALSE(board.entries().front().is_checked);
  CHECK_FALSE(folder.open().entries().front().is_checked);
  check_ok(record(board, folder.fs, outcome(one, Rule::kFlops)));
  const Board read = folder.open();
  CHECK(read.head() == board.head());
  CHECK(read.entries().front().refused == std::vector<std::string>{"flops"});
}

TEST_CASE("an outcome says with which places and memory it was found") {
  BoardFolder folder;
  const Entry one = folder.entry("one");
  Board board = folder.open();
  check_ok(board.enter(folder.fs, one));
  check_ok(record(board, folder.fs, outcome(one)));
  const Board read = folder.open();
  const BoardEntry& entry = read.entries().front();
  CHECK(entry.counts);
  CHECK(entry.cuts == 30);
  CHECK(entry.sums == 2);
  CHECK(entry.memory == 1 << 20);
  CHECK(board_text(read).find("2.000000 bits per byte, 5 FLOPs, 30 cuts and 2 sums") != std::string::npos);
}

TEST_CASE("what another machine may find otherwise is no outcome") {
  BoardFolder folder;
  const Entry one = folder.entry("one");
  Board board = folder.open();
  check_ok(board.enter(folder.fs, one));
  for (const Rule rule : {Rule::kMemory, Rule::kCannotCheck}) {
    CHECK_FALSE(outcome(one, rule).is_final());
    CHECK_FALSE(record(board, folder.fs, outcome(one, rule)).ok());
  }
  CHECK_FALSE(folder.open().entries().front().is_checked);
  CheckResult both = outcome(one, Rule::kMemory);
  both.refusals.push_back({Rule::kData, "words"});
  check_ok(board.record(folder.fs, both, asked()));
}

TEST_CASE("what another process has written meanwhile stays, and the chain holds") {
  BoardFolder folder;
  const Entry one = folder.entry("one"), other = folder.entry("other", 1);
  Board checking = folder.open();
  check_ok(checking.enter(folder.fs, one));
  Board entering = folder.open();
  check_ok(entering.enter(folder.fs, other));
  check_ok(record(checking, folder.fs, outcome(one)));
  const Board read = folder.open();
  REQUIRE(read.entries().size() == 2);
  CHECK(read.entries()[0].counts);
  CHECK(read.head() == checking.head());
  // One that does not know of the outcome writes no second one.
  CHECK_FALSE(record(entering, folder.fs, outcome(one)).ok());
  CHECK(folder.open().head() == read.head());
}

TEST_CASE("only a copy of an entry that counts is a copy") {
  BoardFolder folder;
  const Entry broken = folder.entry("broken"), author = folder.entry("author"), thief = folder.entry("thief"),
              other = folder.entry("other", 1);
  Board board = folder.open();
  for (const Entry& entry : {broken, author, thief, other}) check_ok(board.enter(folder.fs, entry));
  const auto copies = [&](const Entry& entry) { return board.copies_of(folder.fs, entry).value(); };
  CHECK(copies(author).copy == "");
  REQUIRE(copies(author).shared.size() == 1);
  CHECK(copies(author).shared.front().find("are those of entry 1") != std::string::npos);
  CHECK(copies(author).shared.front().find("which is not checked yet") != std::string::npos);
  check_ok(record(board, folder.fs, outcome(broken, Rule::kScoreProgram)));
  CHECK(copies(author).copy == "");
  CHECK(copies(author).shared.front().find("which was refused") != std::string::npos);
  check_ok(record(board, folder.fs, outcome(author)));
  CHECK(copies(thief).copy.find("its 2 steps are those of entry 2") == 0);
  CHECK(copies(broken).copy.find("its 2 steps are those of entry 2") == 0);  // of two, one counts at most
  CHECK(copies(other).copy == "");
  CHECK(copies(other).shared.empty());
}

TEST_CASE("a power cut at any moment of entering leaves a board on which later entries can be checked") {
  int cuts = 0;
  for (int64_t at = 0;; ++at) {
    io::MemoryFileSystem memory;
    check_ok(memory.make_dirs("top"));
    check_ok(Board::create(memory, "top/board", track_in(memory, "top")));
    const Entry one = entry_in(memory, "top/one", "one", 0),
                other = entry_in(memory, "top/other", "other", 0);
    check_ok(memory.sync_tree(""));
    io::FaultyFileSystem faulty(memory);
    Board board = Board::open(faulty, "top/board").value();
    faulty.inject(io::Fault::kCrash, at);
    (void)board.enter(faulty, one).ok();
    memory.crash(static_cast<uint64_t>(at % 3));
    CAPTURE(at);
    Board read = Board::open(memory, "top/board").value();
    if (!faulty.triggered()) {
      CHECK(read.entries().size() == 1);
      break;
    }
    ++cuts;
    if (read.entries().empty()) check_ok(read.enter(memory, one));
    check_ok(read.enter(memory, other));
    const auto copies = read.copies_of(memory, other);
    REQUIRE_MESSAGE(copies.ok(), copies.error().message());
    CHECK(copies->shared.size() == 1);
  }
  CHECK(cuts > 5);
}

TEST_CASE("the track of a board includes no other file") {
  BoardFolder folder;
  const std::string path = folder.path("board/track.yaml");
  std::string text = folder.fs.read_file(path).value();
  const size_t at = text.find("track: t");
  REQUIRE(at != std::string::npos);
  check_ok(folder.fs.write_file(path, text.replace(at, 8, "track: !include /dev/zero")));
  const auto board = Board::open(folder.fs, folder.path("board"));
  REQUIRE_FALSE(board.ok());
  CHECK(board.error().message().find("the track of a board includes nothing") != std::string::npos);
}

TEST_CASE("of two copies that are checked at the same time, the first that ends counts") {
  BoardFolder folder;
  const Entry author = folder.entry("author"), thief = folder.entry("thief"),
              other = folder.entry("other", 1);
  Board board = folder.open();
  for (const Entry& entry : {author, thief, other}) check_ok(board.enter(folder.fs, entry));
  Board one = folder.open(), two = folder.open();  // as two commands have it while they check
  CHECK(one.copies_of(folder.fs, author).value().copy == "");
  CHECK(two.copies_of(folder.fs, thief).value().copy == "");
  CheckResult first = outcome(author), second = outcome(thief), third = outcome(other);
  check_ok(one.record(folder.fs, first, asked()));
  check_ok(two.record(folder.fs, second, asked()));
  check_ok(two.record(folder.fs, third, asked()));
  CHECK(first.counts());
  REQUIRE(second.refusals.size() == 1);
  CHECK(second.refusals.front().rule == Rule::kCopy);
  CHECK(second.refusals.front().text.find("its 2 steps are those of entry 1") == 0);
  CHECK(third.counts());
  const Board read = folder.open();
  CHECK(read.entries()[0].counts);
  CHECK(read.entries()[1].refused == std::vector<std::string>{"copy"});
  CHECK(read.entries()[1].bits_per_byte == 0);
  CHECK(read.entries()[2].counts);
}

}  // namespace ostro::board
