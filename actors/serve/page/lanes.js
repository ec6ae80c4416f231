// Rooms on their way: each is a dot that moves from phase to phase. On a canvas, so that ten thousand are no trouble; it is only drawn while
// something moves.

import { html, useEffect, useRef } from "./vendor/preact-htm.js";
import { now, onChange, select, store, useStore } from "./store.js";
import { PHASES, count, lasting, short } from "./text.js";

const TOP = 8;
const OLD_MS = 10_000;
const MANY = 2_000;

// The places of a lane. A room keeps its own for as long as it is there, and who comes takes the first that is free: so nothing moves but what
// goes on. When too many are free the rooms close ranks.
class Places {
  constructor() {
    this.of = new Map(); // the room's number to its place
    this.who = []; // the place to the room's number, or null
  }

  settle(rooms) {
    const here = new Set(rooms.map((room) => room.seq));
    for (const [seq, place] of this.of) {
      if (here.has(seq)) continue;
      this.of.delete(seq);
      this.who[place] = null;
    }
    if (this.who.length > 2 * here.size + 40) {
      const rest = [...this.of].sort(([, a], [, b]) => a - b).map(([seq]) => seq);
      this.of = new Map(rest.map((seq, place) => [seq, place]));
      this.who = rest;
    }
    let free = 0;
    for (const { seq } of rooms) {
      if (this.of.has(seq)) continue;
      while (this.who[free] != null) free += 1;
      this.who[free] = seq;
      this.of.set(seq, free);
    }
  }
}

class Lanes {
  constructor(canvas) {
    this.canvas = canvas;
    this.dots = new Map(); // by the room's number: { x, y, tx, ty, phase, out }
    this.places = PHASES.map(() => new Places());
    this.size = 8;
    this.version = -1;
    this.frame = 0;
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.observer = new ResizeObserver(() => this.layout(true));
    this.observer.observe(canvas);
    this.off = onChange(() => this.layout(false));
    this.layout(true);
  }

  end() {
    this.observer.disconnect();
    this.off();
    cancelAnimationFrame(this.frame);
  }

  // Where every dot is to be.
  layout(resized) {
    if (!resized && this.version === store.version) return;
    this.version = store.version;
    const { width, height } = this.canvas.getBoundingClientRect();
    if (!width) return;
    const scale = devicePixelRatio || 1;
    if (resized) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
    }
    this.width = width;
    this.height = height;
    const lane = width / PHASES.length;
    const columns = PHASES.map(() => []);
    for (const room of store.rooms.values()) {
      const index = PHASES.indexOf(room.phase);
      if (index >= 0) columns[index].push(room);
    }
    columns.forEach((column, index) => this.places[index].settle(column));
    const most = Math.max(1, ...this.places.map((places) => places.who.length));
    const room = (lane - 10) * (height - 2 * TOP);
    this.size = Math.max(1.5, Math.min(17, Math.floor(Math.sqrt(room / most) * 10) / 10));
    const across = Math.max(1, Math.floor((lane - 10) / this.size));
    const seen = new Set();
    columns.forEach((column, index) => {
      for (const room of column) {
        seen.add(room.seq);
        const place = this.places[index].of.get(room.seq);
        const tx = index * lane + 5 + (place % across) * this.size;
        const ty = TOP + Math.floor(place / across) * this.size;
        const dot = this.dots.get(room.seq);
        if (dot) Object.assign(dot, { tx, ty, phase: index, out: false, room });
        else this.dots.set(room.seq, { x: index ? tx : -this.size, y: ty, tx, ty, phase: index, out: false, room });
      }
    });
    for (const [seq, dot] of this.dots) {
      if (!seen.has(seq) && !dot.out) Object.assign(dot, { tx: width + 12, out: true });
    }
    this.colours();
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  colours() {
    const style = getComputedStyle(this.canvas);
    this.colour = PHASES.map((phase) => style.getPropertyValue(`--${phase}`));
    this.old = style.getPropertyValue("--bad");
    this.line = style.getPropertyValue("--line");
  }

  draw() {
    this.frame = 0;
    if (!this.width) return;
    // Of many every other frame is enough.
    const many = this.dots.size > MANY;
    if (many && (this.odd = !this.odd)) {
      this.frame = requestAnimationFrame(() => this.draw());
      return;
    }
    const context = this.canvas.getContext("2d");
    const scale = devicePixelRatio || 1;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.fillStyle = this.line;
    for (let lane = 1; lane < PHASES.length; lane++) context.fillRect(Math.round((lane * this.width) / PHASES.length), 0, 1, this.height);
    const step = this.still.matches ? 1 : many ? 0.33 : 0.18;
    const side = Math.max(1, this.size - (this.size > 4 ? 2 : 0.5));
    const time = now();
    let moves = false;
    const kinds = [...this.colour, this.old].map(() => []);
    for (const [seq, dot] of this.dots) {
      dot.x += (dot.tx - dot.x) * step;
      dot.y += (dot.ty - dot.y) * step;
      if (Math.abs(dot.tx - dot.x) + Math.abs(dot.ty - dot.y) > 0.3) moves = true;
      else [dot.x, dot.y] = [dot.tx, dot.ty];
      if (dot.out && dot.x > this.width) {
        this.dots.delete(seq);
        continue;
      }
      const old = !dot.out && dot.room.phase !== "decoding" && time - dot.room.since > OLD_MS;
      kinds[old ? PHASES.length : dot.phase].push(dot);
    }
    kinds.forEach((dots, kind) => {
      context.fillStyle = kind < PHASES.length ? this.colour[kind] : this.old;
      for (const dot of dots) context.fillRect(dot.x, dot.y, side, side);
    });
    if (moves) this.frame = requestAnimationFrame(() => this.draw());
  }

  at(x, y) {
    for (const dot of this.dots.values()) {
      if (!dot.out && x >= dot.x && y >= dot.y && x < dot.x + this.size && y < dot.y + this.size) return dot.room;
    }
    return null;
  }
}

export function LanesPanel({ theme }) {
  const { glance } = useStore();
  const canvas = useRef(null);
  const lanes = useRef(null);
  useEffect(() => {
    lanes.current = new Lanes(canvas.current);
    return () => lanes.current.end();
  }, []);
  useEffect(() => lanes.current?.layout(true), [theme]);
  const under = (event) => lanes.current.at(event.offsetX, event.offsetY);
  const hover = (event) => {
    const room = under(event);
    canvas.current.title = room ? `${short(room.room)} ${room.phase} for ${lasting(now() - room.since)}: waits for ${room.waits}` : "";
    canvas.current.classList.toggle("hand", !!room);
  };
  const click = (event) => {
    const room = under(event);
    if (room) select(room.room);
  };
  const by = new Map((glance?.phases ?? []).map((phase) => [phase.phase, phase]));
  return html`<section class="panel lanes" aria-label="Rooms by phase">
    <h2>Rooms on their way <small class="legend"><i class="old"></i>there for over 10 s</small></h2>
    <div class="heads">
      ${PHASES.map((phase) => {
        const row = by.get(phase);
        return html`<div class="head ${phase}">
          <b>${count(row?.rooms ?? 0)}</b><span>${phase}</span><small>${row?.rooms ? `oldest ${lasting(row.oldest_ms)}` : "\u00a0"}</small>
        </div>`;
      })}
    </div>
    <div class="field"><canvas ref=${canvas} onMouseMove=${hover} onClick=${click} aria-hidden="true"></canvas></div>
  </section>`;
}
