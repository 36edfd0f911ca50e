// check_receipt: whether the checkpoint at hand gives the answer of a receipt. Prompt and answer go through
// the model as one prompt, and a token is chosen again at every place, so it costs a prompt, not a
// generation (numerics.md N16).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/audit/verdict.h"
#include "ostro/bundle/parts/signature.h"
#include "ostro/serve/receipts/receipt.h"
#include "ostro/serve/receipts/receipt_models.h"

namespace ostro::serve {

struct ReceiptCheck {
  std::vector<audit::Finding> findings;  // the worst first
  int64_t prompt_tokens = 0, output_tokens = 0;
  std::string key;  // fingerprint of the key that signed; empty: none did

  audit::Verdict verdict() const { return audit::verdict_of_sorted(findings); }
};

// Whether the signature is one of the receipt, by the key that it names and by `key`, if there is one. Adds
// to `out`.
void check_seal(const ReceiptDocument& document, const std::optional<bundle::PublicKey>& key,
                ReceiptCheck& out);

// Whether the opening, which the document has, is what the receipt's hashes stand for, and the seed what its
// nonce gives. Adds to `out`.
void check_opening(const ReceiptDocument& document, ReceiptCheck& out);

// `key`: that must have signed. `others`, if given, are asked where the forward program is another one than
// the receipt's, to find out whether it is that of another precision or context. Errors: those of running the
// model.
Result<ReceiptCheck> check_receipt(const ReceiptDocument& document, ServedModel& model,
                                   const std::optional<bundle::PublicKey>& key,
                                   ReceiptModels* others = nullptr);

// The verdict's line first, then the other findings, what was shown and what was not. Ends with a newline.
std::string receipt_check_text(const ReceiptCheck& check);
// One JSON object in a line.
std::string receipt_check_json(const ReceiptCheck& check);

}  // namespace ostro::serve
