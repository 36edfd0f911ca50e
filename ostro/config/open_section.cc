#include "ostro/config/open_section.h"

namespace ostro::config {
namespace {

std::vector<std::string> type_names(const OpenSection& section) {
  std::vector<std::string> names;
  for (const auto& choice : section.choices()) names.push_back(choice->type());
  return names;
}

}  // namespace

OpenSection::OpenSection(std::vector<std::shared_ptr<const SectionValue>> choices)
    : choices_(std::move(choices)) {
  OSTRO_CHECK(!choices_.empty(), "a section needs at least one type");
  value_ = choices_[0]->clone();
}

OpenSection::OpenSection(const OpenSection& other)
    : choices_(other.choices_), value_(other.value_->clone()) {}

OpenSection& OpenSection::operator=(const OpenSection& other) {
  OpenSection copy(other);
  *this = std::move(copy);
  return *this;
}

void OpenSection::choose(const std::string& type) {
  for (const auto& choice : choices_) {
    if (choice->type() == type) {
      value_ = choice->clone();
      return;
    }
  }
  OSTRO_CHECK(false, "type \"{}\" is not among the choices", type);
}

Status read_value(const Node& node, const std::string& path, OpenSection* out) {
  if (node.kind != Node::Kind::kMap) return wrong_type(node, path, "a section with a `type` key");
  const ChosenType chosen = chosen_type(node, path, out->value().type(), type_names(*out));
  if (chosen.type != out->value().type()) out->choose(chosen.type);
  Mistakes mistakes;
  mistakes.add(chosen.error);
  mistakes.add(table_of(out->value()).read(without_type(node), path));
  return mistakes.status();
}

Node write_value(const OpenSection& value, Write which) {
  return with_type(value.value().type(), table_of(const_cast<SectionValue&>(value.value())).write(which));
}

std::string type_text(const OpenSection*) { return "section"; }

void describe_inside(const OpenSection& value, const OptionInfo& self, std::vector<OptionInfo>& out) {
  const std::vector<std::string> names = type_names(value);
  out.push_back(type_key_info(self, value.value().type(), names));
  for (const auto& choice : value.choices()) {
    OptionInfo inner = self;
    if (names.size() > 1) inner.selects.emplace_back(join_path(self.path, "type"), choice->type());
    const std::unique_ptr<SectionValue> held =
        choice->type() == value.value().type() ? value.value().clone() : choice->clone();
    table_of(*held).describe(inner, out);
  }
}

}  // namespace ostro::config
