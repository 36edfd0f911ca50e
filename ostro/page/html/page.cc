#include "ostro/page/html/page.h"

#include <fmt/format.h>

#include "ostro/base/html.h"
#include "ostro/base/sha256.h"
#include "ostro/base/text_parts.h"
#include "ostro/chain/clock_text.h"
#include "ostro/page/html/page_charts.h"
#include "ostro/page/html/page_parts.h"
#include "ostro/page/html/page_script.h"
#include "ostro/page/html/page_style.h"
#include "ostro/page/numbers/axis.h"
#include "ostro/tokenizer/unicode/base64.h"
#include "ostro/train/options/config.h"

namespace ostro::page {
namespace {

// If the escaping should ever fail: the browser still fetches nothing and runs no script but ours. A live
// page asks its own server alone.
std::string policy(PageKind kind) {
  const Sha256Digest digest = sha256(std::string_view(kPageScript));
  const std::string bytes(digest.begin(), digest.end());
  return fmt::format("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'{}",
                     tokenizer::base64_encode(bytes), kind == PageKind::kLive ? "; connect-src 'self'" : "");
}

std::string state_chip(const RunView& view) {
  std::string state = view.outcomes.empty() ? "record damaged" : view.state();
  const std::string colour = state == "finished" || state == "running"          ? "good"
                             : state.starts_with("failed") || state == "killed" ? "bad"
                                                                                : "warn";
  // A file shows the run as it was when the file was written.
  if (state == "running") state = fmt::format("running, after step {}", grouped(view.chain.last_step()));
  return fmt::format("<span class=\"state {}\">{}</span>", colour, cut(state, kLongestWord));
}

std::string tile(const std::string& name, const std::string& value) {
  return fmt::format("<div><small>{}</small><b>{}</b></div>", name, value);
}

std::string tiles(const RunView& view) {
  const int64_t total = view.total_steps(), done = view.chain.last_step();
  std::string out = tile(
      "steps", grouped(done) + (total > done ? fmt::format("<small>of {}</small>", grouped(total)) : ""));
  if (view.parameters > 0) out += tile("parameters", short_number(static_cast<double>(view.parameters)));
  if (view.history.tokens > 0) out += tile("tokens trained", short_number(view.history.tokens));
  const auto last = [&](const char* name, const char* what) {
    if (const Bins* bins = find_metric(view, name))
      out += tile(what, fmt::format("{:.4f}", bins->last().value));
  };
  last(kTrainLoss, "training loss");
  last("eval/loss", "held-out loss");
  last("eval/bits_per_byte", "bits per byte");
  if (const auto seconds = run_seconds(view)) out += tile("time", chain::duration_text(*seconds));
  return fmt::format("<div class=\"tiles\">{}</div>\n", out);
}

// What the run came to, compared with what needs no model.
std::string result_text(const RunView& view) {
  const Bins* loss = find_metric(view, "eval/loss");
  if (loss == nullptr) {
    const Bins* train = find_metric(view, kTrainLoss);
    if (train == nullptr) return "";
    return fmt::format(
        "<b>Training loss {:.4f}</b> nats a token at step {}. There is no loss on held-out text, so "
        "the page cannot say how the model does on text that it has not seen.",
        train->last().value, grouped(train->last().step));
  }
  std::string out = fmt::format("<b>Held-out loss {:.4f}</b> nats a token", loss->last().value);
  if (const Bins* bits = find_metric(view, "eval/bits_per_byte"))
    out += fmt::format(" ({:.4f} bits per byte)", bits->last().value);
  out += fmt::format(" at step {}", grouped(loss->last().step));
  if (loss->first().step < loss->last().step)
    out += fmt::format(", {:.4f} at step {}", loss->first().value, grouped(loss->first().step));
  out += ".";
  if (view.facts && view.facts->data.size() == 1 && view.facts->data[0].unigram) {
    const Unigram& unigram = *view.facts->data[0].unigram;
    out += fmt::format(
        " To guess each token by its frequency in the training text costs {:.4f} nats ({:.4f} bits "
        "per byte).",
        unigram.nats_per_token, unigram.bits_per_byte);
  }
  return out + " The run itself wrote its held-out loss down: no hash covers it.";
}

std::string check_text(const RunView& view) {
  if (!view.config) return "";
  const std::string directory = train::run_directory(*view.config);
  return fmt::format(
      "<p class=\"check\">Check this run: {}</p>\n<p class=\"soft\">The command trains the run again, or "
      "with --from_step and --to_step a part of it, and compares each step with the fingerprints of the hash "
      "chain. Whether that was done is not recorded.</p>\n",
      command_html("ostro verify " + shell_word(directory)));
}

}  // namespace

std::string whole_page(const PageParts& parts) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"generator\" content=\"ostro\"><title>{} · Ostro</title>\n<style>{}</style></head><body>"
      "<main data-axes=\"{}\" data-version=\"{}\"{}>\n{}</main><script>{}</script></body></html>\n",
      policy(parts.kind), parts.title, kPageStyle, html_escaped(parts.axes), html_escaped(parts.version),
      parts.kind == PageKind::kLive ? " data-live" : "", parts.body, kPageScript);
}

std::string page_html(const RunView& view, PageKind kind) {
  const std::string name = html_escaped(view.name());
  const std::string sections = charts_section(view) + samples_section(view) + data_section(view) +
                               time_section(view) + hashes_section(view) + checkpoints_section(view) +
                               sessions_section(view) + config_section(view);
  std::string body = fmt::format(
      "<header><div class=\"line\"><h1>{}</h1>{}</div>\n"
      "<p class=\"soft\">{} {}</p></header>\n",
      name, state_chip(view), view.chain.last_step() < view.total_steps() ? "chain head so far" : "run hash",
      hash_html(view.chain.head()));
  if (const std::string result = result_text(view); !result.empty())
    body += "<p class=\"lead\">" + result + "</p>\n";
  body += check_text(view) + tiles(view) + contents(sections) + sections;
  body += "<footer>This page is only a view of the run. The hash chain is the record.</footer>\n";
  return whole_page(
      {name, body, axes_json(std::span(&view, 1)), view.chain.head() + sha256_hex(view.state()), kind});
}

}  // namespace ostro::page
