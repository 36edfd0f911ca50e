// new_write_id, content_write_id: what an object says of the write that made it (s3_client.h).
#pragma once

#include <fmt/core.h>

#include <random>
#include <span>
#include <string>

#include "ostro/base/sha256.h"

namespace ostro::objects {

// No two are equal.
inline std::string new_write_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

// Equal for equal content: two writers of the same bytes count as one.
inline std::string content_write_id(std::span<const std::byte> bytes) {
  return "sha256-" + sha256_hex(bytes);
}

}  // namespace ostro::objects
