// The text of a stream of tokens is the text of all of them, however it comes.
#include "ostro/serve/text/text_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "ostro/base/test_size.h"
#include "ostro/serve/model_for_test.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::serve {
namespace {

using Ids = std::vector<int32_t>;

std::string decoded(const tokenizer::Tokenizer& tokenizer, const Ids& ids) {
  return tokenizer.decode(std::vector<uint32_t>(ids.begin(), ids.end()), true).value();
}

TEST_CASE("what arrives is the whole text, in whole characters, whatever the ids are") {
  const auto tokenizer = test_tokenizer();
  std::mt19937 random(7);
  for (int round = 0; round < sized(300, 20'000, 20'000); ++round) {
    Ids ids;
    const std::string characters = "aé東😀 the";
    for (int i = 0; i < 20; ++i) {
      if (random() % 2 == 0) {
        const auto good = tokenizer->encode(characters.substr(random() % 3));
        ids.insert(ids.end(), good.begin(), good.end());
      } else {
        ids.push_back(static_cast<int32_t>(random() % tokenizer->vocab_size()));
      }
    }
    TextStream stream = TextStream::create(*tokenizer, {}, {}).value();
    std::string got;
    for (const int32_t id : ids) {
      check_ok(stream.add(id));
      const std::string piece = stream.take();
      CHECK(tokenizer::is_valid_utf8(piece));
      got += piece;
    }
    stream.finish();
    got += stream.take();
    CHECK(got == decoded(*tokenizer, ids));
    CHECK(got == stream.text());
  }
}

// A tokenizer.json with the decoder of Llama 2 and Mistral: a space in front of words, which is dropped at
// the beginning of a text; bytes as tokens.
std::shared_ptr<const tokenizer::Tokenizer> spaced_tokenizer(const std::string& decoder) {
  std::string vocab = R"("<unk>":0,"<s>":1,"\u2581":2,"\u2581a":3,"b":4,"\u2581\u2581":5,"n't":6,"\u00e9":7)";
  for (int byte = 0; byte < 256; ++byte) vocab += fmt::format(R"(,"<0x{:02X}>":{})", byte, 8 + byte);
  const std::string json = R"({"version":"1.0","added_tokens":[{"id":1,"content":"<s>","single_word":false,
      "lstrip":false,"rstrip":false,"normalized":false,"special":true}],"normalizer":null,"pre_tokenizer":null,
      "post_processor":null,"decoder":)" +
                           decoder + R"(,"model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,
      "byte_fallback":true,"vocab":{)" +
                           vocab + R"(},"merges":[]}})";
  auto made = tokenizer::Tokenizer::from_json(json, "t");
  REQUIRE_MESSAGE(made.ok(), made.error().message());
  return std::make_shared<tokenizer::Tokenizer>(std::move(*made));
}

TEST_CASE("a token's text comes from its neighbours alone, and the whole is what all tokens decode to") {
  std::mt19937 random(9);
  for (const char* decoder :
       {R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"\u2581"},"content":" "},
           {"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})",
        R"({"type":"Metaspace","replacement":"\u2581","add_prefix_space":true,"prepend_scheme":"always"})",
        "null"}) {
    const auto tokenizer = spaced_tokenizer(decoder);
    for (int round = 0; round < 200; ++round) {
      Ids prompt, ids;
      for (unsigned i = random() % 60; i > 0; --i) prompt.push_back(1 + static_cast<int>(random() % 3));
      if (round % 3 == 0) prompt.assign(prompt.size(), 1);  // without a text
      for (int i = 0; i < 60; ++i)
        ids.push_back(static_cast<int32_t>(random() % (random() % 4 == 0 ? 264 : 8)));
      Ids all = prompt;
      all.insert(all.end(), ids.begin(), ids.end());
      const auto bytes = [&](const Ids& of) {
        return tokenizer->decode_bytes(std::vector<uint32_t>(of.begin(), of.end()), true).value();
      };
      TextStream stream = TextStream::create(*tokenizer, prompt, {}).value();
      for (const int32_t id : ids) check_ok(stream.add(id));
      stream.finish();
      CHECK(stream.text() == tokenizer::repair_utf8(bytes(all).substr(bytes(prompt).size())));
      CHECK(stream.characters() == std::count_if(stream.text().begin(), stream.text().end(),
                                                 [](char c) { return (c & 0xC0) != 0x80; }));
    }
  }
}

TEST_CASE("bytes that begin a character are told from those that cannot") {
  for (const char* text : {"\xc3", "a\xe6\x9d", "\xf0\x9f\x98", "\xf0", "\xe0\xa0", "\xf4\x8f"})
    CHECK_MESSAGE(unfinished_bytes(text) > 0, text);
  for (const char* text : {"", "a", "é", "\x80", "\xc0", "\xc1", "\xf5", "\xff", "\xe0\x80", "\xed\xa0",
                           "\xf4\x90", "\xe6\x9d\xb1"})
    CHECK_MESSAGE(unfinished_bytes(text) == 0, text);
  CHECK(unfinished_bytes("a\xf0\x9f\x98") == 3);
}

// Where one pass over the whole text cuts it: character by character, the stop string that ends first.
std::string cut(const std::string& text, const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops)
      if (std::string_view(text).substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    if (longest > 0) return text.substr(0, end - longest);
  }
  return text;
}

TEST_CASE("a stop string cuts where one pass over the text cuts, and no part of it leaks") {
  const auto tokenizer = test_tokenizer();
  std::mt19937 random(8);
  const int rounds = sized(600, 5000, 5000);
  int stopped = 0;
  for (int round = 0; round < rounds; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "ab "[random() % 3];
    std::vector<std::string> stops;
    for (unsigned i = 0; i < 1 + random() % 3; ++i) {
      std::string stop;
      for (unsigned k = 0; k < 1 + random() % 6; ++k) stop += "ab "[random() % 3];
      stops.push_back(stop);
    }
    const std::string expected = cut(text, stops);
    TextStream stream = TextStream::create(*tokenizer, {}, stops).value();
    std::string got;
    for (const uint32_t id : tokenizer->encode(text)) {
      check_ok(stream.add(static_cast<int32_t>(id)));
      got += stream.take();
      CHECK(expected.starts_with(got));
      if (stream.is_stopped()) break;
    }
    stopped += stream.is_stopped();
    stream.finish();
    got += stream.take();
    CHECK(got == expected);
  }
  CHECK(stopped > 100);
  CHECK(stopped < rounds);
}

TEST_CASE("special tokens have no text; the prompt's tokens are no part of it") {
  const auto tokenizer = test_tokenizer();
  const auto eos = static_cast<int32_t>(*tokenizer->eos_id());
  const auto ids = tokenizer->encode("the cat");
  TextStream stream = TextStream::create(*tokenizer, Ids(ids.begin(), ids.end()), {}).value();
  check_ok(stream.add(eos));
  CHECK(stream.take().empty());
  check_ok(stream.add(static_cast<int32_t>(tokenizer->encode("x")[0])));
  CHECK(stream.take() == "x");
  CHECK_FALSE(stream.add(1'000'000).ok());
}

}  // namespace
}  // namespace ostro::serve
