// Tokenizer: text to token ids and back, with the ids that Hugging Face `tokenizers` gives for the same
// tokenizer.json, or `sentencepiece` for the same .model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/tokenizer/model/spec.h"

namespace ostro::tokenizer {

struct EncodeOptions {
  bool add_special_tokens = false;   // put the file's begin/end tokens around the text (post_processor)
  bool parse_special_tokens = true;  // false: "<|endoftext|>" in the text is ordinary text
};

// A BPE, Unigram or SentencePiece tokenizer. Immutable: any number of threads may use one object. Cheap to
// move, not copyable.
class Tokenizer {
 public:
  // Reads a tokenizer.json (from a file: load_tokenizer in files.h); `name` (a path) begins every error. A
  // component that is not supported, anywhere in the file, is an error that names it.
  static Result<Tokenizer> from_json(std::string_view json, std::string_view name);

  // Reads a SentencePiece .model. With add_bos or add_eos, add_special_tokens puts the model's bos or eos
  // piece around a text, as a tokenizer_config.json with "add_bos_token" says; the file itself does not.
  static Result<Tokenizer> from_sentencepiece(std::string bytes, std::string_view name, bool add_bos = false,
                                              bool add_eos = false);

  // Builds from data; fails when ids clash, or a merge's result is not in the vocabulary.
  static Result<Tokenizer> from_spec(TokenizerSpec spec);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Token ids of a text. Bytes that are not UTF-8 are read as U+FFFD, like Python's decode(errors="replace").
  // For many texts use an Encoder, which remembers pieces.
  std::vector<uint32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;

  // The text of ids, always valid UTF-8 (U+FFFD where the bytes are not). kInvalidArgument for an unknown id.
  Result<std::string> decode(std::span<const uint32_t> ids, bool skip_special_tokens = false) const;

  // The bytes of ids, unrepaired: what ends inside a character is completed by the ids that follow.
  Result<std::string> decode_bytes(std::span<const uint32_t> ids, bool skip_special_tokens = false) const;

  // One more than the largest id: the rows an embedding needs.
  uint32_t vocab_size() const;

  std::optional<uint32_t> token_to_id(
      std::string_view token) const;  // model tokens in the byte-level alphabet
  std::optional<std::string_view> id_to_token(uint32_t id) const;

  // The token that ends a document, and the one that begins it. tokenizer.json does not name them: they are
  // guessed from well-known names until set_eos_token / set_bos_token (from a tokenizer_config.json or an
  // option) says so.
  std::optional<uint32_t> eos_id() const;
  std::optional<uint32_t> bos_id() const;
  Status set_eos_token(std::string_view token);
  Status set_bos_token(std::string_view token);

  // Bytes that the vocabulary has no token for, which encode leaves out as Hugging Face does. 0 for ours.
  int missing_bytes() const;

  // The tokenizer.json, indented, as written to files; loads in Hugging Face `tokenizers` with the same ids.
  // For a SentencePiece model, which no tokenizer.json can say exactly, it holds the .model and only Ostro
  // reads it.
  std::string to_json() const;

  // The same content with sorted keys and no spaces: what a tokenizer's hash is taken of.
  std::string canonical_json() const;
  // SHA-256 of canonical_json(), in hexadecimal; computed once. Thread-safe.
  const std::string& hash() const;

  // A tokenizer_config.json to write beside it, so that AutoTokenizer knows the eos and bos tokens.
  // `model_max_length` in tokens; 0 leaves it out.
  std::string tokenizer_config_json(int64_t model_max_length = 0) const;

  const TokenizerSpec& spec() const;

 private:
  friend class Encoder;
  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);
  Result<std::string> decode_to(std::span<const uint32_t> ids, bool skip_special_tokens, bool raw) const;

  std::unique_ptr<State> state_;
};

// Encodes many texts with a bounded memory of pieces met before. One per thread; the tokenizer must outlive
// it.
class Encoder {
 public:
  explicit Encoder(const Tokenizer& tokenizer);
  Encoder(Encoder&&) noexcept;
  ~Encoder();

  // Appends the ids of a text: the same as Tokenizer::encode, faster.
  void encode(std::string_view text, const EncodeOptions& options, std::vector<uint32_t>& out);

 private:
  struct Work;
  void encode_segment(std::string_view text, bool at_start, std::vector<uint32_t>& out);
  void encode_bytes(std::string_view text, std::vector<uint32_t>& out);

  const Tokenizer& tokenizer_;
  std::unique_ptr<Work> work_;  // kept between calls for its memory
};

}  // namespace ostro::tokenizer
