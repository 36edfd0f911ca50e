#include "ostro/bundle/publish/model_card.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/models/decoder/decoder.h"

namespace ostro::bundle {
namespace {

std::string front_matter(const BundleManifest& m, const std::optional<std::string>& base_model) {
  std::string out = "---\n";
  if (m.license) out += fmt::format("license: {}\n", *m.license);
  if (base_model) out += fmt::format("base_model: {}\n", *base_model);
  if (m.ledger.size() > 1 || (m.ledger.size() == 1 && !m.ledger.contains("train"))) {
    out += "datasets:\n";
    for (const auto& [name, sum] : m.ledger) out += fmt::format("- {}\n", name);
  }
  out += "library_name: transformers\npipeline_tag: text-generation\ntags:\n- ostro\n- verifiable\n---\n";
  return out;
}

std::string architecture(const page::RunView& view) {
  std::string out = view.parameters > 0 ? fmt::format("| parameters | {} |\n", view.parameters) : "";
  if (!view.config) return out;
  const auto* d =
      models::model_options_as<models::DecoderOptions, models::Decoder>(view.config->model_options());
  if (d == nullptr) return out;
  out += fmt::format(
      "| architecture | {}: {} layers, hidden {}, MLP {}, {} heads ({} of keys and values) |\n",
      d->family->name, d->num_layers, d->hidden_dim, d->intermediate_dim, d->num_heads, d->num_kv_heads);
  return out + fmt::format("| context | {} tokens |\n", d->seq_len);
}

std::string data_rows(const BundleManifest& m) {
  if (m.ledger.empty()) return "The bundle has no ledger of the data.\n";
  std::string out = "| component | training rows | held-out rows | root of the rows |\n|---|---|---|---|\n";
  for (const auto& [name, sum] : m.ledger)
    out += fmt::format("| {} | {} | {} | `{}` |\n", name, sum.rows[0], sum.rows[1], sum.root);
  return out;
}

// The last value of each held-out loss.
std::string held_out(const page::RunView& view) {
  std::string rows;
  for (const auto& [name, bins] : view.history.metrics) {
    const bool wanted =
        name.starts_with("eval/") && (name.ends_with("/loss") || name.ends_with("/bits_per_byte"));
    if (wanted && bins.values() > bins.not_finite())
      rows += fmt::format("| {} | {:.6g} | {} |\n", name, bins.last().value, bins.last().step);
  }
  if (rows.empty()) return "";
  return "\n## Held-out losses\nThese numbers are from the run's log. No hash of the chain covers them.\n\n"
         "| measure | value | after step |\n|---|---|---|\n" +
         rows;
}

std::string lineage_text(const BundleManifest& m) {
  const auto lineage = nlohmann::json::parse(m.chain.lineage, nullptr, false);
  std::string out;
  if (lineage["fork"].is_object())
    out += fmt::format(
        "| began, as its genesis says | as a fork, after step {}, of the run with hash `{}` there |\n",
        lineage["fork"]["step"].dump(), lineage["fork"]["head"].get<std::string>());
  if (lineage["maker"].is_object())
    out += fmt::format("| began, as its genesis says | with the model `{}` of the run with hash `{}` |\n",
                       lineage["maker"]["state"].get<std::string>(),
                       lineage["maker"]["head"].get<std::string>());
  else if (lineage["origin"].is_object())
    out +=
        "| began, as its genesis says | with parameters of another program's model (`origin` in "
        "`record/chain.jsonl`) |\n";
  return out;
}

}  // namespace

std::string model_card(const page::RunView& view, const BundleManifest& m,
                       const std::optional<std::string>& base_model, bool is_signed) {
  std::string out = front_matter(m, base_model);
  out += fmt::format(
      "# {}\n\nA language model with the record of its training: every step can be computed again, bit for "
      "bit, and compared.\n\n## Model\n| | |\n|---|---|\n",
      view.name());
  out += architecture(view);
  out +=
      fmt::format("| trained | {} steps, {:.0f} tokens with a loss |\n", m.chain.step, view.history.tokens);
  out += lineage_text(m);
  out += fmt::format("| state | `{}` (after step {}) |\n{}{}` |\n| numerics | version {} |\n", m.chain.state,
                     m.chain.step, kCardHash, m.chain.head, m.chain.numerics);
  out += "\n## Data\n" + data_rows(m) + held_out(view);
  out += fmt::format(
      "\n## Check it\n```\nostro verify .{}\n```\ncompares every file, the record, the weights and the "
      "ledger "
      "of the data in seconds; it trains nothing. With the data, steps are replayed:\n```\nostro verify . "
      "--sample 20 --challenge SEED --cache STORE\n```\n`python3 tools/verify_chain.py .` of Ostro's source "
      "checks the bundle without any code of Ostro.\n",
      is_signed ? " --key PUBLISHER.pem" : "");
  out += "\n## Licence\n";
  out += m.license ? *m.license + "\n" : "Its publisher names none.\n";
  for (const std::string& file : m.license_files) out += fmt::format("- [{}]({})\n", file, file);
  return out;
}

}  // namespace ostro::bundle
