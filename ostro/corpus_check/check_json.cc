// The figures of a check as JSON.
#include <nlohmann/json.hpp>
#include <utility>

#include "ostro/corpus_check/check.h"

namespace ostro::corpus_check {
namespace {

using nlohmann::ordered_json;

ordered_json histogram_json(const StatsHistograms::Entry& e) {
  const Histogram& h = e.histogram;
  ordered_json out{
      {"unit", e.unit}, {"count", h.count()}, {"mean", h.mean()}, {"min", h.min()}, {"max", h.max()}};
  constexpr std::pair<const char*, double> kQuantiles[] = {
      {"p1", 0.01}, {"p10", 0.1}, {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}};
  for (const auto& [name, q] : kQuantiles) out["quantiles"][name] = h.quantile(q);
  out["bins"] = ordered_json::array();
  for (size_t i = 0; i < h.bins().size(); ++i)
    if (h.bins()[i] > 0) out["bins"].push_back({h.lower_edge(i), h.lower_edge(i + 1), h.bins()[i]});
  return out;
}

ordered_json clusters_json(const CheckReport& report, const std::vector<DuplicateCluster>& clusters) {
  ordered_json out = ordered_json::array();
  for (const DuplicateCluster& c : clusters) {
    ordered_json places = ordered_json::array();
    for (const DocumentPlace& place : c.documents) places.push_back(report.place_text(place));
    out.push_back({{"size", c.size},
                   {"bytes_of_copies", c.bytes},
                   {"least_jaccard", c.least_jaccard},
                   {"documents", places}});
  }
  return out;
}

ordered_json contamination_json(const CheckReport& report) {
  ordered_json out;
  const std::vector<EvalDocument>& evals = report.index.documents();
  int64_t touched = 0, ngrams = 0, found = 0;
  for (size_t i = 0; i < evals.size(); ++i) {
    touched += report.evals[i].documents > 0 ? 1 : 0;
    ngrams += evals[i].ngrams;
    found += report.evals[i].ngrams_found;
  }
  out["eval_documents"] = evals.size();
  out["eval_documents_too_short"] = report.index.too_short();
  out["eval_documents_found"] = touched;
  out["eval_ngrams"] = ngrams;
  out["eval_ngrams_found"] = found;
  out["documents"] = report.contaminated_documents;
  out["evals"] = ordered_json::array();
  for (size_t i = 0; i < evals.size(); ++i) {
    const EvalResult& r = report.evals[i];
    if (r.documents == 0) continue;
    out["evals"].push_back(
        {{"place", evals[i].place},
         {"documents", r.documents},
         {"ngrams", evals[i].ngrams},
         {"ngrams_found", r.ngrams_found},
         {"share", static_cast<double>(r.ngrams_found) / static_cast<double>(evals[i].ngrams)},
         {"example", report.index.ngram_text(i, r.example)}});
  }
  out["worst"] = ordered_json::array();
  for (const ContaminatedDocument& d : report.contaminated) {
    ordered_json hits = ordered_json::array();
    for (const ContaminationHit& hit : d.found.hits) {
      if (static_cast<int64_t>(hits.size()) == report.settings.list) break;
      hits.push_back({{"eval", evals[hit.eval].place},
                      {"windows", hit.windows},
                      {"ngrams", hit.ngrams.size()},
                      {"example", report.index.ngram_text(hit.eval, hit.ngrams.front())}});
    }
    out["worst"].push_back(
        {{"place", report.place_text(d.place)},
         {"words", d.words},
         {"words_covered", d.found.words_covered},
         {"share", static_cast<double>(d.found.words_covered) / static_cast<double>(d.words)},
         {"eval_documents", d.found.hits.size()},
         {"hits", hits}});
  }
  return out;
}

}  // namespace

std::string check_json(const CheckReport& report) {
  const CheckSettings& s = report.settings;
  ordered_json out;
  out["settings"] = {{"eval", s.eval_files},
                     {"eval_field", s.eval_field},
                     {"ngram", s.ngram},
                     {"shortest_ngram", s.shortest_ngram},
                     {"shingle", s.shingle},
                     {"near_threshold", s.near_threshold},
                     {"seed", s.seed},
                     {"hashes", kMinHashes},
                     {"bands", report.bands.count},
                     {"rows_of_a_band", report.bands.rows}};
  out["components"] = ordered_json::array();
  for (const ComponentCheck& c : report.components) {
    ordered_json component{{"name", c.name},   {"decoded", c.decoded}, {"rows", c.rows},
                           {"empty", c.empty}, {"no_loss", c.no_loss}, {"repaired", c.repaired},
                           {"bad", c.bad}};
    if (c.bad > 0) component["first_bad"] = c.first_bad;
    if (c.left_out > 0) component["left_out"] = c.left_out;
    for (const StatsHistograms::Entry& e : c.stats.entries) component["figures"][e.name] = histogram_json(e);
    out["components"].push_back(std::move(component));
  }
  out["left_out"] = ordered_json::array();
  for (const LeftOutComponent& c : report.left_out)
    out["left_out"].push_back({{"name", c.name}, {"reason", c.reason}});
  out["contamination"] = contamination_json(report);
  const DuplicateReport& d = report.duplicates;
  out["documents"] = d.documents;
  out["exact_duplicates"] = {{"clusters", d.exact_clusters},
                             {"copies", d.exact_copies},
                             {"bytes_of_copies", d.exact_bytes},
                             {"largest", clusters_json(report, d.exact)}};
  out["near_duplicates"] = {{"clusters", d.near_clusters},     {"copies", d.near_copies},
                            {"bytes_of_copies", d.near_bytes}, {"crowded_bands", d.crowded_bands},
                            {"not_compared", d.not_compared},  {"largest", clusters_json(report, d.near)}};
  return out.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ostro::corpus_check
