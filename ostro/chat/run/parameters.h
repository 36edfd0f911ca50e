// Parameters: assigns the arguments of a built-in function, filter, test or method to its parameters. It
// refers to the arguments, which must outlive it. Errors are thrown as TemplateError.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "ostro/chat/value/value.h"

namespace ostro::chat::jinja {

class Parameters {
 public:
  // `names` are the parameters in order, of which the first `required` must be given. `what` ("the filter
  // join") begins errors. Throws for a name that is not among them or is given twice, and for too many or too
  // few arguments.
  Parameters(const Arguments& arguments, std::string_view what, std::initializer_list<std::string_view> names,
             size_t required = 0);

  bool has(size_t i) const { return values_[i] != nullptr; }
  const Value& value(size_t i) const { return *values_[i]; }
  Value value_or(size_t i, Value otherwise) const { return has(i) ? *values_[i] : std::move(otherwise); }
  // The argument as a text, an integer or a truth value. text() and integer() throw when it has another type.
  const std::string& text(size_t i) const;
  int64_t integer(size_t i) const;
  int64_t integer_or(size_t i, int64_t otherwise) const { return has(i) ? integer(i) : otherwise; }
  bool flag(size_t i, bool otherwise) const { return has(i) ? values_[i]->truthy() : otherwise; }

 private:
  std::string_view what_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;  // null: not given
};

}  // namespace ostro::chat::jinja
