// kPageStyle: the style sheet of every page.
#pragma once

namespace ostro::page {

// Colours are named once for light and once for dark; sizes are relative, one column on a phone.
inline constexpr const char* kPageStyle = R"css(
:root{color-scheme:light dark;--paper:#fcfcfb;--ink:#1d2127;--soft:#626a75;--rule:#dfe2e6;--tint:#f3f4f3;
--good:#1f7a44;--warn:#9a6200;--bad:#b3261e;
--c0:#2f6db5;--c1:#d9661f;--c2:#2e8b57;--c3:#8e5bb5;--c4:#b08a00;--c5:#c2437c;--c6:#22889b;--c7:#777f8a}
@media(prefers-color-scheme:dark){:root{--paper:#15171a;--ink:#e4e7eb;--soft:#979fa9;--rule:#2d3238;--tint:#1d2024;
--good:#6cc38d;--warn:#dcae57;--bad:#f08a80;
--c0:#7ab0ee;--c1:#f2a366;--c2:#72c798;--c3:#c39be3;--c4:#d8bc54;--c5:#ec8db6;--c6:#6bc4d4;--c7:#a3abb5}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif}
main{max-width:62rem;margin:0 auto;padding:2.2rem 1.2rem 3rem}
h1{font-size:1.9rem;line-height:1.2;margin:0;font-weight:650;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:1.15rem;font-weight:650;margin:2.6rem 0 .7rem;padding-top:1.1rem;border-top:1px solid var(--rule)}
p{margin:.4rem 0 .8rem;max-width:44rem}
small,.soft{color:var(--soft)}
code,pre,.hash{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"Liberation Mono",monospace}
code,.hash{font-size:.84em;overflow-wrap:anywhere}
header .line{display:flex;flex-wrap:wrap;align-items:center;gap:.3rem .9rem}
.state{font-size:.85rem;font-weight:600;padding:.05rem .6rem;border-radius:1rem;border:1px solid currentColor}
.good{color:var(--good)}.warn{color:var(--warn)}.bad{color:var(--bad)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.4rem,1fr));gap:1px;margin:1.4rem 0 1.8rem;border:1px solid var(--rule);border-radius:.5rem;overflow:hidden}
.tiles div{padding:.6rem .9rem;box-shadow:0 0 0 1px var(--rule)}
.tiles div{min-width:0}.tiles small{display:block;font-size:.8rem}.tiles b small{font-weight:400;line-height:1.2}
.tiles b{font-size:1.3rem;font-weight:600;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.charts{display:grid;grid-template-columns:1fr 1fr;gap:1.6rem 2rem}
.charts .wide{grid-column:1/-1}
figure{margin:0;min-width:0}
figcaption{display:flex;flex-wrap:wrap;align-items:baseline;gap:.1rem .8rem;margin-bottom:.5rem}
figcaption b{font-weight:600}figcaption small{font-size:.8rem}
.lead{margin:1.2rem 0 0;font-size:1.06rem;max-width:46rem}.lead b{font-weight:650}
.check{display:flex;flex-wrap:wrap;align-items:center;gap:.3rem .6rem}
.command{background:var(--tint);padding:.15rem .45rem;border-radius:.3rem}
nav{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;font-size:.9rem;margin:.4rem 0 1.4rem}
a{color:var(--c0);text-decoration:none}a:hover{text-decoration:underline}
button{font:inherit;color:inherit;background:none;border:0;padding:0;cursor:pointer}
.copy{font-size:.75rem;color:var(--soft);border:1px solid var(--rule);border-radius:.3rem;padding:0 .4rem;margin-left:.4rem;vertical-align:middle}
.copy:hover{color:var(--ink)}
.controls{display:flex;flex-wrap:wrap;align-items:center;gap:.4rem 1.4rem;margin:0 0 1.2rem;font-size:.88rem;color:var(--soft)}
.controls label{display:flex;align-items:center;gap:.4rem}
.controls select{font:inherit;color:var(--ink);background:var(--paper);border:1px solid var(--rule);border-radius:.3rem;padding:.05rem .3rem}
.controls input[type=range]{width:7rem;accent-color:var(--c0)}.controls input{accent-color:var(--c0)}
.legend{margin-left:auto;display:flex;flex-wrap:wrap;gap:0 1rem;font-size:.82rem;color:var(--soft)}
.key.off{opacity:.4;text-decoration:line-through}.key{white-space:nowrap}
.key::before{content:"";display:inline-block;width:1.1rem;height:0;border-top:2px solid var(--c);vertical-align:middle;margin-right:.4rem}
.key.again::before{border-top-style:dashed}.key.level{--c:var(--soft)}.key.level::before{border-top-style:dotted}
.key.dots::before{width:.5rem;height:.5rem;border:0;border-radius:50%;background:var(--c);vertical-align:baseline}
.key.dots.again::before{background:none;border:2px solid var(--c)}
.plot{position:relative;height:10.5rem;margin:0 .4rem 1.5rem 3.1rem;border-bottom:1px solid var(--soft);touch-action:pan-y}
.wide .plot{height:19rem}
.plot svg{position:absolute;inset:0;width:100%;height:100%;overflow:hidden}
.plot path{fill:none;vector-effect:non-scaling-stroke}
.grid{stroke:var(--rule);stroke-width:1}
.line{stroke:var(--c);stroke-width:1.6;stroke-linejoin:round}
.again.line{stroke-dasharray:5 3}.level{stroke:var(--soft);stroke-width:1.2;stroke-dasharray:2 3}
.resume{stroke:var(--warn);stroke-width:1;stroke-dasharray:4 3;opacity:.7}
.dot{stroke:var(--c);stroke-width:7;stroke-linecap:round}
.plot .band{fill:var(--c);opacity:.16}
.c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}.c3{--c:var(--c3)}.c4{--c:var(--c4)}.c5{--c:var(--c5)}.c6{--c:var(--c6)}.c7{--c:var(--c7)}
.plot span{position:absolute;font-size:.75rem;line-height:1;color:var(--soft);font-variant-numeric:tabular-nums;white-space:nowrap}
.plot .y{right:100%;margin-right:.5rem;transform:translateY(-50%)}
.plot .x{top:100%;margin-top:.45rem;transform:translateX(-50%)}
.rule{position:absolute;top:0;bottom:0;width:1px;background:var(--soft);pointer-events:none}
.tip{position:absolute;top:.2rem;padding:.35rem .6rem;border:1px solid var(--rule);border-radius:.35rem;background:var(--paper);font-size:.8rem;line-height:1.45;white-space:pre;pointer-events:none;font-variant-numeric:tabular-nums;z-index:1}
table{border-collapse:collapse;width:100%;font-size:.93rem}
td,th{padding:.35rem .9rem .35rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--rule)}
th{font-weight:500;color:var(--soft);white-space:nowrap}
thead th{font-size:.82rem}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
tr.best td{font-weight:600}td .key{cursor:default}
table.facts th{width:15rem;font-size:.88rem}.w{white-space:nowrap}
.scroll{overflow-x:auto}
pre{margin:.6rem 0;padding:.8rem 1rem;background:var(--tint);border-radius:.5rem;font-size:.82rem;line-height:1.5;overflow-x:auto;tab-size:4}
.sample{margin:1.2rem 0 1.6rem}
.sample pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0}
.sample .two{display:grid;grid-template-columns:1fr 1fr;gap:.8rem}
.sample small{display:block;margin:.5rem 0 .25rem}
.sample i{font-style:normal;color:var(--soft)}.own{color:var(--ink)}
details{margin:.6rem 0}summary{cursor:pointer;color:var(--soft)}
footer{margin-top:3rem;padding-top:1rem;border-top:1px solid var(--rule);color:var(--soft);font-size:.9rem}
@media(max-width:44rem){main{padding:1.4rem 1rem 2rem}h1{font-size:1.55rem}.charts,.sample .two{grid-template-columns:1fr}
.wide .plot{height:15rem}.plot{margin-left:2.6rem}table.facts th{width:auto;white-space:normal}
table.facts tr{display:block;border-bottom:1px solid var(--rule);padding:.35rem 0}table.facts td,table.facts th{display:block;border:0;padding:0}}
@media print{.plot{break-inside:avoid}details,nav,.controls,.copy{display:none}}
)css";

}  // namespace ostro::page
