#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ostro/eval/checkpoint_diff.h"

namespace ostro::eval {
namespace {

using Json = nlohmann::ordered_json;
using Kind = TensorDiff::Kind;

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::kEqual: return "equal";
    case Kind::kCast: return "cast";
    case Kind::kChanged: return "changed";
    case Kind::kOnlyFirst: return "only_first";
    case Kind::kOnlySecond: return "only_second";
    case Kind::kOtherShape: return "other_shape";
  }
  return "";
}

// JSON has no infinities and no NaN.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value)); }

Json figures(const TensorDiff& t) {
  return {{"elements", t.elements},
          {"changed", t.changed},
          {"max_abs", number(t.max_abs)},
          {"rms", number(t.rms)},
          {"relative", t.relative ? number(*t.relative) : Json()}};
}

Json side_json(const CheckpointSide& side) {
  return {{"path", side.path}, {"state", side.state}, {"step", side.step}};
}

bool has_figures(const TensorDiff& t) {
  return t.kind == Kind::kEqual || t.kind == Kind::kCast || t.kind == Kind::kChanged;
}

// "the second has the values of the first, rounded to bf16"
std::string cast_text(const TensorDiff& t) {
  return fmt::format("the {} has the values of the {}, rounded to {}", t.first_is_cast ? "first" : "second",
                     t.first_is_cast ? "second" : "first", t.cast);
}

std::string figures_text(const TensorDiff& t) {
  return fmt::format("{:>12}  {:>12}  {:>9.3g}  {:>9.3g}  {:>9}", t.elements, t.changed, t.max_abs, t.rms,
                     t.relative ? fmt::format("{:.3g}", *t.relative) : "-");
}

}  // namespace

std::string diff_json(const CheckpointDiff& diff) {
  Json out = {{"format", "ostro-diff"},
              {"version", 1},
              {"equal", diff.equal()},
              {"first", side_json(diff.first)},
              {"second", side_json(diff.second)},
              {"cast", diff.cast() != nullptr ? Json(diff.cast()->cast) : Json()},
              {"all", figures(diff.all)},
              {"tensors", Json::array()},
              {"config", diff.config}};
  for (const TensorDiff& t : diff.tensors) {
    Json one = {{"path", t.path}, {"kind", kind_name(t.kind)}};
    one["first"] = t.first.empty() ? Json() : Json(t.first);
    one["second"] = t.second.empty() ? Json() : Json(t.second);
    if (has_figures(t)) one.update(figures(t));
    if (t.kind == Kind::kCast) one["cast"] = t.cast, one["cast_of"] = t.first_is_cast ? "second" : "first";
    out["tensors"].push_back(std::move(one));
  }
  return out.dump(2) + "\n";
}

std::string diff_table(const CheckpointDiff& diff, bool all) {
  std::string out;
  for (const CheckpointSide* side : {&diff.first, &diff.second})
    out += fmt::format("{} (step {}, state {:.16})\n", side->path, side->step, side->state);
  size_t width = 10;
  for (const TensorDiff& t : diff.tensors) width = std::max(width, t.path.size());
  out += fmt::format("\n{:<{}}  {:>12}  {:>12}  {:>9}  {:>9}  {:>9}\n", "tensor", width, "elements",
                     "changed", "max abs", "rms", "relative");
  int64_t equal = 0;
  for (const TensorDiff& t : diff.tensors) {
    equal += t.kind == Kind::kEqual;
    if (t.kind == Kind::kEqual && !all) continue;
    out += fmt::format("{:<{}}  ", t.path, width);
    switch (t.kind) {
      case Kind::kOnlyFirst: out += fmt::format("only in the first: {}\n", t.first); break;
      case Kind::kOnlySecond: out += fmt::format("only in the second: {}\n", t.second); break;
      case Kind::kOtherShape: out += fmt::format("{} -> {}\n", t.first, t.second); break;
      default: out += figures_text(t) + "\n";
    }
  }
  if (diff.all.elements > 0) out += fmt::format("{:<{}}  {}\n", "all", width, figures_text(diff.all));
  out += fmt::format("\n{} of {} tensors are equal\n", equal, diff.tensors.size());
  if (const TensorDiff* cast = diff.cast(); cast != nullptr)
    out += fmt::format("equal under the cast: {}\n", cast_text(*cast));
  for (const std::string& line : diff.config) out += fmt::format("config: {}\n", line);
  return out;
}

}  // namespace ostro::eval
