#include "ostro/serve/page/chat_page.h"

#include <fmt/format.h>

#include <string>

#include "ostro/base/sha256.h"
#include "ostro/serve/page/chat_page_script.h"
#include "ostro/serve/page/chat_page_style.h"
#include "ostro/tokenizer/unicode/base64.h"

namespace ostro::serve {
namespace {

constexpr const char* kBody = R"html(
<header><h1 id="name">Ostro</h1><p id="facts"></p></header>
<main id="talk" aria-label="conversation"></main>
<form id="form">
  <div id="keys" class="tools" hidden><label>Key of this server <input id="key" type="password" autocomplete="off"></label>
    <button type="button" id="usekey">Use the key</button></div>
  <label for="prompt">Your text: Enter sends it, Shift+Enter is a new line, Escape stops an answer</label>
  <div id="held" class="tools" hidden><span id="heldsize" role="status"></span> <button type="button" id="unhold">Leave it out</button></div>
  <textarea id="prompt" autofocus spellcheck="false"></textarea>
  <div class="tools"><button id="send" class="main">Send</button><button type="button" id="stop" hidden>Stop</button>
    <button type="button" id="fresh">New conversation</button><span id="status" role="status"></span></div>
  <details><summary>Options</summary><fieldset>
    <label>Form <select id="mode"><option value="chat">conversation</option><option value="text">continue a text</option></select></label>
    <label>Temperature <input data-field="temperature" type="number" min="0" step="0.1" placeholder="1"></label>
    <label>top_p <input data-field="top_p" type="number" min="0" max="1" step="0.05" placeholder="1"></label>
    <label>top_k <input data-field="top_k" type="number" min="0" step="1" placeholder="all"></label>
    <label>min_p <input data-field="min_p" type="number" min="0" max="1" step="0.01" placeholder="0"></label>
    <label>Presence penalty <input data-field="presence_penalty" type="number" min="-2" max="2" step="0.1" placeholder="0"></label>
    <label>Frequency penalty <input data-field="frequency_penalty" type="number" min="-2" max="2" step="0.1" placeholder="0"></label>
    <label>Tokens at most <input data-field="max_tokens" type="number" min="1" step="1" placeholder="to the end"></label>
    <label>Seed <input id="seed" inputmode="numeric" pattern="[0-9]*" placeholder="drawn"></label>
    <label><input id="receipts" type="checkbox" checked> Receipts</label>
    <label class="wide">System message <textarea id="system"></textarea></label>
  </fieldset></details>
</form>
)html";

std::string hash_of(const char* text) {
  const Sha256Digest digest = sha256(text);
  return "'sha256-" +
         tokenizer::base64_encode({reinterpret_cast<const char*>(digest.data()), digest.size()}) + "'";
}

}  // namespace

http::Response chat_page() {
  http::Response out{200, "text/html; charset=utf-8"};
  out.body = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Ostro</title>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<link rel=\"icon\" "
      "href=\"data:,\">\n<style>{}</style>\n</head>\n<body>{}<script>{}</script>\n</body>\n</html>\n",
      kChatStyle, kBody, kChatScript);
  out.headers.emplace_back(
      "Content-Security-Policy",
      fmt::format("default-src 'none'; connect-src 'self'; img-src data:; script-src {}; style-src {}; "
                  "base-uri 'none'; "
                  "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
                  hash_of(kChatScript), hash_of(kChatStyle)));
  return out;
}

}  // namespace ostro::serve
