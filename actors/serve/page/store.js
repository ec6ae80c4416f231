// What is known of the cluster: filled by /events, read by everything else. A component asks with `useStore()` and is drawn again whenever
// something has come.

import { useEffect, useState } from "./vendor/preact-htm.js";

const SERIES = ["opened", "completed", "wrong", "tokens", "open", "first_p50_ms", "first_p99_ms", "between_p50_ms", "between_p99_ms"];
const SECONDS = 300;

export const store = {
  rooms: new Map(), // by number
  version: 0, // of `rooms`: what is made of all of them is made anew when it changes
  glance: null,
  series: null,
  state: "connecting", // live | lost
  lostAt: 0,
  selected: null, // what the detail is about: a room's name, or what was searched for
};

const listeners = new Set();
let drawing = false;

// Together, once a frame, however much has come.
export function changed() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    for (const tell of listeners) tell();
  });
}

export function onChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useStore() {
  const [, draw] = useState(0);
  useEffect(() => onChange(() => draw((n) => n + 1)), []);
  return store;
}

// The gateway's clock, now.
let origin = 0;
export const now = () => origin + performance.now();

function apply({ all, rows, gone, moving }) {
  const rooms = store.rooms;
  if (all) rooms.clear();
  for (const row of rows) {
    const before = rooms.get(row.seq);
    const { tokens = 0, computed = 0, positions = 0, deadline = 0 } = before ?? {};
    rooms.set(row.seq, { ...row, tokens, computed, positions, deadline });
  }
  for (const seq of gone) rooms.delete(seq);
  for (const [seq, tokens, computed, positions, deadline] of moving) {
    const room = rooms.get(seq);
    if (room) Object.assign(room, { tokens, computed, positions, deadline });
  }
  store.version += 1;
}

function extend(series) {
  const own = store.series;
  // The first second that is not known yet; some of what comes may be.
  const end = own ? own.from_s + own.opened.length : 0;
  const known = end - series.from_s;
  if (!own || known < 0) {
    // The first, or there is a hole: the page was asleep for longer than the gateway remembers.
    store.series = structuredClone(series);
    return;
  }
  for (const name of SERIES) own[name].push(...series[name].slice(known));
  const over = own.opened.length - SECONDS;
  if (over > 0) {
    for (const name of SERIES) own[name].splice(0, over);
    own.from_s += over;
  }
}

export function watch() {
  const source = new EventSource("/events");
  source.addEventListener("open", () => {
    store.state = "live";
    changed();
  });
  source.addEventListener("error", () => {
    if (store.state === "live") store.lostAt = performance.now();
    store.state = "lost";
    changed();
  });
  source.addEventListener("overview", (event) => {
    const glance = JSON.parse(event.data);
    origin = glance.now_ms - performance.now();
    // Another incarnation has another clock.
    if (store.glance?.node !== glance.node) store.series = null;
    extend(glance.series);
    store.glance = glance;
    store.state = "live";
    changed();
  });
  source.addEventListener("rooms", (event) => {
    apply(JSON.parse(event.data));
    changed();
  });
  // Ages go on by themselves.
  setInterval(changed, 1000);
}

export function select(what) {
  store.selected = what;
  const hash = what ? "#" + encodeURIComponent(what) : "";
  history.replaceState(null, "", location.pathname + hash);
  changed();
}

// Asks an operator's question to be done; returns what the gateway said.
export async function act(path) {
  try {
    const answer = await fetch(path, { method: "POST" });
    return { done: answer.ok, said: (await answer.text()).trim() };
  } catch (error) {
    return { done: false, said: `the gateway does not answer: ${error.message}` };
  }
}
