// Tokenizer: turns text into token ids and back. It gives the same ids as Hugging Face `tokenizers` for a
// tokenizer.json, and as `sentencepiece` for a .model.
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

// The id of an added token that is named without one.
inline constexpr uint32_t kNoTokenId = UINT32_MAX;
// The key of begins_texts() in a tokenizer_config.json; only Ostro has it.
inline constexpr const char* kBeginsTexts = "ostro_begins_texts";

struct EncodeOptions {
  bool add_special_tokens = false;   // put the file's begin/end tokens around the text (post_processor)
  bool parse_special_tokens = true;  // false: "<|endoftext|>" in the text is ordinary text
};

// A BPE, unigram or SentencePiece tokenizer. Only the set_... functions change it: any number of threads may
// use one object while none of them is called. It can be moved but not copied.
class Tokenizer {
 public:
  // Reads the text of a tokenizer.json. (load_tokenizer in files.h reads a file.) `name`, for example a path,
  // begins every error. Errors: kUnsupported for a component that Ostro does not know, which it names;
  // kCorrupt for a file that is no tokenizer.
  static Result<Tokenizer> from_json(std::string_view json, std::string_view name);

  // Reads the bytes of a SentencePiece .model. With add_bos or add_eos, EncodeOptions::add_special_tokens
  // puts the model's bos or eos piece around a text. The .model itself does not say this; a
  // tokenizer_config.json does ("add_bos_token").
  static Result<Tokenizer> from_sentencepiece(std::string bytes, std::string_view name, bool add_bos = false,
                                              bool add_eos = false);

  // Builds a tokenizer from a spec. Errors: kCorrupt for a spec that fits no tokenizer: two tokens have one
  // id, the result of a merge is not in the vocabulary, a text is not UTF-8; those of the parts that the spec
  // holds as JSON.
  static Result<Tokenizer> from_spec(TokenizerSpec spec);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // The token ids of a text. Bytes that are not UTF-8 are read as U+FFFD, as Python's
  // decode(errors="replace") does. For many texts use an Encoder, which caches pieces.
  std::vector<uint32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;

  // The text of ids, always valid UTF-8 (U+FFFD where the bytes are not). kInvalidArgument for an unknown id.
  Result<std::string> decode(std::span<const uint32_t> ids, bool skip_special_tokens = false) const;

  // The bytes of ids, without repair. The last character may be incomplete; the bytes of the next ids
  // complete it.
  Result<std::string> decode_bytes(std::span<const uint32_t> ids, bool skip_special_tokens = false) const;

  // The largest id plus one: the number of rows that an embedding needs.
  uint32_t vocab_size() const;

  // The id of a token of the model or of an added token, and the token of an id; nothing if there is none.
  std::optional<uint32_t> token_to_id(
      std::string_view token) const;  // model tokens are given in the byte-level alphabet
  std::optional<std::string_view> id_to_token(uint32_t id) const;

  // The tokens that end and begin a document. tokenizer.json does not name them. They are guessed from
  // well-known names until set_eos_token or set_bos_token is called (from a tokenizer_config.json or an
  // option).
  std::optional<uint32_t> eos_id() const;
  std::optional<uint32_t> bos_id() const;
  // Error of both: kNotFound for a text that is no token.
  Status set_eos_token(std::string_view token);
  Status set_bos_token(std::string_view token);

  // What text_ends (text_ends.h) needs besides: whether the texts of the run that this tokenizer belongs to
  // begin with the beginning token (nothing: as the tokenizer does), and ids besides the eos after which
  // generation ends (a generation_config.json names them). Neither is a part of hash().
  std::optional<bool> begins_texts() const;
  void set_begins_texts(bool begins);
  const std::vector<uint32_t>& more_stops() const;
  void set_more_stops(std::vector<uint32_t> ids);
  // The "tokenizer_class" that a .model was found with; empty: none was named. Not a part of hash().
  const std::string& class_name() const;
  void set_class_name(std::string name);

  // Returns a tokenizer that has these added tokens, too, as transformers adds them: a token that is there
  // gets these properties and keeps its id, a new one gets the next free id. A warning says when `id` is
  // another one, unless it is kNoTokenId. Nothing is returned when this tokenizer has them all. What the
  // set_... functions set is not taken over. Errors are those of from_spec().
  Result<std::optional<Tokenizer>> with_added_tokens(const std::vector<AddedToken>& tokens) const;
  // Returns a tokenizer whose post-processor puts these ids, and nothing else, in front of a text. Each must
  // be an id of a token. It takes over what the set_... functions set, except begins_texts(). Errors are
  // those of from_spec().
  Result<Tokenizer> with_beginning(const std::vector<uint32_t>& ids) const;

  // The number of byte values that a byte-level BPE model has no token for. encode drops such bytes, as
  // Hugging Face does. 0 for the tokenizers that Ostro trains and for other kinds of models.
  int missing_bytes() const;

  // The text of the tokenizer.json, indented. Hugging Face `tokenizers` reads it and gives the same ids.
  // Exception: a SentencePiece model cannot be expressed exactly in a tokenizer.json. For it the file
  // contains the .model, and only Ostro can read it; what is exported is the .model itself.
  std::string to_json() const;

  // The content of to_json() with sorted keys and no spaces. The tokenizer's hash is computed from this text.
  std::string canonical_json() const;
  // SHA-256 of canonical_json() in hexadecimal, computed once. Thread-safe.
  const std::string& hash() const;

  // The text of a tokenizer_config.json, from which AutoTokenizer learns the eos and bos tokens, and of a
  // .model everything that the .model itself does not say. `model_max_length` is in tokens; 0 leaves it out.
  // `begins_texts` is written where it is given, for tokenizers in the folder of a run.
  std::string tokenizer_config_json(int64_t model_max_length = 0,
                                    std::optional<bool> begins_texts = {}) const;
  // The text of a generation_config.json: the ids that begin a text and that end it, a list where generation
  // ends after several. Generation is greedy unless the user asks for sampling.
  std::string generation_config_json() const;
  // True for a .model of the unigram kind, of which transformers has no class of its own.
  bool is_unigram_model() const;

  const TokenizerSpec& spec() const;

 private:
  friend class Encoder;
  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);
  Result<std::string> decode_to(std::span<const uint32_t> ids, bool skip_special_tokens, bool raw) const;

  std::unique_ptr<State> state_;
};

// Encodes many texts and caches pieces seen before, in memory of fixed size. One per thread; the tokenizer
// must outlive it.
class Encoder {
 public:
  explicit Encoder(const Tokenizer& tokenizer);
  Encoder(Encoder&&) noexcept;
  ~Encoder();

  // Appends the ids of a text. The same ids as Tokenizer::encode, but faster.
  void encode(std::string_view text, const EncodeOptions& options, std::vector<uint32_t>& out);

 private:
  struct Work;
  void encode_segment(std::string_view text, bool at_start, std::vector<uint32_t>& out);
  void encode_bytes(std::string_view text, std::vector<uint32_t>& out);

  const Tokenizer& tokenizer_;
  std::unique_ptr<Work> work_;  // kept between calls to reuse its memory
};

}  // namespace ostro::tokenizer
