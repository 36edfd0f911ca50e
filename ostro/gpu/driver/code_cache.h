// CodeCache: compiled device text, kept on disk by its content.
//
// The key of an entry is a hash of the text, the compiler and its options. An entry is used when it is a file
// of this user that no other can write or read, its bytes have the hash at its end, and it begins with its
// own key; any other is compiled again and replaced. Processes of one user may share the folder. Thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>

#include "ostro/base/error.h"

namespace ostro::gpu {

class CodeCache {
 public:
  // The entries lie in the folder `cuda` of that cache, which is made with the first entry, for the owner
  // alone. An empty path: nothing is kept.
  explicit CodeCache(const std::filesystem::path& cache);

  static std::string key(const std::string& compiler, const std::string& options, const std::string& text);
  // The entry's code; nothing when there is no entry, or it cannot be trusted.
  std::optional<std::string> find(const std::string& key) const;
  // Keeps an entry. When that is not possible, logs a warning once; nothing else changes.
  void keep(const std::string& key, const std::string& code);

 private:
  Status write(const std::string& key, const std::string& code) const;

  std::filesystem::path folder_;
  std::atomic<bool> told_ = false;
};

}  // namespace ostro::gpu
