// kExpF32, kLog, kErfNear, ...: constants and polynomials of the functions of functions.h. Every number is
// part of the numerics version (docs/spec/numerics.md, N3). Polynomials list the coefficient of the lowest
// power first. Written by scripts/derive_coefficients.py; do not edit.
#pragma once

namespace ostro::numerics::coefficients {

// f32(log2 e); also the kappa of N11
inline constexpr float kLog2eF32 = 0x1.715476p+0f;
// ln 2 in two f32 terms
inline constexpr float kLn2HiF32 = 0x1.62e43p-1f;
inline constexpr float kLn2LoF32 = -0x1.05c61p-29f;
// (e^r - 1 - r) / r^2 on |r| <= 0.3468
inline constexpr float kExpF32[] = {
    0x1p-1f, 0x1.5554dcp-3f, 0x1.55551ap-5f, 0x1.120bb6p-7f, 0x1.6d115p-10f,
};

// f64(log2 e)
inline constexpr double kLog2eF64 = 0x1.71547652b82fep+0;
// ln 2 in two f64 terms
inline constexpr double kLn2HiF64 = 0x1.62e42fefa39efp-1;
inline constexpr double kLn2LoF64 = 0x1.abc9e3b39803fp-56;
// (e^r - 1 - r) / r^2: 1/k!, k = 2..13
inline constexpr double kExpm1[] = {
    0x1p-1,
    0x1.5555555555555p-3,
    0x1.5555555555555p-5,
    0x1.1111111111111p-7,
    0x1.6c16c16c16c17p-10,
    0x1.a01a01a01a01ap-13,
    0x1.a01a01a01a01ap-16,
    0x1.71de3a556c734p-19,
    0x1.27e4fb7789f5cp-22,
    0x1.ae64567f544e4p-26,
    0x1.1eed8eff8d898p-29,
    0x1.6124613a86d09p-33,
};
// (2 atanh(s) - 2 s) / s^3 in s^2: 2/(2k+1), k = 1..11
inline constexpr double kLog[] = {
    0x1.5555555555555p-1, 0x1.999999999999ap-2, 0x1.2492492492492p-2, 0x1.c71c71c71c71cp-3,
    0x1.745d1745d1746p-3, 0x1.3b13b13b13b14p-3, 0x1.1111111111111p-3, 0x1.e1e1e1e1e1e1ep-4,
    0x1.af286bca1af28p-4, 0x1.8618618618618p-4, 0x1.642c8590b2164p-4,
};

// f64(2 / pi)
inline constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
// pi / 2 in three f64 terms
inline constexpr double kHalfPi[] = {
    0x1.921fb54442d18p+0,
    0x1.1a62633145c07p-54,
    -0x1.f1976b7ed8fbcp-110,
};
// (sin r - r) / r^3 in r^2: (-1)^k/(2k+1)!, k = 1..8
inline constexpr double kSin[] = {
    -0x1.5555555555555p-3,  0x1.1111111111111p-7,  -0x1.a01a01a01a01ap-13, 0x1.71de3a556c734p-19,
    -0x1.ae64567f544e4p-26, 0x1.6124613a86d09p-33, -0x1.ae7f3e733b81fp-41, 0x1.952c77030ad4ap-49,
};
// (cos r - 1) / r^2 in r^2: (-1)^k/(2k)!, k = 1..8
inline constexpr double kCos[] = {
    -0x1p-1,
    0x1.5555555555555p-5,
    -0x1.6c16c16c16c17p-10,
    0x1.a01a01a01a01ap-16,
    -0x1.27e4fb7789f5cp-22,
    0x1.1eed8eff8d898p-29,
    -0x1.93974a8c07c9dp-37,
    0x1.ae7f3e733b81fp-45,
};

// erf(a) / a in a^2, 0 <= a < 1: 2/sqrt(pi) (-1)^k/(k! (2k+1)), k = 0..22
inline constexpr double kErfNear[] = {
    0x1.20dd750429b6dp+0,  -0x1.812746b0379e7p-2,  0x1.ce2f21a042be2p-4,  -0x1.b82ce31288b51p-6,
    0x1.565bcd0e6a53fp-8,  -0x1.c02db40040b86p-11, 0x1.f9a326f9b89b7p-14, -0x1.f4d25c3e0c2ebp-17,
    0x1.b9e6c9dc651a3p-20, -0x1.5f742ec43e71ap-23, 0x1.fcc5720624c1cp-27, -0x1.51d7181c5d36dp-30,
    0x1.9e6ad5e55a73p-34,  -0x1.d8453cb0c46eap-38, 0x1.f683ae4a97007p-42, -0x1.f56f071a885cfp-46,
    0x1.d70b3537f4765p-50, -0x1.a2007af3447f6p-54, 0x1.5f7919bc67b8cp-58, -0x1.18cc8a061c479p-62,
    0x1.ab5cc31489f29p-67, -0x1.3676fc48c133cp-71, 0x1.af83c2fb19fa6p-76,
};
// erf(a) in a - 2.5, 1 <= a <= 4
inline constexpr double kErfFar[] = {
    0x1.ffcaa8f4c9beap-1,   0x1.1d8317123c9e5p-9,   -0x1.64e3dcd3d51c9p-8,  0x1.119da0ac0e22p-7,
    -0x1.1a89b97a040b6p-7,  0x1.90e814b901dcp-8,    -0x1.6ecdbfef47ca7p-9,  0x1.1c60ad1f8707ep-11,
    0x1.115534eb46bf8p-12,  -0x1.066f435acfcecp-12, 0x1.4a83314208d25p-14,  0x1.57ba580ebe4dp-18,
    -0x1.d8620b1fbdbf2p-17, 0x1.3bff3872e41b1p-18,  0x1.807e1f24ad7e7p-23,  -0x1.5fb36b6d4e5dcp-21,
    0x1.84f958d1cf602p-23,  0x1.afac7c5dd7a98p-26,  -0x1.a9fddd376e6c4p-26, 0x1.230171f4326c8p-29,
    0x1.a2668d201e7a4p-30,  -0x1.da269ce4af999p-33, -0x1.4ab7983993d44p-35,
};

// erfinv(u) / u in w - 2.5, w = -log(1 - u^2) in [0, 5)
inline constexpr double kErfinvNear[] = {
    0x1.805c5cfcedef5p+0,   0x1.f91e8993f09d9p-3,   -0x1.11c3c302df0a5p-8,  -0x1.4863cdfa69075p-10,
    0x1.c9b437ec24ea6p-13,  -0x1.4f48012fee50bp-18, -0x1.ca9227117ec57p-19, 0x1.01039a5a0520ep-21,
    0x1.ccfe8463b8976p-27,  -0x1.7534c112e28d5p-27, 0x1.f2d630a1190dp-31,   0x1.078585454ea8p-33,
    -0x1.11dba2727cc89p-35, 0x1.e113d7173656dp-41,  0x1.320656677582fp-41,  -0x1.3080af71bb66ap-44,
    -0x1.28c72dcf6f1a1p-48, 0x1.56246ade8e78p-50,   -0x1.e033dc57fc21ep-56,
};
// erfinv(u) / u in w - 11, w in [5, 17]
inline constexpr double kErfinvFar[] = {
    0x1.93502702fa6bp+1,    0x1.3693e4d68db26p-3,   -0x1.b5ccc16b3d11dp-9,  0x1.27b794e17698dp-13,
    -0x1.cc7a35c672fa4p-18, 0x1.432590424b82bp-22,  -0x1.6b7acb5c6cc17p-28, -0x1.2e556022b8a34p-30,
    0x1.b23d2fa1096ebp-33,  -0x1.7b6331c0c388fp-36, 0x1.f8e1c2e9cef9ap-40,  -0x1.f393031907445p-44,
    0x1.2faa071021a1p-48,   -0x1.eaa67aabe512ep-57, -0x1.0c85620352dccp-55, 0x1.0373ebcff9ee8p-57,
    -0x1.74764d04cce16p-61, 0x1.9d0368a540fd9p-74,  0x1.18288a058791cp-69,
};
// f32(erf(3 / sqrt 2)), the truncated normal's bound
inline constexpr float kErf3Sigma = 0x1.fe9e22p-1f;
// f64(sqrt 2)
inline constexpr double kSqrt2 = 0x1.6a09e667f3bcdp+0;

// gelu: f32(1 / sqrt 2), f32(sqrt(2 / pi)), f32(0.044715)
inline constexpr float kRootHalfF32 = 0x1.6a09e6p-1f;
inline constexpr float kGeluScale = 0x1.988454p-1f;
inline constexpr float kGeluCubic = 0x1.6e4e26p-5f;

}  // namespace ostro::numerics::coefficients
