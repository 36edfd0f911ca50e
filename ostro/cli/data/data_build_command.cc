// ostro data build | consolidate
#include <fmt/format.h>

#include "ostro/batches/loader/data_set.h"
#include "ostro/cli/data/data_session.h"
#include "ostro/cli/main/commands.h"
#include "ostro/data/options/choose_component.h"
#include "ostro/data/store/store_text.h"
#include "ostro/data/store/token_store.h"
#include "ostro/prepare/store/build.h"
#include "ostro/prepare/store/consolidate.h"
#include "ostro/shell/shared/progress.h"
#include "ostro/shell/shared/terminal.h"

namespace ostro::cli {
namespace {

using data::Component;
using data::Split;

std::string ledger_text(const std::string& name, const std::string& cache_dir,
                        const data::StoreLedger& ledger, bool files) {
  std::string out = name.empty() ? "" : fmt::format("component {}\n", name);
  out += data::place_text(cache_dir, ledger, fmt::format("{} files", ledger.files.size()));
  for (const Split split : data::kSplits) {
    const data::SplitLedger& s = ledger.split(split);
    out += fmt::format("{:<10}  {} documents, {} tokens, {} bytes of text\n", data::split_name(split), s.rows,
                       s.tokens, s.bytes);
  }
  if (files)
    for (const data::FileLedger& file : ledger.files)
      out += fmt::format("  {}  {}  {} documents, {} tokens, {} bytes\n", file.sha256, file.source.path,
                         file.documents, file.tokens[0] + file.tokens[1], file.source.size);
  return out + data::counts_text(ledger.files) + fmt::format("ledger hash {}\n", ledger.hash());
}

Status build_all(const prepare::Session& session, bool append, bool files) {
  for (const Component& component : session.components) {
    data::BuildSettings settings;
    settings.threads = session.threads;
    settings.append = append;
    BuildProgressLine line(component.name);
    settings.progress = line.callback();
    const auto ledger =
        prepare::build_store(session.fs, session.options, component, session.tokenizer, settings);
    line.end();
    if (!ledger.ok()) return ledger.error();
    // First: the store stands, whatever becomes of its index.
    RETURN_IF_ERROR(write_stdout(ledger_text(component.name, component.cache_dir, *ledger, files)));
    RETURN_IF_ERROR(
        batches::make_packs(session.fs, session.options, component, session.tokenizer, session.seq_len));
    if (data::is_packed(component.format)) continue;
    // Opening a store says what is remarkable about it; making packs has done so.
    const auto store = data::TokenStore::open(session.fs, session.options, component, session.tokenizer);
    if (!store.ok()) return store.error();
  }
  return {};
}

}  // namespace

int data_build_command(Args args) {
  std::string component;
  bool append = false, files = false;
  args.summary(
      "Builds the token store of every component (or the one that data.cache_dir names), after a tokenizer "
      "where data.tokenizer names none, goes on with an\n"
      "unfinished one, or checks that the one there is what the configuration asks for. Rows that share\n"
      "sequences get the index for model.seq_len. OSTRO_THREADS threads tokenize. Several processes may "
      "build different components at once.");
  args.option("--component", &component, "NAME", "only this one");
  args.flag(
      "--append", &append,
      "extend a finished store by files that are new at the end of their list; runs on the store as it was "
      "cannot go on");
  args.flag("--files", &files, "print the ledger's entry of every file, too");
  args.config();
  if (const auto code = args.parse()) return *code;
  return with_data_session(
      args, component, [&](const prepare::Session& session) { return build_all(session, append, files); },
      prepare::MissingTokenizer::kIsTrained);
}

int data_consolidate_command(Args args) {
  std::string component;
  std::vector<std::string> parts;
  bool in_place = false;
  args.summary(
      "Joins finished stores of parts of a component's texts (built elsewhere with the same options, each "
      "with a\n"
      "part of the urls and a cache_dir of its own) into the component's store, without tokenizing again. "
      "The\n"
      "ledger is the one that a build from all texts gives. With --in_place the parts' arrays stay where "
      "they\n"
      "are and are read there: parts behind the first are read once, and kilobytes written.");
  args.option("--component", &component, "NAME", "which one; needed where there are several");
  args.option("--from", &parts, "FOLDER...", "the parts' stores, in the order of their texts",
              Args::kRequired);
  args.flag("--in_place", &in_place, "copy no rows: the parts stay needed, as they are");
  args.config();
  if (const auto code = args.parse()) return *code;
  return with_data_session(args, component, [&](const prepare::Session& session) -> Status {
    ASSIGN_OR_RETURN(const Component c, data::only_component(session.components));
    data::BuildSettings settings;
    settings.threads = session.threads;
    BuildProgressLine line(c.name);
    settings.progress = line.callback();
    const auto ledger = prepare::consolidate_stores(
        session.fs, session.options, c, session.tokenizer, parts,
        in_place ? prepare::JoinRows::kInPlace : prepare::JoinRows::kCopy, settings);
    line.end();
    if (!ledger.ok()) return ledger.error();
    return write_stdout(ledger_text(c.name, c.cache_dir, *ledger, false));
  });
}

}  // namespace ostro::cli
