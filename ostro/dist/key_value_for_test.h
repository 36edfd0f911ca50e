// MemoryKeyValue, FolderKeyValue: key-value stores for tests, one for threads, one for processes.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include <unistd.h>

#include "ostro/dist/key_value.h"

namespace ostro::dist {

class MemoryKeyValue final : public KeyValue {
 public:
  Status set(const std::string& key, std::string_view value) override {
    const std::lock_guard lock(mutex_);
    values_[key] = std::string(value);
    changed_.notify_all();
    return Status();
  }
  Result<std::string> get(const std::string& key, std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, timeout, [&] { return values_.contains(key); }))
      return busy("no value of " + key);
    return values_.at(key);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

// One file per key, in a folder. get() polls every millisecond.
class FolderKeyValue final : public KeyValue {
 public:
  explicit FolderKeyValue(std::filesystem::path folder) : folder_(std::move(folder)) {}

  Status set(const std::string& key, std::string_view value) override {
    const std::string unfinished = file(key) + ".new" + std::to_string(::getpid());
    std::ofstream(unfinished, std::ios::binary) << value;
    std::filesystem::rename(unfinished, file(key));
    return Status();
  }
  Result<std::string> get(const std::string& key, std::chrono::milliseconds timeout) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (!std::filesystem::exists(file(key))) {
      if (std::chrono::steady_clock::now() > deadline) return busy("no value of " + key);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::ostringstream out;
    out << std::ifstream(file(key), std::ios::binary).rdbuf();
    return out.str();
  }

 private:
  std::string file(std::string key) const {
    for (char& c : key)
      if (c == '/') c = '-';
    return folder_ / key;
  }
  const std::filesystem::path folder_;
};

}  // namespace ostro::dist
