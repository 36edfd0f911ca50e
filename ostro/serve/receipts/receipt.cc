#include "ostro/serve/receipts/receipt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/serve/receipts/receipt_json.h"

namespace ostro::serve {

std::string ids_hash(const std::string& label, const std::string& salt, std::span<const int32_t> ids) {
  return sha256_hex(fmt::format("{}\n{}\n{}\n", label, salt, fmt::join(ids, ",")));
}

std::string log_probs_hash(std::span<const float> values) {
  std::string bytes;
  for (const float value : values) {
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift & 0xFFU);
  }
  return sha256_hex(bytes);
}

uint64_t nonce_seed(const std::string& nonce, const std::string& parameters, std::span<const int32_t> prompt,
                    const AnswerOptions& options) {
  const Sha256Digest digest = sha256(fmt::format("{}\n{}\n{}\n{}\n", nonce, parameters,
                                                 fmt::join(prompt, ","), options_json(options).dump()));
  uint64_t out = 0;
  for (size_t i = 0; i < sizeof out; ++i) out = out << 8 | digest[i];
  return out;
}

std::string receipt_text(const Receipt& receipt) { return receipt_json(receipt).dump(); }
std::string receipt_hash(const Receipt& receipt) { return sha256_hex(receipt_text(receipt)); }

std::string document_text(const ReceiptDocument& document) { return document_json(document).dump(); }

}  // namespace ostro::serve
