#include "ostro/tokenizer/files/trainer.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <thread>
#include <unordered_map>

#include "ostro/tokenizer/files/merge_search.h"
#include "ostro/tokenizer/files/piece_counts.h"
#include "ostro/tokenizer/model/byte_alphabet.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {
namespace {

constexpr size_t kBatchBytes = size_t{16} << 20;  // text in memory while it is counted
constexpr size_t kPartBytes = size_t{1} << 20;    // text that one thread counts at a time
constexpr uint32_t kReportEvery = 64;             // merges between two progress calls

// Cuts a document into parts of about kPartBytes, so that threads can share a long one.
void cut_document(Splitter splitter, std::string_view document, std::vector<std::string_view>& parts) {
  for (size_t size = kPartBytes; splitter != Splitter::kNone && document.size() > size;) {
    const size_t cut = last_cut(document.substr(0, size));
    size = cut == 0 ? 2 * size : kPartBytes;
    if (cut == 0) continue;
    parts.push_back(document.substr(0, cut));
    document.remove_prefix(cut);
  }
  parts.push_back(document);
}

void count_batch(const std::vector<std::string>& batch, Splitter splitter, std::vector<PieceCounts>& counts) {
  std::vector<std::string_view> parts;
  for (const std::string& document : batch) cut_document(splitter, document, parts);
  std::atomic<size_t> next = 0;
  const auto work = [&](PieceCounts& its_counts) {
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < parts.size();)
      its_counts.add_document(splitter, parts[i]);
  };
  std::vector<std::thread> threads;
  for (size_t t = 1; t < counts.size(); ++t) threads.emplace_back(work, std::ref(counts[t]));
  work(counts[0]);
  for (std::thread& thread : threads) thread.join();
}

// Adds all counts to the first.
void gather(std::vector<PieceCounts>& counts) {
  for (size_t t = 1; t < counts.size(); ++t) {
    counts[0].add(counts[t]);
    counts[t] = {};
  }
}

// Different threads may count the same pieces, so the limit can be checked only on the gathered counts.
Status check_distinct(const TrainOptions& options, uint64_t read, std::vector<PieceCounts>& counts) {
  uint64_t distinct = 0;
  for (const PieceCounts& c : counts) distinct += c.distinct_bytes();
  if (distinct <= options.max_distinct_bytes) return {};
  gather(counts);
  distinct = counts[0].distinct_bytes();
  if (distinct <= options.max_distinct_bytes) return {};
  return invalid_argument(
      fmt::format("the first {} bytes of text have {} bytes of distinct pieces, the limit is {}: train on a "
                  "sample, or raise the limit (about 30 bytes of memory for each)",
                  read, distinct, options.max_distinct_bytes));
}

Result<PieceCounts> count_pieces(const DocumentSource& documents, const TrainOptions& options) {
  std::vector<PieceCounts> counts(static_cast<size_t>(std::max(options.threads, 1)));
  uint64_t total = 0;
  for (bool more = true; more;) {
    std::vector<std::string> batch;
    for (size_t bytes = 0; bytes < kBatchBytes;) {
      std::string document;
      ASSIGN_OR_RETURN(more, documents(document));
      if (!more) break;
      bytes += document.size();
      total += document.size();
      batch.push_back(std::move(document));
    }
    count_batch(batch, options.splitter, counts);
    RETURN_IF_ERROR(check_distinct(options, total, counts));
    if (options.progress) options.progress({TrainProgress::Stage::kCounting, total, 0});
  }
  gather(counts);
  return std::move(counts[0]);
}

Status check_options(const TrainOptions& options) {
  constexpr uint64_t kMostDistinct = 0xFFFFFFFE;  // MergeSearch numbers their bytes with 32 bits
  if (options.max_distinct_bytes > kMostDistinct) {
    return invalid_argument(fmt::format("max_distinct_bytes is {}, expected at most {}",
                                        options.max_distinct_bytes, kMostDistinct));
  }
  const auto& special = options.special_tokens;
  const size_t least = special.size() + 256;
  if (options.vocab_size < least || options.vocab_size >= 1u << 24) {
    return invalid_argument(
        fmt::format("vocab_size is {}, expected {} (256 bytes and {} special tokens) to {}",
                    options.vocab_size, least, special.size(), (1u << 24) - 1));
  }
  for (const std::string& token : special) {
    if (token.size() < 2 || !is_valid_utf8(token) || std::count(special.begin(), special.end(), token) != 1) {
      return invalid_argument(
          fmt::format("special token \"{}\": expected distinct UTF-8 names of at least 2 bytes",
                      is_valid_utf8(token) ? token : repair_utf8(token)));
    }
  }
  for (int byte = 0; byte < 256; ++byte) {
    const std::string character = bytes_to_characters(std::string(1, static_cast<char>(byte)));
    if (std::count(special.begin(), special.end(), character) > 0)
      return invalid_argument(fmt::format(
          "special token \"{}\": is how a tokenizer.json writes the byte {:#04x}, so it would be two tokens; "
          "use a longer name",
          character, byte));
  }
  if (!options.eos_token.empty() && std::count(special.begin(), special.end(), options.eos_token) == 0) {
    return invalid_argument(
        fmt::format("eos_token \"{}\" is not one of the special tokens", options.eos_token));
  }
  return {};
}

// Adds the special tokens and the 256 single bytes. Returns the id of each byte.
std::array<uint32_t, 256> begin_vocab(const TrainOptions& options, TokenizerSpec& spec) {
  for (const std::string& token : options.special_tokens) {
    spec.added_tokens.push_back(
        {.id = static_cast<uint32_t>(spec.vocab.size()), .content = token, .special = true});
    spec.vocab.push_back(token);
  }
  std::array<uint32_t, 256> ids{};
  for (const uint8_t byte : bytes_by_character()) {
    ids[byte] = static_cast<uint32_t>(spec.vocab.size());
    spec.vocab.push_back(bytes_to_characters(std::string(1, static_cast<char>(byte))));
  }
  return ids;
}

}  // namespace

// Counts the distinct pieces of all documents first; the text is not needed after that. Pieces enter the
// search sorted by their bytes, so the result does not depend on the order of the documents. Then merges
// until the vocabulary is full or no pair is frequent enough.
Result<Tokenizer> train(const DocumentSource& documents, const TrainOptions& options) {
  RETURN_IF_ERROR(check_options(options));
  TokenizerSpec spec;
  spec.splitter = options.splitter;
  spec.byte_level_splits = options.splitter == Splitter::kGpt2;
  spec.post_processor =
      R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":false,"use_regex":true})";
  const auto byte_ids = begin_vocab(options, spec);

  MergeSearch search;
  {
    ASSIGN_OR_RETURN(const PieceCounts counts, count_pieces(documents, options));
    std::vector<uint32_t> ids;
    for (const auto& [piece, count] : counts.sorted()) {
      ids.clear();
      for (const char byte : piece) ids.push_back(byte_ids[static_cast<uint8_t>(byte)]);
      search.add_piece(ids, count);
    }
  }
  search.start();

  // Two different merges can produce the same text. It is one token, so there may be more merges than merged
  // tokens.
  std::unordered_map<std::string, uint32_t> known;
  for (uint32_t id = 0; id < spec.vocab.size(); ++id) known.emplace(spec.vocab[id], id);
  while (spec.vocab.size() < options.vocab_size) {
    const auto pair = search.best(options.min_frequency);
    if (!pair) break;
    const auto next = static_cast<uint32_t>(spec.vocab.size());
    const std::string joined = spec.vocab[pair->first] + spec.vocab[pair->second];
    const auto [it, is_new] = known.emplace(joined, next);
    if (is_new) spec.vocab.push_back(joined);
    spec.merges.push_back(*pair);
    search.merge(*pair, it->second);
    if (options.progress && next % kReportEvery == 0) {
      options.progress({TrainProgress::Stage::kMerging, next, options.vocab_size});
    }
  }
  if (options.progress)
    options.progress({TrainProgress::Stage::kMerging, spec.vocab.size(), spec.vocab.size()});

  ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::from_spec(std::move(spec)));
  if (!options.eos_token.empty()) RETURN_IF_ERROR(tokenizer.set_eos_token(options.eos_token));
  return tokenizer;
}

}  // namespace ostro::tokenizer
