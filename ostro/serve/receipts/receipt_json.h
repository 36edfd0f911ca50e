// receipt_json, document_json, options_json: the JSON of receipts. Private to this room. Includes
// nlohmann/json.hpp, so use it in .cc files only.
#pragma once

#include <nlohmann/json.hpp>

#include "ostro/serve/receipts/receipt.h"

namespace ostro::serve {

// The options of an answer without its seed and number, in their canonical order.
nlohmann::ordered_json options_json(const AnswerOptions& options);
nlohmann::ordered_json receipt_json(const Receipt& receipt);
nlohmann::ordered_json document_json(const ReceiptDocument& document);

}  // namespace ostro::serve
