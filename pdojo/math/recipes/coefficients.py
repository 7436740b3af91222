"""Coefficients of the inlined math functions, derived in `test/differential/test_math_coefficients.py`.

Each table has a minimax polynomial per format, constant term first. The coefficients were rounded to the format one by
one, lowest first, and the remaining ones refitted each time. The comment is log2 of the greatest remaining error.
"""

from __future__ import annotations

EXP: dict[str, tuple[float, ...]] = {
    "f32": (  # -28.2
        float.fromhex("0x1.fffffcp-2"),
        float.fromhex("0x1.55548cp-3"),
        float.fromhex("0x1.555858p-5"),
        float.fromhex("0x1.123dfp-7"),
        float.fromhex("0x1.6ac85cp-10"),
    ),
    "f64": (  # -57.9
        float.fromhex("0x1.000000000000ap-1"),
        float.fromhex("0x1.5555555555502p-3"),
        float.fromhex("0x1.5555555550607p-5"),
        float.fromhex("0x1.1111111125148p-7"),
        float.fromhex("0x1.6c16c184b3cffp-10"),
        float.fromhex("0x1.a01a013bbd3d8p-13"),
        float.fromhex("0x1.a01998982b125p-16"),
        float.fromhex("0x1.71def88bd750dp-19"),
        float.fromhex("0x1.28aec6898a2e8p-22"),
        float.fromhex("0x1.adce53d7a8584p-26"),
    ),
}
"""(exp(r) - 1 - r) / r**2 for |r| <= ln(2)/2, relative to exp(r)."""

EXP_APPROX: dict[str, tuple[float, ...]] = {
    "f32": (  # -23.4
        float.fromhex("0x1.fffff6p-1"),
        float.fromhex("0x1.fffdc4p-2"),
        float.fromhex("0x1.555a82p-3"),
        float.fromhex("0x1.573adcp-5"),
        float.fromhex("0x1.0f9ea8p-7"),
    ),
}
"""(exp(r) - 1) / r for |r| <= ln(2)/2, relative to exp(r)."""

EXPM1: dict[str, tuple[float, ...]] = {
    "f32": (  # -28.2
        float.fromhex("0x1.0p-1"),
        float.fromhex("0x1.55552cp-3"),
        float.fromhex("0x1.555502p-5"),
        float.fromhex("0x1.1155a6p-7"),
        float.fromhex("0x1.6d2e4cp-10"),
        float.fromhex("0x1.3b924ap-13"),
    ),
    "f64": (  # -61.6
        float.fromhex("0x1.0p-1"),
        float.fromhex("0x1.5555555555559p-3"),
        float.fromhex("0x1.5555555555558p-5"),
        float.fromhex("0x1.111111110f71cp-7"),
        float.fromhex("0x1.6c16c16c1763cp-10"),
        float.fromhex("0x1.a01a01af98edep-13"),
        float.fromhex("0x1.a01a0198dc151p-16"),
        float.fromhex("0x1.71ddf93467fe5p-19"),
        float.fromhex("0x1.27e505583d7a7p-22"),
        float.fromhex("0x1.af5d22fc0189ep-26"),
        float.fromhex("0x1.1f24e5f1769fap-29"),
    ),
}
"""(exp(r) - 1 - r) / r**2 for |r| <= ln(2)/2, relative to exp(r) - 1."""

EXP2: dict[str, tuple[float, ...]] = {
    "f32": (  # -26.3
        float.fromhex("0x1.62e43p-1"),
        float.fromhex("0x1.ebfb94p-3"),
        float.fromhex("0x1.c6af9ep-5"),
        float.fromhex("0x1.3b6802p-7"),
        float.fromhex("0x1.5ef4e8p-10"),
        float.fromhex("0x1.17b7a2p-13"),
    ),
    "f64": (  # -56.8
        float.fromhex("0x1.62e42fefa39efp-1"),
        float.fromhex("0x1.ebfbdff82c5b3p-3"),
        float.fromhex("0x1.c6b08d704a26fp-5"),
        float.fromhex("0x1.3b2ab6fb9dab5p-7"),
        float.fromhex("0x1.5d87fe784582cp-10"),
        float.fromhex("0x1.430913167fe2dp-13"),
        float.fromhex("0x1.ffcbfe6658891p-17"),
        float.fromhex("0x1.62bfb47463a8fp-20"),
        float.fromhex("0x1.b5208159b29f3p-24"),
        float.fromhex("0x1.e63c3d6e674e4p-28"),
        float.fromhex("0x1.f0edcd4dc0772p-32"),
    ),
}
"""(2**r - 1) / r for |r| <= 1/2, relative to 2**r."""

LOG: dict[str, tuple[float, ...]] = {
    "f32": (  # -30.1
        float.fromhex("-0x1.0p-1"),
        float.fromhex("0x1.555544p-2"),
        float.fromhex("-0x1.ffffep-3"),
        float.fromhex("0x1.99a624p-3"),
        float.fromhex("-0x1.55664p-3"),
        float.fromhex("0x1.2327fcp-3"),
        float.fromhex("-0x1.fadffap-4"),
        float.fromhex("0x1.e67298p-4"),
        float.fromhex("-0x1.e480e8p-4"),
        float.fromhex("0x1.1c78ecp-4"),
    ),
    "f64": (  # -57.5
        float.fromhex("-0x1.0p-1"),
        float.fromhex("0x1.555555555558bp-2"),
        float.fromhex("-0x1.0000000000033p-2"),
        float.fromhex("0x1.999999998f95dp-3"),
        float.fromhex("-0x1.555555554750dp-3"),
        float.fromhex("0x1.24924929b5ed7p-3"),
        float.fromhex("-0x1.000000097f682p-3"),
        float.fromhex("0x1.c71c6f354df0fp-4"),
        float.fromhex("-0x1.999993acb2657p-4"),
        float.fromhex("0x1.745d72d65166dp-4"),
        float.fromhex("-0x1.5556560800de9p-4"),
        float.fromhex("0x1.3b0c43b2fa46fp-4"),
        float.fromhex("-0x1.2478e4e6dd863p-4"),
        float.fromhex("0x1.11685a864a247p-4"),
        float.fromhex("-0x1.017fb809cfe6cp-4"),
        float.fromhex("0x1.de2fe7916892cp-5"),
        float.fromhex("-0x1.acf40c34edce3p-5"),
        float.fromhex("0x1.abc78dd93aae7p-5"),
        float.fromhex("-0x1.0664ba4056788p-4"),
        float.fromhex("0x1.0352d7120851p-4"),
        float.fromhex("-0x1.d7cab72e9ac6cp-6"),
    ),
}
"""(log(1 + f) - f) / f**2 for sqrt(1/2) <= 1 + f <= sqrt(2), relative to log(1 + f); the first coefficient is -1/2."""

LOG2: dict[str, tuple[float, ...]] = {
    "f32": (  # -30.1
        float.fromhex("-0x1.715476p-1"),
        float.fromhex("0x1.ec7086p-2"),
        float.fromhex("-0x1.7154d6p-2"),
        float.fromhex("0x1.277fc4p-2"),
        float.fromhex("-0x1.ec61c6p-3"),
        float.fromhex("0x1.a3eef4p-3"),
        float.fromhex("-0x1.6fe014p-3"),
        float.fromhex("0x1.61cd0cp-3"),
        float.fromhex("-0x1.52cd4p-3"),
        float.fromhex("0x1.7636fap-4"),
    ),
    "f64": (  # -58.3
        float.fromhex("-0x1.71547652b82fep-1"),
        float.fromhex("0x1.ec709dc3a0452p-2"),
        float.fromhex("-0x1.71547652b83dbp-2"),
        float.fromhex("0x1.2776c50ef1ee3p-2"),
        float.fromhex("-0x1.ec709dc37c8e4p-3"),
        float.fromhex("0x1.a61762af9e2f3p-3"),
        float.fromhex("-0x1.715476663a1fbp-3"),
        float.fromhex("0x1.484b11e279da2p-3"),
        float.fromhex("-0x1.2776bf9cc34b1p-3"),
        float.fromhex("0x1.0c9ac92f94b46p-3"),
        float.fromhex("-0x1.ec7256b78b279p-4"),
        float.fromhex("0x1.c684780c2fe29p-4"),
        float.fromhex("-0x1.a5edccf58a85fp-4"),
        float.fromhex("0x1.8a6eb385be703p-4"),
        float.fromhex("-0x1.73b1435e44bdfp-4"),
        float.fromhex("0x1.593d5822d2924p-4"),
        float.fromhex("-0x1.3463bb3f8912fp-4"),
        float.fromhex("0x1.32018cea4a936p-4"),
        float.fromhex("-0x1.7bd5bac200da9p-4"),
        float.fromhex("0x1.7e108ff1d77d7p-4"),
        float.fromhex("-0x1.60251588d8a09p-5"),
    ),
}
"""(log2(1 + f) - f*(high + low)) / f**2 on the same range; high + low is log2(e) in two numbers."""

ATAN: dict[str, tuple[float, ...]] = {
    "f32": (  # -30.4
        float.fromhex("-0x1.55554ap-2"),
        float.fromhex("0x1.9991e2p-3"),
        float.fromhex("-0x1.23b9a2p-3"),
        float.fromhex("0x1.b2245p-4"),
        float.fromhex("-0x1.f2e558p-5"),
    ),
    "f64": (  # -59.4
        float.fromhex("-0x1.555555555553dp-2"),
        float.fromhex("0x1.999999999585fp-3"),
        float.fromhex("-0x1.24924922acebap-3"),
        float.fromhex("0x1.c71c70e5d5e42p-4"),
        float.fromhex("-0x1.745cf8d504509p-4"),
        float.fromhex("0x1.3b11188d60a87p-4"),
        float.fromhex("-0x1.10ebb19878b89p-4"),
        float.fromhex("0x1.df0ee6a8fddep-5"),
        float.fromhex("-0x1.9cd0ed5d61e6ap-5"),
        float.fromhex("0x1.37d0f786e1bf5p-5"),
        float.fromhex("-0x1.255ffbf8cf63ep-6"),
    ),
}
"""(atan(w) / w - 1) / w**2 as a polynomial in w**2 for |w| <= tan(pi/8), relative to atan(w)."""

ERF_SMALL: dict[str, tuple[float, ...]] = {
    "f32": (  # -30.1
        float.fromhex("0x1.06eba8p-3"),
        float.fromhex("-0x1.81274p-2"),
        float.fromhex("0x1.ce2d64p-4"),
        float.fromhex("-0x1.b80118p-6"),
        float.fromhex("0x1.5449dcp-8"),
        float.fromhex("-0x1.a605b8p-11"),
        float.fromhex("0x1.4f4e5cp-14"),
    ),
    "f64": (  # -56.3
        float.fromhex("0x1.06eba8214db69p-3"),
        float.fromhex("-0x1.812746b037a25p-2"),
        float.fromhex("0x1.ce2f21a0458ep-4"),
        float.fromhex("-0x1.b82ce31355182p-6"),
        float.fromhex("0x1.565bcd2c73355p-8"),
        float.fromhex("-0x1.c02db936df278p-11"),
        float.fromhex("0x1.f9a3b9d877552p-14"),
        float.fromhex("-0x1.f4dcfd0690fa3p-17"),
        float.fromhex("0x1.ba69befa74dc4p-20"),
        float.fromhex("-0x1.6397115148f83p-23"),
        float.fromhex("0x1.1345e092a045ep-26"),
        float.fromhex("-0x1.c5b3e511226cdp-30"),
        float.fromhex("0x1.3d0c3cb23226ap-33"),
    ),
}
"""erf(x)/x - 1 in powers of x**2, for |x| up to ERF_SPLIT, relative to erf(x)."""

ERF_LARGE: dict[str, tuple[float, ...]] = {
    "f32": (  # -26.0
        float.fromhex("-0x1.a60828p+0"),
        float.fromhex("-0x1.41065ep+1"),
        float.fromhex("-0x1.aa87bep-1"),
        float.fromhex("-0x1.6c4a3cp-5"),
        float.fromhex("0x1.4d03a2p-7"),
        float.fromhex("-0x1.947fc8p-10"),
        float.fromhex("0x1.589f92p-14"),
    ),
    "f64": (  # -57.0
        float.fromhex("-0x1.d97fbf27aa2a1p+0"),
        float.fromhex("-0x1.51c9b0006c22cp+1"),
        float.fromhex("-0x1.afabc11a2a516p-1"),
        float.fromhex("-0x1.5477f09a6b8b5p-5"),
        float.fromhex("0x1.48c9d399753f5p-7"),
        float.fromhex("-0x1.033f5c4d9633cp-9"),
        float.fromhex("0x1.f1b0cc6cb2453p-13"),
        float.fromhex("0x1.b923aec31197cp-16"),
        float.fromhex("-0x1.c84094896b8d8p-16"),
        float.fromhex("0x1.4455c69a8bd4fp-17"),
        float.fromhex("-0x1.1d744c1c01c46p-19"),
        float.fromhex("0x1.b02899b0e5f81p-23"),
        float.fromhex("0x1.00f70a5196157p-24"),
        float.fromhex("-0x1.248f105aaff6bp-25"),
        float.fromhex("0x1.2a97b37780b8p-27"),
        float.fromhex("-0x1.729e1cb3dccb5p-30"),
        float.fromhex("0x1.0ce5b6e361fafp-33"),
        float.fromhex("-0x1.5fc9ebc730b2ap-38"),
    ),
}
"""log(erfc(x)) in powers of x - ERF_SPLIT, up to the x for which erf(x) rounds to 1; absolute error of erf(x)."""

TANH_NUMERATOR: dict[str, tuple[float, ...]] = {
    "f32": (  # -26.8
        float.fromhex("0x1.d58106p-1"),
        float.fromhex("0x1.bf6b7cp-6"),
        float.fromhex("0x1.b801f6p-14"),
    ),
}
"""tanh(x/2)/x in powers of x**2 for |x| up to 8.8, times TANH_DENOMINATOR; relative to tanh(x)."""

TANH_DENOMINATOR: dict[str, tuple[float, ...]] = {
    "f32": (
        float.fromhex("0x1.d58106p+0"),
        float.fromhex("0x1.a8db84p-3"),
        float.fromhex("0x1.223312p-9"),
        float.fromhex("0x1.2f5b26p-19"),
    ),
}
"""The denominator of a quotient next to tanh(x/2)/x; the first coefficient is chosen."""

ERF_NUMERATOR: dict[str, tuple[float, ...]] = {
    "f32": (  # -25.1
        float.fromhex("0x1.e82e96p-1"),
        float.fromhex("0x1.1c7666p-3"),
        float.fromhex("0x1.17683p-6"),
        float.fromhex("0x1.28e8c4p-11"),
        float.fromhex("-0x1.9a4d2ap-18"),
    ),
}
"""tanh(atanh(erf(x))/2)/x in powers of x**2 for |x| up to 3.8, times ERF_DENOMINATOR; relative to erf(x)."""

ERF_DENOMINATOR: dict[str, tuple[float, ...]] = {
    "f32": (
        float.fromhex("0x1.b0a3d8p+0"),
        float.fromhex("0x1.1618ecp-2"),
        float.fromhex("0x1.f1ee02p-5"),
        float.fromhex("0x1.0435ecp-8"),
    ),
}
"""The denominator of a quotient next to tanh(atanh(erf(x))/2)/x; the first coefficient is chosen."""

SIN: dict[str, tuple[float, ...]] = {
    "f32": (  # -37.5
        float.fromhex("-0x1.5555554c70162p-3"),
        float.fromhex("0x1.1111086911ad8p-7"),
        float.fromhex("-0x1.a00f7e1e2a83fp-13"),
        float.fromhex("0x1.6cd1b4224bc4p-19"),
    ),
    "f64": (  # -63.2
        float.fromhex("-0x1.5555555555555p-3"),
        float.fromhex("0x1.1111111111069p-7"),
        float.fromhex("-0x1.a01a019ffe51cp-13"),
        float.fromhex("0x1.71de3a33a4367p-19"),
        float.fromhex("-0x1.ae642c4f0f3dcp-26"),
        float.fromhex("0x1.6109bb34ad9b4p-33"),
        float.fromhex("-0x1.9ffc1536d3c1bp-41"),
    ),
}
"""(sin(x)/x - 1) / x**2 in powers of x**2 for |x| <= pi/4, relative to sin(x)."""

COS: dict[str, tuple[float, ...]] = {
    "f32": (  # -33.0
        float.fromhex("0x1.55554a1165dfap-5"),
        float.fromhex("-0x1.6c0c338846541p-10"),
        float.fromhex("0x1.99eb8a83a745p-16"),
    ),
    "f64": (  # -63.9
        float.fromhex("0x1.555555555554bp-5"),
        float.fromhex("-0x1.6c16c16c15013p-10"),
        float.fromhex("0x1.a01a019c8ed08p-16"),
        float.fromhex("-0x1.27e4f7f14153cp-22"),
        float.fromhex("0x1.1ee9db8eaebc8p-29"),
        float.fromhex("-0x1.8fa65f0ef948fp-37"),
    ),
}
"""(cos(x) - 1 + x**2/2) / x**4 in powers of x**2 for |x| <= pi/4, relative to cos(x)."""

POW_LOG2: dict[str, tuple[float, ...]] = {
    "f32": (  # -41.0
        float.fromhex("-0x1.71547652972efp-1"),
        float.fromhex("0x1.ec709dbee9dabp-2"),
        float.fromhex("-0x1.715476a8fe502p-2"),
        float.fromhex("0x1.2776c8b161a0bp-2"),
        float.fromhex("-0x1.ec7065beab417p-3"),
        float.fromhex("0x1.a6156f38e4474p-3"),
        float.fromhex("-0x1.715b4f701a3e6p-3"),
        float.fromhex("0x1.488a1c32feb98p-3"),
        float.fromhex("-0x1.272c218803bf7p-3"),
        float.fromhex("0x1.0896ac8515034p-3"),
        float.fromhex("-0x1.ea25758e42875p-4"),
        float.fromhex("0x1.01f6290c846bfp-3"),
        float.fromhex("-0x1.f8e403411715ep-4"),
        float.fromhex("0x1.028ff9b78fbebp-4"),
    ),
}
"""(log2(1 + f) - f*log2(e)) / f**2 in f64, for the f32 power."""

POW_EXP2: dict[str, tuple[float, ...]] = {
    "f32": (  # -34.3
        float.fromhex("0x1.62e42ff0e1d21p-1"),
        float.fromhex("0x1.ebfbe0778363ap-3"),
        float.fromhex("0x1.c6b08abfcac57p-5"),
        float.fromhex("0x1.3b29f3a0609a1p-7"),
        float.fromhex("0x1.5d8a868d7e665p-10"),
        float.fromhex("0x1.445c814859c6ep-13"),
        float.fromhex("0x1.fde56d1a76698p-17"),
    ),
}
"""(2**r - 1) / r in f64, for the f32 power."""

POW_ATANH: dict[str, tuple[float, ...]] = {
    "f64": (  # -73.5
        float.fromhex("0x1.9999999999996p-3"),
        float.fromhex("0x1.2492492492f52p-3"),
        float.fromhex("0x1.c71c71c5965d2p-4"),
        float.fromhex("0x1.745d182975876p-4"),
        float.fromhex("0x1.3b1364bfa6f98p-4"),
        float.fromhex("0x1.112070ca22c16p-4"),
        float.fromhex("0x1.de3d29e2f5866p-5"),
        float.fromhex("0x1.eac8303e6a0bp-5"),
    ),
}
"""(atanh(s)/s - 1 - s**2/3) / s**4 in powers of s**2 for |s| <= 3 - 2*sqrt(2), absolute."""

ERF_SPLIT: dict[str, float] = {"f32": 0.921875, "f64": 1.0}
"""The argument from which erf is computed as 1 - exp(polynomial) instead of by its odd polynomial."""

TWO_OVER_PI_BITS = 1280
"""Number of fraction bits in TWO_OVER_PI."""

TWO_OVER_PI = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e0"
    "06492eea09d1921cfe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f4"
    "9c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d"
    "7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6babf0cfbc209af4361d",
    16,
)
"""floor(2/pi * 2**TWO_OVER_PI_BITS)."""
