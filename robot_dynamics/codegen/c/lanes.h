/* SPDX-License-Identifier: Apache-2.0 */
/* Several states at once: GCC's and Clang's vector types, and sine and cosine of them.
 *
 * LANES is as wide as the machine's registers, or at most four with FEW_LANES: for the few angles
 * of a single state, moving them through memory into the widest registers costs more than it saves. */

/* of the C library; reading its headers would take longer than everything else */
double sin(double), cos(double), tanh(double), exp(double), sqrt(double), atan(double);
#define memcpy __builtin_memcpy
#define memcmp __builtin_memcmp

#ifndef LANES
#if defined(__AVX512F__) && !defined(FEW_LANES)
#define LANES 8
#elif defined(__AVX__)
#define LANES 4
#else
#define LANES 2
#endif
#endif

typedef double lanes __attribute__((vector_size(8 * LANES)));
typedef long long masks __attribute__((vector_size(8 * LANES)));

#define ALWAYS static inline __attribute__((always_inline, unused))
/* precedes a loop over lanes, to keep indexed values in registers (Clang does so by itself) */
#ifdef __clang__
#define UNROLLED
#else
#define UNROLLED _Pragma("GCC unroll 8")
#endif

ALWAYS lanes choose(masks where, lanes yes, lanes no)
{
    return (lanes)(((masks)yes & where) | ((masks)no & ~where));
}

ALWAYS lanes all(double x)
{
    return x - (lanes){0};
}

#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLED(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLED(a, b, ...) __builtin_shuffle(a, b, (masks){__VA_ARGS__})
#endif
/* exchange off-diagonal blocks of this size between rows that are `apart` places apart */
#define EXCHANGED(apart, low, high)                                              \
    UNROLLED                                                                      \
    for (int i = 0; i < LANES; i++)                                               \
        if (!(i & apart)) {                                                       \
            lanes a = t[i], b = t[i + apart];                                     \
            t[i] = SHUFFLED(a, b, low);                                           \
            t[i + apart] = SHUFFLED(a, b, high);                                  \
        }
#define THESE(...) __VA_ARGS__

/* Transpose a square of lanes in place. */
ALWAYS void transposed(lanes *t)
{
#if LANES == 8
    EXCHANGED(1, THESE(0, 8, 2, 10, 4, 12, 6, 14), THESE(1, 9, 3, 11, 5, 13, 7, 15))
    EXCHANGED(2, THESE(0, 1, 8, 9, 4, 5, 12, 13), THESE(2, 3, 10, 11, 6, 7, 14, 15))
    EXCHANGED(4, THESE(0, 1, 2, 3, 8, 9, 10, 11), THESE(4, 5, 6, 7, 12, 13, 14, 15))
#elif LANES == 4
    EXCHANGED(1, THESE(0, 4, 2, 6), THESE(1, 5, 3, 7))
    EXCHANGED(2, THESE(0, 1, 4, 5), THESE(2, 3, 6, 7))
#else
    EXCHANGED(1, THESE(0, 2), THESE(1, 3))
#endif
}

/* Store values from..to, with one state per lane, in rows of `width` values, with one state per
 * row. `zero`, unless it is null, marks the values that are always zero. */
static __attribute__((noinline, unused)) void store_rows(const lanes *values, double *rows,
                                                         long count, long width, long from,
                                                         long to, const char *zero)
{
    long j = from;
    if (count >= LANES)
        for (; j + LANES <= to; j += LANES) {
            lanes t[LANES] = {0};
            if (!zero || memcmp(zero + j, "\1\1\1\1\1\1\1\1", LANES)) {
                memcpy(t, values + j, sizeof t);
                transposed(t);
            }
            UNROLLED
            for (int k = 0; k < LANES; k++)
                memcpy(rows + k * width + j, t + k, sizeof *t);
        }
    for (; j < to; j++)
        for (int k = 0; k < LANES && k < count; k++)
            rows[k * width + j] = values[j][k];
}

/* Set each row whose lane of `doubt` is nan entirely to nan. */
ALWAYS void spoil_rows(lanes doubt, double *rows, long count, long width)
{
    for (int k = 0; k < LANES && k < count; k++)
        if (__builtin_expect(doubt[k] != doubt[k], 0))
            for (long j = 0; j < width; j++)
                rows[k * width + j] = doubt[k];
}

/* -1, 0 or 1; nan for nan */
ALWAYS double sign(double x)
{
    return x > 0 ? 1.0 : x < 0 ? -1.0 : x;
}

ALWAYS lanes sign_lanes(lanes x)
{
    return choose(x > 0, all(1.0), choose(x < 0, all(-1.0), x));
}

#define ONE_BY_ONE(function)                                                      \
    static __attribute__((noinline, unused)) lanes function##_lanes(lanes x)      \
    {                                                                             \
        for (int i = 0; i < LANES; i++)                                           \
            x[i] = function(x[i]);                                                \
        return x;                                                                 \
    }
ONE_BY_ONE(sin)
ONE_BY_ONE(cos)
ONE_BY_ONE(tanh)
ONE_BY_ONE(exp)
ONE_BY_ONE(sqrt)
ONE_BY_ONE(atan)

static __attribute__((noinline, unused)) void sincos_far(lanes x, masks near, lanes *s, lanes *c)
{
    for (int i = 0; i < LANES; i++)
        if (!near[i]) {
            (*s)[i] = sin(x[i]);
            (*c)[i] = cos(x[i]);
        }
}

/* Sine and cosine within 3 units in the last place. Up to FAR the angle is reduced by multiples of
 * pi/2 in three parts (Cody and Waite; two of 33 bits, so that their multiples are exact); beyond
 * it, and for inf and nan, the C library is used. The polynomials on [-pi/4, pi/4] are fdlibm's. */
#define FAR 1.0e6

ALWAYS void sincos_lanes(lanes x, lanes *s, lanes *c)
{
    const masks sign_bit = (masks)all(-0.0);
    masks near = (masks)((lanes)((masks)x & ~sign_bit) < FAR);
    /* k = the nearest integer to x / (pi/2): adding 1.5 2^52 rounds, its low bits are k */
    lanes shifted = x * 6.36619772367581382433e-01 + 6755399441055744.0;
    masks k = (masks)shifted;
    lanes n = shifted - 6755399441055744.0;
    lanes r = x - n * 1.57079632673412561417e+00;
    r = r - n * 6.07710050630396597660e-11;
    r = r - n * 2.02226624879595063154e-21;
    lanes z = r * r;
    lanes z2 = z * z;
    lanes p = (8.33333333332248946124e-03 + z * -1.98412698298579493134e-04)
        + z2 * ((2.75573137070700676789e-06 + z * -2.50507602534068634195e-08)
                + z2 * 1.58969099521155010221e-10);
    lanes sine = r + (r * z) * (-1.66666666666666324348e-01 + z * p);
    lanes o = (4.16666666666666019037e-02 + z * -1.38888888888741095749e-03)
        + z2 * ((2.48015872894767294178e-05 + z * -2.75573143513906633035e-07)
                + z2 * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11));
    lanes half = 0.5 * z;
    lanes one = 1.0 - half;
    lanes cosine = one + (((1.0 - one) - half) + z2 * o);
    /* odd quadrants swap the two; sine is negative in quadrants 2, 3, cosine in 1, 2 */
    masks swap = -(k & 1);
    *s = (lanes)((masks)choose(swap, cosine, sine) ^ ((k << 62) & sign_bit));
    *c = (lanes)((masks)choose(swap, sine, cosine) ^ (((k + 1) << 62) & sign_bit));
    long long all_near = -1;
    for (int i = 0; i < LANES; i++)
        all_near &= near[i];
    if (__builtin_expect(!all_near, 0))
        sincos_far(x, near, s, c);
}

/* `count` angles; the arrays have room for a whole number of lanes */
ALWAYS void sincos_all(const double *x, double *s, double *c, int count)
{
    for (int i = 0; i < count; i += LANES) {
        lanes a, b, d;
        memcpy(&a, x + i, sizeof a);
        sincos_lanes(a, &b, &d);
        memcpy(s + i, &b, sizeof b);
        memcpy(c + i, &d, sizeof d);
    }
}
