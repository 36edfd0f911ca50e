// Sha256, hmac_sha256: names and checksums of content (chain entries, checkpoint cells, data ledgers), and
// the message authentication code by which workers prove to each other that they belong to one job. There are
// no errors. Functions are thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ostro {

using Sha256Digest = std::array<uint8_t, 32>;

// An incremental hash. Not thread-safe. No call may follow finish().
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  // Appends bytes to the hashed text; returns *this.
  Sha256& update(std::span<const std::byte> bytes);
  Sha256& update(std::string_view bytes);
  // Returns the digest of everything appended.
  Sha256Digest finish();

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;
};

// The digest of the bytes.
Sha256Digest sha256(std::span<const std::byte> bytes);
Sha256Digest sha256(std::string_view bytes);

// 64 lower-case hexadecimal digits.
std::string to_hex(const Sha256Digest& digest);
// Lower-case hexadecimal SHA-256 of the bytes.
std::string sha256_hex(std::string_view bytes);
std::string sha256_hex(std::span<const std::byte> bytes);

// HMAC-SHA256 (RFC 2104) of the message. It cannot be computed without the key.
Sha256Digest hmac_sha256(std::string_view key, std::string_view message);

// A random number from the operating system, used once. An authentication code over it cannot be replayed,
// because no later message has the same nonce.
using Nonce = std::array<char, 32>;
Nonce new_nonce();

// Returns whether two codes are equal. The time does not depend on where they differ, so it does not show an
// attacker how much of a guessed code is right.
bool same_code(std::string_view a, std::string_view b);

}  // namespace ostro
