// kChatStyle: the look of the page at "/", in light and in dark.
#pragma once

namespace ostro::serve {

inline constexpr const char* kChatStyle = R"css(
:root { color-scheme: light dark; --back: #ffffff; --ink: #1d2126; --soft: #5b6570; --line: #cfd6dd; --card: #f3f5f8;
  --act: #1f5fae; --on: #ffffff; --bad: #b3261e; --good: #1b6e3a; --p0: #f6b4ad; --p1: #f9d3a8; --p2: #fbeaa6; --p3: #e3efb0; --p4: #bfe6c4; }
@media (prefers-color-scheme: dark) { :root { --back: #14171a; --ink: #e4e8ec; --soft: #a1abb6; --line: #3b444d; --card: #1f2429;
  --act: #7db3f0; --on: #10151a; --bad: #ff9a91; --good: #84d6a0; --p0: #6e2a25; --p1: #67431a; --p2: #595014; --p3: #41511c; --p4: #1f4f2b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; display: flex; flex-direction: column; min-height: 100vh; }
header, main, form { width: 100%; max-width: 54rem; margin: 0 auto; padding: 0.75rem 1rem; }
header { display: flex; flex-wrap: wrap; gap: 0.5rem 1rem; align-items: baseline; border-bottom: 1px solid var(--line); }
h1 { font-size: 1.1rem; margin: 0; overflow-wrap: anywhere; }
header p { margin: 0; color: var(--soft); font-size: 0.85rem; overflow-wrap: anywhere; }
main { flex: 1; }
article { border: 1px solid var(--line); border-radius: 0.5rem; margin: 0 0 0.75rem; padding: 0.5rem 0.75rem; contain: paint; }
article.user { background: var(--card); margin-left: 2rem; }
article h2 { font-size: 0.8rem; color: var(--soft); margin: 0; font-weight: 600; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; max-height: 70vh; overflow: auto; margin: 0.25rem 0; }
.text > div + div { content-visibility: auto; contain-intrinsic-size: auto 40rem; }
.text:focus-visible, :focus-visible { outline: 2px solid var(--act); outline-offset: 2px; }
.tools { display: flex; flex-wrap: wrap; gap: 0.4rem; align-items: center; font-size: 0.85rem; color: var(--soft); }
button, input, select, textarea { font: inherit; color: inherit; background: var(--back); border: 1px solid var(--line); border-radius: 0.35rem; padding: 0.25rem 0.6rem; }
button { cursor: pointer; font-size: 0.85rem; }
button.main { background: var(--act); color: var(--on); border-color: var(--act); font-size: 1rem; }
button:disabled { opacity: 0.5; cursor: default; }
form { position: sticky; bottom: 0; background: var(--back); border-top: 1px solid var(--line); }
textarea { width: 100%; min-height: 4.5rem; resize: vertical; }
#held { margin: 0.25rem 0; }
details { margin: 0.5rem 0; }
summary { cursor: pointer; color: var(--soft); font-size: 0.9rem; }
fieldset { border: 0; margin: 0; padding: 0.5rem 0; display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); gap: 0.5rem 1rem; }
label { font-size: 0.85rem; color: var(--soft); display: block; }
label input:not([type=checkbox]), label select, label textarea { display: block; width: 100%; color: var(--ink); }
.wide { grid-column: 1 / -1; }
.t { border-radius: 0.2rem; }
.p0 { background: var(--p0); } .p1 { background: var(--p1); } .p2 { background: var(--p2); } .p3 { background: var(--p3); } .p4 { background: var(--p4); }
.t.now { outline: 2px solid var(--act); }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: 0.8rem/1.4 ui-monospace, monospace; background: var(--card); border-radius: 0.35rem; padding: 0.5rem; margin: 0.4rem 0; }
.bad { color: var(--bad); } .good { color: var(--good); }
[hidden] { display: none !important; }
)css";

}  // namespace ostro::serve
