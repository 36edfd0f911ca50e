// Receipts: an honest one is equal, and every forgery is named, also where all hashes were made again.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <map>

#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/faulty_file_system.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/serve/model_for_test.h"
#include "ostro/serve/receipts/check_log.h"
#include "ostro/serve/receipts/check_receipt.h"
#include "ostro/serve/receipts/receipt_log.h"
#include "ostro/train/options/options.h"

namespace ostro::serve {
namespace {

// RFC 8032, section 7.1, tests 1 and 2.
constexpr const char* kKey =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";
constexpr const char* kOtherKey =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIEzNCJso/5baidbrKeF9HMhOgBHHl8UUSlH1+4qrqm77\n"
    "-----END PRIVATE KEY-----\n";

bundle::SigningKey key_of(const std::string& pem) {
  io::MemoryFileSystem fs;
  check_ok(io::write_file_atomically(fs, "key.pem", pem));
  return bundle::SigningKey::read(fs, "key.pem").value();
}

AnswerOptions options() {
  AnswerOptions out;
  out.choice.temperature = 1.5;
  out.choice.top_k = 50;
  out.choice.top_p = 0.95;
  out.choice.frequency_penalty = 0.25;
  out.choice.bias = {{3, 0.5}};
  out.choice.seed = 7;
  out.max_tokens = 20;
  return out;
}

ReceiptDocument made(ServedModel& model, ReceiptMaker& maker, const std::string& nonce = "") {
  AnswerOptions asked = options();
  const std::vector<int32_t> prompt{1, 2, 3};
  if (!nonce.empty()) asked.choice.seed = nonce_seed(nonce, model.facts.parameters(), prompt, asked);
  std::vector<float> log_probs;
  const RunningAnswer answer = make_answer(model, prompt, asked, {.log_probs = true}).value();
  for (const RatedToken& token : answer.made()) log_probs.push_back(token.log_prob);
  return maker.make(model, answer.state(), asked, nonce, log_probs).value();
}

std::unique_ptr<ReceiptMaker> maker(io::FileSystem& fs, const std::string& folder,
                                    std::optional<bundle::SigningKey> key = {}) {
  return ReceiptMaker::open(fs, folder, std::move(key)).value();
}

// The document as a forger sends it: with the hashes of what its opening now has.
ReceiptDocument hashed_again(ReceiptDocument d) {
  const Opening& o = *d.opening;
  d.receipt.prompt = ids_hash("prompt", o.salt, o.prompt);
  d.receipt.output = ids_hash("output", o.salt, o.output);
  d.receipt.prompt_tokens = static_cast<int64_t>(o.prompt.size());
  d.receipt.output_tokens = static_cast<int64_t>(o.output.size());
  d.receipt.log_probs = log_probs_hash(o.log_probs);
  return d;
}

std::string first_line(const ReceiptCheck& check) {
  const std::string text = receipt_check_text(check);
  return text.substr(0, text.find('\n'));
}

TEST_CASE("an honest receipt is equal, in its text form and back, signed and not") {
  ServedModel model = test_model();
  io::MemoryFileSystem fs;
  const auto plain = made(model, *maker(fs, ""));
  const auto back = parse_document(document_text(plain), "r.json").value();
  CHECK(document_text(back) == document_text(plain));
  CHECK(first_line(check_receipt(back, model, {}).value()) ==
        "equal: " + std::to_string(plain.receipt.output_tokens) +
            " tokens chosen again after a prompt of 3, with the bits of their log-probabilities");
  const auto key = key_of(kKey);
  const auto signed_one = made(model, *maker(fs, "", key));
  const auto check = check_receipt(signed_one, model, key.public_key()).value();
  CHECK(check.verdict() == audit::Verdict::kEqual);
  CHECK(check.key == key.public_key().fingerprint());
  const auto with_nonce = made(model, *maker(fs, ""), "lottery");
  CHECK(check_receipt(with_nonce, model, {}).value().verdict() == audit::Verdict::kEqual);
  auto closed = plain;
  closed.opening.reset();
  CHECK(check_receipt(closed, model, {}).value().verdict() == audit::Verdict::kIncomplete);
}

TEST_CASE("a receipt names the adapter, and the nonce's seed follows from it, too") {
  ServedModel model = test_model();
  io::MemoryFileSystem fs;
  const auto without = made(model, *maker(fs, ""), "lottery");
  CHECK(document_text(without).find("adapter") == std::string::npos);
  model.facts.adapter = std::string(64, 'd');
  const auto with = made(model, *maker(fs, ""), "lottery");
  CHECK(with.receipt.options.choice.seed != without.receipt.options.choice.seed);
  const auto back = parse_document(document_text(with), "r.json").value();
  CHECK(back.receipt.model.adapter == model.facts.adapter);
  CHECK(check_receipt(back, model, {}).value().verdict() == audit::Verdict::kEqual);
  CHECK(first_line(check_receipt(without, model, {}).value()) ==
        "differs: the adapter is none in the receipt, " + model.facts.adapter + " here");
}

TEST_CASE("every forgery is named") {
  ServedModel model = test_model();
  io::MemoryFileSystem fs;
  const ReceiptDocument honest = made(model, *maker(fs, ""), "lottery");
  REQUIRE(honest.receipt.output_tokens >= 5);
  using Change = std::function<void(ReceiptDocument&)>;
  const std::vector<std::pair<Change, std::string>> forgeries = {
      {[](auto& d) { d.opening->output[4] ^= 1; }, "at token 4 of the answer: it is"},
      {[](auto& d) { d.receipt.nonce.clear(), d.receipt.options.choice.seed = 8; },
       "this checkpoint chooses"},
      {[](auto& d) { d.receipt.options.choice.seed = 8; }, "the seed is 8; the nonce gives"},
      {[](auto& d) { d.receipt.nonce.clear(), d.receipt.options.choice.temperature = 0.1; },
       "this checkpoint chooses"},
      {[](auto& d) { d.opening->log_probs[2] = std::nextafter(d.opening->log_probs[2], 0.0F); },
       "at token 2 of the answer: its log-probability is"},
      {[](auto& d) { d.receipt.model.state = std::string(64, 'b'); }, "the checkpoint's state is bbbb"},
      {[](auto& d) { d.receipt.model.tokenizer = "c"; }, "the tokenizer is c"},
      {[](auto& d) { d.receipt.model.chat_template = "c"; },
       "the chat template is c in the receipt, none here"},
      {[](auto& d) { d.receipt.nonce.clear(), d.receipt.model.adapter = "c"; },
       "the adapter is c in the receipt, none here"},
      {[](auto& d) { d.receipt.nonce.clear(), d.opening->prompt[1] = 9; }, "this checkpoint chooses"},
      {[](auto& d) { d.receipt.finish = d.receipt.finish == "length" ? "stop_token" : "length"; },
       "the answer ends by"},
      {[](auto& d) { d.opening->output.resize(4), d.opening->log_probs.resize(4); }, "the answer ends by"},
      {[](auto& d) { d.receipt.nonce.clear(), d.receipt.options.max_tokens = 3; },
       "the answer ends after 3 tokens (length); the receipt has"},
      {[](auto& d) { d.receipt.options.stop = {"x"}, d.receipt.finish = "stop_string"; }, "the nonce gives"},
      {[](auto& d) { d.receipt.key = "k"; }, "names a key that signs it, and has no signature"},
      {[](auto& d) { d.opening->output[0] = 1 << 20; }, "a token is outside"},
      {[](auto& d) { d.opening->prompt.resize(90, 1), d.receipt.nonce.clear(); },
       "tokens, the model's context 64"},
  };
  for (const auto& [change, words] : forgeries) {
    ReceiptDocument forged = honest;
    change(forged);
    const auto check = check_receipt(hashed_again(forged), model, {}).value();
    CHECK(check.verdict() == audit::Verdict::kDiffers);
    CHECK_MESSAGE(first_line(check).find(words) != std::string::npos, words << ": " << first_line(check));
  }
  // What was changed without its hash.
  for (const Change& change :
       {Change([](auto& d) { d.opening->prompt[0] ^= 1; }),
        Change([](auto& d) { d.opening->output[0] ^= 1; }), Change([](auto& d) { d.opening->salt[0] ^= 1; }),
        Change([](auto& d) { d.opening->log_probs[0] += 1; })}) {
    ReceiptDocument forged = honest;
    change(forged);
    CHECK(check_receipt(forged, model, {}).value().verdict() == audit::Verdict::kDiffers);
  }
  ReceiptDocument other = honest;
  other.receipt.model.forward = "another";
  CHECK(check_receipt(other, model, {}).value().verdict() == audit::Verdict::kCannotCheck);
}

TEST_CASE("a receipt names the precision, and one with the program of another is found") {
  ServedModel model = test_model();
  io::MemoryFileSystem fs;
  const auto in_precision = [](const std::string& dtype) {
    ServedModel out = test_model();
    out.facts.dtype = dtype, out.facts.mp = dtype;
    out.facts.forward = "of " + dtype;
    return out;
  };
  int opened = 0, looked = 0;
  ReceiptModels models(
      [&](const std::string& precision, std::optional<int64_t>) -> Result<ReceiptModels::Models> {
        ++opened;
        ReceiptModels::Models out;
        out.push_back(std::make_unique<ServedModel>(in_precision(precision)));
        return out;
      },
      [&](const std::string& precision,
          std::optional<int64_t> context) -> Result<std::vector<ServedProgram>> {
        ++looked;
        if (precision == "f32") return unsupported("a model without f32");
        return std::vector<ServedProgram>{{"of " + precision, context.value_or(64)}};
      });
  model = in_precision("int8");
  const ReceiptDocument honest = made(model, *maker(fs, ""));
  const auto back = parse_document(document_text(honest), "r.json").value();
  CHECK(back.receipt.model.dtype == "int8");
  CHECK(check_receipt(back, model, {}, &models).value().verdict() == audit::Verdict::kEqual);
  ReceiptDocument forged = honest;
  forged.receipt.model.dtype = "bf16";
  ServedModel claimed = in_precision("bf16");
  CHECK(first_line(check_receipt(forged, claimed, {}, &models).value()) ==
        "differs: the precision is bf16 in the receipt, and its forward program is that of int8");
  CHECK(check_receipt(forged, claimed, {}).value().verdict() == audit::Verdict::kCannotCheck);
  forged.receipt.model.forward = "of no precision";
  CHECK(check_receipt(forged, claimed, {}, &models).value().verdict() == audit::Verdict::kCannotCheck);
  // All but bf16 in the context of the receipt, and bf16 in that of training, whatever was asked of them; and
  // the weights of none.
  CHECK(looked == 8);
  CHECK(opened == 0);
  forged.receipt.model.dtype = "f16";
  CHECK(parse_document(document_text(forged), "r.json").error().message().find("neither f32, bf16, int8") !=
        std::string::npos);
}

TEST_CASE("a model is opened in the context of the receipt, and one with the program of another is found") {
  io::MemoryFileSystem fs;
  constexpr int64_t kOwn = 64, kMost = 150;
  const auto in_context = [](int64_t context) {
    ServedModel out = test_model(context);
    out.facts.forward = "of " + std::to_string(context);
    return out;
  };
  int opened = 0;
  std::weak_ptr<const tokenizer::Tokenizer> before;  // of the model that was opened last
  const auto models = [&] {
    return ReceiptModels(
        [&](const std::string&, std::optional<int64_t> context) -> Result<ReceiptModels::Models> {
          ++opened;
          CHECK(before.expired());  // memory holds one at a time
          ReceiptModels::Models out;
          out.push_back(std::make_unique<ServedModel>(in_context(context.value_or(kOwn))));
          before = out[0]->tokenizer;
          return out;
        },
        [&](const std::string&, std::optional<int64_t> context) -> Result<std::vector<ServedProgram>> {
          const int64_t positions = context.value_or(kOwn);
          if (positions > kMost) return invalid_argument("a model of 150 positions");
          return std::vector<ServedProgram>{{"of " + std::to_string(positions), positions}};
        });
  };
  const auto says = [&](const ReceiptDocument& document) {
    ReceiptModels at_hand = models();
    ServedModel* const model = at_hand.of(document.receipt).value();
    return first_line(check_receipt(document, *model, {}, &at_hand).value());
  };
  ServedModel own = in_context(kOwn), longer = in_context(128);
  const ReceiptDocument of_own = made(own, *maker(fs, "")), of_longer = made(longer, *maker(fs, ""));
  CHECK(says(of_own).starts_with("equal: "));
  CHECK(says(of_longer).starts_with("equal: "));
  const auto edited = [](ReceiptDocument document, int64_t context) {
    document.receipt.model.context = context;
    return document;
  };
  CHECK(says(edited(of_own, 100)) ==
        "differs: the context is 100 in the receipt, and its forward program is that of 64");
  CHECK(says(edited(of_own, 200)) == "differs: the context is 200 in the receipt, 64 here");
  CHECK(says(edited(of_longer, kOwn)).starts_with("cannot check: the forward program is of 128"));
  CHECK(says(edited(of_longer, 100)).starts_with("cannot check: the forward program is of 128"));
  // Only the last one stays open, and that of training for all contexts that the checkpoint cannot have.
  ReceiptModels kept = models();
  opened = 0;
  for (const int64_t context : {64, 65, 65, 64, 200, 201, 200, 64})
    CHECK(kept.of(edited(of_own, context).receipt).value()->facts.context ==
          (context < 200 ? context : kOwn));
  CHECK(opened == 5);
}

TEST_CASE("the receipts of a log are checked with each model opened once, whatever their order is") {
  io::MemoryFileSystem fs;
  const auto opened_model = [](const std::string& precision, const std::string& adapter) {
    auto out = std::make_unique<ServedModel>(test_model());
    out->facts.dtype = precision, out->facts.mp = precision.empty() ? "bf16" : precision;
    out->facts.forward = "of " + out->facts.mp + adapter;
    out->facts.adapter = adapter;
    return out;
  };
  constexpr int64_t kTooMany = int64_t{1} << 31;
  std::map<std::string, int> opened, looked;
  const auto named = [](const std::string& precision, std::optional<int64_t> context) {
    return precision + (context ? " " + std::to_string(*context) : " own");
  };
  const auto models = [&] {
    return ReceiptModels(
        [&](const std::string& precision, std::optional<int64_t> context) -> Result<ReceiptModels::Models> {
          ++opened[named(precision, context)];
          if (context == kTooMany) return io_error("no room for the keys");
          ReceiptModels::Models out;
          out.push_back(opened_model(precision, ""));
          out.push_back(opened_model(precision, std::string(64, 'd')));
          return out;
        },
        [&](const std::string& precision,
            std::optional<int64_t> context) -> Result<std::vector<ServedProgram>> {
          ++looked[named(precision, context)];
          const std::string forward = "of " + (precision.empty() ? "bf16" : precision);
          return std::vector<ServedProgram>{{forward, context.value_or(64)},
                                            {forward + std::string(64, 'd'), context.value_or(64)}};
        });
  };
  LogCheckOptions asked;
  {
    const auto one = maker(fs, "log");
    const std::vector<std::string> precisions = {"", "f32", "int8"}, adapters = {"", std::string(64, 'd')};
    for (size_t i = 0; i < 13; ++i) {
      const auto model = opened_model(precisions[i % 3], adapters[i % 2]);
      if (i == 12) model->facts.context = kTooMany;  // memory does not hold it
      if (i >= 8 && i < 12)
        model->facts.forward = i % 2 == 0 ? "of bf16" : "of nothing";  // two of each are forged
      const ReceiptDocument document = made(*model, *one);
      asked.openings[receipt_hash(document.receipt)] = document;
    }
  }
  asked.count = 13;
  asked.challenge = "all";
  auto at_hand = models();
  const LogCheck check = check_log(*fs.content("log/receipts.jsonl"), "log", asked, &at_hand).value();
  CHECK(check.drawn.size() == 13);
  CHECK(check.replayed == 8);
  // In the log's order, whatever the order was in which they were computed; the last one ends nothing.
  REQUIRE(check.findings.size() == 5);
  const std::string says[] = {
      "receipt 8: the precision is", "receipt 10: the precision is", "receipt 9: the forward program",
      "receipt 11: the forward program",
      "receipt 12: it cannot be computed again in its context of 2147483648 positions: "
      "no room for the keys"};
  for (size_t i = 0; i < 5; ++i)
    CHECK_MESSAGE(check.findings[i].text.find(says[i]) == 0, check.findings[i].text);
  CHECK(check.findings[1].verdict == audit::Verdict::kDiffers);
  CHECK(check.findings[4].verdict == audit::Verdict::kCannotCheck);
  // Weights are read for what receipts name. Programs are looked for in all precisions that there are, too,
  // and in the context of training for the three precisions of forged ones.
  for (const auto& times : {opened, looked})
    for (const auto& [what, count] : times) CHECK_MESSAGE(count == 1, what);
  CHECK(opened.size() == 3 + 1);
  CHECK(looked.size() == 1 + train::all_precisions().size() + 3 + 1);
  // A checkpoint that is not there is no matter of a receipt.
  ReceiptModels none(
      [](const std::string&, std::optional<int64_t>) -> Result<ReceiptModels::Models> {
        return not_found("no checkpoint");
      },
      [](const std::string&, std::optional<int64_t>) -> Result<std::vector<ServedProgram>> {
        return not_found("no checkpoint");
      });
  CHECK_FALSE(check_log(*fs.content("log/receipts.jsonl"), "log", asked, &none).ok());
  // Without a model nothing is chosen again, which is no verdict of equality; the openings are looked at.
  const auto without = [&] {
    return check_log(*fs.content("log/receipts.jsonl"), "log", asked, nullptr).value();
  };
  CHECK(without().verdict() == audit::Verdict::kIncomplete);
  CHECK(without().drawn == check.drawn);
  CHECK(without().replayed == 0);
  CHECK(log_check_text(without()).starts_with("incomplete: 13 of 13 receipts were drawn, and their answers"));
  ReceiptDocument& first = asked.openings.begin()->second;
  first.opening->output[0] ^= 1;
  CHECK(without().verdict() == audit::Verdict::kDiffers);
  first.opening->output[0] ^= 1;
  // The control: models that are not kept are opened for every receipt.
  opened.clear();
  for (const auto& [hash, document] : asked.openings)
    CHECK(models().of(document.receipt).ok() == (document.receipt.model.context != kTooMany));
  CHECK(opened["f32 64"] == 4);
}

TEST_CASE("a signature is of this receipt and by the key that is asked for") {
  ServedModel model = test_model();
  io::MemoryFileSystem fs;
  const auto key = key_of(kKey), stranger = key_of(kOtherKey);
  const ReceiptDocument honest = made(model, *maker(fs, "", key));
  const auto says = [&](const ReceiptDocument& d, const std::optional<bundle::PublicKey>& wanted) {
    return first_line(check_receipt(d, model, wanted).value());
  };
  ReceiptDocument forged = honest;
  forged.receipt.number = 5;
  CHECK(says(forged, {}).find("the signature is not one of this receipt") != std::string::npos);
  CHECK(says(honest, stranger.public_key()).find("(--key)") != std::string::npos);
  forged = made(model, *maker(fs, "", stranger));
  CHECK(says(forged, key.public_key()).find("(--key)") != std::string::npos);
  forged = honest;
  forged.public_key = stranger.public_key().pem();
  CHECK(says(forged, {}).find("the public key has the fingerprint") != std::string::npos);
  // Another text of the same signature, or of the same key.
  forged = honest;
  for (char& c : forged.signature) c = static_cast<char>(std::toupper(c));
  CHECK(says(forged, {}).find("the signature is not one of this receipt") != std::string::npos);
  forged = honest;
  forged.public_key.insert(forged.public_key.size() - 1, "\n");
  CHECK(says(forged, {}).find("public_key") != std::string::npos);
  forged = honest;
  forged.signature.clear(), forged.public_key.clear(), forged.receipt.key.clear();
  CHECK(says(forged, key.public_key()).find("is not signed") != std::string::npos);
}

TEST_CASE("any changed byte of a receipt is found") {
  ServedModel model = test_model();
  io::MemoryFileSystem fs;
  const std::string text = document_text(made(model, *maker(fs, "", key_of(kKey))));
  int64_t tried = 0;
  for (size_t at = 0; at < text.size(); at += 7) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    ++tried;
    const auto document = parse_document(changed, "r.json");
    if (!document.ok()) continue;
    const auto check = check_receipt(*document, model, {}).value();
    CHECK_MESSAGE(check.verdict() == audit::Verdict::kDiffers, "byte " << at << ": " << text.substr(at, 20));
  }
  CHECK(tried > 200);
}

TEST_CASE("the file is a chain, and what was torn is cut off") {
  ServedModel model = test_model();
  io::MemoryFileSystem fs;
  std::vector<std::string> hashes;
  for (int session = 0; session < 3; ++session) {
    const auto one = maker(fs, "log");
    CHECK_FALSE(ReceiptMaker::open(fs, "log", {}).ok());  // another server uses it
    for (int i = 0; i < 2; ++i) {
      const Receipt receipt = made(model, *one).receipt;
      CHECK(receipt.number == static_cast<int64_t>(hashes.size()));
      CHECK(receipt.previous == (hashes.empty() ? "" : hashes.back()));
      hashes.push_back(receipt_hash(receipt));
    }
    *fs.content("log/receipts.jsonl") += "{\"receipt\":{\"format\":";
  }
  const auto count = [&] {
    const std::string& text = *fs.content("log/receipts.jsonl");
    return std::count(text.begin(), text.end(), '\n');
  };
  CHECK(count() == 6);
  CHECK(made(model, *maker(fs, "log")).receipt.number == 6);
  CHECK(count() == 7);
  // A line that is removed, and two that change places.
  const std::string whole = *fs.content("log/receipts.jsonl");
  const size_t first = whole.find('\n') + 1, second = whole.find('\n', first) + 1;
  for (const std::string& text :
       {whole.substr(first), whole.substr(0, first) + whole.substr(second),
        whole.substr(first, second - first) + whole.substr(0, first) + whole.substr(second)}) {
    *fs.content("log/receipts.jsonl") = text;
    const auto opened = ReceiptMaker::open(fs, "log", {});
    REQUIRE(!opened.ok());
    CHECK(opened.error().message().find("does not follow the one before it") != std::string::npos);
  }
}

// It is shown cut, and where it is no hash that could be in the middle of a character.
TEST_CASE("what a receipt follows is a hash or nothing") {
  ServedModel model = test_model();
  io::MemoryFileSystem fs;
  const std::string text = document_text(made(model, *maker(fs, "")));
  const std::string none = R"("previous":"")";
  REQUIRE(text.find(none) != std::string::npos);
  const auto with = [&](const std::string& previous) {
    std::string out = text;
    return parse_document(out.replace(text.find(none), none.size(), "\"previous\":\"" + previous + "\""),
                          "r.json");
  };
  CHECK(with(std::string(64, 'a')).ok());
  CHECK(with("aaaaaaaaaaa\xc3\xa9").error().message().find("\"previous\"") != std::string::npos);
  CHECK(!with(std::string(63, 'a')).ok());
}

TEST_CASE("a full disk keeps no receipt, and the chain goes on when there is room again") {
  ServedModel model = test_model();
  io::MemoryFileSystem memory;
  io::FaultyFileSystem fs(memory);
  const auto one = maker(fs, "log");
  made(model, *one);
  AnswerState answer = AnswerState::create(model, {1}, {}).value();
  for (const io::Fault fault : {io::Fault::kIoError, io::Fault::kShortWrite, io::Fault::kSyncError}) {
    fs.inject(fault, 0);
    CHECK_FALSE(one->make(model, answer, {}, "", {}).ok());
    fs.heal();
  }
  CHECK(made(model, *one).receipt.number == 1);
  const std::string& text = *memory.content("log/receipts.jsonl");
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
}

}  // namespace
}  // namespace ostro::serve
