#include "ostro/audit/record/run_diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "ostro/base/one_line.h"
#include "ostro/chain/canonical.h"

namespace ostro::audit {
namespace {

using nlohmann::json;

// The fields of a step that are compared, and what they mean.
constexpr std::pair<const char*, const char*> kCompared[] = {{"batch", "the batch"},
                                                             {"tokens", "the number of tokens"},
                                                             {"loss", "the loss"},
                                                             {"leaves", "what the leaves gave"},
                                                             {"state", "the state behind it"}};
// Members of a genesis beside the configuration.
constexpr const char* kIdentity[] = {"numerics",  "numerics_options", "program", "data",
                                     "tokenizer", "initial",          "fork",    "format"};
// Options that decide on batches; one that ends with "." stands for all that begin so.
constexpr const char* kOfData[] = {"data.", "trainer.seed", "trainer.train_batch_size", "model.seq_len"};

constexpr const char* kOtherData = "The two have other data.";
constexpr const char* kDataOptions = "Options of data or order differ: ";
constexpr const char* kOtherLoss =
    "The batch is the same, and the loss is another: the parameters before the step, or the programs, "
    "differ.";
constexpr const char* kOtherState =
    "Batch and loss are the same, and the state behind the step is another: what the optimizer does differs.";
constexpr const char* kOtherStart = "They begin with other states.";
constexpr const char* kOtherPrograms = "The programs are others.";
constexpr const char* kOptions = "Options differ: ";
constexpr const char* kAmended = " was amended behind step ";
constexpr const char* kUnexplained =
    "Nothing that the chains say explains it: one of the two was computed wrongly, or changed.";

constexpr size_t kMostText = 2000;  // bytes of a value or a list in a sentence

bool is_of_data(const std::string& option) {
  return std::any_of(std::begin(kOfData), std::end(kOfData), [&](const std::string of) {
    return of.ends_with('.') ? option.starts_with(of) : option == of;
  });
}

json entry_of(const chain::ChainEntry& entry) {
  const auto text = chain::entry_json(entry);
  OSTRO_CHECK(text.ok(), "an entry that was read is none that can be written: {}", text.error().message());
  return json::parse(*text);
}

std::string value_of(const json& object, const std::string& name) {
  return object.contains(name) ? chain::readable_value(object[name].dump()) : "absent";
}

std::vector<NamedPair> option_differences(const json& one, const json& two) {
  std::map<std::string, NamedPair> all;
  const auto take = [&](const json& genesis, std::string NamedPair::* side) {
    for (const auto& [path, value] : chain::values_by_path(genesis.value("config", json::object()).dump())) {
      const auto [pair, unused] = all.emplace(path, NamedPair{path, "absent", "absent"});
      pair->second.*side = value;
    }
  };
  take(one, &NamedPair::one);
  take(two, &NamedPair::two);
  std::vector<NamedPair> out;
  for (auto& [path, pair] : all)
    if (pair.one != pair.two) out.push_back(std::move(pair));
  return out;
}

std::vector<NamedPair> identity_differences(const json& one, const json& two) {
  std::vector<NamedPair> out;
  for (const char* name : kIdentity)
    if (one.value(name, json()) != two.value(name, json()))
      out.push_back({name, value_of(one, name), value_of(two, name)});
  return out;
}

// The first step that both have and that differs.
void find_first(const ComparedRun& one, const ComparedRun& two, RunDifference& out) {
  for (const chain::ChainLink& link : one.chain.links) {
    const auto* step = std::get_if<chain::StepEntry>(&link.entry);
    const chain::ChainLink* other = step == nullptr ? nullptr : two.chain.find_step(step->step);
    if (other == nullptr) continue;
    if (out.common++ == 0) out.first = step->step;
    out.last = step->step;
    if (link.entry == other->entry) continue;
    const json a = entry_of(link.entry), b = entry_of(other->entry);
    for (const auto& [name, meaning] : kCompared) {
      if (a[name] != b[name]) out.fields.push_back(name);
      out.values.push_back({name, value_of(a, name), value_of(b, name)});
    }
    out.step = step->step;
    return;
  }
}

std::string options_text(const std::vector<NamedPair>& options, bool of_data) {
  std::string out;
  for (const NamedPair& option : options)
    if (is_of_data(option.name) == of_data)
      out += fmt::format("{}{} ({}, {})", out.empty() ? "" : "; ", option.name, option.one, option.two);
  return one_line(out).substr(0, kMostText);
}

void add_amends(const ComparedRun& run, int64_t before, std::vector<std::string>& out) {
  for (const chain::ChainLink& link : run.chain.links) {
    const auto* amend = std::get_if<chain::AmendEntry>(&link.entry);
    if (amend == nullptr || amend->step >= before) continue;
    std::vector<std::string> keys;
    const json difference = json::parse(amend->difference);
    for (const auto& [key, unused] : difference.items()) keys.push_back(key);
    out.push_back(
        one_line(fmt::format("{}{}{}: {}.", run.name, kAmended, amend->step, fmt::join(keys, ", "))));
  }
}

// What explains it: what the two were made of, and what was amended before.
std::vector<std::string> reasons(const RunDifference& found, const ComparedRun& one, const ComparedRun& two) {
  const auto differs_in = [&](const char* field) {
    return std::find(found.fields.begin(), found.fields.end(), field) != found.fields.end();
  };
  const auto has_other = [&](const char* member) {
    return std::any_of(found.identity.begin(), found.identity.end(),
                       [&](const NamedPair& pair) { return pair.name == member; });
  };
  std::vector<std::string> out;
  const std::string data = options_text(found.options, true), others = options_text(found.options, false);
  if (differs_in("batch")) {
    if (has_other("data")) out.push_back(kOtherData);
    if (!data.empty()) out.push_back(kDataOptions + data + ".");
  }
  if (found.fields.size() > (differs_in("batch") ? 1u : 0u)) {
    if (!differs_in("batch")) out.push_back(differs_in("loss") ? kOtherLoss : kOtherState);
    if (has_other("initial")) out.push_back(kOtherStart);
    if (has_other("program")) out.push_back(kOtherPrograms);
    if (!others.empty()) out.push_back(kOptions + others + ".");
  }
  add_amends(one, *found.step, out);
  add_amends(two, *found.step, out);
  if (out.empty()) out.push_back(kUnexplained);
  return out;
}

std::string table(const char* title, const std::vector<NamedPair>& pairs) {
  if (pairs.empty()) return "";
  std::string out = fmt::format("{}:\n", title);
  for (const NamedPair& pair : pairs)
    out += fmt::format("  {}: {} | {}\n", one_line(pair.name), one_line(pair.one).substr(0, kMostText),
                       one_line(pair.two).substr(0, kMostText));
  return out;
}

}  // namespace

RunDifference compare_runs(const ComparedRun& one, const ComparedRun& two) {
  RunDifference out;
  const json from = entry_of(one.chain.genesis()), to = entry_of(two.chain.genesis());
  out.options = option_differences(from, to);
  out.identity = identity_differences(from, to);
  find_first(one, two, out);
  if (out.step) out.why = reasons(out, one, two);
  return out;
}

std::string answer_text(const RunDifference& d) {
  if (d.common == 0) return "The two have no step in common.";
  if (!d.step) return fmt::format("Equal: all {} steps that both have, {} to {}.", d.common, d.first, d.last);
  std::string in;
  for (const auto& [name, meaning] : kCompared)
    if (std::find(d.fields.begin(), d.fields.end(), name) != d.fields.end())
      in += fmt::format("{}{}", in.empty() ? "" : ", ", meaning);
  return fmt::format(
      "The first step that differs is step {}: {}.{}", *d.step, in,
      *d.step > d.first ? fmt::format(" Steps {} to {} are equal.", d.first, *d.step - 1) : "");
}

std::string run_difference_text(const RunDifference& d, const ComparedRun& one, const ComparedRun& two) {
  std::string out = fmt::format("{} | {}\n{}\n", one_line(one.name), one_line(two.name), answer_text(d));
  for (const std::string& reason : d.why) out += fmt::format("- {}\n", reason);
  return out + (d.step ? table(fmt::format("step {}", *d.step).c_str(), d.values) : "") +
         table("options that differ", d.options) + table("identity", d.identity);
}

std::string run_difference_json(const RunDifference& d, const ComparedRun& one, const ComparedRun& two) {
  const auto pairs = [](const std::vector<NamedPair>& all) {
    auto out = json::object();
    for (const NamedPair& pair : all) out[pair.name] = {pair.one, pair.two};
    return out;
  };
  const json out = {{"runs", {one.name, two.name}},
                    {"heads", {one.chain.head(), two.chain.head()}},
                    {"answer", answer_text(d)},
                    {"common_steps", d.common},
                    {"first_different_step", d.step ? json(*d.step) : json()},
                    {"fields", d.fields},
                    {"why", d.why},
                    {"step", pairs(d.values)},
                    {"options", pairs(d.options)},
                    {"identity", pairs(d.identity)}};
  return out.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string run_diff_rules_json() {
  json out = {{"identity", kIdentity}, {"ofData", kOfData}};
  for (const auto& [name, meaning] : kCompared) out["compared"].push_back({name, meaning});
  for (const auto& [name, text] : {std::pair{"otherData", kOtherData},
                                   {"dataOptions", kDataOptions},
                                   {"otherLoss", kOtherLoss},
                                   {"otherState", kOtherState},
                                   {"otherStart", kOtherStart},
                                   {"otherPrograms", kOtherPrograms},
                                   {"options", kOptions},
                                   {"amended", kAmended},
                                   {"unexplained", kUnexplained}})
    out["words"][name] = text;
  return out.dump();
}

}  // namespace ostro::audit
