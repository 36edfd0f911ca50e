// The step corpus: texts that are drawn.
#include "ostro/drawn/corpus.h"

#include <algorithm>

#include "ostro/config/codec.h"
#include "ostro/experiment/plan/evaluation_files.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/kinds.h"

namespace ostro::lab {
namespace {

constexpr int64_t kSanityDocuments = 200;

// A share; `null` is none.
double share_of(const Step& step, const char* parameter) {
  double value = 0;
  return config::read_value(*step.parameters.find(parameter), "", &value).ok() ? value : 0;
}

}  // namespace

int64_t corpus_documents(const Work& work) {
  const int64_t documents = std::stoll(text_of(work.step, "documents"));
  return work.plan.sanity ? std::min(documents, kSanityDocuments) : documents;
}

Result<std::string> make_corpus(const Work& work, const std::string& folder) {
  io::FileSystem& fs = work.context.fs;
  const Step& step = work.step;
  drawn::CorpusRequest request{.kind = text_of(step, "kind"),
                               .documents = corpus_documents(work),
                               .seed = std::stoll(text_of(step, "seed")),
                               .duplicates = share_of(step, "duplicates"),
                               .near_duplicates = share_of(step, "near_duplicates"),
                               .planted = share_of(step, "planted"),
                               .noise = share_of(step, "noise")};
  ASSIGN_OR_RETURN(const auto before, evaluation_hashes(fs, work.plan, step));
  ASSIGN_OR_RETURN(const auto files, evaluation_files(fs, work.plan, step));
  for (const data::SourceFile& file : files) {
    ASSIGN_OR_RETURN(const std::vector<std::string> texts, drawn::evaluation_texts(fs, file.path));
    request.evaluation.insert(request.evaluation.end(), texts.begin(), texts.end());
  }
  ASSIGN_OR_RETURN(const auto after, evaluation_hashes(fs, work.plan, step));
  if (before != after)
    return invalid_argument("an evaluation file was changed while it was read; run it again");
  const std::string path = io::join_path(folder, "rows.jsonl");
  RETURN_IF_ERROR(drawn::write_corpus(fs, request, path));
  return io::file_sha256(fs, path);
}

}  // namespace ostro::lab
