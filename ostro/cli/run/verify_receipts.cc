// ostro verify --receipt, --receipts
#include <fmt/format.h>

#include <new>

#include "ostro/base/out_of_memory.h"
#include "ostro/cli/run/verify_forms.h"
#include "ostro/io/files/path.h"
#include "ostro/serve/receipts/check_log.h"

namespace ostro::cli {
namespace {

Result<std::optional<bundle::PublicKey>> wanted_key(const Context& context, const VerifyAsked& asked) {
  if (asked.bundle.key.empty()) return std::optional<bundle::PublicKey>();
  ASSIGN_OR_RETURN(const std::string pem, context.fs.read_file(asked.bundle.key));
  auto parsed = bundle::PublicKey::parse(pem, asked.bundle.key);
  if (!parsed.ok()) return invalid_argument(parsed.error().message());
  return std::optional(std::move(*parsed));
}

// The models at hand, opened as receipts name them. Error: a word of --adapter.
Result<serve::ReceiptModels> models_of(const Context& context, const VerifyAsked& asked) {
  ASSIGN_OR_RETURN(const auto adapters, serve::parse_adapters(asked.receipt.adapters, "--adapter"));
  const auto use_of = [](const std::string& precision, std::optional<int64_t> positions) {
    trained::UseOptions use;
    use.mp = precision;
    use.seq_len = positions;
    use.warns = false;  // the receipt names it, not who checks it
    return use;
  };
  return serve::ReceiptModels(
      [=, &context, &asked](const std::string& precision,
                            std::optional<int64_t> positions) -> Result<serve::ReceiptModels::Models> {
        try {
          return serve::load_with_adapters(context, asked.receipt.checkpoint, asked.receipt.tokenizer,
                                           trained::Trust::kChain, use_of(precision, positions), adapters);
        } catch (const std::bad_alloc& e) {
          if (!positions) throw;
          return out_of_memory_error(e).with_context(
              fmt::format("a model with the context of the receipt, {} positions", *positions));
        }
      },
      [=, &context, &asked](const std::string& precision, std::optional<int64_t> positions) {
        return serve::programs_of(
            context, asked.receipt.checkpoint, adapters,
            {asked.receipt.tokenizer, trained::Trust::kChain, use_of(precision, positions)});
      });
}

// The receipts with openings among the files of a folder. Other files are passed over, and those that cannot
// be read or are larger than a receipt.
Result<std::map<std::string, serve::ReceiptDocument>> openings_in(io::FileSystem& fs,
                                                                  const std::string& folder) {
  std::map<std::string, serve::ReceiptDocument> out;
  if (folder.empty()) return out;
  ASSIGN_OR_RETURN(const auto entries, fs.list(folder));
  for (const io::DirEntry& entry : entries) {
    if (entry.is_directory) continue;
    const std::string path = io::join_path(folder, entry.name);
    constexpr int64_t kMostBytes = int64_t{64} << 20;
    const auto text = fs.read_file(path, kMostBytes);
    if (!text.ok()) continue;
    auto document = serve::parse_document(*text, path);
    if (document.ok() && document->opening)
      out[serve::receipt_hash(document->receipt)] = std::move(*document);
  }
  return out;
}

}  // namespace

// A file that is no receipt is a finding about it, as a damaged record is one.
Result<Verified> verify_receipt(const Context& context, const VerifyAsked& asked) {
  const auto told = [&](const serve::ReceiptCheck& check) {
    return verified(asked.json ? serve::receipt_check_json(check) : serve::receipt_check_text(check),
                    exit_code(check.verdict()));
  };
  ASSIGN_OR_RETURN(const std::string text, context.fs.read_file(asked.receipt.path));
  ASSIGN_OR_RETURN(const auto key, wanted_key(context, asked));
  const auto document = serve::parse_document(text, asked.receipt.path);
  if (!document.ok()) {
    serve::ReceiptCheck check;
    check.findings.push_back(audit::finding_of(document.error()));
    return told(check);
  }
  ASSIGN_OR_RETURN(serve::ReceiptModels models, models_of(context, asked));
  ASSIGN_OR_RETURN(serve::ServedModel * model, models.of(document->receipt));
  ASSIGN_OR_RETURN(const serve::ReceiptCheck check, serve::check_receipt(*document, *model, key, &models));
  return told(check);
}

Result<Verified> verify_receipt_log(const Context& context, const VerifyAsked& asked) {
  ASSIGN_OR_RETURN(const std::string text, context.fs.read_file(asked.receipt.log));
  serve::LogCheckOptions options;
  options.count = asked.count;
  options.challenge = asked.challenge;
  options.head = asked.audit.run_hash;
  ASSIGN_OR_RETURN(options.key, wanted_key(context, asked));
  ASSIGN_OR_RETURN(options.openings, openings_in(context.fs, asked.receipt.openings));
  ASSIGN_OR_RETURN(serve::ReceiptModels models, models_of(context, asked));
  serve::ReceiptModels* const at_hand = asked.receipt.checkpoint.empty() ? nullptr : &models;
  ASSIGN_OR_RETURN(const auto check, serve::check_log(text, asked.receipt.log, options, at_hand));
  return verified(asked.json ? serve::log_check_json(check) : serve::log_check_text(check),
                  exit_code(check.verdict()));
}

}  // namespace ostro::cli
