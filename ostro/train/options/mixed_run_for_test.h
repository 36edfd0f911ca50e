// mixed_config, write_mixed_files: for tests of runs with two data components: texts, a tokenizer, and a
// small configuration whose weights and batch sizes change by step.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/tokenizer/files/trainer.h"
#include "ostro/train/options/config.h"

namespace ostro::train {

using Settings = std::vector<config::Override>;

inline const Settings kMixedRun = {
    {"data.tokenizer", "tokenizer.json"},
    {"data.components",
     "{web: {train_urls: [web], validation_fraction: 0.2}, code: {train_urls: "
     "[code], validation_fraction: 0.2}}"},
    {"data.train_weights", "[[0, {web: 0.75, code: 0.25}], [4, {web: 0.25, code: 0.75}]]"},
    {"data.mixture_block_size", "8"},
    {"data.shuffle", "{type: block, io_block_size: 3, window_blocks: 2}"},
    {"model.seq_len", "16"},
    {"model.hidden_dim", "32"},
    {"model.intermediate_dim", "48"},
    {"model.num_layers", "1"},
    {"model.num_heads", "2"},
    {"model.num_kv_heads", "1"},
    {"trainer.train_batch_size", "[[0, 4], [3, 10], [5, 2]]"},
    {"trainer.num_train_steps", "7"},
    {"trainer.checkpointer.keep", "[{every: 2}]"},
    {"numerics.leaf_examples", "2"}};

// The settings for preference pairs instead of texts. The chosen answer of a pair is the one that continues
// the prompt in its own style.
inline const Settings kPairRun = {
    {"data.components",
     "{web: {train_urls: [pairs/web.jsonl], validation_fraction: 0.2, format: {type: preference}}, code: "
     "{train_urls: [pairs/code.jsonl], validation_fraction: 0.2, format: {type: preference}}}"},
    {"data.cache_dir", "pair_cache"},
    {"objective.type", "dpo"}};

// A third component, whose name is the first of the three, for runs to which an amend adds it.
inline const Settings kAlgebra = {
    {"data.components",
     "{web: {train_urls: [web], validation_fraction: 0.2}, code: {train_urls: [code], validation_fraction: "
     "0.2}, algebra: {train_urls: [algebra], validation_fraction: 0.2}}"},
    {"data.train_weights", "{algebra: 0.5, web: 0.25, code: 0.25}"}};

inline std::string mixed_words(int number, int kind) {
  static const char* const kWords[][6] = {{"sun ", "moon ", "star ", "sky.\n", "wind ", "rain "},
                                          {"if ", "for ", "x = ", "y;\n", "return ", "(z) "}};
  std::string text;
  for (int i = 0; i < 90; ++i) text += kWords[kind][(number * 5 + i * i) % 6];
  return text;
}

inline void write_mixed_files(io::FileSystem& fs) {
  const char* const names[] = {"web", "code"};
  for (int kind = 0; kind < 2; ++kind) {
    check_ok(fs.make_dirs(names[kind]));
    for (int i = 0; i < 12; ++i)
      check_ok(fs.write_file(fmt::format("{}/{}.txt", names[kind], i), mixed_words(i, kind)));
  }
  check_ok(fs.make_dirs("pairs"));
  for (int kind = 0; kind < 2; ++kind) {
    auto file = fs.create(fmt::format("pairs/{}.jsonl", names[kind]));
    REQUIRE(file.ok());
    const auto part = [](int number, int of, size_t length) {
      const std::string text = mixed_words(number, of).substr(0, length);
      return nlohmann::json(text).dump();
    };
    for (int i = 0; i < 24; ++i) {
      const auto at = static_cast<size_t>(i);
      check_ok((*file)->append(fmt::format("{{\"prompt\": {}, \"chosen\": {}, \"rejected\": {}}}\n",
                                           part(i, kind, 9 + at % 5), part(i + 1, kind, 7 + at % 4),
                                           part(i + 2, 1 - kind, 12 + at % 30))));
    }
    check_ok((*file)->close());
  }
  int next = 0;
  auto trained = tokenizer::train(
      [&](std::string& text) -> Result<bool> {
        text = mixed_words(next, next % 2);
        return next++ < 20;
      },
      {.vocab_size = 270});
  REQUIRE(trained.ok());
  check_ok(tokenizer::save_tokenizer(fs, *trained, "tokenizer.json"));
}

inline void write_algebra(io::FileSystem& fs) {
  check_ok(fs.make_dirs("algebra"));
  for (int i = 0; i < 12; ++i)
    check_ok(fs.write_file(fmt::format("algebra/{}.txt", i), mixed_words(i, 1) + mixed_words(i, 0)));
}

inline TrainConfig mixed_config(const Settings& more) {
  Settings settings = kMixedRun;
  settings.insert(settings.end(), more.begin(), more.end());
  auto c = load_train_config("", settings);
  REQUIRE_MESSAGE(c.ok(), c.error().message());
  return *c;
}

}  // namespace ostro::train
