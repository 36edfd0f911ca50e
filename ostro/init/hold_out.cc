#include "ostro/init/hold_out.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "ostro/io/files/path.h"

namespace ostro::init {
namespace {

constexpr size_t kFewFiles = 40;
constexpr double kShare = 0.05, kMostShare = 0.5;
constexpr double kEnoughBytes = 2e6;  // of held-out text: more takes time and tells nothing new

// With one digit, upwards.
double rounded(double fraction) {
  const double unit = std::pow(10, std::floor(std::log10(fraction)));
  return std::min(1.0, std::ceil(fraction / unit - 1e-9) * unit);
}

// The smallest file that holds a fiftieth of the text, unless most of it. Never an empty one: it has no loss.
const data::SourceFile& file_to_hold_out(const Survey& survey) {
  std::vector<const data::SourceFile*> files;
  for (const data::SourceFile& file : survey.files)
    if (file.size > 0) files.push_back(&file);
  std::sort(files.begin(), files.end(), [](const auto* a, const auto* b) {
    return a->size != b->size ? a->size < b->size : a->path < b->path;
  });
  const auto least = static_cast<int64_t>(0.02 * static_cast<double>(survey.stored_bytes));
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const auto* file) { return file->size >= least; });
  return found == files.end() || (*found)->size * 5 > survey.stored_bytes * 2 ? *files.front() : **found;
}

}  // namespace

HoldOut choose_hold_out(const Survey& survey) {
  HoldOut out{.train_urls = survey.urls, .validation_urls = {}, .why = {}};
  const auto text = static_cast<double>(survey.text_bytes);
  const bool by_name = survey.is_all_text_files() && survey.files.size() < kFewFiles;
  const int64_t documents = by_name ? std::count_if(survey.files.begin(), survey.files.end(),
                                                    [](const auto& file) { return file.size > 0; })
                                    : survey.documents;
  if (documents < 3) {
    out.why = fmt::format(
        "{} document{}: nothing can be held out, so there is no held-out loss; split the text "
        "into more files to see one",
        documents, documents == 1 ? "" : "s");
    return out;
  }
  if (by_name) {
    const data::SourceFile& held_out = file_to_hold_out(survey);
    out.train_urls.clear();
    for (const data::SourceFile& file : survey.files)
      if (file.path != held_out.path) out.train_urls.push_back(io::glob_literal(file.path));
    out.validation_urls = {io::glob_literal(held_out.path)};
    out.held_out_bytes = held_out.size;
    out.why = fmt::format(
        "{} of {} files, {:.0f}% of the text, is held out; so few files cannot be split at random",
        held_out.path, survey.files.size(),
        100 * static_cast<double>(held_out.size) / static_cast<double>(survey.stored_bytes));
    return out;
  }
  out.fraction = rounded(std::min(kShare, kEnoughBytes / text));
  if (survey.is_whole) {
    double first = 1;
    for (const DocumentSize& d : survey.sizes) first = std::min(first, d.place);
    if (first >= out.fraction) out.fraction = rounded(first * (1 + 1e-9));
    if (out.fraction > kMostShare) {
      out.fraction = 0;
      out.why =
          fmt::format("{} documents: no fraction up to a half would hold out one of them", survey.documents);
      return out;
    }
    int64_t held_out = 0;
    for (const DocumentSize& d : survey.sizes)
      if (d.place < out.fraction) {
        ++held_out;
        out.held_out_bytes += d.bytes;
      }
    out.why = fmt::format("{} of {} documents, {:.1f}% of the text, are held out", held_out, survey.documents,
                          100 * static_cast<double>(out.held_out_bytes) / text);
  } else {
    out.held_out_bytes = std::llround(out.fraction * text);
    out.why = fmt::format("about {:.0f} of {} documents are held out, {:.1f} MB of text: enough to measure",
                          out.fraction * static_cast<double>(survey.documents), survey.documents,
                          static_cast<double>(out.held_out_bytes) * 1e-6);
  }
  return out;
}

}  // namespace ostro::init
