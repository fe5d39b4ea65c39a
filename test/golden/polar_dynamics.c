/* Generated. Straight-line code of the recorded formulation. */
#include "polar_dynamics.h"

#include <math.h>

static void torques_part0(const double *const *x, double *w, double *out)
{
    const double v1 = x[1][0];
    const double v5 = v1 * v1;
    const double v3 = x[2][0];
    const double v6 = 2.5 * v3;
    const double v0 = x[0][1];
    const double v7 = v0 * v3;
    const double v8 = v0 * v5;
    const double v9 = 2.0 * v1;
    const double v2 = x[1][1];
    const double v10 = v2 * v9;
    const double v11 = v7 + v10;
    const double v4 = x[2][1];
    const double v12 = v4 - v8;
    const double v13 = 5.0 * v11;
    const double v14 = 5.0 * v12;
    const double v15 = v0 * v13;
    const double v16 = v6 + v15;
    const double v17 = x[0][0];
    const double v18 = 0.0 * v17;
    const double v19 = 0.0 * v2;
    const double v20 = v18 + v19;
    const double v21 = 0.0 * v3;
    const double v22 = v20 + v21;
    const double v23 = 0.0 * v4;
    const double v24 = v22 + v23;
    const double v25 = v16 + v24;
    const double v26 = v14 + v24;
    out[0] = v25;
    out[1] = v26;
    (void)x, (void)w, (void)out;
}

void polar_torques(const double *q, const double *qd, const double *qdd, double *tau)
{
    const double *const x[] = {q, qd, qdd};
    double *const out = tau;
    double w[1];
    torques_part0(x, w, out);
}

static void mass_matrix_part0(const double *const *x, double *w, double *out)
{
    const double v0 = x[0][1];
    const double v1 = 5.0 * v0;
    const double v2 = v0 * v1;
    const double v3 = 2.5 + v2;
    const double v4 = x[0][0];
    const double v5 = 0.0 * v4;
    const double v6 = 0.0 * v0;
    const double v7 = v5 + v6;
    const double v8 = v3 + v7;
    const double v9 = 0.0 + v7;
    const double v10 = 0.0 + v7;
    const double v11 = 5.0 + v7;
    out[0] = v8;
    out[1] = v9;
    out[2] = v10;
    out[3] = v11;
    (void)x, (void)w, (void)out;
}

void polar_mass_matrix(const double *q, double *D)
{
    const double *const x[] = {q};
    double *const out = D;
    double w[1];
    mass_matrix_part0(x, w, out);
}

static void coriolis_matrix_part0(const double *const *x, double *w, double *out)
{
    const double v1 = x[1][0];
    const double v3 = 1.0 + v1;
    const double v4 = v3 * v3;
    const double v0 = x[0][1];
    const double v5 = v0 * v4;
    const double v6 = 2.0 * v3;
    const double v2 = x[1][1];
    const double v7 = v2 * v6;
    const double v8 = 5.0 * v7;
    const double v9 = 5.0 * v5;
    const double v10 = v0 * v8;
    const double v11 = v1 - 1.0;
    const double v12 = v11 * v11;
    const double v13 = 1.0 - v1;
    const double v14 = v0 * v12;
    const double v15 = 2.0 * v13;
    const double v16 = v2 * v15;
    const double v17 = 5.0 * v16;
    const double v18 = 5.0 * v14;
    const double v19 = v0 * v17;
    const double v20 = v10 + v19;
    const double v21 = v18 - v9;
    const double v22 = 0.25 * v20;
    const double v23 = 0.25 * v21;
    const double v24 = 1.0 + v2;
    const double v25 = 2.0 * v1;
    const double v26 = v24 * v25;
    const double v27 = 5.0 * v26;
    const double v28 = v0 * v27;
    const double v29 = v2 - 1.0;
    const double v30 = v25 * v29;
    const double v31 = 5.0 * v30;
    const double v32 = v0 * v31;
    const double v33 = v28 - v32;
    const double v34 = 0.25 * v33;
    const double v35 = x[0][0];
    const double v36 = 0.0 * v35;
    const double v37 = 0.0 * v0;
    const double v38 = v36 + v37;
    const double v39 = 0.0 * v1;
    const double v40 = v38 + v39;
    const double v41 = 0.0 * v2;
    const double v42 = v40 + v41;
    const double v43 = v22 + v42;
    const double v44 = v34 + v42;
    const double v45 = v23 + v42;
    const double v46 = 0.0 + v42;
    out[0] = v43;
    out[1] = v44;
    out[2] = v45;
    out[3] = v46;
    (void)x, (void)w, (void)out;
}

void polar_coriolis_matrix(const double *q, const double *qd, double *C)
{
    const double *const x[] = {q, qd};
    double *const out = C;
    double w[1];
    coriolis_matrix_part0(x, w, out);
}

static void gravity_part0(const double *const *x, double *w, double *out)
{
    const double v0 = x[0][0];
    const double v1 = 0.0 * v0;
    const double v2 = x[0][1];
    const double v3 = 0.0 * v2;
    const double v4 = v1 + v3;
    const double v5 = 0.0 + v4;
    const double v6 = 0.0 + v4;
    out[0] = v5;
    out[1] = v6;
    (void)x, (void)w, (void)out;
}

void polar_gravity(const double *q, double *g)
{
    const double *const x[] = {q};
    double *const out = g;
    double w[1];
    gravity_part0(x, w, out);
}
