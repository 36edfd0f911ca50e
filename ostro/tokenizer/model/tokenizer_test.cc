#include "ostro/tokenizer/model/tokenizer.h"

#include <doctest/doctest.h>

#include <fmt/core.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "ostro/base/sha256.h"
#include "ostro/tokenizer/files/trainer.h"
#include "ostro/tokenizer/model/byte_alphabet.h"
#include "ostro/tokenizer/model/token_spans.h"

namespace ostro::tokenizer {
namespace {

using Json = nlohmann::json;

// A small tokenizer.json in the style of Llama 3: 256 bytes (ids 0 to 255), "he", "ll", "hell", and two
// special tokens.
Json example() {
  Json vocab = Json::object();
  for (const uint8_t byte : bytes_by_character()) {
    vocab[bytes_to_characters(std::string(1, static_cast<char>(byte)))] = vocab.size();
  }
  for (const char* token : {"he", "ll", "hell"}) vocab[token] = vocab.size();
  const Json split = {{"type", "Split"},
                      {"pattern", {{"Regex", pattern_of(Splitter::kLlama3)}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  const Json bytes = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  const Json post = {{"type", "TemplateProcessing"},
                     {"single", Json::array({{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
                                             {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}})},
                     {"pair", Json::array()},
                     {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {259}}, {"tokens", {"<s>"}}}}}}};
  const auto special = [](int id, const char* content) {
    return Json{{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", true}};
  };
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", {special(259, "<s>"), special(260, "</s>")}},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}}},
          {"post_processor", {{"type", "Sequence"}, {"processors", {bytes, post}}}},
          {"decoder", bytes},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", {"h e", "l l", "he ll"}}}}};
}

Tokenizer load(const Json& json) {
  auto tokenizer = Tokenizer::from_json(json.dump(), "t.json");
  REQUIRE_MESSAGE(tokenizer.ok(), tokenizer.error().message());
  return std::move(tokenizer).value();
}

std::string error_of(const Json& json) {
  const auto tokenizer = Tokenizer::from_json(json.dump(), "t.json");
  REQUIRE_FALSE(tokenizer.ok());
  return tokenizer.error().message();
}

TEST_CASE("encode and decode") {
  const Tokenizer tokenizer = load(example());
  const uint32_t space = *tokenizer.token_to_id("\u0120"), o = *tokenizer.token_to_id("o");
  CHECK(tokenizer.encode("hello") == std::vector<uint32_t>{258, o});
  CHECK(tokenizer.encode("hello</s> hell", {.add_special_tokens = true}) ==
        std::vector<uint32_t>{259, 258, o, 260, space, 258});
  CHECK(tokenizer.encode("", {.add_special_tokens = true}) == std::vector<uint32_t>{259});
  CHECK(tokenizer.vocab_size() == 261);
  CHECK(tokenizer.eos_id() == 260);
  CHECK(tokenizer.bos_id() == 259);
  CHECK(*tokenizer.id_to_token(258) == "hell");
  CHECK(*tokenizer.id_to_token(260) == "</s>");
  CHECK_FALSE(tokenizer.id_to_token(261).has_value());
  const std::vector<uint32_t> ids = {259, 258, o, 260};
  CHECK(*tokenizer.decode(ids) == "<s>hello</s>");
  CHECK(*tokenizer.decode(ids, true) == "hello");
  CHECK(tokenizer.decode(std::vector<uint32_t>{261}).error().message().find("261") != std::string::npos);
}

TEST_CASE("malformed bytes are U+FFFD on the way in and repaired on the way out") {
  const Tokenizer tokenizer = load(example());
  CHECK(tokenizer.encode("a\xFFz") == tokenizer.encode("a\uFFFDz"));
  CHECK(tokenizer.encode("\xE2\x82") == tokenizer.encode("\uFFFD"));
  const auto euro = tokenizer.encode("\u20AC");
  REQUIRE(euro.size() == 3);
  CHECK(*tokenizer.decode(std::span(euro).first(2)) == "\uFFFD");
  CHECK(*tokenizer.decode_bytes(std::span(euro).first(2)) == "\xE2\x82");
}

TEST_CASE("what is written loads as the same tokenizer") {
  const Tokenizer tokenizer = load(example());
  const auto again = Tokenizer::from_json(tokenizer.to_json(), "again");
  REQUIRE(again.ok());
  CHECK(again->to_json() == tokenizer.to_json());
  CHECK(again->canonical_json() == tokenizer.canonical_json());
  CHECK(again->hash() == sha256_hex(tokenizer.canonical_json()));
  CHECK(&again->hash() == &again->hash());  // computed once
  CHECK(again->encode("hello</s> 123\u00E9") == tokenizer.encode("hello</s> 123\u00E9"));
  // Merges as pairs and as strings, keys in any order, indentation: the same canonical form.
  CHECK(Json::parse(tokenizer.canonical_json()).dump() == tokenizer.canonical_json());
  Json other = example();
  other["model"]["ignore_merges"] = true;
  CHECK(load(other).canonical_json() != tokenizer.canonical_json());
  CHECK(Json::parse(tokenizer.tokenizer_config_json(128)) ==
        Json{{"tokenizer_class", "PreTrainedTokenizerFast"},
             {"clean_up_tokenization_spaces", false},
             {"bos_token", "<s>"},
             {"eos_token", "</s>"},
             {"model_max_length", 128}});
}

TEST_CASE("an Encoder's memory never changes ids") {
  TrainOptions options;
  options.vocab_size = 400;
  std::mt19937 rng(3);
  std::vector<std::string> texts;
  for (int t = 0; t < 200; ++t) {
    texts.emplace_back();
    for (int n = 0; n < 800; ++n)
      texts.back() += rng() % 5 == 0 ? ' ' : static_cast<char>('a' + rng() % (1 + rng() % 26));
  }
  size_t next = 0;
  const auto tokenizer = train(
      [&](std::string& text) -> Result<bool> {
        if (next == texts.size()) return false;
        text = texts[next++];
        return true;
      },
      options);
  REQUIRE(tokenizer.ok());
  Encoder encoder(*tokenizer);
  std::vector<uint32_t> ids, expected;
  for (const std::string& text : texts) {
    encoder.encode(text, {}, ids);
    const auto fresh = tokenizer->encode(text);  // short texts get no cache
    expected.insert(expected.end(), fresh.begin(), fresh.end());
  }
  CHECK(ids == expected);
}

TEST_CASE("components that are not supported are refused by name") {
  const auto with = [](const char* key, Json value) {
    Json json = example();
    json[Json::json_pointer(key)] = std::move(value);
    return error_of(json);
  };
  CHECK(with("/normalizer", {{"type", "Nmt"}}).find("normalizer Nmt {") != std::string::npos);
  CHECK(with("/normalizer", {{"type", "Nmt"}}).starts_with("t.json: "));
  const Json replace = {{"type", "Replace"}, {"pattern", {{"Regex", "(a|b)+"}}}, {"content", "c"}};
  CHECK(with("/normalizer", replace).find("(a|b)+") != std::string::npos);
  CHECK(with("/model/type", "WordPiece").find("WordPiece") != std::string::npos);
  CHECK(with("/model/dropout", 0.1).find("model.dropout 0.1") != std::string::npos);
  CHECK(with("/truncation", {{"max_length", 5}}).find("truncation") != std::string::npos);
  CHECK(with("/decoder", {{"type", "WordPiece"}}).find("WordPiece") != std::string::npos);
  CHECK(with("/post_processor", {{"type", "PairProcessing"}}).find("PairProcessing") != std::string::npos);
  CHECK(with("/pre_tokenizer/pretokenizers/0/pattern/Regex", "\\w+").find("\\\\w+") != std::string::npos);
  CHECK(with("/pre_tokenizer/pretokenizers/0/behavior", "Removed").find("Removed") != std::string::npos);
  CHECK(with("/pre_tokenizer/pretokenizers/0/type", "UnicodeScripts").find("UnicodeScripts") !=
        std::string::npos);
  const Json unigram = {{"type", "Unigram"},
                        {"unk_id", 0},
                        {"vocab", Json::array({Json::array({"<unk>", 0.0}), Json::array({"a", -1.0})})}};
  CHECK(with("/model", unigram).find("Unigram") != std::string::npos);  // with ByteLevel pieces
}

// Characters with byte tokens, a normalizer and a chain of decoders, as Llama 2 has them.
Json character_example() {
  Json vocab = {{"<unk>", 0}};
  for (int byte = 0; byte < 256; ++byte) vocab[fmt::format("<0x{:02X}>", byte)] = byte + 1;
  for (const char* token : {"\u2581", "a", "b", "ab", "\u2581ab"}) vocab[token] = vocab.size();
  Json json = example();
  json["added_tokens"] = Json::array();
  json["normalizer"] = {{"type", "Sequence"},
                        {"normalizers",
                         {{{"type", "Prepend"}, {"prepend", "\u2581"}},
                          {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}}}};
  json["pre_tokenizer"] = nullptr;
  json["post_processor"] = nullptr;
  json["decoder"] = {{"type", "Sequence"},
                     {"decoders",
                      {{{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}},
                       {{"type", "ByteFallback"}},
                       {{"type", "Fuse"}},
                       {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}};
  json["model"] = {{"type", "BPE"},         {"unk_token", "<unk>"}, {"fuse_unk", true},
                   {"byte_fallback", true}, {"vocab", vocab},       {"merges", {"a b", "\u2581 ab"}}};
  return json;
}

TEST_CASE("characters, byte tokens and decoders") {
  const Tokenizer tokenizer = load(character_example());
  const auto id = [&](const char* token) { return *tokenizer.token_to_id(token); };
  const std::vector<uint32_t> expected = {id("\u2581ab"), id("\u2581"), id("<0xC3>"), id("<0xA9>"), id("ab")};
  CHECK(tokenizer.encode("ab \u00E9ab") == expected);
  CHECK(*tokenizer.decode(expected) == "ab \u00E9ab");
  CHECK(*tokenizer.decode(std::span(expected).first(3)) == "ab \uFFFD");
  CHECK(*tokenizer.decode_bytes(std::span(expected).first(3)) == "ab \xC3");
  CHECK(tokenizer.encode("") == std::vector<uint32_t>{});
  // The space that was put before the text has no bytes; one inside the text has its own, also as a token
  // alone.
  CHECK(*token_ends(tokenizer, "ab \u00E9ab", expected) == std::vector<size_t>{2, 3, 4, 5, 7});
  CHECK(*token_bytes(tokenizer, id("\u2581")) == " ");
  CHECK(*token_bytes(tokenizer, id("\u2581ab")) == " ab");
  CHECK(*token_bytes(tokenizer, id("<0xC3>")) == "\xC3");
  const std::vector<uint32_t> alone = {id("\u2581"), id("b")};
  CHECK(tokenizer.encode("b") == alone);
  CHECK(*token_ends(tokenizer, "b", alone) == std::vector<size_t>{0, 1});
  const auto again = Tokenizer::from_json(tokenizer.to_json(), "again");
  REQUIRE(again.ok());
  CHECK(again->canonical_json() == tokenizer.canonical_json());
  CHECK(again->encode("ab \u00E9ab") == expected);

  Json without = character_example();
  without["model"]["byte_fallback"] = false;
  CHECK(load(without).encode("\u00E9\u00E9a") == std::vector<uint32_t>{id("\u2581"), 0, id("a")});
  without["model"]["fuse_unk"] = false;
  CHECK(load(without).encode("\u00E9\u00E9a") == std::vector<uint32_t>{id("\u2581"), 0, 0, id("a")});
  without["model"]["unk_token"] = "none";
  CHECK(error_of(without).find("\"none\"") != std::string::npos);
}

// A .model by hand: field 1 of ModelProto is a piece {1: text, 2: score, 3: type}, field 2 the trainer's
// options.
std::string sentencepiece_model(int kind) {
  const auto field = [](int number, const std::string& bytes) {
    return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) + bytes;
  };
  const auto piece = [&](const std::string& text, float score, int type) {
    std::string bits(4, '\0');
    std::memcpy(bits.data(), &score, 4);
    return field(1,
                 field(1, text) + std::string("\x15") + bits + std::string("\x18") + static_cast<char>(type));
  };
  return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("\u2581a", -1, 1) +
         piece("bb", -2, 1) + piece("\u2581", -3, 1) + piece("a", -4, 1) + piece("b", -5, 1) +
         piece("<x>", 0, 4) + field(2, std::string("\x18") + static_cast<char>(kind));
}

TEST_CASE("SentencePiece models") {
  for (const int kind : {1, 2}) {
    const auto tokenizer =
        Tokenizer::from_sentencepiece(sentencepiece_model(kind), "m.model", /*add_bos=*/true);
    REQUIRE_MESSAGE(tokenizer.ok(), tokenizer.error().message());
    CHECK(tokenizer->encode("a  bba<x>a") == std::vector<uint32_t>{3, 5, 4, 6, 8, 6});
    CHECK(tokenizer->encode(" \u4F60\u597Db <s> ", {.add_special_tokens = true}).front() == 1);
    CHECK(tokenizer->encode("\u4F60\u597D") == std::vector<uint32_t>{5, 0});
    CHECK(*tokenizer->decode(std::vector<uint32_t>{1, 3, 5, 4, 6, 8, 6, 2}) == "a bba<x>a");
    CHECK(tokenizer->eos_id() == 2);
    const auto again = Tokenizer::from_json(tokenizer->to_json(), "again");
    REQUIRE_MESSAGE(again.ok(), again.error().message());
    CHECK(again->canonical_json() == tokenizer->canonical_json());
    CHECK(again->encode("a bb", {.add_special_tokens = true}) == std::vector<uint32_t>{1, 3, 5, 4});
  }
  const auto refused = [](const std::string& bytes) {
    const auto tokenizer = Tokenizer::from_sentencepiece(bytes, "m.model");
    REQUIRE_FALSE(tokenizer.ok());
    return tokenizer.error().message();
  };
  CHECK(refused(sentencepiece_model(3)).find("WORD") != std::string::npos);
  CHECK(refused("").find("m.model") != std::string::npos);
  CHECK(refused("{\"model\": 1}").find("byte") != std::string::npos);
  const std::string good = sentencepiece_model(1);
  std::mt19937 rng(4);
  for (int round = 0; round < 300; ++round) {
    std::string bad = good;
    bad[rng() % bad.size()] = static_cast<char>(rng());
    if (rng() % 2 == 0) bad.resize(rng() % bad.size());
    const auto tokenizer = Tokenizer::from_sentencepiece(bad, "bad");
    if (tokenizer.ok()) (void)tokenizer->encode("a bb <x> \u4F60");
  }
}

// The space in front of a text is put at its beginning alone, as in transformers.
TEST_CASE("added tokens of a SentencePiece model") {
  const Tokenizer plain = Tokenizer::from_sentencepiece(sentencepiece_model(2), "m.model").value();
  const auto made = plain.with_added_tokens({{.id = 9, .content = "<|im_start|>", .special = true},
                                             {.id = 10, .content = "<|im_end|>", .special = true}});
  REQUIRE_MESSAGE(made.ok(), made.error().message());
  const Tokenizer& t = **made;
  CHECK(t.vocab_size() == 11);
  const std::vector<uint32_t> ids = {9, 6, 3, 10};
  CHECK(t.encode("<|im_start|>a a<|im_end|>") == ids);
  CHECK(t.encode("a a") == plain.encode("a a"));
  CHECK(*t.decode(ids) == "<|im_start|>a a<|im_end|>");
  CHECK(*t.decode(ids, true) == "a a");
  const auto again = Tokenizer::from_json(t.to_json(), "again");
  REQUIRE_MESSAGE(again.ok(), again.error().message());
  CHECK(again->encode("<|im_start|>a a<|im_end|>") == ids);
  CHECK(t.hash() != plain.hash());
  CHECK(t.tokenizer_config_json().find("\"LlamaTokenizer\"") != std::string::npos);
  CHECK(t.tokenizer_config_json().find("added_tokens_decoder") != std::string::npos);

  // Named twice with other properties, a token keeps its id, and no id is left out.
  const auto twice = plain.with_added_tokens({{.id = 9, .content = "<|im_start|>", .special = true},
                                              {.id = 9, .content = "<|im_start|>", .special = false},
                                              {.id = 10, .content = "<|im_end|>", .special = true}});
  REQUIRE_MESSAGE(twice.ok(), twice.error().message());
  CHECK((*twice)->vocab_size() == 11);
  CHECK((*twice)->token_to_id("<|im_end|>") == 10);
}

TEST_CASE("damaged files are errors that say where") {
  const auto with = [](const char* key, Json value) {
    Json json = example();
    json[Json::json_pointer(key)] = std::move(value);
    return error_of(json);
  };
  CHECK(Tokenizer::from_json("{\"model\":", "t.json").error().message().find("t.json") != std::string::npos);
  CHECK_FALSE(Tokenizer::from_json("", "t.json").ok());
  CHECK_FALSE(Tokenizer::from_json("[1]", "t.json").ok());
  const std::string deep = "{\"normalizer\":" + std::string(1 << 20, '[') + std::string(1 << 20, ']') + "}";
  CHECK(Tokenizer::from_json(deep, "t.json").error().message().find("nested") != std::string::npos);
  CHECK(with("/model/vocab/he", -1).find("\"he\"") != std::string::npos);
  CHECK(with("/model/vocab/he", 4000000000u).find("4000000000") != std::string::npos);
  CHECK(with("/model/vocab/he", 257).find("257") != std::string::npos);
  CHECK(with("/model/vocab", nullptr).find("vocab") != std::string::npos);
  CHECK(with("/model/merges/0", "h x y").find("h x y") != std::string::npos);
  CHECK(with("/model/merges/0", "h qq").find("qq") != std::string::npos);
  CHECK(with("/model/merges/0", "h o").find("ho") != std::string::npos);
  CHECK(with("/model/merges/0", 7).find("7") != std::string::npos);
  CHECK(with("/added_tokens/0/id", 5).find("<s>") != std::string::npos);
  CHECK(with("/added_tokens/0/content", "").find("259") != std::string::npos);
  CHECK(with("/added_tokens/0/lstrip", "yes").find("lstrip") != std::string::npos);
  CHECK(with("/post_processor/processors/1/special_tokens", Json::object()).find("<s>") != std::string::npos);
}

TEST_CASE("a damaged tokenizer.json never crashes") {
  const std::string good = load(example()).to_json();
  std::mt19937 rng(11);
  for (int round = 0; round < 400; ++round) {
    std::string bad = good;
    for (int edits = 1 + static_cast<int>(rng() % 3); edits > 0; --edits) {
      const size_t at = rng() % bad.size();
      switch (rng() % 4) {
        case 0: bad[at] = static_cast<char>(rng()); break;
        case 1: bad.erase(at, 1 + rng() % 40); break;
        case 2: bad.insert(at, bad.substr(rng() % bad.size(), rng() % 40)); break;
        default: bad[at] = "0123456789[]{}\",:n"[rng() % 18];
      }
    }
    const auto tokenizer = Tokenizer::from_json(bad, "bad");
    if (tokenizer.ok()) {
      CHECK_FALSE(tokenizer->canonical_json().empty());
      (void)tokenizer->encode("hello</s> \xFF 123", {.add_special_tokens = true});
    } else {
      CHECK_FALSE(tokenizer.error().message().empty());
    }
  }
}

}  // namespace
}  // namespace ostro::tokenizer
