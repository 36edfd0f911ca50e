// A plain pipe to the tokenizer for tests/interop/check_tokenizer.py:
//   tokenizer_cli_helper encode TOKENIZER [special] < records > records   record: u32 length, bytes -> u32
//   count, u32 ids tokenizer_cli_helper decode TOKENIZER < records > records             record: u32 count,
//   u32 ids -> u32 length, bytes tokenizer_cli_helper train VOCAB_SIZE gpt2|llama3 THREADS < records >
//   tokenizer.json tokenizer_cli_helper config TOKENIZER > tokenizer_config.json
//   tokenizer_cli_helper split REGEX < records > records                         record: u32 length, UTF-8 ->
//   u32 count, u32 ends of pieces
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ostro/io/files/local_file_system.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/tokenizer/files/trainer.h"
#include "ostro/tokenizer/model/tokenizer.h"
#include "ostro/tokenizer/split/pre_tokenizer.h"

namespace {

using ostro::tokenizer::Tokenizer;

bool read_u32(uint32_t& value) {
  return static_cast<bool>(std::cin.read(reinterpret_cast<char*>(&value), 4));
}
void write_u32(uint32_t value) { std::cout.write(reinterpret_cast<const char*>(&value), 4); }

bool read_record(std::string& record) {
  uint32_t length;
  if (!read_u32(length)) return false;
  record.resize(length);
  return static_cast<bool>(std::cin.read(record.data(), length));
}

int fail(const ostro::Error& error) {
  std::cerr << error.message() << "\n";
  return 1;
}

ostro::Result<Tokenizer> load(const char* path) {
  return ostro::tokenizer::load_tokenizer(ostro::io::local_file_system(), path);
}

int encode(const Tokenizer& tokenizer, bool special) {
  ostro::tokenizer::Encoder encoder(tokenizer);
  std::string text;
  std::vector<uint32_t> ids;
  while (read_record(text)) {
    ids.clear();
    encoder.encode(text, {.add_special_tokens = special}, ids);
    write_u32(static_cast<uint32_t>(ids.size()));
    std::cout.write(reinterpret_cast<const char*>(ids.data()), static_cast<std::streamsize>(ids.size() * 4));
  }
  return 0;
}

int decode(const Tokenizer& tokenizer) {
  for (uint32_t count; read_u32(count);) {
    std::vector<uint32_t> ids(count);
    for (uint32_t& id : ids) read_u32(id);
    const auto text = tokenizer.decode(ids);
    if (!text.ok()) return fail(text.error());
    write_u32(static_cast<uint32_t>(text->size()));
    std::cout << *text;
  }
  return 0;
}

// The ends of a text's pieces, for each record, as a Split pre-tokenizer with this expression cuts it.
int split(std::string_view regex) {
  const auto steps = ostro::tokenizer::PreTokenizer::from_json(
      {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}});
  if (!steps.ok()) return fail(steps.error());
  ostro::tokenizer::PreTokenizer::Buffers buffers;
  std::vector<uint32_t> ends;
  for (std::string text; read_record(text);) {
    ends.clear();
    steps->run(text, true, buffers, [&ends](std::string_view piece) {
      ends.push_back((ends.empty() ? 0 : ends.back()) + static_cast<uint32_t>(piece.size()));
    });
    write_u32(static_cast<uint32_t>(ends.size()));
    std::cout.write(reinterpret_cast<const char*>(ends.data()),
                    static_cast<std::streamsize>(ends.size() * 4));
  }
  return 0;
}

int train(char** argv) {
  ostro::tokenizer::TrainOptions options;
  options.vocab_size = static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10));
  using ostro::tokenizer::Splitter;
  options.splitter = std::string(argv[3]) == "gpt2" ? Splitter::kGpt2 : Splitter::kLlama3;
  options.threads = std::atoi(argv[4]);
  const auto tokenizer = ostro::tokenizer::train(
      [](std::string& text) -> ostro::Result<bool> { return read_record(text); }, options);
  if (!tokenizer.ok()) return fail(tokenizer.error());
  std::cout << tokenizer->to_json();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  const std::string command = argc > 2 ? argv[1] : "";
  if (command == "train" && argc == 5) return train(argv);
  if (command == "split") return split(argv[2]);
  if (command != "encode" && command != "decode" && command != "config") {
    std::cerr << "usage: see the head of tokenizer_cli_helper.cc\n";
    return 2;
  }
  const auto tokenizer = load(argv[2]);
  if (!tokenizer.ok()) return fail(tokenizer.error());
  if (command == "encode") return encode(*tokenizer, argc > 3);
  if (command == "decode") return decode(*tokenizer);
  std::cout << tokenizer->tokenizer_config_json();
  return 0;
}
