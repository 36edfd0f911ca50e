#include "ostro/drawn/corpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "ostro/drawn/texts.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::drawn {
namespace {

constexpr int64_t kMostDocuments = int64_t{1} << 31;

numerics::Key key_of(const CorpusRequest& request, int64_t number, const char* purpose) {
  const numerics::Key corpus = numerics::fold_in(
      numerics::fold_in(numerics::key_from_seed(static_cast<uint64_t>(request.seed)), "corpus"),
      request.kind);
  return numerics::fold_in(numerics::fold_in(corpus, static_cast<uint32_t>(number)), purpose);
}

// Which earlier document a document copies, if any.
struct Fate {
  std::optional<int64_t> copy_of;
  bool is_near = false;
};

Fate fate_of(const CorpusRequest& request, int64_t number) {
  Draws draws(key_of(request, number, "fate"));
  const bool copies = draws.chance(request.duplicates), is_near = draws.chance(request.near_duplicates);
  if (number == 0 || (!copies && !is_near)) return {};
  return {draws.below(static_cast<uint32_t>(number)), !copies};
}

Prose draw(const CorpusRequest& request, Draws& draws) {
  if (request.kind == "web") return draw_prose(draws, request.noise);
  if (request.kind == "papers") return draw_paper(draws, request.noise);
  return {"",
          {request.kind == "code"    ? draw_code(draws)
           : request.kind == "maths" ? draw_maths(draws)
                                     : draw_tasks(draws)}};
}

Status check_share(const char* parameter, double share) {
  if (share >= 0 && share <= 1) return {};
  return invalid_argument(fmt::format("{} is {}: use a share from 0 to 1", parameter, share));
}

}  // namespace

const std::vector<std::string>& corpus_kinds() {
  static const std::vector<std::string> kKinds = {"web", "code", "maths", "papers", "tasks"};
  return kKinds;
}

Status CorpusRequest::validate() const {
  if (std::find(corpus_kinds().begin(), corpus_kinds().end(), kind) == corpus_kinds().end())
    return invalid_argument(fmt::format("kind is {}: use one of {}", kind, fmt::join(corpus_kinds(), ", ")));
  if (documents < 1 || documents > kMostDocuments)
    return invalid_argument(fmt::format("documents is {}: use 1 to {}", documents, kMostDocuments));
  if (seed < 0) return invalid_argument(fmt::format("seed is {}: use 0 or more", seed));
  RETURN_IF_ERROR(check_share("duplicates", duplicates));
  RETURN_IF_ERROR(check_share("near_duplicates", near_duplicates));
  RETURN_IF_ERROR(check_share("planted", planted));
  RETURN_IF_ERROR(check_share("noise", noise));
  if (planted > 0 && evaluation.empty())
    return invalid_argument(fmt::format("planted is {}, and evaluation has no text to plant", planted));
  return {};
}

std::string corpus_row(const CorpusRequest& request, int64_t number) {
  const Fate fate = fate_of(request, number);
  int64_t origin = number;  // the document that was drawn: a copy of a copy is one of it
  for (Fate next = fate; next.copy_of; next = fate_of(request, origin)) origin = *next.copy_of;

  Draws draws(key_of(request, origin, "text"));
  Prose prose = draw(request, draws);
  nlohmann::json row = {{"document", number}};
  Draws plants(key_of(request, origin, "planted"));
  if (!request.evaluation.empty() && plants.chance(request.planted)) {
    const uint32_t which = plants.below(static_cast<uint32_t>(request.evaluation.size()));
    prose.paragraphs.insert(prose.paragraphs.begin() + 1, request.evaluation[which]);
    row["planted"] = which;
  }
  if (fate.copy_of) row[fate.is_near ? "near_copy_of" : "copy_of"] = origin;
  if (fate.is_near) {
    Draws more(key_of(request, number, "near"));
    prose.paragraphs.push_back(draw_sentence(more));
  }
  row["text"] =
      prose.title.empty() ? fmt::format("{}", fmt::join(prose.paragraphs, "\n")) : plain_text(prose);
  if (request.kind == "web") {
    Draws around(key_of(request, number, "page"));
    row["html"] = page(prose, around);
  }
  return row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Status write_corpus(io::FileSystem& fs, const CorpusRequest& request, const std::string& path) {
  RETURN_IF_ERROR(request.validate());
  std::string out;
  for (int64_t i = 0; i < request.documents; ++i) out += corpus_row(request, i) + "\n";
  return io::write_file_atomically(fs, path, out);
}

Result<std::vector<std::string>> evaluation_texts(io::FileSystem& fs, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path));
  std::vector<std::string> out;
  const bool is_rows = io::has_extension(path, ".jsonl");
  const std::string separator = is_rows ? "\n" : "\n\n";
  for (size_t begin = 0, line = 1; begin < text.size(); ++line) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    std::string piece = text.substr(begin, end - begin);
    begin = end + separator.size();
    if (piece.find_first_not_of(" \t\r\n") == std::string::npos) continue;
    if (is_rows) {
      const auto row = nlohmann::json::parse(piece, nullptr, false);
      if (!row.is_object() || !row.contains("text") || !row["text"].is_string())
        return invalid_argument(fmt::format("{}:{}: is no row with a text in the field text", path, line));
      piece = row["text"];
    }
    out.push_back(std::move(piece));
  }
  return out;
}

}  // namespace ostro::drawn
