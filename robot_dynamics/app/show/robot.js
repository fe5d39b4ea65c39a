// SPDX-License-Identifier: Apache-2.0
"use strict";
/* The robot's equations, and the closing of its loops. This file does not depend on the page. */

const STRIDE = 0.05;     // rad, or fractions of the robot's size: the largest step in which loops are closed
const SHORTEST = STRIDE / 512;
const FARTHEST = 15;     // a state that is farther away is refused before anything is computed

const zeros = n => new Array(n).fill(0);
const unit = (n, k) => { const e = zeros(n); e[k] = 1; return e; };
const columns = (n, column) => {  // a matrix of rows from its columns
  const C = [];
  for (let k = 0; k < n; k++) C.push(column(unit(n, k)));
  return C.length ? C[0].map((_, i) => C.map(c => c[i])) : [];
};
const rows = (flat, width) => {
  const R = [];
  for (let i = 0; i < flat.length; i += width) R.push(flat.slice(i, i + width));
  return R;
};

/* Singular values, largest first: one-sided Jacobi rotations. */
function singularValues(M) {
  if (!M.length || !M[0].length) return [1];
  const tall = M.length >= M[0].length ? M.map(r => r.slice()) : M[0].map((_, j) => M.map(r => r[j]));
  const n = tall[0].length;
  for (let sweep = 0; sweep < 40; sweep++) {
    let turned = 0;
    for (let p = 0; p < n; p++) for (let q = p + 1; q < n; q++) {
      let a = 0, b = 0, c = 0;
      for (const r of tall) { a += r[p] * r[p]; b += r[q] * r[q]; c += r[p] * r[q]; }
      if (!(Math.abs(c) > 1e-15 * Math.sqrt(a * b))) continue;
      turned++;
      const z = (b - a) / (2 * c), t = Math.sign(z || 1) / (Math.abs(z) + Math.hypot(1, z));
      const cs = 1 / Math.hypot(1, t), sn = cs * t;
      for (const r of tall) { const x = r[p]; r[p] = cs * x - sn * r[q]; r[q] = sn * x + cs * r[q]; }
    }
    if (!turned) break;
  }
  const s = [];
  for (let j = 0; j < n; j++) s.push(Math.sqrt(tall.reduce((sum, r) => sum + r[j] * r[j], 0)));
  return s.sort((x, y) => y - x);
}
const conditionOf = M => { const s = singularValues(M); return s[0] / s[s.length - 1]; };

class Robot {
  constructor(data, programs) {
    this.data = data;
    this.programs = programs;
    this.joint_names = data.joint_names.slice();
    this.actuated_names = data.actuated_names.slice();
    this.world = [...data.gravity, 0];
    this.closed = data.closed;      // null for an open chain
    if (this.closed) this.reset(this.closed.home, this.closed.mode);
  }

  /* tau = D(q) qdd + C(q, qd) qd + g(q) + friction(q, qd), in the order of actuated_names. */
  torques(q, qd, qdd) {
    const at = this.at(q, qd, qdd, this.last);
    this.last = at.configuration;
    return at.torques();
  }

  /* Another closed configuration to start from: another assembly mode. */
  reset(home, mode) {
    this.home = home.slice();
    this.mode = mode;
    this.last = this.home;
  }

  /* The robot at one state; from: the closed configuration (n_r,) to start from. */
  at(q, qd, qdd, from) {
    const n = this.joint_names.length;
    for (const [name, x] of [["q", q], ["qd", qd], ["qdd", qdd]]) {
      const found = x && Array.from(x, Number);
      if (!found || found.length !== n || !found.every(Number.isFinite))
        throw new Error(`${name}: expected ${n} finite numbers, one for each of ${this.joint_names.join(", ")}`);
    }
    return new State(this, Array.from(q, Number), Array.from(qd, Number), Array.from(qdd, Number), from);
  }

  /* q_r (n_r,) with the loops closed at q, reached from a closed configuration. */
  close(q, from) {
    try {
      return this.checked(this.walk(q, from));
    } catch (failure) {
      if (from === this.home) throw failure;
      return this.checked(this.walk(q, this.home));
    }
  }

  walk(q, from) {
    const c = this.closed, k = q.length;
    if (k > c.actuated) return this.read(q, from);
    const way = q.map((x, i) => {
      const d = x - from[i];
      return c.wraps[i] ? d - 2 * Math.PI * Math.round(d / (2 * Math.PI)) : d;
    });
    const length = Math.max(0, ...way.map((d, i) => Math.abs(d) / c.scale[i]));
    if (!(length <= FARTHEST)) throw new Error(`${this.named(q)}: too far from the last state; pass intermediate states`);
    let here = from, reached = 0, step = Math.min(1, STRIDE / Math.max(length, STRIDE));
    const longest = step, least = length ? SHORTEST / Math.max(length, STRIDE) : 1;
    while (reached < 1) {
      const ahead = step >= 1 - reached ? 1 : reached + step;
      const aim = ahead === 1 ? q : way.map((d, i) => from[i] + d * ahead);
      const next = this.newton(aim, here.slice(k));
      if (!next) {
        step /= 2;
        if (step < least) {
          throw new Error(`${this.named(q)}: the loops don't close there: the path ends at ` +
            `${this.named(here.slice(0, k))}; it is out of reach or beyond a singularity`);
        }
        continue;
      }
      here = next; reached = ahead; step = Math.min(2 * step, longest);
    }
    return here;
  }

  /* As walk, from the first of these configurations that leads there; null: none does. */
  reached(q, ...starts) {
    for (const from of starts) {
      try { return this.walk(q, from); } catch { /* not this way */ }
    }
    return null;
  }

  /* The configurations with places[i] for motor k, or null where the loops don't close, one per step as
     [i, q_r]: outwards from where the motor is, each place from its neighbour, else from home. */
  *along(k, q, places, from) {
    const turn = this.closed.wraps[k] ? 2 * Math.PI : Infinity;
    const away = places.map(x => x - from[k] - (turn < Infinity ? turn * Math.round((x - from[k]) / turn) : 0));
    const order = places.map((_, i) => i).sort((i, j) => Math.abs(away[i]) - Math.abs(away[j]));
    for (const sign of [1, -1]) {
      let here = from;
      for (const i of order.filter(i => (away[i] < 0) === (sign < 0))) {
        const aim = q.map((x, j) => j === k ? places[i] : x);
        here = this.reached(aim, ...(here ? [here] : []), this.home);
        yield [i, here];
      }
    }
  }

  /* Readings may be inconsistent: first follow the motors, then fit the others. */
  read(q, from) {
    const here = this.walk(q.slice(0, this.closed.actuated), from);
    const next = this.newton(q, here.slice(q.length));
    if (!next) throw new Error(`${this.named(q)}: the readings are inconsistent; a sensor may be wrong`);
    return next;
  }

  /* Consistent [q, qd, qdd] of motors and sensors, from those of the motors. */
  agreeing(q, qd, qdd, from) {
    const a = q.length, k = this.joint_names.length, n = from.length, scale = this.closed.scale;
    const q_r = this.walk(q, from), J = rows(this.programs.jacobian(q_r, this.world), n);
    const off = J.map(r => -qd.reduce((sum, x, i) => sum + r[i] * x / scale[i], 0));
    const rest = solve(J.map(r => r.slice(a)), off) || zeros(n - a);
    const rates = [...qd, ...rest.slice(0, k - a).map((x, i) => x * scale[a + i])];
    return [q_r.slice(0, k), rates, [...qdd, ...this.programs.sensed_accelerations(q_r, rates, qdd, this.world)]];
  }

  newton(q, u) {
    const P = this.programs, closing = q.length === this.joint_names.length ? P.closing : P.motors_closing;
    const [guard, nearness, orientation, ...found] = closing(q, u, this.world);
    return guard <= 1 && orientation === this.mode && found.every(Number.isFinite) ? found : null;
  }

  checked(q_r) {
    const k = this.joint_names.length;
    const nearness = this.programs.closing(q_r.slice(0, k), q_r.slice(k), this.world)[1];
    if (!(nearness <= 1)) {
      const condition = this.condition(q_r);
      if (!(condition <= this.closed.condition_limit))
        throw new Error(`${this.named(q_r.slice(0, k))}: too near a singularity: the passive Jacobian's ` +
          `condition number is ${condition.toPrecision(3)}, the limit ${this.closed.condition_limit}`);
    }
    return q_r;
  }

  /* The condition number of the passive Jacobian: the largest of the sets of loops that share joints. */
  condition(q_r) {
    const J = rows(this.programs.jacobian(q_r, this.world), q_r.length);
    return Math.max(1, ...this.closed.parts.map(([r, c]) => conditionOf(r.map(i => c.map(j => J[i][j])))));
  }

  named(q) {
    return q.map((x, i) => `${this.joint_names[i]}=${+x.toPrecision(6)}`).join(", ");
  }
}

function solve(A, b) {  // square, by elimination with pivots; null: singular
  const n = b.length, M = A.map((r, i) => [...r, b[i]]);
  if (M.length !== n || (n && M[0].length !== n + 1)) return null;
  for (let k = 0; k < n; k++) {
    let best = k;
    for (let i = k + 1; i < n; i++) if (Math.abs(M[i][k]) > Math.abs(M[best][k])) best = i;
    if (!(Math.abs(M[best][k]) > 1e-12)) return null;
    [M[k], M[best]] = [M[best], M[k]];
    for (let i = k + 1; i < n; i++) {
      const f = M[i][k] / M[k][k];
      for (let j = k; j <= n; j++) M[i][j] -= f * M[k][j];
    }
  }
  const x = zeros(n);
  for (let k = n - 1; k >= 0; k--) {
    let s = M[k][n];
    for (let j = k + 1; j < n; j++) s -= M[k][j] * x[j];
    x[k] = s / M[k][k];
  }
  return x;
}

class State {
  constructor(robot, q, qd, qdd, from) {
    this.robot = robot; this.q = q; this.qd = qd; this.qdd = qdd;
    const P = robot.programs;
    this.configuration = robot.closed ? robot.close(q, from) : q;
    if (robot.closed) {
      const moving = P.motion(this.configuration, qd, qdd, robot.world);
      this.rates = moving.slice(0, this.configuration.length);
    } else this.rates = qd;
    const tree = robot.data.tree;    // indices of the tree's joints in the configuration
    this.tree = tree.map(i => this.configuration[i]);
    this.treeRates = tree.map(i => this.rates[i]);
  }
  torques() { return this.robot.programs.torques(this.configuration, this.qd, this.qdd, this.robot.world); }
  share(term) { return this.robot.programs["of_" + term](this.configuration, this.qd, this.qdd, this.robot.world); }
  gravity() { return this.robot.programs.gravity(this.configuration, this.robot.world); }
  massMatrix() {
    return rows(this.robot.programs.mass_matrix(this.configuration, this.robot.world), this.q.length);
  }
  coriolisMatrix() {
    const P = this.robot.programs, w = this.robot.world;
    if (this.robot.closed) return columns(this.q.length, e => P.coriolis_column(this.configuration, this.qd, e, w));
    // C e_j = ¼ [b(qd + e_j) - b(qd - e_j)]
    return columns(this.q.length, e => {
      const ahead = P.bias(this.q, this.qd.map((x, i) => x + e[i]), w);
      const behind = P.bias(this.q, this.qd.map((x, i) => x - e[i]), w);
      return ahead.map((x, i) => (x - behind[i]) / 4);
    });
  }
  poses() { return this.robot.programs.poses(this.tree); }
  kinetic() { return this.robot.programs.kinetic(this.tree, this.treeRates, this.robot.world)[0]; }
  potential() {
    const { world, data, programs } = this.robot, at = 12 * data.load_place + 9;
    const p = this.poses();
    const payload = data.load_place < 0 ? 0 : world[0] * p[at] + world[1] * p[at + 1] + world[2] * p[at + 2];
    return programs.potential(this.tree, world)[0] - world[3] * payload;
  }
  /* Σ τ·q̇ of the motors */
  power() {
    const motors = this.robot.data.motors;
    return this.torques().reduce((sum, tau, i) => sum + tau * this.rates[motors[i]], 0);
  }
  condition() { return this.robot.closed ? this.robot.condition(this.configuration) : conditionOf(this.massMatrix()); }
}
