// For text_streams.py. `text_stream_helper TOKENIZER`: every line of stdin is {"prompt": ids, "ids": ids,
// "counts": numbers, "stops": texts}: an answer to this prompt, of which so many tokens come together each
// time. A line of JSON for each: "pieces", what a client gets each time and at the end; "whole", the text of
// all tokens behind the prompt's; "apart", the text of each of them decoded alone; "stopped".
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ostro/io/files/local_file_system.h"
#include "ostro/serve/text/text_stream.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace {

using nlohmann::ordered_json;
using ostro::tokenizer::Tokenizer;

// The bytes of all ids, decoded at once.
std::string bytes_of(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  return tokenizer.decode_bytes(std::vector<uint32_t>(ids.begin(), ids.end()), /*skip_special_tokens=*/true)
      .value();
}

ordered_json streamed(const Tokenizer& tokenizer, const ordered_json& line) {
  const auto prompt = line["prompt"].get<std::vector<int32_t>>(),
             ids = line["ids"].get<std::vector<int32_t>>();
  auto stream = ostro::serve::TextStream::create(tokenizer, prompt, line["stops"]).value();
  std::vector<std::string> pieces;
  size_t next = 0;
  for (const size_t count : line["counts"]) {
    for (size_t i = 0; i < count && !stream.is_stopped(); ++i) check_ok(stream.add(ids.at(next++)));
    pieces.push_back(stream.take());
  }
  stream.finish();
  pieces.push_back(stream.take());
  std::vector<int32_t> all = prompt;
  all.insert(all.end(), ids.begin(), ids.end());
  const std::string whole = bytes_of(tokenizer, all).substr(bytes_of(tokenizer, prompt).size());
  std::string apart;
  for (const int32_t id : ids) apart += ostro::tokenizer::repair_utf8(bytes_of(tokenizer, {id}));
  return {{"pieces", pieces},
          {"whole", ostro::tokenizer::repair_utf8(whole)},
          {"apart", apart},
          {"stopped", stream.is_stopped()}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: text_stream_helper TOKENIZER\n");
    return 2;
  }
  const auto tokenizer = ostro::tokenizer::load_tokenizer(ostro::io::local_file_system(), argv[1]);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.error().message().c_str());
    return 1;
  }
  for (std::string text; std::getline(std::cin, text);)
    std::cout << streamed(*tokenizer, ordered_json::parse(text)).dump() << '\n';
  return 0;
}
