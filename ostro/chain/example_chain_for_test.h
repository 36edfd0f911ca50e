// documented_example, write_example, ExampleRun: the chain of docs/reference/formats/chain.md, its entries,
// and chains of any entries, for tests.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "ostro/base/sha256.h"
#include "ostro/chain/chain.h"
#include "ostro/chain/chain_writer.h"
#include "ostro/chain/leaves.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/memory_file_system.h"

namespace ostro::chain {

inline const std::string kPath = "run/chain.jsonl";

inline GenesisEntry genesis() {
  GenesisEntry entry = {
      "1",
      sha256_hex(std::string_view("program")),
      R"({"trainer": {"seed": 0, "num_train_steps": 2}, "optimizer": {"learning_rate": 0.001}})",
      sha256_hex(std::string_view("data")),
      sha256_hex(std::string_view("tokenizer")),
      std::nullopt};
  entry.data_roots = {{"", sha256_hex(std::string_view("rows"))}};
  return entry;
}

// The same run as one of format 1 has it.
inline GenesisEntry genesis_1() {
  GenesisEntry entry = genesis();
  entry.format = 1;
  entry.data_roots = {};
  return entry;
}

inline std::string three_leaves() {
  std::vector<LeafRecord> leaves;
  for (int64_t i = 0; i < 3; ++i) leaves.push_back({i, std::ldexp(1.0, static_cast<int>(i)), {}});
  return leaves_root(leaves);
}

inline StepEntry step(int64_t n) {
  if (n == 1)
    return {1,
            static_cast<double>(8.324f),
            1024,
            "00112233445566778899aabbccddeeff",
            "ffeeddccbbaa99887766554433221100",
            three_leaves()};
  return {n,
          8.0 + 0.125 * static_cast<double>(n),
          1024,
          "0123456789abcdef0123456789abcdef",
          "fedcba9876543210fedcba9876543210",
          three_leaves()};
}

inline CheckpointEntry checkpoint(int64_t n) { return {n, sha256_hex(std::string_view("state"))}; }

// The jsonl block of docs/reference/formats/chain.md.
inline std::string documented_example() {
  std::ifstream file(OSTRO_SOURCE_DIR "/docs/reference/formats/chain.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::string open = "```jsonl\n", close = "```";
  const size_t begin = text.find(open);
  REQUIRE(begin != std::string::npos);
  return text.substr(begin + open.size(), text.find(close, begin + open.size()) - begin - open.size());
}

// genesis, steps 1 and 2 with 8.25, checkpoint of 2: the documented example.
inline void write_example(io::FileSystem& fs, const GenesisEntry& first = genesis()) {
  auto writer = ChainWriter::create(fs, kPath, first);
  REQUIRE_MESSAGE(writer.ok(), writer.error().message());
  check_ok(writer->append(step(1)));
  check_ok(writer->append(step(2)));
  check_ok(writer->append(checkpoint(2)));
}

struct ExampleRun {
  ExampleRun() { check_ok(fs.make_dirs("run")); }
  std::string text() { return *fs.read_file(kPath); }
  void set_text(const std::string& text) { check_ok(io::write_file_atomically(fs, kPath, text)); }
  io::MemoryFileSystem fs;
};

inline std::string forged(const std::vector<std::string>& entries) {
  std::string hash, text;
  for (const std::string& json : entries) {
    hash = entry_hash(hash, json);
    text += chain_line(json, hash) + "\n";
  }
  return text;
}

}  // namespace ostro::chain
