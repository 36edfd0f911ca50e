// The folder of a user's caches follows from two variables.
#include "ostro/base/user_cache.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace ostro {
namespace {

// Sets a variable, or removes it, until this object ends.
class VariableFor {
 public:
  VariableFor(const char* name, const char* value) : name_(name) {
    if (const char* had = std::getenv(name); had != nullptr) had_ = had;
    set(value);
  }
  VariableFor(const VariableFor&) = delete;
  VariableFor& operator=(const VariableFor&) = delete;
  ~VariableFor() { set(had_ ? had_->c_str() : nullptr); }

 private:
  void set(const char* value) { value == nullptr ? ::unsetenv(name_) : ::setenv(name_, value, 1); }
  const char* name_;
  std::optional<std::string> had_;
};

TEST_CASE("caches are where XDG_CACHE_HOME says, else below HOME, else nowhere; an empty variable is none") {
  const VariableFor home("HOME", "/home/u");
  {
    const VariableFor caches("XDG_CACHE_HOME", "/caches");
    CHECK(user_cache_folder() == "/caches");
  }
  const VariableFor caches("XDG_CACHE_HOME", "");
  CHECK(user_cache_folder() == "/home/u/.cache");
  const VariableFor none("HOME", nullptr);
  CHECK(user_cache_folder().empty());
}

}  // namespace
}  // namespace ostro
