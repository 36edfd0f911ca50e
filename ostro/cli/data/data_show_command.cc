// ostro data show
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/batches/loader/row_places.h"
#include "ostro/cli/data/data_session.h"
#include "ostro/cli/main/commands.h"
#include "ostro/corpus_check/batch_text.h"
#include "ostro/data/formats/row_formatter.h"
#include "ostro/data/options/choose_component.h"
#include "ostro/data/store/store_text.h"
#include "ostro/data/store/token_store.h"
#include "ostro/shell/shared/terminal.h"

namespace ostro::cli {
namespace {

using data::Component;
using data::Split;

Status print_row(const prepare::Session& session, Split split, int64_t row, bool json) {
  ASSIGN_OR_RETURN(const Component c, data::only_component(session.components));
  ASSIGN_OR_RETURN(const auto store,
                   data::TokenStore::open(session.fs, session.options, c, session.tokenizer));
  const data::TokenStream& stream = store->split(split);
  if (row < 0 || row >= stream.rows())
    return invalid_argument(
        fmt::format("--row {}: {} has {} rows, from 0", row, stream.name(), stream.rows()));
  ASSIGN_OR_RETURN(const data::RowSource source, stream.source(row));
  io::FileSystem& fs = session.fs;
  batches::SourceCheck files(fs, batches::kHashedForOneRow);
  const std::vector<batches::RowPlace> places =
      batches::find_rows(fs, {&source, 1}, data::row_fields(c.format), files);
  ASSIGN_OR_RETURN(const Sha256Digest hash, stream.row_hash(row));
  ASSIGN_OR_RETURN(const std::vector<int64_t> ends, stream.row_ends(row, 1));
  std::vector<int32_t> tokens(static_cast<size_t>(ends[1] - ends[0]));
  std::vector<float> weights(tokens.size());
  RETURN_IF_ERROR(stream.read(ends[0], tokens));
  RETURN_IF_ERROR(stream.read_weights(ends[0], weights));
  const std::vector<uint32_t> ids(tokens.begin(), tokens.end());
  ASSIGN_OR_RETURN(const std::string text, session.tokenizer.decode(ids));
  const bool weighted = stream.weight_kind() != data::WeightKind::kNone;
  if (json) {
    nlohmann::ordered_json entry = {{"row", row},
                                    {"split", data::split_name(split)},
                                    {"file", source.file},
                                    {"document", source.document},
                                    {"text_bytes", source.bytes},
                                    {"first_token", ends[0]},
                                    {"sha256", to_hex(hash)},
                                    {"ids", tokens},
                                    {"text", text}};
    if (!c.name.empty()) entry["component"] = c.name;
    corpus_check::add_place(places[0], entry);
    if (weighted) entry["loss_weights"] = weights;
    return write_stdout(entry.dump() + "\n");
  }
  std::string out = fmt::format("row         {} of {} ({})\n", row, stream.rows(), stream.name());
  out += fmt::format("from        {}, document {}{}\n", source.file, source.document,
                     corpus_check::place_text(places[0]));
  out += fmt::format("tokens      {}: [{}, {}) of the stream\nsha256      {}\n", tokens.size(), ends[0],
                     ends[1], to_hex(hash));
  out += fmt::format("ids         {}\n", fmt::join(tokens, " "));
  if (weighted) out += fmt::format("weights     {}\n", fmt::join(weights, " "));
  return write_stdout(out + fmt::format("text\n{}\n", text));
}

}  // namespace

int data_show_command(Args args) {
  std::string component, split = "train";
  int64_t row = 0;
  bool json = false;
  args.summary(
      "Prints a row of a token store: its text as its ids decode, ids, loss weights, and where it comes "
      "from.");
  args.option("--component", &component, "NAME", "which one; needed where there are several");
  args.option("--row", &row, "N", "the row, from 0", Args::kRequired);
  args.option("--split", &split, "NAME", "train (default) or validation");
  args.flag("--json", &json, "one line of JSON");
  args.config();
  if (const auto code = args.parse()) return *code;
  if (split != "train" && split != "validation")
    return report_error(invalid_argument(fmt::format("--split {}: use train or validation", split)));
  const Split which = split == "train" ? Split::kTrain : Split::kValidation;
  return with_data_session(args, component,
                           [&](const prepare::Session& s) { return print_row(s, which, row, json); });
}

}  // namespace ostro::cli
