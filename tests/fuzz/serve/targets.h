// The readers of `ostro serve` that strangers' bytes reach, for the fuzzer: each takes the case of a seed,
// which alone decides it, and says what is wrong with what the reader made of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ostro::fuzz {

struct Outcome {
  std::optional<std::string> wrong;  // nothing: all is well
  bool accepted = false;
  std::string reason = {};  // why it was refused
};

class Target {
 public:
  virtual ~Target() = default;
  virtual Outcome run(uint64_t seed) = 0;
  // Cases that are known, as they are. Returns what is wrong; nothing: all is well.
  virtual std::optional<std::string> known() { return std::nullopt; }
};

// "bodies": of the four paths; those that are taken are answered, too. "http": bytes on a connection.
// "receipts": documents and logs, which are checked. "calls": texts of a model with calls of functions.
std::vector<std::string> target_names();
// Null for another name.
std::unique_ptr<Target> make_target(const std::string& name);

std::unique_ptr<Target> bodies_target();
std::unique_ptr<Target> http_target();
std::unique_ptr<Target> receipts_target();
std::unique_ptr<Target> calls_target();

}  // namespace ostro::fuzz
