// ServeOptions: the options of `ostro serve` that Python's ostro.serve takes too, with their defaults.
//
// A value in types of the standard library alone, as python/module/native.h needs it. opened_options.h checks
// it.
#pragma once

#include <cstdint>
#include <string>

namespace ostro::serve {

struct ServeOptions {
  std::string listen = "127.0.0.1:8080";  // an address, whose spelling is the caller's matter
  std::string api_keys;                   // a file (ApiKeys); empty: requests need no key
  std::string receipts;                   // a folder (ReceiptMaker); empty: receipts are not kept
  std::string sign;                       // a file with a private key; empty: receipts are not signed
  int64_t waiting = 64;                   // requests that may wait for the model
  int64_t running = 16;                   // answers that the model makes at the same time
  int64_t cache_pages = 0;                // of 128 positions; 0: each answer has room for a whole context
};

}  // namespace ostro::serve
