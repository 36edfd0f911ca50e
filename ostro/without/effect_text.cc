#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "ostro/base/one_line.h"
#include "ostro/chain/canonical.h"
#include "ostro/without/effect.h"

namespace ostro::without {
namespace {

constexpr size_t kStepsShown = 12;

std::string loss_row(const std::string& name, double with, double without) {
  return fmt::format("  {:<40} {:>12.6f} {:>12.6f} {:>+13.3e}\n", one_line(name), with, without,
                     without - with);
}

// Some of the steps, evenly; the first and the last are among them.
std::string step_rows(const Effect& effect) {
  std::string out;
  const size_t count = effect.steps.size(), shown = std::min(count, kStepsShown);
  for (size_t i = 0; i < shown; ++i) {
    const Effect::Step& s = effect.steps[shown == 1 ? 0 : i * (count - 1) / (shown - 1)];
    out += loss_row(fmt::format("step {}", s.step), s.loss, s.without);
  }
  return out;
}

std::string range_text(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return fmt::format("{:+.3e} to {:+.3e}", *least, *most);
}

std::string beside(const char* what, double effect, const std::vector<double>& controls) {
  return fmt::format("  {}: {:+.3e}; of the {} controls {}; place {} of {}\n", what, effect, controls.size(),
                     range_text(controls), place_among(effect, controls), controls.size() + 1);
}

// What the controls do to the same measures.
std::string controls_text(const EffectReport& r) {
  std::vector<double> documents, own, held_out;
  for (size_t i = 0; i < r.controls.size(); ++i) {
    documents.push_back(r.on_documents(r.controls[i]));
    own.push_back(r.on_itself(i));
    if (r.losses.held_out) held_out.push_back(std::fabs(*r.controls[i].losses.held_out - *r.losses.held_out));
  }
  std::string out = "effects beside those of the controls (the largest has place 1):\n";
  out += beside("on the loss of the document", r.on_documents(r.asked), documents);
  out += beside("on the loss of what is left out itself", r.on_itself({}), own);
  if (r.losses.held_out)
    out += beside("on the held-out loss, without its sign",
                  std::fabs(*r.asked.losses.held_out - *r.losses.held_out), held_out);
  return out;
}

nlohmann::ordered_json hex_list(const std::vector<double>& values) {
  auto list = nlohmann::ordered_json::array();
  for (const double value : values) list.push_back(chain::hex_float(value));
  return list;
}

nlohmann::ordered_json losses_json(const StateLosses& losses) {
  nlohmann::ordered_json out = {{"held_out", nullptr}, {"texts", hex_list(losses.texts)}};
  if (losses.held_out) out["held_out"] = chain::hex_float(*losses.held_out);
  return out;
}

nlohmann::ordered_json removal_json(const Effect& effect, const std::vector<double>& own_with,
                                    double on_documents, double on_itself) {
  auto steps = nlohmann::ordered_json::array();
  for (const Effect::Step& s : effect.steps)
    steps.push_back({s.step, chain::hex_float(s.loss), chain::hex_float(s.without)});
  const Removal& removal = effect.removal;
  return {{"documents", removal.documents},
          {"tokens", removal.tokens},
          {"uses", removal.uses},
          {"first_use", removal.first_use},
          {"begins", removal.begins},
          {"folder", removal.folder},
          {"run_hash", effect.hash},
          {"losses", losses_json(effect.losses)},
          {"own", {{"with", hex_list(own_with)}, {"without", hex_list(effect.own)}}},
          {"on_documents", chain::hex_float(on_documents)},
          {"on_itself", chain::hex_float(on_itself)},
          {"steps", std::move(steps)}};
}

// The documents of a sample, and how much each does.
struct Influence {
  const Effect* effect = nullptr;
  double on_itself = 0;
};

// Those with the largest effect on themselves first.
std::vector<Influence> influences(const EffectReport& r) {
  std::vector<Influence> out = {{&r.asked, r.on_itself({})}};
  for (size_t i = 0; i < r.controls.size(); ++i) out.push_back({&r.controls[i], r.on_itself(i)});
  // An effect that is no number has the last place.
  const auto key = [](const Influence& one) { return std::isnan(one.on_itself) ? -HUGE_VAL : one.on_itself; };
  std::sort(out.begin(), out.end(), [&](const Influence& a, const Influence& b) {
    return std::pair(-key(a), a.effect->removal.folder) < std::pair(-key(b), b.effect->removal.folder);
  });
  return out;
}

// `first_text`: the first of the report's texts that is a file's.
std::string sample_text(const EffectReport& r, size_t first_text) {
  std::string out =
      fmt::format("how much the loss grows without a document, nats per token\n{:<40} {:>7} {:>7} {:>12}",
                  "document", "tokens", "step", "on itself");
  if (r.losses.held_out) out += fmt::format(" {:>12}", "held-out");
  for (size_t i = first_text; i < r.texts.size(); ++i) out += fmt::format(" {:>12}", one_line(r.texts[i]));
  out += "\n";
  for (const Influence& one : influences(r)) {
    const Removal& removal = one.effect->removal;
    out += fmt::format("{:<40} {:>7} {:>7} {:>+12.3e}", one_line(removal.documents[0]), removal.tokens,
                       removal.first_use, one.on_itself);
    if (r.losses.held_out)
      out += fmt::format(" {:>+12.3e}", *one.effect->losses.held_out - *r.losses.held_out);
    for (size_t i = first_text; i < r.texts.size(); ++i)
      out += fmt::format(" {:>+12.3e}", one.effect->losses.texts[i] - r.losses.texts[i]);
    out += "\n";
  }
  return out;
}

// The effect with other seeds: of training, and not of one run.
std::string seeds_text(const EffectReport& r) {
  std::string out =
      "with other seeds, from the first step on, the loss of the document grows without it by\n";
  std::vector<double> all;
  for (const SeedEffect& effect : r.seeds) {
    all.push_back(r.on_documents(effect));
    out += fmt::format("  seed {:<12} {:>+12.3e}", effect.seed, all.back());
    if (effect.losses.held_out)
      out += fmt::format(", held-out loss {:>+12.3e}", *effect.without.held_out - *effect.losses.held_out);
    out += "\n";
  }
  double sum = 0;
  for (const double value : all) sum += value;
  return out +
         fmt::format(
             "  mean {:+.3e}, {}; in this run {:+.3e}. That is about training; all else here is about this "
             "run.\n",
             sum / static_cast<double>(all.size()), range_text(all), r.on_documents(r.asked));
}

nlohmann::ordered_json seeds_json(const EffectReport& r) {
  auto out = nlohmann::ordered_json::array();
  for (const SeedEffect& effect : r.seeds)
    out.push_back({{"seed", effect.seed},
                   {"run_hash", effect.hash},
                   {"run_hash_without", effect.hash_without},
                   {"losses", losses_json(effect.losses)},
                   {"losses_without", losses_json(effect.without)},
                   {"on_documents", chain::hex_float(r.on_documents(effect))}});
  return out;
}

}  // namespace

std::string plan_text(const WithoutRequest& request, const RemovalPlan& plan) {
  const auto line = [&](const Removal& removal) {
    return fmt::format("{}: {} tokens, {} place{}, first in step {}; {} {}\n",
                       one_line(fmt::format("{}", fmt::join(removal.documents, ", "))), removal.tokens,
                       removal.uses, removal.uses == 1 ? "" : "s", removal.first_use,
                       removal.begins > 0 ? fmt::format("a fork at step {} does", removal.begins)
                                          : std::string("a run from the beginning does"),
                       fmt::format("{} steps in {}", plan.steps - removal.begins, removal.folder));
  };
  const bool is_sample = request.sample > 0;
  std::string out = fmt::format("{} without ({}){}\n  {}", request.run,
                                request.rebuild                         ? "rebuild"
                                : request.as == data::WithoutAs::kBlank ? "blank"
                                                                        : "mask",
                                is_sample ? ", each alone" : "", line(plan.asked));
  for (const Removal& control : plan.controls) out += (is_sample ? "  " : "control\n  ") + line(control);
  for (const int64_t seed : plan.seeds)
    out += fmt::format("seed {}\n  two runs from the beginning do {} steps each\n", seed, plan.steps);
  if (plan.fewer_controls && is_sample)
    return out + fmt::format("only {} of {} documents: no step uses another one that can be left out\n",
                             plan.controls.size() + 1, request.sample);
  if (plan.fewer_controls)
    out += fmt::format("only {} of {} controls: no other document has a like length and time of use\n",
                       plan.controls.size(), request.controls);
  return out;
}

std::string effect_text(const EffectReport& r) {
  if (r.is_sample) return sample_text(r, r.asked.removal.ids.size());
  std::string out = fmt::format("{:<42} {:>12} {:>12} {:>13}\n", "loss, nats per token", "the run", "without",
                                "difference");
  out += step_rows(r.asked);
  if (r.losses.held_out) out += loss_row("held-out text", *r.losses.held_out, *r.asked.losses.held_out);
  for (size_t i = 0; i < r.texts.size(); ++i)
    out += loss_row(r.texts[i], r.losses.texts[i], r.asked.losses.texts[i]);
  if (!r.controls.empty()) out += controls_text(r);
  if (!r.seeds.empty()) out += seeds_text(r);
  out += "Training is chaotic: any change moves everything a little";
  out += r.controls.empty() ? "; --control K shows how much other documents do.\n" : ".\n";
  return out + fmt::format("run hash without: {}\n", r.asked.hash);
}

std::string effect_json(const EffectReport& r) {
  std::vector<double> own(r.losses.texts.begin(),
                          r.losses.texts.begin() + static_cast<std::ptrdiff_t>(r.asked.removal.ids.size()));
  nlohmann::ordered_json out = {
      {"run", r.run},
      {"run_hash", r.run_hash},
      {"texts", r.texts},
      {"losses", losses_json(r.losses)},
      {"without", removal_json(r.asked, own, r.on_documents(r.asked), r.on_itself({}))},
      {"controls", nlohmann::ordered_json::array()}};
  for (size_t i = 0; i < r.controls.size(); ++i)
    out["controls"].push_back(
        removal_json(r.controls[i], r.own[i], r.on_documents(r.controls[i]), r.on_itself(i)));
  if (!r.seeds.empty()) out["seeds"] = seeds_json(r);
  if (r.is_sample) out["sample"] = true;
  return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ostro::without
