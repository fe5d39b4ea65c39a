// SPDX-License-Identifier: Apache-2.0
/* The robot in 3-D: by WebGL if available, else on a plain canvas. No library, which keeps the page small. */

const V = {
  sub: (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]],
  add: (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]],
  scale: (a, s) => [a[0] * s, a[1] * s, a[2] * s],
  dot: (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2],
  cross: (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]],
  norm: a => Math.hypot(a[0], a[1], a[2]),
  unit: a => { const n = Math.hypot(a[0], a[1], a[2]) || 1; return [a[0] / n, a[1] / n, a[2] / n]; },
};
/* Poses are 12 numbers: the rows of R, then p. Matrices are 16, column by column. */
const IDENTITY = [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0];
const apply = (P, v) => [
  P[0] * v[0] + P[1] * v[1] + P[2] * v[2] + P[9],
  P[3] * v[0] + P[4] * v[1] + P[5] * v[2] + P[10],
  P[6] * v[0] + P[7] * v[1] + P[8] * v[2] + P[11]];
const turn = (P, v) => V.sub(apply(P, v), [P[9], P[10], P[11]]);
const compose = (A, B) => {
  const c = [0, 1, 2].map(j => turn(A, [B[j], B[3 + j], B[6 + j]]));
  return [c[0][0], c[1][0], c[2][0], c[0][1], c[1][1], c[2][1], c[0][2], c[1][2], c[2][2],
    ...apply(A, [B[9], B[10], B[11]])];
};
const matrix = (P, s = [1, 1, 1]) => [
  P[0] * s[0], P[3] * s[0], P[6] * s[0], 0, P[1] * s[1], P[4] * s[1], P[7] * s[1], 0,
  P[2] * s[2], P[5] * s[2], P[8] * s[2], 0, P[9], P[10], P[11], 1];
const product = (A, B) => {
  const C = new Array(16);
  for (let j = 0; j < 4; j++) for (let i = 0; i < 4; i++) {
    let s = 0;
    for (let k = 0; k < 4; k++) s += A[4 * k + i] * B[4 * j + k];
    C[4 * j + i] = s;
  }
  return C;
};
const along = (from, to) => {  // the pose at from whose z points to `to`
  const z = V.unit(V.sub(to, from));
  const x = V.unit(V.cross(Math.abs(z[0]) < 0.9 ? [1, 0, 0] : [0, 1, 0], z)), y = V.cross(z, x);
  return [x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2], ...from];
};

/* --- meshes: {p: positions, n: normals, i: triangles} ------------------------------------------ */

function lathe(profile, segments) {  // [[r, z, nr, nz], …] turned about z
  const p = [], n = [], i = [];
  for (let s = 0; s <= segments; s++) {
    const a = 2 * Math.PI * s / segments, c = Math.cos(a), d = Math.sin(a);
    for (const [r, z, nr, nz] of profile) { p.push(r * c, r * d, z); n.push(nr * c, nr * d, nz); }
  }
  const m = profile.length;
  for (let s = 0; s < segments; s++) for (let k = 0; k + 1 < m; k++) {
    const a = s * m + k, b = a + m;
    i.push(a, b, a + 1, b, b + 1, a + 1);
  }
  return { p, n, i };
}
function block() {
  const p = [], n = [], i = [];
  for (let axis = 0; axis < 3; axis++) for (const side of [-1, 1]) {
    const at = p.length / 3;
    for (const [u, v] of [[-1, -1], [1, -1], [1, 1], [-1, 1]]) {
      const x = [0, 0, 0];
      x[axis] = side / 2; x[(axis + 1) % 3] = u / 2; x[(axis + 2) % 3] = v / 2;
      const m = [0, 0, 0]; m[axis] = side;
      p.push(...x); n.push(...m);
    }
    i.push(...(side > 0 ? [0, 1, 2, 0, 2, 3] : [0, 2, 1, 0, 3, 2]).map(k => at + k));
  }
  return { p, n, i };
}
const ball = (fine, rings) => lathe(Array.from({ length: rings + 1 }, (_, k) => {
  const a = -Math.PI / 2 + Math.PI * k / rings;
  return [Math.cos(a), Math.sin(a), Math.cos(a), Math.sin(a)];
}), fine);
const BEVEL = 0.12;
const PRIMITIVES = {
  tube: lathe([[1, -0.5, 1, 0], [1, 0.5, 1, 0]], 20),
  cylinder: lathe([[0, -0.5, 0, -1], [1 - BEVEL, -0.5, 0, -1], [1 - BEVEL, -0.5, 0.3, -0.95], [1, -0.5 + BEVEL / 2.4, 0.95, -0.3],
    [1, -0.5 + BEVEL / 2.4, 1, 0], [1, 0.5 - BEVEL / 2.4, 1, 0], [1, 0.5 - BEVEL / 2.4, 0.95, 0.3], [1 - BEVEL, 0.5, 0.3, 0.95],
    [1 - BEVEL, 0.5, 0, 1], [0, 0.5, 0, 1]], 28),
  cone: lathe([[0, 0, 0, -1], [1, 0, 0, -1], [1, 0, 0.9, 0.4], [0, 1, 0.9, 0.4]], 20),
  sphere: ball(22, 12),
  box: block(),
  disc: lathe([[0, 0, 0, 1], [1, 0, 0, 1]], 72),
  ring: lathe(Array.from({ length: 13 }, (_, k) => {
    const a = 2 * Math.PI * k / 12;
    return [1 + 0.09 * Math.cos(a), 0.09 * Math.sin(a), Math.cos(a), Math.sin(a)];
  }), 40),
};
function arc(angle, thick) {  // about z, radius 1, from x on, with a head
  const p = [], n = [], i = [], steps = Math.max(6, Math.ceil(Math.abs(angle) * 9)), round = 8;
  const sign = Math.sign(angle), head = Math.min(0.45, Math.abs(angle) * 0.6), shaft = Math.abs(angle) - head;
  const put = (a, r) => {
    for (let k = 0; k <= round; k++) {
      const b = 2 * Math.PI * k / round, out = Math.cos(b), up = Math.sin(b);
      const c = Math.cos(sign * a), s = Math.sin(sign * a);
      p.push((1 + r * out) * c, (1 + r * out) * s, r * up); n.push(out * c, out * s, up);
    }
  };
  for (let k = 0; k <= steps; k++) put(shaft * k / steps, thick);
  put(shaft, 2.6 * thick); put(shaft + head, 0.0001);
  const ringsCount = steps + 3, m = round + 1;
  for (let r = 0; r + 1 < ringsCount; r++) for (let k = 0; k < round; k++) {
    const a = r * m + k, b = a + m;
    i.push(a, b, a + 1, b, b + 1, a + 1);
  }
  return { p, n, i };
}

/* --- drawing ------------------------------------------------------------------------------------ */

const VERTEX = `attribute vec3 p; attribute vec3 n; uniform mat4 m; uniform mat4 vp; varying vec3 wn; varying vec3 wp;
void main() { vec4 w = m * vec4(p, 1.0); wp = w.xyz; wn = mat3(m) * n; gl_Position = vp * w; }`;
/* mat3(m) n changes the normals of stretched shapes, which are only stretched along or across their axis */
const FRAGMENT = `precision mediump float; varying vec3 wn; varying vec3 wp;
uniform vec4 colour; uniform vec3 eye; uniform vec3 up; uniform vec3 light; uniform float flat_; uniform vec4 fade;
void main() {
  if (flat_ > 0.5) {
    float a = fade.w > 0.0 ? smoothstep(1.0, 0.25, distance(wp, fade.xyz) / fade.w) : 1.0;
    gl_FragColor = vec4(colour.rgb, 1.0) * (colour.a * a); return;
  }
  vec3 N = normalize(wn), E = normalize(eye - wp);
  if (dot(N, E) < 0.0) N = -N;
  float sky = 0.5 + 0.5 * dot(N, up), lamp = max(dot(N, light), 0.0);
  float shine = pow(max(dot(N, normalize(light + E)), 0.0), 40.0);
  float rim = pow(1.0 - max(dot(N, E), 0.0), 3.0);
  gl_FragColor = vec4(colour.rgb * (0.34 + 0.30 * sky + 0.46 * lamp) + vec3(0.20 * shine) - colour.rgb * 0.22 * rim, 1.0);
}`;

class Painter {
  constructor(canvas) {
    this.canvas = canvas;
    const choices = { antialias: true, alpha: true, preserveDrawingBuffer: true };
    const gl = this.gl = canvas.getContext("webgl", choices);
    if (!gl) { this.flat = canvas.getContext("2d"); return; }
    const shader = (kind, text) => {
      const s = gl.createShader(kind);
      gl.shaderSource(s, text); gl.compileShader(s);
      return s;
    };
    const program = this.program = gl.createProgram();
    gl.attachShader(program, shader(gl.VERTEX_SHADER, VERTEX));
    gl.attachShader(program, shader(gl.FRAGMENT_SHADER, FRAGMENT));
    gl.bindAttribLocation(program, 0, "p"); gl.bindAttribLocation(program, 1, "n");
    gl.linkProgram(program); gl.useProgram(program);
    this.at = {};
    for (const name of ["m", "vp", "colour", "eye", "up", "light", "flat_", "fade"]) this.at[name] = gl.getUniformLocation(program, name);
    gl.enable(gl.DEPTH_TEST); gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.enableVertexAttribArray(0); gl.enableVertexAttribArray(1);
    this.wide = gl.getExtension("OES_element_index_uint");
  }
  paint(things, camera) {
    if (this.gl) this.paintLit(things, camera); else this.paintFlat(things, camera);
  }
  buffers(mesh) {
    const gl = this.gl;
    if (mesh.owner !== this || mesh.fresh) {
      if (mesh.owner === this) for (const b of mesh.buffers) gl.deleteBuffer(b);
      const fill = (kind, data) => { const b = gl.createBuffer(); gl.bindBuffer(kind, b); gl.bufferData(kind, data, gl.STATIC_DRAW); return b; };
      mesh.buffers = [fill(gl.ARRAY_BUFFER, new Float32Array(mesh.p)), fill(gl.ARRAY_BUFFER, new Float32Array(mesh.n)),
        fill(gl.ELEMENT_ARRAY_BUFFER, mesh.p.length > 3 * 65535 ? new Uint32Array(mesh.i) : new Uint16Array(mesh.i))];
      mesh.owner = this; mesh.fresh = false;
    }
    return mesh.buffers;
  }
  paintLit(things, camera) {
    const gl = this.gl, at = this.at;
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.uniformMatrix4fv(at.vp, false, camera.matrix);
    gl.uniform3fv(at.eye, camera.eye); gl.uniform3fv(at.up, camera.up); gl.uniform3fv(at.light, camera.light);
    for (const t of things) {
      const [p, n, i] = this.buffers(t.mesh);
      gl.bindBuffer(gl.ARRAY_BUFFER, p); gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
      gl.bindBuffer(gl.ARRAY_BUFFER, n); gl.vertexAttribPointer(1, 3, gl.FLOAT, false, 0, 0);
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, i);
      gl.uniformMatrix4fv(at.m, false, t.matrix);
      gl.uniform4fv(at.colour, t.colour);
      gl.uniform1f(at.flat_, t.flat ? 1 : 0);
      gl.uniform4fv(at.fade, t.fade || [0, 0, 0, 0]);
      gl.depthMask(!t.behind);
      if (t.lifted) { gl.enable(gl.POLYGON_OFFSET_FILL); gl.polygonOffset(-1, -1 * t.lifted); } else gl.disable(gl.POLYGON_OFFSET_FILL);
      gl.drawElements(gl.TRIANGLES, t.mesh.i.length, t.mesh.p.length > 3 * 65535 ? gl.UNSIGNED_INT : gl.UNSIGNED_SHORT, 0);
    }
    gl.depthMask(true);
  }
  paintFlat(things, camera) {  // far triangles first
    const c = this.flat, w = this.canvas.width, h = this.canvas.height, list = [];
    c.clearRect(0, 0, w, h);
    for (const t of things) {
      const m = product(camera.matrix, t.matrix), p = t.mesh.p, s = [], world = t.matrix;
      for (let k = 0; k < p.length; k += 3) {
        const q = [0, 1, 2, 3].map(r => m[r] * p[k] + m[4 + r] * p[k + 1] + m[8 + r] * p[k + 2] + m[12 + r]);
        s.push(q[3] > 0 ? [(1 + q[0] / q[3]) * w / 2, (1 - q[1] / q[3]) * h / 2, q[3]] : null);
      }
      const place = k => [0, 1, 2].map(r => world[r] * p[3 * k] + world[4 + r] * p[3 * k + 1] + world[8 + r] * p[3 * k + 2] + world[12 + r]);
      for (let k = 0; k < t.mesh.i.length; k += 3) {
        const [i, j, l] = t.mesh.i.slice(k, k + 3), [a, b, d] = [s[i], s[j], s[l]];
        if (!a || !b || !d) continue;
        let bright = 1;
        if (!t.flat) {
          const A = place(i);
          let N = V.unit(V.cross(V.sub(place(j), A), V.sub(place(l), A)));
          if (V.dot(N, V.sub(camera.eye, A)) < 0) N = V.scale(N, -1);
          bright = 0.34 + 0.3 * (0.5 + 0.5 * V.dot(N, camera.up)) + 0.46 * Math.max(0, V.dot(N, camera.light));
        }
        list.push([t.flat ? 1e9 - list.length : (a[2] + b[2] + d[2]) / 3, a, b, d, t.colour, bright]);
      }
    }
    list.sort((x, y) => y[0] - x[0]);
    for (const [, a, b, d, colour, bright] of list) {
      const [r, g, u] = colour.map(x => Math.round(255 * Math.min(1, x * bright)));
      c.fillStyle = c.strokeStyle = `rgba(${r},${g},${u},${colour[3]})`;
      c.beginPath(); c.moveTo(a[0], a[1]); c.lineTo(b[0], b[1]); c.lineTo(d[0], d[1]); c.closePath(); c.fill(); c.stroke();
    }
  }
}

/* --- the robot --------------------------------------------------------------------------------- */

const rgb = (text, alpha = 1) => {
  const n = parseInt(text.trim().replace("#", ""), 16);
  return [(n >> 16 & 255) / 255, (n >> 8 & 255) / 255, (n & 255) / 255, alpha];
};
function palette() {
  const style = getComputedStyle(document.documentElement);
  const of = (name, alpha) => rgb(style.getPropertyValue("--" + name) || "#888888", alpha);
  return {
    platform: of("platform"), rod: of("rod"), motor: of("a"), passive: of("faint"), sensed: of("c"), follows: of("e"), end: of("b"), body: of("metal"),
    mass: of("d"), ground: of("ground"), shade: of("shade"), rotor: of("rotor"), ink: style.getPropertyValue("--ink").trim(),
    paper: style.getPropertyValue("--paper").trim(), torque: of("a"), x: of("x"), y: of("c"), z: of("b"), grid: of("line"),
  };
}

class View {
  constructor(canvas, labels, scene, gravity, painter = new Painter(canvas)) {
    this.canvas = canvas; this.labels = labels; this.scene = scene;
    this.painter = painter;
    this.shown = { shadow: true, links: true, meshes: true, joints: true, frames: false, masses: false, motors: true, torques: true, names: false };
    this.poses = null; this.torques = null;
    this.up = V.norm(gravity) > 1e-9 ? V.unit(V.scale(gravity, -1)) : [0, 0, 1];
    for (const link of scene.links) for (const mesh of link.meshes) decode(mesh);
    this.camera = null;
    this.covered = 0;  // the fraction of the height, from below, in which nothing should be
  }
  at(link) { return link < 0 ? IDENTITY : this.poses.slice(12 * link, 12 * link + 12); }
  points() {  // the points that must be visible
    const found = [[0, 0, 0]], s = this.scene;
    for (const link of s.links) {
      const P = this.at(link.index);
      if (link.index >= 0) found.push([P[9], P[10], P[11]]);
      for (const shape of link.shapes) {
        const Q = compose(P, shape.pose), half = shape.part === "body" ? shape.size[1] / 2 : 0;
        for (const z of [-half, half]) found.push(apply(Q, [0, 0, z]));
      }
      for (const mesh of link.meshes) for (const corner of mesh.corners) found.push(apply(P, corner));
    }
    return found;
  }
  frame(several) {  // the camera that sees all points
    const all = several || this.points();
    const low = [0, 1, 2].map(k => Math.min(...all.map(p => p[k]))), high = [0, 1, 2].map(k => Math.max(...all.map(p => p[k])));
    this.target = V.scale(V.add(low, high), 0.5);
    const spread = Math.max(V.norm(V.sub(high, low)), 6 * this.scene.width);
    this.size = spread;
    this.floor = Math.min(0, ...all.map(p => V.dot(p, this.up))) - 0.02 * spread;
    if (!this.camera) {
      const axes = this.scene.joints.filter(j => j.turns).map(j => { const P = this.at(j.parent), a = j.axis; return turn(P, [a[2], a[5], a[8]]); });
      const plane = axes.length && axes.every(a => V.norm(V.cross(a, axes[0])) < 1e-6);
      const side = plane && Math.abs(V.dot(axes[0], this.up)) < 0.5;
      // from the side of x, or, for a planar robot, from the front
      const front = side ? V.scale(axes[0], Math.sign(V.dot(axes[0], [0.3, 1e-3, 1])) || 1) : [0.62, -0.78, 0.3];
      const flat = V.sub(front, V.scale(this.up, V.dot(front, this.up)));
      const first = this.basis();
      this.camera = { azimuth: Math.atan2(V.dot(flat, first[1]), V.dot(flat, first[0])) + (side ? 0.25 : 0),
        elevation: side ? 0.2 : plane ? 1.0 : 0.42, distance: 0 };
    }
    this.camera.distance = 1.65 * spread;
  }
  basis() {
    const u = this.up, x = V.unit(V.cross(Math.abs(u[1]) < 0.9 ? [0, 1, 0] : [0, 0, 1], u));
    return [x, V.cross(u, x), u];
  }
  look() {
    const { azimuth, elevation, distance } = this.camera, [x, y, u] = this.basis();
    const out = V.add(V.add(V.scale(x, Math.cos(elevation) * Math.cos(azimuth)), V.scale(y, Math.cos(elevation) * Math.sin(azimuth))), V.scale(u, Math.sin(elevation)));
    const eye = V.add(this.target, V.scale(out, distance));
    const right = V.unit(V.cross(u, out)), top = V.cross(out, right);
    const view = [right[0], top[0], out[0], 0, right[1], top[1], out[1], 0, right[2], top[2], out[2], 0,
      -V.dot(right, eye), -V.dot(top, eye), -V.dot(out, eye), 1];
    const w = this.canvas.width, h = this.canvas.height, free = 1 - this.covered, f = 1 / Math.tan(0.33) * Math.min(free, w / h / 1.1), near = distance / 60, far = distance * 30;
    const lens = [f * h / w, 0, 0, 0, 0, f, 0, 0, 0, -this.covered, (far + near) / (near - far), -1, 0, 0, 2 * far * near / (near - far), 0];
    return { matrix: product(lens, view), eye, right, top, up: u,
      light: V.unit(V.add(V.add(V.scale(u, 1.0), V.scale(out, 0.55)), V.scale(right, -0.5))) };
  }
  draw() {
    if (!this.poses) return;
    const c = this.colours = this.colours || palette(), s = this.scene, on = this.shown, things = [];
    const add = (mesh, P, scale, colour, more) => things.push({ mesh, matrix: matrix(P, scale), colour, ...more });
    const w = s.width;
    for (const link of s.links) {
      const P = this.at(link.index), meshes = on.meshes && link.meshes.length;
      const metal = link.index === s.platform ? c.platform : c.body;
      if (meshes && on.links) for (const mesh of link.meshes) things.push({ mesh, matrix: matrix(P), colour: mesh.colour || metal, solid: true });
      for (const shape of link.shapes) {
        const Q = compose(P, shape.pose), [a, b, d] = shape.size;
        if (shape.part === "body") {
          if (!on.links || meshes) continue;
          const thick = 1.4 * a;
          add(PRIMITIVES.tube, Q, [thick, thick, b], metal, { solid: true });
          for (const end of [-0.5, 0.5]) add(PRIMITIVES.sphere, compose(Q, [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, end * b]), [thick, thick, thick], metal, { solid: true });
        } else if (shape.part === "joint") {
          if (!on.joints || meshes) continue;
          const joint = s.joints.find(j => j.name === shape.joint), colour = joint ? c[joint.role] : c.motor;
          const k = joint && joint.role === "passive" ? 0.72 : 1;
          if (shape.kind === "cylinder") add(PRIMITIVES.cylinder, Q, [1.25 * a * k, 1.25 * a * k, b * k], colour, { solid: true });
          else add(PRIMITIVES.box, Q, [a * k, b * k, d * k], colour, { solid: true });
        } else if (on.joints) add(PRIMITIVES.sphere, Q, [a, a, a], c.end, { solid: true });
      }
      if (on.frames) {
        const L = 0.09 * this.size, t = 0.003 * this.size;
        [["x", [0, 3, 6]], ["y", [1, 4, 7]], ["z", [2, 5, 8]]].forEach(([name, k]) => {
          const from = [P[9], P[10], P[11]], way = [P[k[0]], P[k[1]], P[k[2]]], to = V.add(from, V.scale(way, L));
          this.arrow(things, from, to, t, c[name]);
        });
      }
    }
    // the parts that slide in and out
    if (on.links) for (const j of s.joints) {
      const link = s.links.find(l => l.index === j.link), marker = link.shapes.find(x => x.joint === j.name);
      if (j.turns || !marker || (on.meshes && link.meshes.length)) continue;
      const A = compose(this.at(j.parent), j.axis), B = compose(this.at(j.link), marker.pose);
      const from = [A[9], A[10], A[11]], to = [B[9], B[10], B[11]], L = V.norm(V.sub(to, from)), r = 0.42 * w;
      if (L > 0.1 * w) add(PRIMITIVES.tube, compose(along(from, to), [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, L / 2]), [r, r, L], c.rod, { solid: true });
    }
    if (on.axes) for (const j of s.joints) {
      const P = compose(this.at(j.parent), j.axis), z = [P[2], P[5], P[8]], o = [P[9], P[10], P[11]];
      this.arrow(things, V.sub(o, V.scale(z, 0.1 * this.size)), V.add(o, V.scale(z, 0.16 * this.size)), 0.0025 * this.size, c[j.role]);
    }
    if (on.masses) {
      const heaviest = Math.max(...s.bodies.map(b => b.mass), 1e-9);
      for (const b of s.bodies) {
        const r = 0.028 * this.size * Math.cbrt(Math.max(b.mass / heaviest, 0.02)), at = apply(this.at(b.link), b.at);
        add(PRIMITIVES.sphere, [1, 0, 0, 0, 1, 0, 0, 0, 1, ...at], [r, r, r], c.mass);
      }
    }
    if (on.motors) for (const m of s.motors) {
      const P = compose(this.at(m.link), m.pose);
      add(PRIMITIVES.cylinder, P, [1.05 * w, 1.05 * w, 1.3 * w], c.rotor, { solid: true });
      add(PRIMITIVES.ring, P, [1.1 * w, 1.1 * w, 1.1 * w], c.motor, { solid: true });
    }
    if (on.torques && this.torques) this.drawTorques(things, c);
    const ground = this.ground(c), camera = this.look();
    const shadows = on.shadow ? this.shadows(things, c) : [];
    this.painter.paint([...ground, ...shadows, ...things], camera);
    this.drawNames(camera);
  }
  arrow(things, from, to, t, colour) {
    const L = V.norm(V.sub(to, from)), head = Math.min(6 * t, 0.5 * L), P = along(from, to);
    if (!(L > 0)) return;
    const shift = z => compose(P, [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, z]);
    things.push({ mesh: PRIMITIVES.tube, matrix: matrix(shift((L - head) / 2), [t, t, L - head]), colour });
    things.push({ mesh: PRIMITIVES.cone, matrix: matrix(shift(L - head), [2.6 * t, 2.6 * t, head]), colour });
  }
  drawTorques(things, c) {  // round arrows about the axes, straight ones along them
    const s = this.scene;
    this.arcs = this.arcs || {};
    for (const { joint, share } of this.torques) {
      const j = s.joints.find(x => x.name === joint);
      if (!j || !(Math.abs(share) > 0.004)) continue;
      const P = compose(this.at(j.parent), j.axis);
      if (j.turns) {
        const angle = Math.max(-1, Math.min(1, share)) * 5.2, mesh = this.arcs[joint] = this.arcs[joint] || {};
        Object.assign(mesh, arc(Math.abs(angle) < 0.25 ? 0.25 * Math.sign(angle) : angle, 0.045), { fresh: true });
        const r = Math.max(2.2 * s.width, 0.075 * this.size);
        things.push({ mesh, matrix: matrix(P, [r, r, r]), colour: c.torque });
      } else {
        const z = [P[2], P[5], P[8]], at = this.at(j.link), o = [at[9], at[10], at[11]];
        this.arrow(things, o, V.add(o, V.scale(z, 0.35 * this.size * Math.max(-1, Math.min(1, share)))), 0.008 * this.size, c.torque);
      }
    }
  }
  ground(c) {
    const [x, y, u] = this.basis(), o = V.add(V.sub(this.target, V.scale(u, V.dot(this.target, u))), V.scale(u, this.floor));
    const P = [x[0], y[0], u[0], x[1], y[1], u[1], x[2], y[2], u[2], ...o], R = 1.25 * this.size, fade = [...o, R];
    const found = [{ mesh: PRIMITIVES.disc, matrix: matrix(P, [R, R, 1]), colour: c.ground, flat: true, fade, behind: true }];
    // lines at a round distance
    const raw = this.size / 4, ten = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map(k => k * ten).find(k => k >= raw);
    const t = 0.0014 * this.size, count = Math.floor(R / step);
    const base = [Math.round(V.dot(o, x) / step) * step, Math.round(V.dot(o, y) / step) * step];
    for (let k = -count; k <= count; k++) for (const [a, b, d] of [[x, y, 0], [y, x, 1]]) {
      const at = V.add(V.add(V.scale(a, base[d] + k * step), V.scale(b, V.dot(o, b))), V.scale(u, this.floor));
      const Q = [b[0], a[0], u[0], b[1], a[1], u[1], b[2], a[2], u[2], ...at];
      found.push({ mesh: PRIMITIVES.box, matrix: matrix(Q, [2 * R, t, t / 4]), colour: c.grid, flat: true, fade, behind: true });
    }
    return found;
  }
  shadows(things, c) {
    const L = V.unit(V.add(this.up, V.add(V.scale(this.basis()[0], 0.25), V.scale(this.basis()[1], 0.15)))), u = this.up, k = V.dot(u, L), f = this.floor;
    // p - L (u·p - f) / (u·L)
    const S = [];
    for (let j = 0; j < 3; j++) for (let i = 0; i < 4; i++) S.push(i < 3 ? (i === j ? 1 : 0) - L[i] * u[j] / k : 0);
    S.push(L[0] * f / k, L[1] * f / k, L[2] * f / k, 1);
    return things.filter(t => t.solid).map(t => ({ mesh: t.mesh, matrix: product(S, t.matrix), colour: c.shade, flat: true, lifted: 2 }));
  }
  project(camera, p) {
    const m = camera.matrix, q = [0, 1, 3].map(r => m[r] * p[0] + m[4 + r] * p[1] + m[8 + r] * p[2] + m[12 + r]);
    return q[2] > 0 ? [(1 + q[0] / q[2]) / 2, (1 - q[1] / q[2]) / 2] : null;
  }
  drawNames(camera) {
    if (!this.labels) return;
    const g = this.labels.getContext("2d"), w = this.labels.width, h = this.labels.height, ratio = this.ratio || 1;
    g.clearRect(0, 0, w, h);
    if (!this.shown.names) return;
    g.font = `${13 * ratio}px system-ui, sans-serif`; g.textBaseline = "middle"; g.lineJoin = "round";
    const taken = [];
    for (const j of this.scene.joints) {
      if (j.role === "follows") continue;
      const P = compose(this.at(j.parent), j.axis), at = this.project(camera, [P[9], P[10], P[11]]);
      if (!at) continue;
      const text = j.name.length > 24 ? j.name.slice(0, 23) + "…" : j.name, width = g.measureText(text).width;
      const x = Math.min(at[0] * w + 14 * ratio, w - width - 4);
      let y = at[1] * h - 12 * ratio;
      while (taken.some(t => Math.abs(t[1] - y) < 15 * ratio && x < t[0] + t[2] && t[0] < x + width)) y += 15 * ratio;
      taken.push([x, y, width]);
      g.lineWidth = 4 * ratio; g.strokeStyle = this.colours.paper; g.strokeText(text, x, y);
      g.fillStyle = this.colours.ink; g.fillText(text, x, y);
    }
  }
  resize() {
    const box = this.canvas.getBoundingClientRect(), ratio = this.ratio = Math.min(window.devicePixelRatio || 1, 2);
    for (const c of [this.canvas, this.labels]) if (c) {
      const w = Math.max(1, Math.round(box.width * ratio)), h = Math.max(1, Math.round(box.height * ratio));
      if (c.width !== w || c.height !== h) { c.width = w; c.height = h; }
    }
  }
  listen(redraw) {
    const held = new Map(), el = this.canvas;
    el.addEventListener("contextmenu", e => e.preventDefault());
    el.addEventListener("pointerdown", e => { el.setPointerCapture(e.pointerId); held.set(e.pointerId, [e.clientX, e.clientY]); });
    const drop = e => held.delete(e.pointerId);
    el.addEventListener("pointerup", drop); el.addEventListener("pointercancel", drop);
    el.addEventListener("pointermove", e => {
      const before = held.get(e.pointerId);
      if (!before) return;
      const dx = e.clientX - before[0], dy = e.clientY - before[1];
      if (held.size === 2) {
        const other = [...held].find(([id]) => id !== e.pointerId)[1];
        const far = p => Math.hypot(p[0] - other[0], p[1] - other[1]);
        this.camera.distance *= Math.max(far(before), 1) / Math.max(far([e.clientX, e.clientY]), 1);
        this.pan(dx / 2, dy / 2);
      } else if (e.shiftKey || e.buttons & 6) this.pan(dx, dy);
      else {
        this.camera.azimuth -= dx * 0.008;
        this.camera.elevation = Math.max(-1.5, Math.min(1.55, this.camera.elevation + dy * 0.008));
      }
      held.set(e.pointerId, [e.clientX, e.clientY]);
      redraw();
    });
    el.addEventListener("wheel", e => {
      if (!e.ctrlKey && !el.matches(":focus")) return;
      e.preventDefault(); this.zoom(Math.exp(e.deltaY * 0.0015)); redraw();
    }, { passive: false });
    el.addEventListener("keydown", e => {
      const turns = { ArrowLeft: [0.1, 0], ArrowRight: [-0.1, 0], ArrowUp: [0, 0.08], ArrowDown: [0, -0.08] }[e.key];
      if (turns) { this.camera.azimuth += turns[0]; this.camera.elevation = Math.max(-1.5, Math.min(1.55, this.camera.elevation + turns[1])); }
      else if (e.key === "+" || e.key === "-") this.zoom(e.key === "+" ? 0.9 : 1.1);
      else return;
      e.preventDefault(); redraw();
    });
    el.addEventListener("dblclick", () => { this.camera = null; this.frame(); redraw(); });
  }
  zoom(by) { this.camera.distance = Math.max(0.15 * this.size, Math.min(12 * this.size, this.camera.distance * by)); }
  pan(dx, dy) {
    const { right, top } = this.look(), k = 0.7 * this.camera.distance / Math.max(this.canvas.clientHeight, 1);
    this.target = V.add(this.target, V.add(V.scale(right, -dx * k), V.scale(top, dy * k)));
  }
}

/* A mesh from the description's files: 16 bits per coordinate, within its bounding box. */
function decode(mesh) {
  const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer;
  const grid = new Uint16Array(bytes(mesh.points)), [low, high] = mesh.box;
  const p = [], n = [], i = [...new Uint16Array(bytes(mesh.triangles))];
  for (let k = 0; k < grid.length; k++) p.push(low[k % 3] + (high[k % 3] - low[k % 3]) * grid[k] / 65535);
  const corner = [];   // flat faces: each triangle has its own corners
  for (let k = 0; k < i.length; k += 3) {
    const [A, B, C] = [0, 1, 2].map(m => p.slice(3 * i[k + m], 3 * i[k + m] + 3));
    const N = V.unit(V.cross(V.sub(B, A), V.sub(C, A)));
    for (const X of [A, B, C]) { corner.push(...X); n.push(...N); }
  }
  mesh.p = corner; mesh.n = n; mesh.i = corner.length ? Array.from({ length: corner.length / 3 }, (_, k) => k) : [];
  mesh.corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]].map(s => [0, 1, 2].map(k => low[k] + s[k] * (high[k] - low[k])));
}
