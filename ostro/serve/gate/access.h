// Access: which requests a server answers, by where they come from and by the key that they bring.
//
// On a loopback address a request names its host as a name of this machine: a browser here can be led by a
// foreign page to a name that points to this machine. Without keys no page of another origin is answered.
// With keys every request brings one, as "Authorization: Bearer KEY", except for those that is_open() names.
// /metrics tells of the requests of all keys (how many tokens were there from earlier texts, how long answers
// take), so only the key with the name "metrics" reads it, and that one nothing else.
// One thread at a time.
#pragma once

#include <optional>
#include <string>

#include "ostro/http/address.h"
#include "ostro/http/gate.h"
#include "ostro/serve/gate/api_keys.h"
#include "ostro/serve/json/api_error.h"

namespace ostro::serve {

class Access {
 public:
  // Errors: other machines reach the address, and there are no keys.
  static Result<Access> create(const http::Address& address, std::optional<ApiKeys> keys);

  // Why a request is turned away; nothing if it may pass.
  std::optional<ApiError> refusal(const http::Request& request);
  // Whose kept beginnings of texts a request that may pass shares: a name of its key alone; "": there are no
  // keys.
  std::string owner(const http::Request& request) const;
  // Whose share of the server a request that may pass takes: a name of its key alone; "": there are no keys,
  // or a single one, which shares with no other.
  std::string sharer(const http::Request& request) const;
  // What is answered without a key: whether the server lives and is ready, and the page, which then asks for
  // a key.
  static bool is_open(const std::string& path);

 private:
  explicit Access(bool loopback, std::optional<ApiKeys> keys) : loopback_(loopback), keys_(std::move(keys)) {}

  bool loopback_;
  std::optional<ApiKeys> keys_;
  std::string trouble_;  // with the keys, that was logged last
};

}  // namespace ostro::serve
