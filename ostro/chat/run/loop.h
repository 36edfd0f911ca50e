// Loop: the variable `loop` of a for loop. It fetches the next items only when it must, because they may
// depend on the effects of the loop's body.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "ostro/chat/value/value.h"

namespace ostro::chat::jinja {

class Loop : public std::enable_shared_from_this<Loop> {
 public:
  using Next = std::function<bool(Value&)>;  // false at the end
  using Recurse = std::function<Value(const Value&)>;

  Loop(Next next, int64_t depth0, Recurse recurse)
      : next_(std::move(next)), recurse_(std::move(recurse)), depth0_(depth0) {}

  // The next item; false at the end.
  bool advance(Value& item);
  // loop.index and the other attributes. Nothing for an unknown name.
  std::optional<Value> attribute(std::string_view name);
  // loop(items) of a recursive loop.
  Value recurse(const Value& items) const;
  // Drops all values, so that a loop that contains itself can be freed.
  void clear();

 private:
  int64_t length();
  bool has_next();

  Next next_;
  Recurse recurse_;
  std::deque<Value> ahead_;
  bool ended_ = false;
  int64_t index0_ = -1, depth0_;
  std::optional<Value> previous_, current_;
  std::optional<std::vector<Value>> last_changed_;
};

}  // namespace ostro::chat::jinja
