#define FEW_LANES
/* lanes.h */

__attribute__((noinline, visibility("hidden"))) void angles(const double *const *x, double *angle)
{
    const double v0 = x[0][0];
    const double v1 = x[0][1];
    const double v4 = 0.5 + v0;
    angle[0] = v4;
    angle[1] = v1;
}

__attribute__((noinline, visibility("hidden"))) void part0(const double *const *restrict x, const double *restrict sin_, const double *restrict cos_, double *restrict w, double *restrict out)
{
    const double v2 = x[1][0];
    const double v5 = sin_[0];
    const double v6 = v2 * v5;
    const double v3 = x[1][1];
    const double v7 = cos_[0];
    const double v8 = v3 * v7;
    const double v9 = v6 + v8;
    out[0] = v9;
    const double v1 = x[0][1];
    const double v10 = tanh(v1);
    const double v11 = sign(v2);
    const double v12 = v1 * v1;
    const double v13 = 2.0 + v12;
    const double v14 = v11 / v13;
    const double v15 = v10 - v14;
    out[1] = v15;
    const double v0 = x[0][0];
    const double v16 = v0 * v3;
    const double v17 = -v16;
    out[2] = v17;
    const double v18 = cos_[1];
    const double v19 = v2 * v18;
    const double v20 = sin(v19);
    out[3] = v20;
    (void)x, (void)sin_, (void)cos_, (void)w, (void)out;
}

void kernel(const double *const *x, double *out)
{
    double w[1];
    double sin_[(2 + LANES - 1) / LANES * LANES], cos_[(2 + LANES - 1) / LANES * LANES];
    double angle[(2 + LANES - 1) / LANES * LANES] = {0};
    angles(x, angle);
    sincos_all(angle, sin_, cos_, 2);
    out[4] = 1.0;
    part0(x, sin_, cos_, w, out);
    const double doubt = 0.0 * x[0][0] + 0.0 * x[0][1];
    if (doubt != doubt)
        for (int k = 0; k < 5; k++)
            out[k] = doubt;
}
