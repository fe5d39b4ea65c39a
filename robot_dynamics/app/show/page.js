// SPDX-License-Identifier: Apache-2.0
/* Sliders, bars, tables and charts around `window.robot`. External names are text, never markup. */

(() => {
  const DATA = JSON.parse(document.getElementById("data").textContent);
  const robot = window.robot = new Robot(DATA, PROGRAMS);
  const scene = DATA.scene, joints = Object.fromEntries(scene.joints.map(j => [j.name, j]));
  const sensed = DATA.closed && DATA.closed.sensed;
  const own = sensed ? DATA.joint_names.slice(0, DATA.closed.actuated) : DATA.joint_names;   // the joints with sliders
  const n = own.length, $ = id => document.getElementById(id);
  const TERMS = { inertia: ["b", "inertia"], coriolis: ["d", "Coriolis, centrifugal"], gravity: ["c", "gravity"],
    friction: ["a", "friction"], rotors: ["e", "rotors"] };
  const view = new View($("view"), $("labels"), scene, DATA.gravity);
  const ui = { q: DATA.home.slice(0, n), qd: zeros(n), qdd: zeros(n), from: robot.closed ? robot.home : null, tab: "q", own_scale: false, family: "terms", all: false, whole: false,
    mode: 0, scale: {}, at: null };

  const make = (tag, attributes = {}, ...inner) => {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(attributes)) {
      if (k === "text") e.textContent = v;
      else if (k === "style" || k.startsWith("aria") || k.startsWith("data") || k === "for") e.setAttribute(k, v);
      else if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
      else e[k] = v;
    }
    e.append(...inner);
    return e;
  };
  const svg = (tag, attributes = {}, ...inner) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    e.append(...inner);
    return e;
  };
  /* An entry of a legend. */
  const swatch = (colour, label, more = "") => make("span", {}, make("i", { style: `--dot: var(--${colour})${more}` }), label);
  const pressed = (button, on) => button.setAttribute("aria-pressed", String(!!on));
  /* Four digits; what is only rounding next to `beside` becomes 0. */
  const NOTHING = 1e-12;
  const said = (x, beside = 0) => {
    if (!Number.isFinite(x)) return "–";
    if (Math.abs(x) <= 1e-9 * Math.abs(beside) || Math.abs(x) < NOTHING) return "0";
    const a = Math.abs(x);
    const text = a >= 1e6 || a < 1e-4 ? x.toExponential(2) : a >= 1000 ? x.toFixed(0) : String(+x.toPrecision(4));
    return text.replaceAll("-", "−");
  };
  const nice = x => { const t = 10 ** Math.floor(Math.log10(x || 1)); return [1, 2, 5, 10].map(k => k * t).find(k => k >= x * 0.999) || x; };
  /* What a bar that is full stands for, if x is the most that is shown. */
  const full = x => nice(x < NOTHING ? 1 : 1.05 * x);

  /* --- sliders ------------------------------------------------------------------------------- */

  const RANGE = { q: j => { const turn = j.turns ? Math.PI : reach(), middle = j.turns ? DATA.home[own.indexOf(j.name)] : 0; return [j.lower ?? middle - turn, j.upper ?? middle + turn]; },
    qd: j => { const v = j.velocity ?? (j.turns ? 3 : 1); return [-v, v]; },
    qdd: j => { const a = 2 * (j.velocity ?? (j.turns ? 3 : 1)); return [-a, a]; } };
  const reach = () => Math.max(1, 4 * scene.width);
  const PER = { q: "", qd: "/s", qdd: "/s²" };
  let rows_ = [];

  const CELLS = 72, limited = DATA.actuated_names.map(name => joints[name].effort ?? Infinity);
  const hasStrips = robot.closed || limited.some(Number.isFinite);
  function slider(name, unit, range, value, dot, marked, set) {
    const low = Math.min(range[0], value), high = Math.max(range[1], value);
    const number = make("input", { type: "number", step: "any", value: +value.toPrecision(5) });
    const track = make("input", { type: "range", min: low, max: high, step: "any", value });
    number.setAttribute("aria-label", `${name}, ${unit}`); track.setAttribute("aria-label", name);
    const ends = make("div", { className: "ends" }, make("span", { text: marked[0] ? said(range[0]) + " limit" : said(low) }), make("span", { text: marked[1] ? said(range[1]) + " limit" : said(high) }));
    const under = ui.tab === "q" && hasStrips && svg("svg", { class: "strip", viewBox: `0 0 ${CELLS} 1`, preserveAspectRatio: "none", role: "img" });
    const row = make("div", { className: "row" },
      make("span", { className: "name", text: name, title: name, style: `--dot: var(--${dot})` }),
      make("span", { className: "value" }, number, make("span", { className: "unit", text: unit })),
      make("div", { className: "track" }, track, ...(under ? [under] : []), ends));
    const show = (x, from) => {
      if (from !== number) number.value = Math.abs(x) < 1e-9 ? 0 : +x.toPrecision(5);
      if (from !== track) { track.min = Math.min(range[0], x); track.max = Math.max(range[1], x); track.value = x; }
      row.classList.toggle("beyond", (marked[0] && x < range[0] - 1e-12) || (marked[1] && x > range[1] + 1e-12));
    };
    for (const e of [track, number]) e.addEventListener("input", () => {
      const x = parseFloat(e.value);
      if (Number.isFinite(x)) { stop(); set(x); show(x, e); update(); }
    });
    show(value);
    return { row, show, under, unit, span: () => [+track.min, +track.max] };
  }

  function build() {
    for (const b of document.querySelectorAll("[data-tab]")) pressed(b, b.dataset.tab === ui.tab);
    const box = $("sliders");
    box.replaceChildren();
    rows_ = [];
    if (ui.tab === "world") {
      "xyz".split("").forEach((axis, k) => {
        const s = slider(`gravity ${axis}`, "m/s²", [-20, 20], robot.world[k], "faint", [], x => { robot.world[k] = x; });
        box.append(s.row);
      });
      const s = slider(`payload on ${DATA.load}`, "kg", [0, payloadRange()], robot.world[3], "d", [], x => { robot.world[3] = Math.max(0, x); });
      stripsLater();
      box.append(s.row, make("p", { className: "faint", text: `a point mass at the origin of ${DATA.load}'s frame` }));
      return;
    }
    own.forEach((name, k) => {
      const j = joints[name], range = RANGE[ui.tab](j);
      const marked = ui.tab === "q" ? [j.lower != null, j.upper != null] : ui.tab === "qd" ? [j.velocity != null, j.velocity != null] : [];
      const s = slider(name, (j.unit) + PER[ui.tab], range, ui[ui.tab][k], { motor: "a", sensed: "c" }[j.role] || "faint", marked, x => { ui[ui.tab][k] = x; });
      box.append(s.row);
      rows_.push(s);
    });
    stripsLater();
  }
  const payloadRange = () => nice(Math.max(0.5, 0.5 * scene.bodies.reduce((sum, b) => sum + b.mass, 0)));

  /* A strip under each slider with the kinds of states along it, with the other joints held. */
  const BUSY = 8;   // ms per frame
  const STRIPS = { torques: ["c", "torques"], over: ["a", "a torque beyond its limit"], near: ["e", "near a singularity"], beyond: ["line", "out of reach"] };
  let strips = null, soon = 0;
  function stripsLater() {
    clearTimeout(soon);
    strips = null;
    if (ui.tab !== "q") $("reach").replaceChildren();
    else if (hasStrips) {
      $("reach").setAttribute("aria-busy", "true");
      soon = setTimeout(() => { strips = allStrips(); work(); }, 120);
    }
  }
  function work() {
    const until = performance.now() + BUSY, mine = strips;
    while (strips && performance.now() < until) if (strips.next().done) { strips = null; $("reach").setAttribute("aria-busy", "false"); return; }
    if (strips) requestAnimationFrame(() => { if (strips === mine) work(); });
  }
  function* allStrips() {
    const seen = new Set(), from = ui.from, q = ui.q.slice();
    for (const [k, s] of rows_.entries()) {
      const [low, high] = s.span(), places = Array.from({ length: CELLS }, (_, i) => low + (i + 0.5) * (high - low) / CELLS);
      const aim = x => q.map((y, j) => j === k ? x : y), kinds = [], configurations = [];
      for (const [i, q_r] of robot.closed ? robot.along(k, q, places, from) : places.map((_, i) => [i, q])) {
        configurations[i] = q_r;
        kinds[i] = kindAt(aim(places[i]), q_r);
        yield;
      }
      const runs = [[kinds[0], low]];   // [kind, from where on], with the edges by bisection
      for (let i = 0; i + 1 < CELLS; i++) {
        const start = configurations[i] || configurations[i + 1];
        yield* halved(places[i], kinds[i], places[i + 1], kinds[i + 1], 10, runs, x => kindAt(aim(x), robot.closed ? start && robot.reached(aim(x), start) : q));
      }
      const at = x => (x - low) / (high - low) * CELLS, end = i => i + 1 < runs.length ? runs[i + 1][1] : high;
      const words = runs.map(([kind, x], i) => `${said(x)} … ${said(end(i))} ${s.unit}: ${STRIPS[kind][1]}`);
      s.under.replaceChildren(svg("title", {}, words.join("\n")), ...runs.map(([kind, x], i) =>
        svg("rect", { x: at(x), y: 0, width: at(end(i)) - at(x), height: 1, style: `fill: var(--${STRIPS[kind][0]})` })));
      s.under.setAttribute("aria-label", words.join("; "));
      runs.forEach(([kind]) => seen.add(kind));
    }
    $("reach").replaceChildren(...Object.entries(STRIPS).filter(([kind]) => seen.has(kind)).map(([, [colour, label]]) => swatch(colour, label)));
  }
  function* halved(a, before, b, after, left, runs, kind) {
    if (before === after) return;
    if (!left) { runs.push([after, (a + b) / 2]); return; }
    yield;
    const x = (a + b) / 2, between = kind(x);
    yield* halved(a, before, x, between, left - 1, runs, kind);
    yield* halved(x, between, b, after, left - 1, runs, kind);
  }
  function kindAt(q, q_r) {
    if (!q_r) return "beyond";
    try {
      const at = stateAt(q, ui.qd, ui.qdd, q_r);
      return isNear(at) ? "near" : at.torques().some((x, i) => Math.abs(x) > limited[i]) ? "over" : "torques";
    } catch { return "near"; }
  }
  const refresh = () => { if (ui.tab !== "world") rows_.forEach((s, k) => s.show(ui[ui.tab][k])); };

  /* --- the state ----------------------------------------------------------------------------- */

  function stateAt(q, qd, qdd, from) {
    if (!sensed) return robot.at(q, qd, qdd, from);
    return robot.at(...robot.agreeing(q, qd, qdd, from), from);
  }
  const isNear = at => !!robot.closed && at.condition() > 0.1 * robot.closed.condition_limit;
  let waiting = false;
  const update = () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; compute(); }); } };

  function compute() {
    const box = $("state");
    let at = null;
    try {
      at = stateAt(ui.q, ui.qd, ui.qdd, ui.from);
      if (robot.closed) ui.from = at.configuration;
      box.replaceChildren(...(isNear(at) ? [make("span", { className: "near",
        text: `near a singularity: condition number ${said(at.condition())}, limit ${said(robot.closed.condition_limit)}` })] : []));
    } catch (failure) {
      box.replaceChildren(make("span", { className: "bad", text: failure.message }), make("span", { className: "bad", text: "the drawing shows the last valid state" }));
    }
    ui.at = at;
    $("stage").classList.toggle("lost", !at);
    if (at) view.poses = at.poses();
    showTorques(at);
    view.draw();
    showFigures(at);
    showTables(at);
    if (at && !playing) stripsLater();
  }

  function showTorques(at) {
    const shares = at && Object.fromEntries(DATA.terms.map(t => [t, at.share(t)])), tau = at && at.torques();
    const units = DATA.actuated_names.map(name => joints[name].effort_unit);
    const extent = DATA.actuated_names.map((_, i) => at ? Math.max(Math.abs(tau[i]),
      DATA.terms.reduce((s, t) => s + Math.max(0, shares[t][i]), 0), -DATA.terms.reduce((s, t) => s + Math.min(0, shares[t][i]), 0)) : 0);
    const scales = {};
    extent.forEach((x, i) => { scales[units[i]] = Math.max(scales[units[i]] || 0, x); });
    for (const u of Object.keys(scales)) {   // avoids flicker
      const before = ui.scale[u] || 0, now = full(scales[u]);
      ui.scale[u] = now > before || now < before / 4 ? now : before;
    }
    $("bars").style.setProperty("--names", `${Math.min(32, Math.max(...DATA.actuated_names.map(name => name.length)))}ch`);
    $("bars").replaceChildren(...DATA.actuated_names.map((name, i) => {
      const limit = joints[name].effort, W = 1000, most = ui.own_scale ? full(extent[i]) : ui.scale[units[i]];
      const x = v => W / 2 + Math.max(-1, Math.min(1, v / most)) * (W / 2 - 6);
      const picture = svg("svg", { viewBox: `0 0 ${W} 26`, preserveAspectRatio: "none", role: "img" });
      if (at) {
        let up = 0, down = 0;
        for (const t of DATA.terms) {
          const v = shares[t][i], start = v > 0 ? up : down, end = start + v;
          if (v > 0) up = end; else down = end;
          const [a, b] = [x(start), x(end)].sort((p, q) => p - q);
          if (b - a > 0.4) picture.append(svg("rect", { x: a, y: 4, width: b - a, height: 18, style: `fill: var(--${TERMS[t][0]})` }));
        }
        if (limit != null) for (const s of [-1, 1]) if (limit <= most)
          picture.append(svg("rect", { x: x(s * limit) - 1.5, y: 0, width: 3, height: 26, style: "fill: var(--bad)" }));
        picture.append(svg("rect", { x: x(tau[i]) - 3, y: 1, width: 6, height: 24, rx: 2, style: "fill: var(--ink)" }));
      }
      picture.append(svg("rect", { x: W / 2 - 0.75, y: 0, width: 1.5, height: 26, style: "fill: var(--faint)" }));
      const over = at && limit != null && Math.abs(tau[i]) > limit;
      const number = make("span", { className: "number" + (over ? " beyond" : "") }, at ? said(tau[i], ui.scale[units[i]]) : "–", make("small", { text: ` ${units[i]}` }));
      if (at && limit != null) number.append(make("small", { text: `, ${Math.round(100 * Math.abs(tau[i]) / limit)} %` }));
      return make("div", { className: "bar-row" }, make("span", { className: "name", text: name, title: name }), picture, number);
    }));
    view.torques = at && DATA.actuated_names.map((name, i) => ({ joint: name, share: tau[i] / (ui.own_scale ? full(extent[i]) : ui.scale[units[i]]) }));
  }

  function showFigures(at) {
    const cards = [];
    const card = (label, value, unit, note) => cards.push(make("div", { className: "figure" }, make("small", { text: label }),
      make("b", {}, value, make("small", { text: unit ? ` ${unit}` : "" })), make("small", { text: note || "" })));
    const energy = at ? [at.kinetic(), at.potential()] : [NaN, NaN], beside = Math.abs(energy[0]) + Math.abs(energy[1]);
    card("kinetic energy", said(energy[0], beside), "J", "½ q̇ᵀ D q̇");
    card("potential energy", said(energy[1], beside), "J", "0 at the base's origin");
    card("motor power", said(at ? at.power() : NaN, 1e-3), "W", "τᵀ q̇");
    card("condition number", said(at ? at.condition() : NaN), "", robot.closed ? `of the passive Jacobian; limit ${said(robot.closed.condition_limit)}` : "of D(q)");
    if (at && scene.platform != null) {
      const P = at.poses().slice(12 * scene.platform, 12 * scene.platform + 12);
      card("platform", P.slice(9).map(x => said(+x.toFixed(6))).join("  "), "m", "roll, pitch, yaw " + angles(P).map(x => said(+x.toFixed(6))).join("  ") + " rad");
    }
    $("figures").replaceChildren(...cards);
  }
  const angles = P => [Math.atan2(P[7], P[8]), Math.atan2(-P[6], Math.hypot(P[7], P[8])), Math.atan2(P[3], P[0])];

  const MOST = 12;
  function showTables(at) {
    const box = $("tables");
    if (!at) { box.replaceChildren(make("p", { className: "faint", text: "the robot cannot reach this state, so it has no torques" })); return; }
    const table = (caption, M, across) => {
      const most = Math.max(...M.flat().map(Math.abs), 1e-300), t = make("table", { className: "matrix" }, make("caption", { text: caption }));
      if (across) t.append(make("tr", {}, make("th"), ...across.map(x => make("th", { text: short(x), title: x }))));
      M.forEach((r, i) => t.append(make("tr", {}, make("th", { text: short(DATA.actuated_names[i]), title: DATA.actuated_names[i] }), ...r.map(v => make("td", { text: said(v, most),
        style: `background: color-mix(in srgb, var(--${v < 0 ? "a" : "b"}) ${Math.round(34 * Math.sqrt(Math.abs(v) / most))}%, transparent)` })))));
      return t;
    };
    const large = DATA.joint_names.length > MOST;
    if (large && !ui.whole) {
      box.replaceChildren(table("g, N·m or N", at.gravity().map(x => [x])), make("p", {}, make("button", { text: `D and C, ${DATA.actuated_names.length} × ${DATA.joint_names.length}`,
        onclick: () => { ui.whole = true; stop(); showTables(ui.at); } })));
      return;
    }
    box.replaceChildren(table("D, kg·m², kg·m or kg", at.massMatrix(), DATA.joint_names), table("C, of Christoffel symbols", at.coriolisMatrix(), DATA.joint_names),
      table("g, N·m or N", at.gravity().map(x => [x])));
  }
  const short = name => name.length > 14 ? name.slice(0, 13) + "…" : name;

  /* --- assembly modes -------------------------------------------------------------------------- */

  function buildModes() {
    const modes = DATA.facts.modes || [];
    if (!robot.closed || !modes.length) return;
    $("modes").hidden = false;
    const still = zeros(DATA.joint_names.length), pictures = [];
    modes.forEach((mode, k) => {
      const canvas = make("canvas", { width: 440, height: 340 });
      const tree = DATA.tree.map(i => mode.q_r[i]), poses = PROGRAMS.poses(tree);
      const lines = make("div", {}, make("b", { text: `mode ${k + 1}${k ? "" : ", home"}` }));
      if (scene.platform != null) {
        const P = poses.slice(12 * scene.platform, 12 * scene.platform + 12);
        lines.append(make("small", { text: `platform at ${P.slice(9).map(x => said(+x.toFixed(4))).join(", ")} m` }),
          make("small", { text: `roll, pitch, yaw ${angles(P).map(x => said(+x.toFixed(3))).join(", ")} rad` }));
      }
      let holding = "";
      try {
        const tau = PROGRAMS.torques(mode.q_r, still, still, robot.world), most = Math.max(...tau.map(Math.abs));
        holding = mode.condition > robot.closed.condition_limit ? "near a singularity" : "torques at rest " + tau.slice(0, 6).map(x => said(x, most)).join(", ") + (tau.length > 6 ? " …" : "");
      } catch { holding = ""; }
      lines.append(make("small", { text: holding }), make("small", { text: `condition number ${said(mode.condition)}` }));
      const button = make("button", { className: "mode", onclick: () => choose(k) }, canvas, lines);
      pressed(button, k === 0);
      $("mode-list").append(button);
      pictures.push({ canvas, poses, button });
    });
    const small = document.createElement("canvas");
    small.width = 440; small.height = 340;
    const thumb = new View(small, null, scene, DATA.gravity);
    const all = pictures.flatMap(p => { thumb.poses = p.poses; return thumb.points(); });
    const redraw = () => pictures.forEach(p => {
      thumb.poses = p.poses; thumb.colours = null;
      if (!thumb.camera) thumb.frame(all);
      thumb.draw();
      const g = p.canvas.getContext("2d");
      g.clearRect(0, 0, 440, 340); g.drawImage(small, 0, 0);
    });
    redraw();
    onTheme(redraw);
    function choose(k) {
      stop();
      robot.reset(modes[k].q_r, modes[k].mode);
      ui.from = robot.home; ui.q = modes[k].q_r.slice(0, n); ui.mode = k;
      pictures.forEach((p, i) => pressed(p.button, i === k));
      view.poses = PROGRAMS.poses(DATA.tree.map(i => modes[k].q_r[i]));
      refresh(); update(); motion = null; buildMotion();
    }
  }

  /* --- along a motion --------------------------------------------------------------------------- */

  let motion = null, playing = null;
  const SAMPLES = 121;
  function swing(share) {  // there and back in 4 s: q(t) = start + swing (1 - cos φ) / 2, φ = 2π s(t/T)
    const T = 4, start = DATA.facts.modes && ui.mode ? ui.q.slice() : DATA.home.slice(0, n), found = { t: [], q: [], qd: [], qdd: [] };
    const amount = own.map((name, k) => {
      const j = joints[name], want = (j.turns ? 0.9 : 0.35 * reach()) * share * (k % 2 ? -1 : 1);
      const room = want > 0 ? (j.upper ?? Infinity) - start[k] : start[k] - (j.lower ?? -Infinity);
      const back = want > 0 ? start[k] - (j.lower ?? -Infinity) : (j.upper ?? Infinity) - start[k];
      return room >= back ? Math.sign(want) * Math.min(Math.abs(want), 0.8 * room) : -Math.sign(want) * Math.min(Math.abs(want), 0.8 * back);
    });
    for (let i = 0; i < SAMPLES; i++) {
      const x = i / (SAMPLES - 1), s = x ** 3 * (10 - 15 * x + 6 * x * x), v = 30 * x * x * (1 - x) ** 2 / T, a = 60 * x * (1 - x) * (1 - 2 * x) / T ** 2;
      const w = 2 * Math.PI, sine = Math.sin(w * s), cosine = Math.cos(w * s);
      found.t.push(T * x);
      found.q.push(amount.map((d, k) => start[k] + d / 2 * (1 - cosine)));
      found.qd.push(amount.map(d => d / 2 * sine * w * v));
      found.qdd.push(amount.map(d => d / 2 * (cosine * (w * v) ** 2 + sine * w * a)));
    }
    return found;
  }
  function along(m) {  // the torques by term, or null where the robot cannot go
    let from = robot.closed ? robot.home : null;
    const states = [];
    for (let i = 0; i < m.t.length; i++) {
      try {
        const at = stateAt(m.q[i].slice(0, n), m.qd[i].slice(0, n), m.qdd[i].slice(0, n), from);
        if (robot.closed) from = at.configuration;
        states.push({ at, tau: at.torques(), shares: Object.fromEntries(DATA.terms.map(t => [t, at.share(t)])), poses: at.poses() });
      } catch { if (!DATA.motion) return null; states.push(null); }
    }
    return states;
  }
  function buildMotion() {
    let m = DATA.motion, states = null;
    if (m) states = along(m);
    for (let share = 1; !states && share > 0.02; share /= 2) { m = swing(share); states = along(m); }
    if (!states) { $("motion").hidden = true; return; }
    motion = { ...m, states };
    familyChips();
    $("motion-name").textContent = DATA.motion ? DATA.motion.name : "every joint swings out and back smoothly in 4 s";
    drawCharts();
    // the view contains the whole motion
    const here = view.poses, all = view.points();
    motion.states.forEach((s, k) => { if (s && k % 8 === 0) { view.poses = s.poses; all.push(...view.points()); } });
    view.poses = here;
    view.frame(all);
    view.draw();
  }
  /* The contents of charts: [line, colour, width, dashes] by name; each gives one number per motor at a state. */
  const FAMILIES = {
    terms: { label: "by term", dots: () => [...DATA.terms.map(t => [TERMS[t][1], TERMS[t][0], s => s.shares[t], 1.6]), ["total", "ink", s => s.tau, 2.4]] },
    rotors: { label: "by rotor model", dots: () => others("rotors_", DATA.rotors, ["a", "b"]) },
    formulations: { label: "by formulation", dots: () => others("formulation_", DATA.formulation, ["b", "a", "c"], "9 7") },
  };
  function others(head, own_name, colours, dashes) {
    const names = Object.keys(PROGRAMS).filter(k => k.startsWith(head));
    const found = names.map((k, i) => [k.slice(head.length), colours[i % 3], s => robot.programs[k](s.at.configuration, s.at.qd, s.at.qdd, robot.world),
      2, dashes && `${dashes} ${2 * i + 1} 7`]);
    return found.length ? [[own_name, "ink", s => s.tau, dashes ? 4 : 2.4], ...found] : [];
  }
  function familyChips() {
    const box = $("families");
    box.replaceChildren();
    const there = Object.keys(FAMILIES).filter(k => FAMILIES[k].dots().length);
    if (there.length > 1) for (const k of there) {
      const b = make("button", { text: FAMILIES[k].label, onclick: () => { ui.family = k; familyChips(); drawCharts(); } });
      pressed(b, ui.family === k);
      box.append(b);
    }
  }
  function drawCharts() {
    const box = $("charts"), W = 560, H = 190, left = 52, right = 10, top = 8, bottom = 26;
    box.replaceChildren();
    motion.lines = [];
    const T0 = motion.t[0], T1 = motion.t[motion.t.length - 1], lines = FAMILIES[ui.family].dots();
    const laden = robot.world[3] !== 0 && ui.family === "formulations";
    const values = lines.map(([, , of]) => motion.states.map(s => s && !laden ? of(s) : null));
    const drawn = new Set();
    DATA.actuated_names.slice(0, ui.all ? undefined : MOST).forEach((name, i) => {
      const curves = values.map(v => v.map(tau => tau ? tau[i] : NaN));
      const all = curves.flat().filter(Number.isFinite);
      let low = Math.min(0, ...all), high = Math.max(0, ...all);
      if (high - low < 1e-9) { low = -1; high = 1; }
      const pad = 0.06 * (high - low); low -= pad; high += pad;
      const x = t => left + (t - T0) / (T1 - T0) * (W - left - right), y = v => top + (high - v) / (high - low) * (H - top - bottom);
      const picture = svg("svg", { viewBox: `0 0 ${W} ${H}` });
      const step = nice((high - low) / 5);
      for (let v = Math.ceil(low / step) * step; v <= high; v += step) {
        picture.append(svg("line", { x1: left, x2: W - right, y1: y(v), y2: y(v), style: `stroke: var(--${Math.abs(v) < step / 2 ? "faint" : "line"})` }));
        const label = svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" });
        label.textContent = said(v, step * 1e3); picture.append(label);
      }
      const tick = nice((T1 - T0) / 6);
      for (let k = Math.ceil(T0 / tick); k * tick <= T1 * (1 + 1e-9); k++) {
        const label = svg("text", { x: Math.min(x(k * tick), W - right - 8), y: H - 8, "text-anchor": "middle" });
        label.textContent = said(k * tick, tick * 1e3) + ((k + 1) * tick > T1 * (1 + 1e-9) ? " s" : ""); picture.append(label);
      }
      const path = values => { let pen = "M"; return motion.t.map((t, k) => { if (!Number.isFinite(values[k])) { pen = "M"; return ""; } const s = `${pen}${x(t).toFixed(1)},${y(values[k]).toFixed(1)}`; pen = "L"; return s; }).join(""); };
      curves.forEach((curve, k) => {
        const [, colour, , width, dashes] = lines[k], whole = colour === "ink";
        if (!whole && ui.family === "terms" && !curve.some(v => Math.abs(v) > 1e-9 * (high - low))) return;
        drawn.add(k);
        picture.append(svg("path", { d: path(curve), style: `fill: none; stroke: var(--${colour}); stroke-width: ${width}; stroke-linejoin: round${dashes ? `; stroke-dasharray: ${dashes}` : ""}` }));
      });
      const line = svg("line", { y1: top, y2: H - bottom, x1: left, x2: left, style: "stroke: var(--faint); stroke-dasharray: 3 3" });
      picture.append(line);
      motion.lines.push([line, x]);
      picture.addEventListener("pointerdown", seek); picture.addEventListener("pointermove", e => e.buttons && seek(e));
      function seek(e) {
        const r = picture.getBoundingClientRect(), share = ((e.clientX - r.left) / r.width * W - left) / (W - left - right);
        stop(); goTo(T0 + Math.max(0, Math.min(1, share)) * (T1 - T0));
      }
      const caption = make("figcaption", { text: `${name}, ${joints[name].effort_unit}` });
      if (ui.family !== "terms" && !laden) {
        const first = curves.findIndex((_, k) => lines[k][1] === "ink");
        const off = Math.max(0, ...curves.flatMap(c => c.map((v, k) => Math.abs(v - curves[first][k]))).filter(Number.isFinite));
        const most = Math.max(...curves[first].map(Math.abs).filter(Number.isFinite), 0);
        caption.append(make("small", { text: ui.family === "formulations" ? ` largest difference ${off ? off.toExponential(0).replaceAll("-", "−") : 0}`
          : ` largest difference ${said(off, 1e-3 * most)}${most ? `, ${said(+(100 * off / most).toPrecision(2))} % of the largest torque` : ""}` }));
      }
      box.append(make("figure", {}, caption, picture));
    });
    $("curves").replaceChildren(...lines.flatMap(([label, colour], k) => drawn.has(k) ? [swatch(colour, label)] : []),
      ...(laden ? [make("span", { text: "formulations are compared without a payload" })] : []));
    if (DATA.actuated_names.length > MOST) box.append(make("p", {}, make("button", { text: ui.all ? `only the first ${MOST} joints` : `all ${DATA.actuated_names.length} joints`,
      onclick: () => { ui.all = !ui.all; drawCharts(); } })));
  }
  function goTo(t) {
    const T = motion.t;
    let k = 0;
    while (k + 2 < T.length && T[k + 1] <= t) k++;
    const w = Math.max(0, Math.min(1, (t - T[k]) / (T[k + 1] - T[k])));
    for (const x of ["q", "qd", "qdd"]) ui[x] = motion[x][k].slice(0, n).map((v, i) => v + w * (motion[x][k + 1][i] - v));
    for (const [line, x] of motion.lines) { line.setAttribute("x1", x(t)); line.setAttribute("x2", x(t)); }
    ui.time = t;
    refresh(); compute();
  }
  function play() {
    if (playing) { stop(); return; }
    const T = motion.t, first = T[0], last = T[T.length - 1], begun = performance.now(), start = ui.time != null && ui.time < last - 1e-6 ? ui.time : first;
    const tick = now => {
      if (!playing) return;
      const t = start + (now - begun) / 1000;
      if (t >= last) { goTo(last); stop(); ui.time = null; return; }
      goTo(t);
      playing = requestAnimationFrame(tick);
    };
    playing = requestAnimationFrame(tick);
    playButton.textContent = "❚❚ pause";
  }
  function stop() { if (playing) { cancelAnimationFrame(playing); stripsLater(); } playing = null; playButton.textContent = "▶ play"; }
  const playButton = make("button", { text: "▶ play", onclick: play });

  /* --- the page ----------------------------------------------------------------------------------- */

  const themes = [];
  const onTheme = f => themes.push(f);
  function start() {
    const dof = robot.closed ? own.length : DATA.joint_names.length;
    const mass = scene.bodies.reduce((sum, b) => sum + b.mass, 0);
    $("what").textContent = [`${scene.joints.length} joint${scene.joints.length === 1 ? "" : "s"}`, `${dof} degree${dof === 1 ? "" : "s"} of freedom`, `${said(mass)} kg`,
      scene.loops.length ? `${scene.loops.length} loop${scene.loops.length === 1 ? "" : "s"} closed` : "open chain", ...(sensed ? ["with sensors on passive joints"] : [])].join(" · ");
    for (const b of document.querySelectorAll("[data-tab]")) b.addEventListener("click", () => { ui.tab = b.dataset.tab; build(); });
    const toggles = [["links", "links"], ["joints", "joints"], ["axes", "axes"], ["frames", "frames"], ["masses", "centres of mass"], ["torques", "torques"], ["names", "names"]];
    if (scene.motors.length) toggles.splice(5, 0, ["motors", "motors"]);
    if (scene.links.some(l => l.meshes.length)) toggles.splice(1, 0, ["meshes", "meshes"]);
    for (const [key, label] of toggles) {
      const b = make("button", { text: label, onclick: () => { view.shown[key] = !view.shown[key]; pressed(b, view.shown[key]); view.draw(); } });
      pressed(b, view.shown[key]);
      $("toggles").append(b);
    }
    const roles = [["motor", "a", "driven"], ["sensed", "c", "passive, sensed"], ["passive", "faint", "passive"], ["follows", "e", "follows"]].filter(([r]) => scene.joints.some(j => j.role === r));
    if (scene.loops.length) roles.push(["end", "b", "closed loop"]);
    if (roles.length > 1) $("roles").append(...roles.map(([, colour, label]) => swatch(colour, label)));
    $("actions").append(
      make("button", { text: "home", onclick: () => { stop(); const m = (DATA.facts.modes || [])[ui.mode]; ui.q = (m ? m.q_r : DATA.home).slice(0, n); ui.qd = zeros(n); ui.qdd = zeros(n); if (robot.closed) ui.from = robot.home; refresh(); update(); } }),
      make("button", { text: "at rest", onclick: () => { stop(); ui.qd = zeros(n); ui.qdd = zeros(n); refresh(); update(); } }),
      make("button", { text: "shake", title: "a random state nearby", onclick: () => {
        stop(); const k = robot.closed ? 0.12 : 0.8, r = () => 2 * Math.random() - 1;
        ui.q = ui.q.map((x, i) => { const j = joints[own[i]], [a, b] = RANGE.q(j); return Math.max(a, Math.min(b, x + k * r() * (j.turns ? 1 : 0.2 * (b - a)))); });
        ui.qd = ui.qd.map(() => 2 * r()); ui.qdd = ui.qdd.map(() => 4 * r()); refresh(); update(); } }),
      make("button", { text: "reset gravity and payload", onclick: () => { robot.world = [...DATA.gravity, 0]; build(); update(); } }));
    const scaled = make("button", { text: "scale each separately", onclick: () => { ui.own_scale = !ui.own_scale; pressed(scaled, ui.own_scale); compute(); } });
    pressed(scaled, false);
    $("scales").append(scaled);
    const used = DATA.terms.filter(t => PROGRAMS["of_" + t].length && !DATA.empty.includes(t));
    $("terms").append(...used.map(t => swatch(...TERMS[t])), swatch("ink", "total", "; width: 4px"),
      ...(DATA.actuated_names.some(x => joints[x].effort != null) ? [swatch("bad", "limit", "; width: 3px")] : []));
    $("player").append(playButton);
    build();
    view.poses = PROGRAMS.poses(DATA.tree.map(i => robot.closed ? robot.home[i] : DATA.home[i]));
    const fit = () => {
      const stage = $("stage"), chips = $("toggles");
      view.resize(); view.covered = chips.offsetHeight ? 1 - chips.offsetTop / stage.clientHeight : 0;
    };
    fit(); view.frame();
    view.listen(() => view.draw());
    compute();
    new ResizeObserver(() => { fit(); view.draw(); }).observe($("stage"));
    const repaint = () => { view.colours = null; view.draw(); themes.forEach(f => f()); };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    buildModes();
    buildMotion();
    if (DATA.motion) goTo(motion.t[0]);
    // in print all sections are open
    const folded = new Set();
    window.addEventListener("beforeprint", () => {
      stop(); repaint();
      // printing lays out the canvas again, which empties it
      const paper = $("paper"), whole = $("view");
      paper.width = whole.width; paper.height = whole.height;
      for (const each of [whole, $("labels")]) paper.getContext("2d").drawImage(each, 0, 0, paper.width, paper.height);
      for (const d of document.querySelectorAll("details:not([open])")) if (d.dataset.long === undefined) { folded.add(d); d.open = true; }
    });
    window.addEventListener("afterprint", () => { folded.forEach(d => { d.open = false; }); folded.clear(); });
  }
  start();
})();
