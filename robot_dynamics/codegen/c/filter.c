/* SPDX-License-Identifier: Apache-2.0 */
/* Signals filtered forwards and backwards, several at once. It follows lanes.h.
 *
 * both_ways(sections, start, signals, count, width) filters `count` signals in place: rows of `width`
 * values, a multiple of eight. `sections` are the coefficients of two second-order sections, b0 b1 b2
 * 1 a1 a2 of each, and `start` are the two states of each after a long input of 1; each way begins
 * as if the signal had always had its first value. */
#define SECTIONS 2
#define TOGETHER 2 /* so that one signal's values need not wait for each other */
#define BOTH (TOGETHER * LANES)

typedef struct {
    lanes one, two;
} State;

/* y_k = b0 x_k + b1 x_k-1 + b2 x_k-2 - a1 y_k-1 - a2 y_k-2, in transposed direct form II */
ALWAYS lanes filtered(lanes x, const double *sections, State *state)
{
    UNROLLED
    for (int s = 0; s < SECTIONS; s++) {
        const double *b = sections + 6 * s, *a = b + 3;
        lanes y = b[0] * x + state[s].one;
        state[s].one = b[1] * x - a[1] * y + state[s].two;
        state[s].two = b[2] * x - a[2] * y;
        x = y;
    }
    return x;
}

/* LANES values of each of the rows, from `at` on */
ALWAYS void load(double *const *rows, long at, lanes (*t)[LANES])
{
    for (int g = 0; g < TOGETHER; g++) {
        for (int k = 0; k < LANES; k++)
            memcpy(&t[g][k], rows[g * LANES + k] + at, sizeof(lanes));
        transposed(t[g]);
    }
}

ALWAYS void one_way(const double *sections, const double *start, double *const *rows, long width,
                    int backwards)
{
    lanes t[TOGETHER][LANES];
    State state[TOGETHER][SECTIONS];
    load(rows, backwards ? width - LANES : 0, t);
    for (int g = 0; g < TOGETHER; g++)
        for (int s = 0; s < SECTIONS; s++) {
            lanes first = t[g][backwards ? LANES - 1 : 0];
            state[g][s] = (State){start[2 * s] * first, start[2 * s + 1] * first};
        }
    for (long done = 0; done < width; done += LANES) {
        long at = backwards ? width - LANES - done : done;
        load(rows, at, t);
        UNROLLED
        for (int k = 0; k < LANES; k++)
            for (int g = 0; g < TOGETHER; g++) {
                lanes *x = &t[g][backwards ? LANES - 1 - k : k];
                *x = filtered(*x, sections, state[g]);
            }
        for (int g = 0; g < TOGETHER; g++) {
            transposed(t[g]);
            for (int k = 0; k < LANES; k++)
                memcpy(rows[g * LANES + k] + at, &t[g][k], sizeof(lanes));
        }
    }
}

void both_ways(const double *sections, const double *start, double *signals, long count, long width)
{
    for (long i = 0; i < count; i += BOTH) {
        double *rows[BOTH];
        for (int k = 0; k < BOTH; k++) /* the rows left over at the end repeat the last one */
            rows[k] = signals + (i + k < count ? i + k : count - 1) * width;
        one_way(sections, start, rows, width, 0);
        one_way(sections, start, rows, width, 1);
    }
}
