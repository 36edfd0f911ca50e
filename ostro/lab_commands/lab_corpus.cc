#include "ostro/lab_commands/lab_corpus.h"

#include <fmt/format.h>

#include "ostro/drawn/corpus.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/shell/shared/terminal.h"

namespace ostro::cli {
namespace {

Status draw(io::FileSystem& fs, drawn::CorpusRequest request, const std::vector<std::string>& evaluation,
            const std::string& out) {
  for (const std::string& file : evaluation) {
    ASSIGN_OR_RETURN(const std::vector<std::string> texts, drawn::evaluation_texts(fs, file));
    request.evaluation.insert(request.evaluation.end(), texts.begin(), texts.end());
  }
  RETURN_IF_ERROR(drawn::write_corpus(fs, request, out));
  ASSIGN_OR_RETURN(const std::string hash, io::file_sha256(fs, out));
  return write_stdout(fmt::format("{}: {} documents, SHA-256 {}\n", out, request.documents, hash));
}

}  // namespace

int lab_corpus(Args args) {
  drawn::CorpusRequest request;
  std::vector<std::string> evaluation;
  std::string out;
  args.summary(
      "Draws texts with the same bytes on every machine, a row each: web pages, code, maths, papers or tasks "
      "in an "
      "invented\n"
      "language, whose words, grammar and facts are the same in all kinds. The step `corpus` of a plan does "
      "the same.");
  args.positional("KIND", &request.kind, "web, code, maths, papers or tasks");
  args.option("--out", &out, "FILE", "the .jsonl to write", Args::kRequired);
  args.option("--documents", &request.documents, "N", "number of documents (default: 1000)");
  args.option("--seed", &request.seed, "N", "another one gives other documents (default: 0)");
  args.option("--duplicates", &request.duplicates, "SHARE", "of the documents, which are earlier ones again");
  args.option("--near_duplicates", &request.near_duplicates, "SHARE", "of those with one more sentence");
  args.option("--planted", &request.planted, "SHARE", "of the others, with an evaluation text in them");
  args.option("--evaluation", &evaluation, "FILE", "evaluation texts: .jsonl, or paragraphs");
  args.option("--noise", &request.noise, "SHARE", "of the words, which are letters without sense");
  if (const auto code = args.parse()) return *code;
  return exit_after(draw(args.context().fs, request, evaluation, out));
}

}  // namespace ostro::cli
