// kStyleSheet: the style sheet of a lab's pages.
#pragma once

namespace ostro::site {

// What a name may hold (marks of direction, a line without end) stays within its own place.
inline constexpr const char* kStyleSheet =
    R"css(:root{color-scheme:light dark;--paper:#fcfcfb;--ink:#1d2127;--soft:#5b636e;--rule:#dfe2e6;--tint:#f1f2f1;--link:#245a99;
--good:#17663a;--warn:#855400;--bad:#a8231c;--c0:#2f6db5;--c1:#d9661f}
@media(prefers-color-scheme:dark){:root{--paper:#15171a;--ink:#e4e7eb;--soft:#a3abb5;--rule:#2d3238;--tint:#1d2024;--link:#8fbcf0;
--good:#6cc38d;--warn:#dcae57;--bad:#f08a80;--c0:#7ab0ee;--c1:#f2a366}
figure>svg:not(.live),main>svg{filter:invert(1) hue-rotate(180deg)}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,"Segoe UI",Roboto,"Liberation Sans",sans-serif}
header,main{max-width:66rem;margin:0 auto;padding:1rem 1.2rem}
main{padding-top:0;padding-bottom:3rem}
nav{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;font-size:.92rem}
nav a[aria-current]{color:var(--ink);font-weight:650;text-decoration:none}
h1{font-size:1.7rem;line-height:1.25;margin:.6rem 0 .8rem}
h2{margin:2.2rem 0 .6rem;border-top:1px solid var(--rule);padding-top:1rem;font-size:1.15rem}
h3{font-size:1rem;margin:1.4rem 0 .4rem}
h1,h2,h3,p,li,td,th,code,option,summary{overflow-wrap:anywhere}
a,code,b,small,span,button,option,label{unicode-bidi:isolate}
p{max-width:46rem;margin:.4rem 0 .8rem}
a{color:var(--link)}small,.soft{color:var(--soft)}
code,pre{font-family:ui-monospace,Menlo,Consolas,"Liberation Mono",monospace;font-size:.85em}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--tint);padding:.6rem .8rem;max-height:24rem;overflow:auto}
table{border-collapse:collapse;font-size:.9rem}.scroll{overflow-x:auto}.scroll+.scroll{margin-top:1rem}
td,th{padding:.25rem .9rem .25rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--rule);max-width:30rem}
td{min-width:5.5rem}td:first-child{min-width:9rem}th,td.n{min-width:0;white-space:nowrap}
td code{overflow-wrap:anywhere}
.n{text-align:right;font-variant-numeric:tabular-nums}
tr.group th{padding-top:.8rem;background:var(--tint)}
figure{margin:.8rem 0}figure svg,main>svg:not(.graph){max-width:46rem;width:100%;height:auto;display:block}
svg.graph{max-width:100%;height:auto}
svg.live{touch-action:pan-y;cursor:crosshair}
svg.live text{fill:var(--soft);font:12px system-ui,sans-serif}
svg.live .grid{stroke:var(--rule)}svg.live .axis{stroke:var(--soft)}svg.live path{fill:none}
svg.live .s0{stroke:var(--c0);stroke-width:1.6}svg.live .s1{stroke:var(--c1);stroke-width:1.6}svg.live .faint{opacity:.3}
svg.live .chosen{fill:var(--c0);opacity:.15}
.s0k::before,.s1k::before{content:"";display:inline-block;width:1.1rem;margin-right:.4rem;vertical-align:middle;border-top:2px solid var(--c0)}.s1k::before{border-color:var(--c1)}
.badge{display:inline-block;font-size:.78rem;border:1px solid currentColor;border-radius:1rem;padding:0 .55rem;margin-right:.2rem;white-space:nowrap}
.recorded,.done,.good{color:var(--good)}.measured,.failed,.warn{color:var(--warn)}.declared,.wait,.run,.resume{color:var(--soft)}.bad{color:var(--bad)}
.verdict{font-weight:650}
.bar{display:flex;flex-wrap:wrap;align-items:center;gap:.5rem 1rem;margin:.6rem 0;font-size:.9rem}
.bar label{display:flex;align-items:center;gap:.4rem}
button,select,input,textarea{font:inherit;color:var(--ink);background:var(--paper);border:1px solid var(--soft);border-radius:.3rem;padding:.1rem .5rem;max-width:100%}
input[type=number]{width:7rem}input[type=range]{padding:0;width:8rem}
button{cursor:pointer}button:hover{background:var(--tint)}
th button{border:0;padding:0;font-weight:650;text-align:left;background:none}
:focus-visible{outline:2px solid var(--link);outline-offset:2px}
textarea{width:100%;height:8rem}
[role=status]{min-height:1.5em}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(15rem,1fr));gap:.8rem}
)css";

}  // namespace ostro::site
