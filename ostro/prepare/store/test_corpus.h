// write_corpus, test_tokenizer and others: a small corpus and tokenizer in memory, for this room's tests.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "ostro/base/sha256.h"
#include "ostro/data/arrays/row_tree.h"
#include "ostro/data/ledger/chunk_table.h"
#include "ostro/data/store/store_verify.h"
#include "ostro/data/store/token_store.h"
#include "ostro/io/files/faulty_file_system.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/io/files/path.h"
#include "ostro/io/read/codecs.h"
#include "ostro/prepare/store/build.h"
#include "ostro/tokenizer/files/trainer.h"

namespace ostro::prepare {

inline void write(io::FileSystem& fs, const std::string& path, const std::string& text) {
  auto file = fs.create(path);
  REQUIRE(file.ok());
  check_ok((*file)->append(text));
  check_ok((*file)->sync());
  check_ok((*file)->close());
  check_ok(fs.sync_dir(io::parent_path(path)));
}

// A tokenizer of 300 tokens, the same in every call.
inline const tokenizer::Tokenizer& test_tokenizer() {
  static const tokenizer::Tokenizer tokenizer = [] {
    bool given = false;
    const tokenizer::DocumentSource source = [&given](std::string& document) -> Result<bool> {
      if (given) return false;
      document = "the cat sat on the mat and the dog sat on the log; that is that, then.";
      return given = true;
    };
    auto trained = tokenizer::train(source, {.vocab_size = 270});
    REQUIRE(trained.ok());
    return std::move(*trained);
  }();
  return tokenizer;
}

// The store of a configuration without components.
inline Result<data::StoreLedger> build_store(io::FileSystem& fs, const data::DataOptions& options,
                                             const tokenizer::Tokenizer& tokenizer,
                                             const data::BuildSettings& settings = {}) {
  return build_store(fs, options, data::components_of(options)[0], tokenizer, settings);
}
inline Result<std::shared_ptr<const data::TokenStore>> open_store(io::FileSystem& fs,
                                                                  const data::DataOptions& options) {
  return data::TokenStore::open(fs, options, data::components_of(options)[0], test_tokenizer());
}

// The first damaged array of a store, as an error.
inline Status verify_store(io::FileSystem& fs, const std::string& cache_dir) {
  ASSIGN_OR_RETURN(const data::StoreReport report, data::verify_arrays(fs, cache_dir, {}));
  for (const data::VerifiedArrayReport& array : report.arrays) RETURN_IF_ERROR(array.status);
  return {};
}

// Some words; a function of the two numbers alone.
inline std::string words(int64_t number, int64_t count) {
  const char* const kWords[] = {
      "the", "cat", "sat", "on", "a", "mat", "dog", "log", "that", "then", "\xc3\xa9t\xc3\xa9"};
  std::string text;
  uint64_t state = 0x9e3779b97f4a7c15u * static_cast<uint64_t>(number + 1);
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    if (i > 0) text += ' ';
    text += kWords[(state >> 33) % 11];
  }
  return text;
}

// The text of a .jsonl with lines of about 900 bytes each.
inline std::string json_lines(int64_t count) {
  std::string lines;
  for (int64_t i = 0; i < count; ++i) lines += fmt::format("{{\"text\": \"{}\"}}\n", words(i, 250));
  return lines;
}

inline std::string packed(io::Compression kind, std::string_view text) {
  auto bytes = io::compress({.kind = kind, .level = 3}, std::as_bytes(std::span(text)));
  REQUIRE(bytes.ok());
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

// Writes 24 text files and a .jsonl of 60 lines below `root`.
inline void write_corpus(io::FileSystem& fs, const std::string& root) {
  check_ok(fs.make_dirs(root + "/text/deep"));
  for (int i = 0; i < 24; ++i)
    write(fs, fmt::format("{}/text/{}{:02}.txt", root, i % 3 == 0 ? "deep/" : "", i), words(i, 5 + 7 * i));
  std::string lines;
  for (int i = 0; i < 60; ++i)
    lines += fmt::format("{{\"id\": {}, \"text\": \"{}\"}}\n", i, words(100 + i, 20));
  write(fs, root + "/lines.jsonl", lines);
}

inline data::DataOptions corpus_options(const std::string& root) {
  data::DataOptions options;
  options.tokenizer = "tokenizer.json";
  options.cache_dir = root + "-cache";
  options.train_urls = {root};
  options.validation_fraction = 0.2;
  return options;
}

// Small chunks, so that a small corpus has many, and a commit after nearly every unit.
inline data::BuildSettings small_settings(int threads = 3) {
  data::BuildSettings settings;
  settings.threads = threads;
  settings.commit_bytes = 300;
  settings.layout = {.chunk = 64, .shard = 256};
  return settings;
}

// Leaves a store as a build does that is killed half-way.
inline void build_half(io::MemoryFileSystem& memory, const data::DataOptions& options,
                       const data::BuildSettings& settings) {
  data::DataOptions whole = options;
  whole.cache_dir += "-whole";
  io::FaultyFileSystem fs(memory);
  REQUIRE(build_store(fs, whole, test_tokenizer(), settings).ok());
  fs.inject(io::Fault::kCrash, fs.writes() / 2);
  REQUIRE_FALSE(build_store(fs, options, test_tokenizer(), settings).ok());
}

// The text of a ledger, with its checksum added.
inline std::string with_checksum(nlohmann::json json) {
  json.erase("sha256");
  json["sha256"] = sha256_hex(json.dump());
  return json.dump() + "\n";
}

// Makes a finished store one of format 3: the ledger has no root, and the folder no tree of rows.
inline void make_format_3(io::FileSystem& fs, const std::string& cache_dir) {
  nlohmann::json json = nlohmann::json::parse(*fs.read_file(data::ledger_path(cache_dir)));
  json["format"] = data::kLedgerFormat3;
  json.erase("root");
  write(fs, data::ledger_path(cache_dir), with_checksum(json));
  check_ok(fs.remove(data::row_tree_path(cache_dir)));
}

}  // namespace ostro::prepare
