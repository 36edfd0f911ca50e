// OpenSection: a section whose possible types are known only at run time. Used for models, which may be
// defined outside this library.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/config/options.h"

namespace ostro::config {

// The options of one type. It can be copied without knowing its class.
class SectionValue {
 public:
  virtual ~SectionValue() = default;
  virtual std::string type() const = 0;
  virtual void visit_options(OptionTable& table) = 0;
  virtual std::unique_ptr<SectionValue> clone() const = 0;
};

// A section that holds one of the given types, chosen by its `type:` key. A value type; copies share the list
// of choices.
class OpenSection {
 public:
  // `choices` holds every type with its default values. The first one is chosen at the start. There must be
  // at least one, and their names must differ.
  explicit OpenSection(std::vector<std::shared_ptr<const SectionValue>> choices);
  OpenSection(const OpenSection& other);
  OpenSection& operator=(const OpenSection& other);
  OpenSection(OpenSection&&) noexcept = default;
  OpenSection& operator=(OpenSection&&) noexcept = default;
  ~OpenSection() = default;

  const SectionValue& value() const { return *value_; }
  SectionValue& value() { return *value_; }
  const std::vector<std::shared_ptr<const SectionValue>>& choices() const { return choices_; }

  // Replaces the value by the defaults of this type, which must be one of the choices.
  void choose(const std::string& type);

 private:
  std::vector<std::shared_ptr<const SectionValue>> choices_;
  std::unique_ptr<SectionValue> value_;
};

// The functions of codec.h for this type.
Status read_value(const Node& node, const std::string& path, OpenSection* out);
Node write_value(const OpenSection& value, Write which);
std::string type_text(const OpenSection*);
void describe_inside(const OpenSection& value, const OptionInfo& self, std::vector<OptionInfo>& out);

}  // namespace ostro::config
