#include "ostro/attest/replay_statement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "ostro/base/hex_digits.h"
#include "ostro/chain/clock_text.h"

namespace ostro::attest {
namespace {

using nlohmann::json;

constexpr int64_t kFormat = 1;
constexpr size_t kMostName = 200, kMostChallenge = 1000;

// What is signed: all but the signature, with sorted keys.
json json_of(const ReplayStatement& s) {
  json out = {{"kind", "replay"}, {"format", kFormat}, {"run_hash", s.run_hash}, {"first", s.first},
              {"last", s.last},   {"by", s.by},        {"time", s.time}};
  if (s.steps.empty()) {
    out["from"] = s.from, out["to"] = s.to;
  } else {
    out["steps"] = s.steps, out["challenge"] = s.challenge;
  }
  if (!s.public_key.empty()) out["public_key"] = s.public_key;
  return out;
}

std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

// Whether the steps are steps of the run.
bool are_steps(const ReplayStatement& s) {
  if (s.first < 1 || s.last < s.first) return false;
  if (s.steps.empty()) return s.first <= s.from && s.from <= s.to && s.to <= s.last;
  return std::is_sorted(s.steps.begin(), s.steps.end(), std::less_equal<>()) && s.steps.front() >= s.first &&
         s.steps.back() <= s.last;
}

bool has_words(const ReplayStatement& s) {
  return !s.by.empty() && s.by.size() <= kMostName && s.challenge.size() <= kMostChallenge;
}

}  // namespace

std::string ReplayStatement::who() const {
  if (public_key.empty()) return by + " (not signed)";
  const auto key = bundle::PublicKey::parse(public_key, "public_key");
  return fmt::format("{} (key {})", by, key.ok() ? key->fingerprint().substr(0, 12) : "?");
}

std::string ReplayStatement::verified() const {
  const int64_t all = last - first + 1;
  if (is_whole()) return all == 1 ? "the step replayed" : fmt::format("all {} steps replayed", all);
  if (steps.empty()) return fmt::format("steps {} to {} of {} to {} replayed", from, to, first, last);
  return fmt::format("{} of {} steps replayed, drawn by \"{}\": {}", steps.size(), all, challenge,
                     fmt::join(steps, ", "));
}

Result<ReplayStatement> statement_of(const audit::Audit& audit, const std::string& by) {
  ReplayStatement out;
  out.run_hash = audit.head;
  out.first = audit.before + 1;
  out.last = audit.steps;
  out.by = by;
  out.time = chain::utc_now();
  if (audit.sample) {
    out.steps = audit.sample->plan.drawn;
    out.challenge = audit.sample->challenge;
  } else if (audit.replay) {
    out.from = audit.replay->start_step + 1;
    out.to = audit.replay->last_step;
  }
  if (!are_steps(out))
    return invalid_argument("--statement: no step was replayed, so there is nothing to say");
  if (!has_words(out))
    return invalid_argument(fmt::format(
        "--statement: --by NAME has 1 to {} bytes, and --challenge at most {}", kMostName, kMostChallenge));
  return out;
}

std::string statement_text(ReplayStatement statement, const bundle::SigningKey* key) {
  statement.public_key = key == nullptr ? "" : key->public_key().pem();
  json out = json_of(statement);
  if (key != nullptr) out["signature"] = to_hex_digits(key->sign(dump(out)));
  return dump(out) + "\n";
}

Result<ReplayStatement> read_statement(const std::string& text, const std::string& where) {
  const auto wrong = [&](const std::string& what) { return corrupt(fmt::format("{}: {}", where, what)); };
  json given = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!given.is_object()) return wrong("is no statement of a replay (ostro verify --statement)");
  ReplayStatement out;
  const auto text_at = [&](const char* key) {
    return given.contains(key) && given[key].is_string() ? given[key].get<std::string>() : std::string();
  };
  const auto number_at = [&](const char* key) {
    return given.contains(key) && given[key].is_number_integer() ? given[key].get<int64_t>() : int64_t{0};
  };
  out.run_hash = text_at("run_hash");
  out.first = number_at("first"), out.last = number_at("last");
  out.from = number_at("from"), out.to = number_at("to");
  out.by = text_at("by"), out.time = text_at("time"), out.challenge = text_at("challenge");
  out.public_key = text_at("public_key"), out.signature = text_at("signature");
  if (given.contains("steps") && given["steps"].is_array())
    for (const json& step : given["steps"])
      out.steps.push_back(step.is_number_integer() ? step.get<int64_t>() : 0);
  // Blanks, another order or a key that is there twice give another text of the same values.
  if (text != dump(given) + "\n")
    return wrong("is not written as a statement is: canonical JSON and a line feed");
  given.erase("signature");
  // A key that is missing, one too many or one of another type gives another text.
  if (given != json_of(out) || out.signature.empty() != out.public_key.empty())
    return wrong("is a statement of another form than this version reads");
  if (!are_steps(out) || !has_words(out)) return wrong("names no one, or steps that the run does not have");
  if (out.public_key.empty()) return out;
  ASSIGN_OR_RETURN(const bundle::PublicKey key, bundle::PublicKey::parse(out.public_key, where));
  const auto bytes = from_hex_digits(out.signature);
  if (!bytes || !key.has_signed(dump(given), *bytes)) return wrong("its signature does not fit its text");
  return out;
}

Status check_is_of(const ReplayStatement& statement, const chain::Chain& chain, const std::string& where) {
  if (statement.run_hash != chain.head())
    return corrupt(
        fmt::format("{}: is about the run {}, not about {}", where, statement.run_hash, chain.head()));
  const int64_t first = chain.genesis().step() + 1, last = chain.last_step();
  if (statement.first != first || statement.last != last)
    return corrupt(fmt::format("{}: speaks of a run of the steps {} to {}, and the chain of {} has {} to {}",
                               where, statement.first, statement.last, chain.head(), first, last));
  return {};
}

}  // namespace ostro::attest
