// check_options, open_options: what a server needs of ServeOptions before its model is loaded.
#pragma once

#include <memory>
#include <optional>

#include "ostro/serve/gate/api_keys.h"
#include "ostro/serve/options/serve_options.h"
#include "ostro/serve/receipts/receipt_log.h"

namespace ostro::serve {

// Errors: kInvalidArgument for a number that is not allowed, with the option as the command line has it.
Status check_options(const ServeOptions& options);

struct OpenedOptions {
  std::optional<ApiKeys> keys;  // for ModelServer::start
  std::unique_ptr<ReceiptMaker> receipts;
};

// Reads the keys and opens the receipts. `fs` must outlive both. Errors: those of ApiKeys::open,
// SigningKey::read and ReceiptMaker::open.
Result<OpenedOptions> open_options(io::FileSystem& fs, const ServeOptions& options);

}  // namespace ostro::serve
