/* Generated: the dynamics of a robot. SI units; joints in the order of the enum.
 * No allocation, no state, nothing but libm: every function may run in any thread.
 * A nan in the state makes the whole result nan.
 * The robot's parameters, gravity and friction are compiled in. */
#ifndef POLAR_DYNAMICS_H
#define POLAR_DYNAMICS_H

#ifdef __cplusplus
extern "C" {
#endif

enum {
    POLAR_JOINT_THETA1 = 0,
    POLAR_JOINT_D2 = 1,
    POLAR_JOINTS = 2
};

/* tau = D(q) qdd + C(q, qd) qd + g(q) + friction(q, qd), N m or N
 * q [POLAR_JOINTS]: positions, rad or m
 * qd [POLAR_JOINTS]: rates, rad/s or m/s
 * qdd [POLAR_JOINTS]: accelerations, rad/s^2 or m/s^2
 * tau [POLAR_JOINTS]: the result */
void polar_torques(const double *q, const double *qd, const double *qdd, double *tau);

/* D(q), kg m^2 (kg m, kg), row by row
 * q [POLAR_JOINTS]: positions, rad or m
 * D [POLAR_JOINTS * POLAR_JOINTS]: the result */
void polar_mass_matrix(const double *q, double *D);

/* C(q, qd) of Christoffel symbols, row by row
 * q [POLAR_JOINTS]: positions, rad or m
 * qd [POLAR_JOINTS]: rates, rad/s or m/s
 * C [POLAR_JOINTS * POLAR_JOINTS]: the result */
void polar_coriolis_matrix(const double *q, const double *qd, double *C);

/* g(q), N m or N
 * q [POLAR_JOINTS]: positions, rad or m
 * g [POLAR_JOINTS]: the result */
void polar_gravity(const double *q, double *g);

#ifdef __cplusplus
}
#endif

#endif
