// Receipt: says which checkpoint gave an answer to which prompt, and how, so that a stranger can check it
// (docs/reference/formats/receipt.md). The opening, for the client alone, has what the receipt hides.
//
// Values and pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ostro/serve/model/answer.h"

namespace ostro::serve {

struct Receipt {
  std::string numerics;  // version of docs/spec/numerics.md
  ModelFacts model;      // without its name, which decides nothing
  AnswerOptions options;
  std::string nonce;           // the client's; empty: none
  std::string prompt, output;  // ids_hash of their tokens
  int64_t prompt_tokens = 0, output_tokens = 0;
  std::string finish;     // finish_word
  std::string log_probs;  // log_probs_hash
  // Place in the server's chain of receipts: its number, and the hash of the one before; empty: the first.
  int64_t number = 0;
  std::string previous;
  std::string key;  // fingerprint of the key that signs; empty: none
};

struct Opening {
  std::string salt;  // 64 hexadecimal digits
  std::vector<int32_t> prompt, output;
  std::vector<float> log_probs;  // of the output
};

// What a client gets, and what `ostro verify --receipt` reads.
struct ReceiptDocument {
  Receipt receipt;
  std::optional<Opening> opening;
  std::string signature;   // 128 hexadecimal digits; empty: not signed
  std::string public_key;  // PEM
};

// SHA-256, hexadecimal, of `label`, the salt and the ids in decimal with commas, each with a newline behind.
std::string ids_hash(const std::string& label, const std::string& salt, std::span<const int32_t> ids);
// SHA-256, hexadecimal, of the bits, each number in four bytes, the lowest first.
std::string log_probs_hash(std::span<const float> values);
// The first 64 bits of SHA-256 of nonce, ModelFacts::parameters(), prompt ids and options, each with a
// newline behind.
uint64_t nonce_seed(const std::string& nonce, const std::string& parameters, std::span<const int32_t> prompt,
                    const AnswerOptions& options);

// The canonical text: compact JSON, whose SHA-256 is the receipt's hash, and which is signed.
std::string receipt_text(const Receipt& receipt);
std::string receipt_hash(const Receipt& receipt);
// Compact JSON in one line, without a newline.
std::string document_text(const ReceiptDocument& document);
// The inverse, also of JSON that another program wrote. kCorrupt, naming `where` and the field, for anything
// that is no receipt of version 1; kUnsupported for a later version.
Result<ReceiptDocument> parse_document(std::string_view text, const std::string& where);

}  // namespace ostro::serve
