#include "ostro/train/programs/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace ostro::train {
namespace {

using Kind = Field::Kind;

// Goes through a program's list from its first element to its last, and takes what fields ask for.
class Matcher {
 public:
  Matcher(const ir::Program& program, Side side, const ParameterList& model)
      : program_(program),
        side_(side),
        model_(model),
        values_(side == Side::kParams ? program.body.params : program.body.results),
        names_(side == Side::kParams ? program.param_names : program.result_names),
        paths_(model.paths.begin(), model.paths.end()) {}

  Status check_names() const {
    if (names_.size() == values_.size()) return Status();
    return invalid_argument(fmt::format("the program \"{}\" has {} {}s and {} names of them", program_.name,
                                        values_.size(), word(), names_.size()));
  }

  Status take(const Field& field) {
    switch (field.kind) {
      case Kind::kOne: return take_one(field.name.empty() && is_there() ? name() : field.name, field.shape);
      case Kind::kPerParameter:
        for (size_t k = 0; k < model_.paths.size(); ++k) RETURN_IF_ERROR(take_of_parameter(field, k));
        return Status();
      case Kind::kPerTrained:
        for (size_t k = 0; is_there() && name().starts_with(field.name); ++k) {
          if (k == model_.paths.size()) return unexpected("no more of " + field.name);
          RETURN_IF_ERROR(take_of_parameter(field, k));
        }
        return Status();
      case Kind::kOptimizer:
        while (is_there() && is_of_optimizer(name())) ++at_;
        return Status();
      case Kind::kEach:
        while (is_there() && name().starts_with(field.name)) RETURN_IF_ERROR(take_one(name(), field.shape));
        return Status();
      case Kind::kRest:
        while (is_there()) RETURN_IF_ERROR(take_one(name(), field.shape));
        return Status();
    }
    return Status();
  }

  size_t at() const { return at_; }
  Status finish() const { return is_there() ? unexpected("nothing more") : Status(); }

 private:
  const char* word() const { return side_ == Side::kParams ? "parameter" : "result"; }
  bool is_there() const { return at_ < values_.size(); }
  std::string name() const { return names_[at_]; }

  Status take_of_parameter(const Field& field, size_t k) {
    return take_one(field.name + model_.paths[k], field.shape ? field.shape : model_.shapes[k]);
  }

  Status take_one(const std::string& name, const std::optional<ir::Shape>& shape) {
    const std::string expected = shape ? fmt::format("\"{}\" {}", name, shape->str()) : name;
    if (!is_there() || names_[at_] != name) return unexpected(expected);
    if (shape && program_.body.shape(values_[at_]) != *shape) return unexpected(expected);
    ++at_;
    return Status();
  }

  // "first_moment/model/a/b". Gradients and fingerprints, whose names are of that form, are fields
  // themselves.
  bool is_of_optimizer(const std::string& name) const {
    const size_t slash = std::min(name.find('/'), name.size());
    const std::string_view what = std::string_view(name).substr(0, slash);
    return slash < name.size() && what != "gradient" && what != "fingerprint" &&
           paths_.count(name.substr(slash + 1)) > 0;
  }

  Error unexpected(const std::string& expected) const {
    const std::string found =
        is_there() ? fmt::format("\"{}\" {}", names_[at_], program_.body.shape(values_[at_]).str())
                   : "not there";
    return invalid_argument(
        fmt::format("the program \"{}\": {} {} is {}, but {} is expected; was it written by another version?",
                    program_.name, word(), at_, found, expected));
  }

  const ir::Program& program_;
  const Side side_;
  const ParameterList& model_;
  const std::vector<ir::ValueId>& values_;
  const std::vector<std::string>& names_;
  const std::set<std::string> paths_;
  size_t at_ = 0;
};

}  // namespace

Result<std::vector<size_t>> match_fields(const ir::Program& program, Side side,
                                         const std::vector<Field>& fields, const ParameterList& model) {
  Matcher matcher(program, side, model);
  RETURN_IF_ERROR(matcher.check_names());
  std::vector<size_t> counts;
  for (const Field& field : fields) {
    const size_t before = matcher.at();
    RETURN_IF_ERROR(matcher.take(field));
    counts.push_back(matcher.at() - before);
  }
  RETURN_IF_ERROR(matcher.finish());
  return counts;
}

}  // namespace ostro::train
