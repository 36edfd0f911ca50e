#include "ostro/lab/steps/rung.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "ostro/base/check.h"
#include "ostro/base/sha256.h"
#include "ostro/chain/canonical.h"
#include "ostro/experiment/plan/halving.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/halving.h"
#include "ostro/lab/steps/kinds.h"

namespace ostro::lab {
namespace {

using nlohmann::json;

// A run that diverged is behind all others.
double loss_of_member(const std::string& loss) {
  const auto value = chain::parse_hex_float(loss);
  return value.ok() && std::isfinite(*value) ? *value : std::numeric_limits<double>::infinity();
}

Result<RungMember> member_of(io::FileSystem& fs, const std::string& folder, const Step& evaluation) {
  const std::string path = io::join_path(folder, "evaluation.json");
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path));
  const json said = json::parse(text, nullptr, false);
  if (!said.is_object() || !said.contains("loss") || !said["loss"].is_string() || !said.contains("step") ||
      !said["step"].is_number_integer())
    return corrupt(fmt::format("{}: is no evaluation", path));
  return RungMember{.run = evaluation.inputs.at("of"),
                    .evaluation = evaluation.name,
                    .step = said["step"].get<int64_t>(),
                    .loss = said["loss"].get<std::string>()};
}

// What a loss per token of a training is of.
struct Measured {
  std::string tokenizer, tokenizer_step;          // its content, and the step
  std::vector<std::array<std::string, 2>> texts;  // content of the held-out texts and their key, sorted
};
Measured measured_by(const Work& work, const Step& evaluation) {
  const config::Node* sets = evaluation.parameters.find("sets");
  const std::vector<std::string> chosen =
      sets == nullptr ? std::vector<std::string>() : texts_of(evaluation, "sets");
  Measured out;
  for (const auto& [name, tokens] : stores_of(work.of(*work.plan.find(evaluation.inputs.at("of"))))) {
    if (!chosen.empty() && std::find(chosen.begin(), chosen.end(), name) == chosen.end()) continue;
    out.tokenizer_step = tokens->inputs.at("tokenizer");  // one in all stores of a training
    out.tokenizer = work.made.at(out.tokenizer_step).content;
    out.texts.push_back({work.made.at(tokens->inputs.at("held_out")).content, text_of(*tokens, "text_key")});
  }
  std::sort(out.texts.begin(), out.texts.end());
  return out;
}

// An error where losses of members of a rung are of other tokens or other texts, so that the lowest says
// nothing.
Status check_comparable(const Work& work) {
  const std::vector<const Step*> members = members_there(work.plan, work.made, work.step);
  std::optional<Measured> first;
  for (const Step* member : members) {
    const Measured one = measured_by(work, *member);
    if (!first) first = one;
    if (one.tokenizer != first->tokenizer)
      return invalid_argument(fmt::format(
          "{} and {} have the tokens of {} and {}, which are different tokenizers, so their losses per token "
          "cannot be compared; give all members of a halved sweep one tokenizer",
          members[0]->inputs.at("of"), member->inputs.at("of"), first->tokenizer_step, one.tokenizer_step));
    if (one.texts != first->texts)
      return invalid_argument(fmt::format(
          "{} and {} have different held-out texts, so their losses cannot be compared; give the data of all "
          "members of a halved sweep the same held_out, or name components in halving.sets that all have",
          members[0]->inputs.at("of"), member->inputs.at("of")));
  }
  return {};
}

// Places by loss; of equal ones the order of the plan decides.
void decide_places(std::vector<RungMember>& members, int64_t kept) {
  std::vector<size_t> order(members.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(loss_of_member(members[a].loss), a) < std::pair(loss_of_member(members[b].loss), b);
  });
  for (size_t i = 0; i < order.size(); ++i) {
    members[order[i]].place = static_cast<int64_t>(i) + 1;
    members[order[i]].kept = members[order[i]].place <= kept;
  }
}

}  // namespace

Result<std::vector<RungMember>> read_rung(io::FileSystem& fs, const std::string& folder) {
  const std::string path = io::join_path(folder, kRungFile);
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path));
  const json read = json::parse(text, nullptr, false);
  std::vector<RungMember> out;
  const auto damaged = [&] { return corrupt(fmt::format("{}: is no decision of a rung", path)); };
  if (!read.is_object() || !read.contains("members") || !read["members"].is_array()) return damaged();
  for (const json& one : read["members"]) {
    const auto has = [&](const char* key, auto is) { return one.contains(key) && (one[key].*is)(); };
    if (!one.is_object() || !has("run", &json::is_string) || !has("evaluation", &json::is_string) ||
        !has("loss", &json::is_string) || !has("step", &json::is_number_integer) ||
        !has("place", &json::is_number_integer) || !has("kept", &json::is_boolean))
      return damaged();
    out.push_back({one["run"], one["evaluation"], one["step"], one["loss"], one["place"], one["kept"]});
  }
  return out;
}

Result<std::string> rung_text(io::FileSystem& fs, const Plan& plan, const std::map<std::string, Made>& made,
                              const Step& rung) {
  std::vector<RungMember> members;
  for (const Step* evaluation : members_there(plan, made, rung)) {
    ASSIGN_OR_RETURN(members.emplace_back(), member_of(fs, made.at(evaluation->name).folder, *evaluation));
  }
  const auto share = KeptShare::parse(text_of(rung, "keep"));
  OSTRO_CHECK(share && !members.empty(), "step {}: a rung without a share or members", rung.name);
  if (std::none_of(members.begin(), members.end(),
                   [](const RungMember& m) { return std::isfinite(loss_of_member(m.loss)); }))
    return invalid_argument(fmt::format(
        "none of its {} members has a finite held-out loss (the one of {} is {}), so none is better than the "
        "others; take what diverges out of the sweep, or set the rung earlier",
        members.size(), members.front().run, members.front().loss));
  decide_places(members, share->kept(std::ssize(members)));
  json out = {{"keep", share->text()}, {"members", json::array()}};
  for (const RungMember& m : members)
    out["members"].push_back({{"run", m.run},
                              {"evaluation", m.evaluation},
                              {"step", m.step},
                              {"loss", m.loss},
                              {"place", m.place},
                              {"kept", m.kept}});
  return out.dump() + "\n";
}

Result<std::string> make_rung(const Work& work, const std::string& folder) {
  RETURN_IF_ERROR(check_comparable(work));
  ASSIGN_OR_RETURN(const std::string text, rung_text(work.context.fs, work.plan, work.made, work.step));
  RETURN_IF_ERROR(io::write_file_atomically(work.context.fs, io::join_path(folder, kRungFile), text));
  return sha256_hex(text);
}

}  // namespace ostro::lab
