/* lanes.h */

__attribute__((noinline, visibility("hidden"))) void angles(const lanes *const *x, lanes *angle)
{
    const lanes v0 = x[0][0];
    const lanes v1 = x[0][1];
    const lanes v4 = 0.5 + v0;
    angle[0] = v4;
    angle[1] = v1;
}

__attribute__((noinline, visibility("hidden"))) void part0(const lanes *const *restrict x, const lanes *restrict sin_, const lanes *restrict cos_, lanes *restrict w, lanes *restrict out)
{
    const lanes v2 = x[1][0];
    const lanes v5 = sin_[0];
    const lanes v6 = v2 * v5;
    const lanes v3 = x[1][1];
    const lanes v7 = cos_[0];
    const lanes v8 = v3 * v7;
    const lanes v9 = v6 + v8;
    out[0] = v9;
    const lanes v1 = x[0][1];
    const lanes v10 = tanh_lanes(v1);
    const lanes v11 = sign_lanes(v2);
    const lanes v12 = v1 * v1;
    const lanes v13 = 2.0 + v12;
    const lanes v14 = v11 / v13;
    const lanes v15 = v10 - v14;
    out[1] = v15;
    const lanes v0 = x[0][0];
    const lanes v16 = v0 * v3;
    const lanes v17 = -v16;
    out[2] = v17;
    const lanes v18 = cos_[1];
    const lanes v19 = v2 * v18;
    const lanes v20 = sin_lanes(v19);
    out[3] = v20;
    (void)x, (void)sin_, (void)cos_, (void)w, (void)out;
}

void kernel(const double *const *states, double *results, long count)
{
    lanes x0[2];
    lanes x1[2];
    const lanes *const x[] = {x0, x1};
    lanes out[5], w[1];
    lanes sin_[2], cos_[2];
    for (int j = 0; j < 2; j++)
        x1[j] = all(states[1][j]);
    out[4] = all(1.0);
    for (long i = 0; i < count; i += LANES) {
        long row[LANES];
        for (int k = 0; k < LANES; k++)
            row[k] = i + k < count ? i + k : count - 1;
        for (int j = 0; j < 2; j++)
            for (int k = 0; k < LANES; k++)
                x0[j][k] = states[0][row[k] * 2 + j];
        lanes angle[2];
        angles(x, angle);
        for (int j = 0; j < 2; j++)
            sincos_lanes(angle[j], &sin_[j], &cos_[j]);
        part0(x, sin_, cos_, w, out);
        store_rows(out, results + i * 5, count - i, 5, 0, 5, 0);
        spoil_rows(0.0 * x0[0] + 0.0 * x0[1], results + i * 5, count - i, 5);
    }
}
