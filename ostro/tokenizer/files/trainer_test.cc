#include "ostro/tokenizer/files/trainer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "ostro/tokenizer/model/byte_alphabet.h"

namespace ostro::tokenizer {
namespace {

DocumentSource documents(std::vector<std::string> texts) {
  return [texts = std::move(texts), next = size_t{0}](std::string& text) mutable -> Result<bool> {
    if (next == texts.size()) return false;
    text = texts[next++];
    return true;
  };
}

// BPE training as one would explain it: count every pair anew for each merge.
std::vector<std::string> slow_vocab(const std::vector<std::string>& texts, const TrainOptions& options) {
  std::vector<std::string> vocab = options.special_tokens;
  std::map<std::string, uint32_t> ids;
  for (const uint8_t byte : bytes_by_character()) {
    vocab.push_back(bytes_to_characters(std::string(1, static_cast<char>(byte))));
  }
  for (uint32_t i = 0; i < vocab.size(); ++i) ids[vocab[i]] = i;
  std::vector<std::vector<uint32_t>> words;
  for (const std::string& text : texts) {
    for_each_piece(options.splitter, text, [&](std::string_view piece) {
      words.emplace_back();
      for (const char c : piece) words.back().push_back(ids[bytes_to_characters(std::string(1, c))]);
    });
  }
  while (vocab.size() < options.vocab_size) {
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> counts;
    for (const auto& word : words) {
      for (size_t i = 0; i + 1 < word.size(); ++i) ++counts[{word[i], word[i + 1]}];
    }
    std::pair<uint32_t, uint32_t> best;
    uint64_t most = 0;
    for (const auto& [pair, count] : counts) {
      if (count > most) best = pair, most = count;
    }
    if (most < std::max<uint64_t>(options.min_frequency, 1)) break;
    const std::string joined = vocab[best.first] + vocab[best.second];
    const auto [it, is_new] = ids.emplace(joined, vocab.size());
    if (is_new) vocab.push_back(joined);
    for (auto& word : words) {
      std::vector<uint32_t> next;
      for (size_t i = 0; i < word.size(); ++i) {
        const bool match = i + 1 < word.size() && word[i] == best.first && word[i + 1] == best.second;
        next.push_back(match ? it->second : word[i]);
        i += match;
      }
      word = std::move(next);
    }
  }
  return vocab;
}

std::vector<std::string> random_texts(std::mt19937& rng, int count) {
  std::vector<std::string> texts;
  for (int t = 0; t < count; ++t) {
    std::string text;
    for (size_t n = rng() % 200; n > 0; --n) {
      switch (rng() % 8) {
        case 0: text += ' '; break;
        case 1: text += std::string(rng() % 12, "a=\n"[rng() % 3]); break;
        case 2: text += "\u00E9\u4F60"; break;
        default: text += static_cast<char>('a' + rng() % (1 + rng() % 5));
      }
    }
    texts.push_back(text);
  }
  return texts;
}

TEST_CASE("the same vocabulary as the slow definition, for any order and number of threads") {
  std::mt19937 rng(7);
  for (int round = 0; round < 12; ++round) {
    auto texts = random_texts(rng, 30);
    TrainOptions options;
    options.vocab_size = 257 + static_cast<uint32_t>(rng() % 250);
    options.splitter = round % 3 == 0   ? Splitter::kGpt2
                       : round % 3 == 1 ? Splitter::kLlama3
                                        : Splitter::kNone;
    options.min_frequency = static_cast<uint64_t>(1 + round % 3);
    const auto tokenizer = train(documents(texts), options);
    REQUIRE(tokenizer.ok());
    REQUIRE(tokenizer->spec().vocab == slow_vocab(texts, options));
    std::shuffle(texts.begin(), texts.end(), rng);
    options.threads = 3;
    REQUIRE(train(documents(texts), options)->canonical_json() == tokenizer->canonical_json());
  }
}

TEST_CASE("a special token that is written like a byte is refused before anything is counted") {
  for (const std::string token : {"\u00A7", "\u0120", "\u00E9"}) {
    TrainOptions options;
    options.vocab_size = 300;
    options.special_tokens = {options.eos_token, token};
    bool read = false;
    const auto trained = train([&read](std::string&) -> Result<bool> { return !(read = true); }, options);
    REQUIRE_FALSE(trained.ok());
    CHECK(trained.error().message().find("special token \"" + token + "\": is how") == 0);
    CHECK_FALSE(read);
  }
}

TEST_CASE("a trained tokenizer knows its special token and every byte") {
  TrainOptions options;
  options.vocab_size = 300;
  int reports = 0;
  options.progress = [&](const TrainProgress& p) { reports += p.done > 0; };
  const auto tokenizer = train(documents({"low lower lowest \xFF new newer newest", "", "low"}), options);
  REQUIRE(tokenizer.ok());
  CHECK(reports > 0);
  CHECK(tokenizer->vocab_size() <= 300);
  CHECK(tokenizer->eos_id() == 0);
  CHECK(tokenizer->missing_bytes() == 0);
  CHECK(tokenizer->token_to_id("low").has_value());
  CHECK(tokenizer->encode("<|endoftext|>") == std::vector<uint32_t>{0});
  CHECK(tokenizer->encode("<|endoftext|>", {.parse_special_tokens = false}).size() > 1);
  const std::string text = "some \u00E9 text\t\r\n \U0001F600";
  CHECK(*tokenizer->decode(tokenizer->encode(text)) == text);
}

// Several parts a thread, and one that has no place to cut for a while.
TEST_CASE("long documents are shared by threads and give what one thread finds") {
  std::mt19937 rng(9);
  std::string text;
  while (text.size() < 5'000'000) {
    for (size_t n = 1 + rng() % 9; n > 0; --n) text += static_cast<char>('a' + rng() % 20);
    text += text.size() > 1'000'000 && text.size() < 3'500'000 ? " " : "\n";
  }
  TrainOptions options;
  options.vocab_size = 280;
  const auto one = train(documents({text, "short"}), options);
  options.threads = 3;
  CHECK(train(documents({text, "short"}), options)->canonical_json() == one->canonical_json());
}

TEST_CASE("more distinct pieces than allowed is an error, however many threads") {
  TrainOptions options;
  options.vocab_size = 300;
  options.max_distinct_bytes = 11;
  for (options.threads = 1; options.threads < 4; ++options.threads) {
    CHECK(train(documents({"one two", "one two", " four"}), options).error().message().find("limit is 11") !=
          std::string::npos);
    CHECK(train(documents({"one two", "one two", " two"}), options).ok());
  }
  options.max_distinct_bytes = uint64_t{1} << 32;
  CHECK_FALSE(train(documents({}), options).ok());
}

TEST_CASE("nothing to learn from is no error; bad options are") {
  TrainOptions options;
  CHECK(train(documents({}), options)->vocab_size() == 257);
  options.vocab_size = 256;
  CHECK(train(documents({}), options).error().code() == ErrorCode::kInvalidArgument);
  options.vocab_size = 300;
  options.eos_token = "<eos>";
  CHECK(train(documents({}), options).error().message().find("<eos>") != std::string::npos);
  options.special_tokens = {"<eos>", "<eos>"};
  CHECK_FALSE(train(documents({}), options).ok());
  options.special_tokens = {"<eos>"};
  const DocumentSource broken = [](std::string&) -> Result<bool> { return io_error("disk gone"); };
  CHECK(train(broken, options).error().message() == "disk gone");
}

}  // namespace
}  // namespace ostro::tokenizer
