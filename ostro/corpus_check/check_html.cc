// Writes the report of a check as one HTML page, with plots in SVG.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "ostro/base/html.h"
#include "ostro/corpus_check/check.h"

namespace ostro::corpus_check {
namespace {

constexpr const char* kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Data check</title><style>
body{font:15px/1.45 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#1c2430}
h1{font-size:1.6em}h2{font-size:1.25em;margin-top:2em;border-bottom:1px solid #d5dbe3}
table{border-collapse:collapse;margin:.8em 0}td,th{padding:.25em .7em;text-align:left;vertical-align:top;border-bottom:1px solid #e6eaf0}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(330px,1fr));gap:1em}
figure{margin:0;border:1px solid #e6eaf0;border-radius:6px;padding:.6em}figcaption{font-weight:600}
figure p{margin:.2em 0 0;font-size:.85em;color:#56616f}svg{width:100%;height:auto}rect{fill:#3f78c3}rect:hover{fill:#e08a2c}
text{font:10px system-ui,sans-serif;fill:#56616f}.good{color:#217a3c}.bad{color:#b3261e}code{font-size:.9em}
</style></head><body>
)";

// 12,345,678
std::string grouped(int64_t n) {
  std::string out = std::to_string(n);
  for (auto i = static_cast<int64_t>(out.size()) - 3; i > (n < 0 ? 1 : 0); i -= 3)
    out.insert(static_cast<size_t>(i), ",");
  return out;
}

// A short number: 0.123, 12.3, 45.6k, 7.8M.
std::string brief(double v) {
  const double size = std::abs(v);
  if (size >= 1e9) return fmt::format("{:.3g}G", v / 1e9);
  if (size >= 1e6) return fmt::format("{:.3g}M", v / 1e6);
  if (size >= 1e4) return fmt::format("{:.3g}k", v / 1e3);
  return fmt::format("{:.4g}", v);
}

std::string percent(double part, double whole) {
  return whole == 0 ? "0 %" : fmt::format("{:.2f} %", 100 * part / whole);
}

std::string plot(const StatsHistograms::Entry& e) {
  const Histogram& h = e.histogram;
  constexpr double kWidth = 320, kHeight = 120;
  const std::vector<int64_t>& bins = h.bins();
  size_t first = 0;
  while (first < bins.size() && bins[first] == 0) ++first;
  const int64_t most = bins.empty() ? 1 : *std::max_element(bins.begin(), bins.end());
  const double step = kWidth / static_cast<double>(std::max<size_t>(bins.size() - first, 1));
  std::string out = fmt::format("<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {} {}\" role=\"img\">",
                                e.name, kWidth, kHeight + 14);
  for (size_t i = first; i < bins.size(); ++i) {
    const double height = kHeight * static_cast<double>(bins[i]) / static_cast<double>(most);
    out += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"><title>{} to {}: "
        "{}</title></rect>",
        static_cast<double>(i - first) * step, kHeight - height, std::max(step - 0.5, 0.5), height,
        brief(h.lower_edge(i)), brief(h.lower_edge(i + 1)), grouped(bins[i]));
  }
  out += fmt::format(
      "<text x=\"0\" y=\"{0}\">{1}</text><text x=\"{2}\" y=\"{0}\" text-anchor=\"end\">{3}</text></svg>"
      "<p>{4}; mean {5}, 1 % below {6}, half below {7}, 99 % below {8}, largest {9}</p></figure>\n",
      kHeight + 12, brief(h.lower_edge(first)), kWidth, brief(h.lower_edge(bins.size())), e.unit,
      brief(h.mean()), brief(h.quantile(0.01)), brief(h.quantile(0.5)), brief(h.quantile(0.99)),
      brief(h.max()));
  return out;
}

std::string summary(const CheckReport& report) {
  const DuplicateReport& d = report.duplicates;
  int64_t bytes = 0, tokens = 0;
  for (const ComponentCheck& c : report.components) {
    bytes += static_cast<int64_t>(c.stats.entries[0].histogram.sum());
    tokens += static_cast<int64_t>(c.stats.entries[1].histogram.sum());
  }
  std::string out = fmt::format("<p>{} documents, {} bytes of text, {} tokens.</p><table>",
                                grouped(d.documents), grouped(bytes), grouped(tokens));
  const auto line = [&out](const char* what, int64_t count, const std::string& rest) {
    out += fmt::format("<tr><td>{}</td><td class=\"n {}\">{}</td><td>{}</td></tr>", what,
                       count > 0 ? "bad" : "good", grouped(count), rest);
  };
  if (!report.index.documents().empty())
    line("documents with evaluation data", report.contaminated_documents,
         percent(static_cast<double>(report.contaminated_documents), static_cast<double>(d.documents)));
  line("exact copies", d.exact_copies,
       fmt::format("{} of the bytes, in {} clusters",
                   percent(static_cast<double>(d.exact_bytes), static_cast<double>(bytes)),
                   grouped(d.exact_clusters)));
  line("near copies", d.near_copies,
       fmt::format("{} of the bytes, in {} clusters",
                   percent(static_cast<double>(d.near_bytes), static_cast<double>(bytes)),
                   grouped(d.near_clusters)));
  out += "</table>\n";
  for (const LeftOutComponent& c : report.left_out)
    out += fmt::format("<p class=\"bad\">Not looked at: <code>{}</code>: {}</p>\n", html_escaped(c.name),
                       html_escaped(c.reason));
  return out;
}

std::string contamination(const CheckReport& report) {
  const std::vector<EvalDocument>& evals = report.index.documents();
  if (evals.empty()) return "<p>No evaluation sets were given (--eval).</p>\n";
  std::string out = fmt::format(
      "<p>{} evaluation documents ({} of them too short to be looked for), compared by {}-grams of "
      "normalized "
      "words.</p><table><tr><th>evaluation document</th><th class=\"n\">found in</th><th class=\"n\">n-grams "
      "found</th><th>for example</th></tr>\n",
      grouped(static_cast<int64_t>(evals.size())), grouped(report.index.too_short()), report.settings.ngram);
  int64_t listed = 0, more = 0;
  for (size_t i = 0; i < evals.size(); ++i) {
    const EvalResult& r = report.evals[i];
    if (r.documents == 0) continue;
    if (listed++ >= report.settings.list) {
      ++more;
      continue;
    }
    out += fmt::format(
        "<tr><td><code>{}</code></td><td class=\"n\">{}</td><td class=\"n\">{} of {}</td><td>{}</td></tr>\n",
        html_escaped(evals[i].place), grouped(r.documents), grouped(r.ngrams_found), grouped(evals[i].ngrams),
        html_escaped(report.index.ngram_text(i, r.example)));
  }
  out += "</table>\n";
  if (more > 0) out += fmt::format("<p>and {} more.</p>\n", grouped(more));
  out +=
      "<table><tr><th>document of the corpus</th><th class=\"n\">words in n-grams found</th><th>evaluation "
      "documents</th><th>for example</th></tr>\n";
  for (const ContaminatedDocument& d : report.contaminated) {
    std::string which;
    for (size_t i = 0; i < std::min<size_t>(d.found.hits.size(), 5); ++i)
      which += (i > 0 ? ", " : "") + evals[d.found.hits[i].eval].place;
    if (d.found.hits.size() > 5) which += fmt::format(" and {} more", d.found.hits.size() - 5);
    const ContaminationHit& hit = d.found.hits.front();
    out +=
        fmt::format("<tr><td><code>{}</code></td><td class=\"n\">{} ({})</td><td>{}</td><td>{}</td></tr>\n",
                    html_escaped(report.place_text(d.place)), grouped(d.found.words_covered),
                    percent(static_cast<double>(d.found.words_covered), static_cast<double>(d.words)),
                    html_escaped(which), html_escaped(report.index.ngram_text(hit.eval, hit.ngrams.front())));
  }
  out += "</table>\n";
  if (const auto rest = report.contaminated_documents - static_cast<int64_t>(report.contaminated.size());
      rest > 0)
    out += fmt::format("<p>and {} more.</p>\n", grouped(rest));
  return out;
}

std::string clusters(const CheckReport& report, const std::vector<DuplicateCluster>& all, bool near) {
  if (all.empty()) return "<p class=\"good\">None.</p>\n";
  std::string out = fmt::format(
      "<table><tr><th class=\"n\">documents</th><th class=\"n\">bytes of copies</th>{}<th>first "
      "ones</th></tr>\n",
      near ? "<th class=\"n\">least Jaccard</th>" : "");
  for (const DuplicateCluster& c : all) {
    out +=
        fmt::format("<tr><td class=\"n\">{}</td><td class=\"n\">{}</td>", grouped(c.size), grouped(c.bytes));
    if (near) out += fmt::format("<td class=\"n\">{:.3f}</td>", c.least_jaccard);
    out += "<td>";
    constexpr size_t kShown = 3;
    for (size_t i = 0; i < c.documents.size(); ++i) {
      if (i == kShown)
        out += fmt::format("<details><summary>{} more of {}</summary>", c.documents.size() - kShown,
                           grouped(c.size));
      out += fmt::format("<code>{}</code><br>", html_escaped(report.place_text(c.documents[i])));
    }
    if (c.documents.size() > kShown) out += "</details>";
    out += "</td></tr>\n";
  }
  return out + "</table>\n";
}

}  // namespace

std::string check_html(const CheckReport& report) {
  std::string out = kHead;
  out += "<h1>Data check</h1>\n" + summary(report);
  out += "<h2>Evaluation data in the corpus</h2>\n" + contamination(report);
  out += "<h2>Exact duplicates</h2>\n" + clusters(report, report.duplicates.exact, false);
  out += fmt::format(
      "<h2>Near duplicates</h2>\n<p>MinHash with {} hashes of {}-word shingles, seed {}, in {} bands of {}; "
      "from an estimated Jaccard index of {} on. Exact copies are left out.</p>\n",
      kMinHashes, report.settings.shingle, report.settings.seed, report.bands.count, report.bands.rows,
      report.settings.near_threshold);
  if (const DuplicateReport& d = report.duplicates; d.not_compared > 0)
    out += fmt::format(
        "<p class=\"bad\">{} bands are shared by more than {} documents unlike each other. {} times one of "
        "these was not compared with those behind it, so that there may be more near duplicates than are "
        "counted.</p>\n",
        grouped(d.crowded_bands), DuplicateReport::kMaxRepresentatives, grouped(d.not_compared));
  out += clusters(report, report.duplicates.near, true);
  for (const ComponentCheck& c : report.components) {
    out += fmt::format(
        "<h2>{}</h2>\n<p>{} rows{}; {} empty, {} without loss, {} malformed and skipped, {} with malformed "
        "UTF-8.</p>\n",
        c.name.empty() ? "Documents" : "Component " + html_escaped(c.name), grouped(c.rows),
        c.decoded ? ", decoded from their ids" : "", grouped(c.empty), grouped(c.no_loss), grouped(c.bad),
        grouped(c.repaired));
    if (c.bad > 0) out += fmt::format("<p class=\"bad\">The first: {}</p>\n", html_escaped(c.first_bad));
    if (c.left_out > 0)
      out += fmt::format("<p>{} rows are left out by verdicts (rows) and were not looked at.</p>\n",
                         grouped(c.left_out));
    out += "<div class=\"plots\">\n";
    for (const StatsHistograms::Entry& e : c.stats.entries)
      if (e.histogram.count() > 0) out += plot(e);
    out += "</div>\n";
  }
  return out + "</body></html>\n";
}

}  // namespace ostro::corpus_check
