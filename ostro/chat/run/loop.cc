#include "ostro/chat/run/loop.h"

#include <utility>

namespace ostro::chat::jinja {

bool Loop::has_next() {
  if (!ahead_.empty()) return true;
  if (ended_) return false;
  Value item;
  if (!next_(item)) {
    ended_ = true;
    return false;
  }
  ahead_.push_back(std::move(item));
  return true;
}

int64_t Loop::length() {
  Value item;
  while (!ended_) {
    if (next_(item))
      ahead_.push_back(item);
    else
      ended_ = true;
  }
  return index0_ + 1 + static_cast<int64_t>(ahead_.size());
}

bool Loop::advance(Value& item) {
  if (!has_next()) return false;
  previous_ = std::move(current_);
  item = std::move(ahead_.front());
  ahead_.pop_front();
  current_ = item;
  ++index0_;
  return true;
}

std::optional<Value> Loop::attribute(std::string_view name) {
  if (name == "index") return Value(index0_ + 1);
  if (name == "index0") return Value(index0_);
  if (name == "first") return Value(index0_ == 0);
  if (name == "last") return Value(!has_next());
  if (name == "length") return Value(length());
  if (name == "revindex") return Value(length() - index0_);
  if (name == "revindex0") return Value(length() - index0_ - 1);
  if (name == "depth") return Value(depth0_ + 1);
  if (name == "depth0") return Value(depth0_);
  if (name == "previtem") return index0_ > 0 ? *previous_ : Value::undefined("there is no previous item");
  if (name == "nextitem") return has_next() ? ahead_.front() : Value::undefined("there is no next item");
  if (name == "cycle")
    return Value(Callable{"loop.cycle", [self = shared_from_this()](Interpreter&, Arguments& a) {
                            if (a.positional.empty())
                              throw TemplateError("loop.cycle() needs items to cycle over");
                            return a.positional[static_cast<size_t>(self->index0_) % a.positional.size()];
                          }});
  if (name == "changed")
    return Value(Callable{"loop.changed", [self = shared_from_this()](Interpreter&, Arguments& a) {
                            const bool same = self->last_changed_ && equal(Value::tuple(*self->last_changed_),
                                                                           Value::tuple(a.positional));
                            self->last_changed_ = a.positional;
                            return Value(!same);
                          }});
  return std::nullopt;
}

void Loop::clear() {
  next_ = nullptr;
  recurse_ = nullptr;
  ended_ = true;
  ahead_.clear();
  previous_.reset();
  current_.reset();
  last_changed_.reset();
}

Value Loop::recurse(const Value& items) const {
  if (!recurse_) throw TemplateError("loop() in a loop that is not marked `recursive`");
  return recurse_(items);
}

}  // namespace ostro::chat::jinja
